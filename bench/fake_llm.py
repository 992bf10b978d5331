"""An OpenAI-compatible endpoint with a settable latency: one tool call, then an answer.

Raw asyncio without a framework, so that it is never the bottleneck.

    python fake_llm.py LATENCY_S    # prints its base URL, then serves until its standard input ends
"""

import asyncio
import itertools
import json
import sys
from typing import Any

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
_ids = itertools.count()


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """A call of the first tool, or the answer once a tool has said something."""
    number, tools = next(_ids), body.get("tools") or []
    message: dict[str, Any] = {"role": "assistant", "content": "<answer>5</answer>"}
    if tools and not any(each.get("role") == "tool" for each in body["messages"]):
        call = {"name": tools[0]["function"]["name"], "arguments": json.dumps({"a": 2, "b": 3})}
        call_id = f"call_{number}"
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": call_id, "type": "function", "function": call}]
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "fake"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": USAGE,
    }


async def read_body(reader: asyncio.StreamReader) -> bytes | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    except asyncio.IncompleteReadError:
        return None
    length = next(line.split(":")[1] for line in head.split("\r\n") if line.startswith("content-length:"))
    return await reader.readexactly(int(length))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, latency_s: float) -> None:
    try:
        while (body := await read_body(reader)) is not None:
            await asyncio.sleep(latency_s)
            text = json.dumps(reply(json.loads(body))).encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
            writer.write(head.encode() + text)
            await writer.drain()
    except (ConnectionError, asyncio.CancelledError):  # the client has gone, or the bench is over
        pass
    finally:
        writer.close()


async def main(latency_s: float) -> None:
    server = await asyncio.start_server(lambda r, w: serve(r, w, latency_s), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(float(sys.argv[1])))
