"""A server that misbehaves on demand, for trying out MCP clients: `python -m mcptrials.servers.faulty --fault NAME ...`

It speaks both protocol generations and needs nothing but the standard library, so that it starts at once.

    --era modern|legacy    speak only server/discover (2026-07-28), or only initialize (2025-11-25)
    --state FILE           what `remember` writes and `recall` reads; memory.txt in the working directory by default
    --fault NAME[=VALUE]   may stand several times

Tools: echo(text), add(a, b), fail(message), wait(seconds), remember(text), recall(), environment(), and
misbehave(fault, value), which answers that one call with a fault "of calls". By --fault they spoil every call.

At the start: banner (three lines that are no messages), exit=CODE, slow_start=SECONDS, ignore_eof, ignore_term,
grandchild (in its process group), stray (in a session of its own), daemon (without parent or environment, too),
flood_stderr=MB.
Of the handshake: silent (reads and never answers), refuse, bad_initialize, text_initialize, no_probe (ignores
server/discover), other_version (wants to be asked again), locked_modern (as after a probe that came too late).
Of the list: two_pages, endless_pages, same_cursor, number_cursor, bad_tools, odd_names, many_tools=COUNT,
nameless_tools=COUNT, deep_schema=LEVELS, list_error, list_text, list_hang, promises (an output schema that misbehave
does not keep to), tenants (echo also takes a tenant, which it needs), patterns (echo takes what a slow pattern fits).
Of calls: crash=CODE, hang, late=SECONDS, wrong_id, duplicate, string_id, null_id, no_version, noise, bad_utf8,
surrogate, control (NUL and U+2028), nan, overflow (1e999), deep=LEVELS, huge=MB, flood=COUNT (of notifications),
close_stdout, two_outcomes (result and error), rpc_error, closed_error (-32000, as clients make it up), error_text,
result_text, no_content, content_text, structured_only, image, resource, blob, resource_link, unknown_block, tool_error,
audio, no_block_type, null_content, null_structured, many_blocks (of every kind), odd_error (isError that is no
boolean), early (the answer twice, first to the id of the next request), answer_after_error, progress, log, list_changed
(a tool more from then on), cancel (of the request that it answers), input_required (never satisfied), ask (a request of
its own first, without waiting), ask_flood=COUNT, and what waits for the client and answers with what it got: ping,
elicit, elicit_form, elicit_url, sample, roots, ask_nonsense, ask_all.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_writing = threading.Lock()


def write(lines: list[bytes]) -> None:
    """Each line whole, from whatever thread."""
    with _writing:
        for line in lines:
            sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def text(content: str, **keys: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], **keys}


def beside(**block: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "before"}, block]}


def filled(lines: list[bytes], number: Any, result: Any) -> list[bytes]:
    following = number + 1 if isinstance(number, int) else 0
    lines = [line.replace(b"NEXT", b"%d" % following, 1) for line in lines]
    numbered = [line.replace(b"ID", json.dumps(number).encode(), 1) for line in lines]
    return [line.replace(b"FINE", json.dumps(result).encode(), 1) for line in numbered]


START: dict[str, Callable[[str], Any]] = {
    "banner": lambda _: write(["Server started ✓".encode(), b'{"level":"info","msg":"x"}', b""]),
    "exit": lambda code: sys.stderr.write("faulty: cannot open the database\n") and sys.exit(int(code or 1)),
    "slow_start": lambda seconds: time.sleep(float(seconds or 1)),
    "ignore_term": lambda _: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "grandchild": lambda _: os.posix_spawnp("sleep", ["sleep", "600"], os.environ),
    "stray": lambda _: os.posix_spawnp("sleep", ["sleep", "600"], os.environ, setsid=True),
    "daemon": lambda _: os.posix_spawnp("setsid", ["setsid", "-f", "sleep", "600"], {"PATH": os.defpath}),
    "flood_stderr": lambda megabytes: sys.stderr.write("stderr\n" * (int(megabytes or 10) * 149_797)),
}

# Answers are lines as they go over the wire; ID stands for the request's id, FINE for an ordinary result.
FINE = text("fine")
ANSWER = b'{"jsonrpc":"2.0","id":ID,"result":FINE}'
OTHER = b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"other","data":{"supported":["2026-07-28"]}}}'
UNKNOWN_METHOD = b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}'
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
ASKS = b'{"jsonrpc":"2.0","id":NUMBER,"method":"elicitation/create","params":{"message":"again?"}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
EARLY: dict[str, list[bytes]] = {
    "silent": [],
    "no_probe": [],
    "refuse": [b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"licence expired"}}'],
    "bad_initialize": [b'{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":5}}'],
    "text_initialize": [b'{"jsonrpc":"2.0","id":ID,"result":"hello"}'],
    "other_version": [OTHER],
    "locked_modern": [OTHER],
    "list_error": [b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"no list today"}}'],
    "list_text": [b'{"jsonrpc":"2.0","id":ID,"result":{"tools":"none"}}'],
    "list_hang": [],
}
CALL: dict[str, list[bytes]] = {
    "hang": [],
    "wrong_id": [b'{"jsonrpc":"2.0","id":999999,"result":FINE}'],
    "duplicate": [ANSWER, ANSWER],
    "string_id": [b'{"jsonrpc":"2.0","id":"ID","result":FINE}'],
    "null_id": [b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"which one?"}}'],
    "no_version": [b'{"id":ID,"result":FINE}'],
    "noise": [b"DEBUG in call", b"[1, 2]", b"", ANSWER],
    "control": [b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a\\u0000b\xe2\x80\xa8c"}]}}'],
    "bad_utf8": [b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a\xff\xfeb"}]}}'],
    "overflow": [b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"n":1e999}}}'],
    "two_outcomes": [b'{"jsonrpc":"2.0","id":ID,"result":FINE,"error":{"code":1,"message":"both"}}'],
    "rpc_error": [b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"Unknown tool","data":{"hint":1}}}'],
    "closed_error": [b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"Connection closed"}}'],
    "error_text": [b'{"jsonrpc":"2.0","id":ID,"error":"boom"}'],
    "early": [b'{"jsonrpc":"2.0","id":NEXT,"result":FINE}', ANSWER],
    "answer_after_error": [b'{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"first"}}', ANSWER],
    "progress": [*[PROGRESS.replace(b"1", step) for step in (b"1", b"1", b"-5")], ANSWER, PROGRESS],
    "log": [NOTE, ANSWER, NOTE],
    "cancel": [b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}', ANSWER],
    "ask": [b'{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"message":"who?"}}', ANSWER],
}
RESULT: dict[str, Any] = {
    "result_text": "only text",
    "no_content": {},
    "content_text": {"content": "only text"},
    "structured_only": {"content": [], "structuredContent": {"n": 42, "a": [1, 2.5, None]}},
    "image": beside(type="image", data="aGVsbG8=", mimeType="image/png"),
    "resource": beside(type="resource", resource={"uri": "file:///a", "text": "inside"}),
    "blob": beside(type="resource", resource={"uri": "file:///b", "blob": "aGVsbG8="}),
    "resource_link": beside(type="resource_link", uri="file:///c", name="c", mimeType="text/plain"),
    "unknown_block": beside(type="video", data="aGVsbG8=", mimeType="video/mp4"),
    "tool_error": text("the disk is full", isError=True),
    "input_required": {"resultType": "input_required", "inputRequests": {}, "requestState": "s"},
    "surrogate": text("a\ud800b", structuredContent={"\udfff": "\ud800"}),
    "nan": text("not a number", structuredContent={"n": float("nan")}),
    "audio": beside(type="audio", data="aGVsbG8=", mimeType="audio/wav"),
    "no_block_type": beside(data="aGVsbG8="),
    "null_content": {"content": None},
    "null_structured": text("fine", structuredContent=None),
    "odd_error": text("all is well", isError="false"),
}
KINDS = ("image", "resource", "blob", "resource_link", "unknown_block", "audio", "no_block_type")
RESULT["many_blocks"] = {"content": [RESULT[name]["content"][1] for name in KINDS]}
CALL |= {name: [ANSWER.replace(b"FINE", json.dumps(result).encode())] for name, result in RESULT.items()}
SIZED: dict[str, Callable[[int], list[bytes]]] = {
    "crash": lambda code: os._exit(code or 3),
    "deep": lambda n: [ANSWER.replace(b"FINE", b'{"content":[],"x":' + b"[" * n + b"]" * n + b"}")],
    "huge": lambda n: [ANSWER.replace(b"FINE", json.dumps(text("z" * (n << 20))).encode())],
    "flood": lambda n: [*[NOTE] * n, ANSWER],
    "ask_flood": lambda n: [*[ASKS.replace(b"NUMBER", b'"f%d"' % each) for each in range(n)], ANSWER],
    "close_stdout": lambda _: [b"stdout is gone"] * os.dup2(2, 1),
}


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
}
QUESTIONS: dict[str, dict[str, Any]] = {  # what may be asked of a client, by name
    "ping": {"method": "ping"},
    "elicit": {"method": "elicitation/create", "params": {"message": "which size?", "requestedSchema": FORM}},
    "elicit_form": {
        "method": "elicitation/create",
        "params": {"message": "who?", "requestedSchema": {**FORM, "required": ["name"]}},
    },
    "elicit_url": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "log in", "url": "http://127.0.0.1/", "elicitationId": "1"},
    },
    "sample": {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "say yes"}}], "maxTokens": 9},
    },
    "roots": {"method": "roots/list"},
    "ask_nonsense": {"method": "elicitation/create", "params": {"requestedSchema": 7, "message": ["?"]}},
}


def nested(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def tool(name: str, schema: Any = None, **takes: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in takes.items()}
    required = [name for name in takes if name != "value"]
    schema = schema or {"type": "object", "properties": properties, "required": required}
    reads = {"readOnlyHint": name not in ("remember", "misbehave")}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema, "annotations": reads}


TOOLS: list[Any] = [
    *[tool("echo", text="string"), tool("add", a="integer", b="integer"), tool("fail", message="string")],
    *[tool("wait", seconds="number"), tool("remember", text="string"), tool("recall"), tool("environment")],
    tool("misbehave", fault="string", value="string"),
]
BAD_SCHEMAS = [{"name": "no_schema"}, tool("text_schema", {"type": "string"}), {"name": "null", "inputSchema": None}]
NAMELESS = [{"inputSchema": {"type": "object"}}, tool(""), tool("\ud800"), "no object"]
TENANT = tool("echo", text="string", tenant="string", value="string")
SLOW = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a|a)*$"}}}
ODD_NAMES = [tool(name) for name in ("calendar.list", "has space", "é漢", "x" * 100, "a/b", "a.b")]
PAGES: dict[str, Callable[[str | None], Any]] = {  # of the cursor
    "two_pages": lambda cursor: {"tools": TOOLS[:1], "nextCursor": ""} if cursor is None else {"tools": TOOLS[1:]},
    "endless_pages": lambda cursor: {"tools": [], "nextCursor": str(int(cursor or 0) + 1)},
    "same_cursor": lambda _: {"tools": [], "nextCursor": "again"},
    "bad_tools": lambda _: {"tools": [*TOOLS, *BAD_SCHEMAS, *NAMELESS, TOOLS[0]]},
    "promises": lambda _: {"tools": [*TOOLS[:-1], {**TOOLS[-1], "outputSchema": {"required": ["m"]}}]},
    "odd_names": lambda _: {"tools": [*TOOLS, *ODD_NAMES]},
    "number_cursor": lambda _: {"tools": TOOLS, "nextCursor": 7},
    "tenants": lambda _: {"tools": [TENANT, *TOOLS[1:]]},
    "patterns": lambda _: {"tools": [tool("echo", SLOW), *TOOLS[1:]]},
}
COUNTED: dict[str, Callable[[int], Any]] = {  # of tools or levels
    "many_tools": lambda count: {"tools": [*TOOLS, *(tool(f"tool_{number}") for number in range(count))]},
    "nameless_tools": lambda count: {"tools": [*TOOLS, *[NAMELESS[0]] * count]},
    "deep_schema": lambda levels: {"tools": [tool("deep", nested(levels)), *TOOLS]},
}
KNOWN = {*START, *EARLY, *PAGES, *COUNTED, *CALL, *SIZED, *QUESTIONS, "ask_all", "list_changed", "late", "ignore_eof"}


class Faulty:
    """Serves until its input ends."""

    def __init__(self, era: str, state: str, faults: dict[str, str]) -> None:
        self.era, self.state, self.faults, self.handshakes = era, state, faults, 0
        self.modern, self.changed = False, False
        self.waiting: dict[Any, Any] = {}

    def serve(self) -> None:
        for name, value in self.faults.items():
            START.get(name, str)(value)
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "id" in message and "method" in message:
                self.answer(message["id"], message["method"], message.get("params") or {})
            elif message.get("id") in self.waiting:
                number, left = self.waiting.pop(message["id"])
                left.append({key: message[key] for key in ("result", "error") if key in message})
                if number not in [waits for waits, _ in self.waiting.values()]:
                    write(filled([ANSWER], number, text(json.dumps(left))))
        if "ignore_eof" in self.faults:
            time.sleep(600)

    def answer(self, number: Any, method: str, params: dict[str, Any]) -> None:
        if method == "tools/call":
            result = self.call(number, params["name"], params.get("arguments") or {}, params)
        elif method == "tools/list":
            result = self.listing(params.get("cursor"))
        else:
            result = self.handshake(method)
        lines, result = (result, FINE) if isinstance(result, list) else ([ANSWER], result)
        write(filled(lines, number, result))

    def handshake(self, method: str) -> Any:
        self.handshakes += method != "ping"
        over = {"no_probe": method == "initialize", "other_version": self.handshakes > 1}
        over["locked_modern"] = method == "server/discover" and self.handshakes > 1
        for name in self.faults:
            if name in EARLY and not over.get(name, name.startswith("list_")):
                return EARLY[name]
        info, common = {"name": "faulty", "version": "1.0"}, {"capabilities": {"tools": {}}, "instructions": "Ask."}
        self.modern = method == "server/discover" or (self.modern and method != "initialize")
        if method == "initialize" and self.era != "modern":
            return {"protocolVersion": "2025-11-25", "serverInfo": info, **common}
        if method == "server/discover" and self.era != "legacy":
            meta = {"io.modelcontextprotocol/serverInfo": info}
            return {"supportedVersions": ["2026-07-28"], "_meta": meta, "ttlMs": 0, **common}
        return {} if method == "ping" else [UNKNOWN_METHOD]

    def listing(self, cursor: str | None) -> Any:
        for name in self.faults:
            if name == "list_changed":
                continue
            if name in COUNTED:
                return COUNTED[name](int(self.faults[name]))
            if name in PAGES or name.startswith("list_"):
                return PAGES[name](cursor) if name in PAGES else EARLY[name]
        return {"tools": [*TOOLS, tool("extra")] if self.changed else TOOLS}

    def ask(self, number: Any, params: dict[str, Any], names: list[str]) -> Any:
        """Asks the client, each generation in its way, and answers with what comes back."""
        if "inputResponses" in params:
            state = params.get("requestState")
            return text(json.dumps([{"result": each} for each in params["inputResponses"].values()] + [state]))
        if self.modern and "ping" not in names:
            inside = {name: {"params": {}, **QUESTIONS[name]} for name in names}
            return {"resultType": "input_required", "inputRequests": inside, "requestState": "s"}
        got: list[Any] = []
        self.waiting |= {f"{number}/{name}": (number, got) for name in names}
        asked = [{"jsonrpc": "2.0", "id": f"{number}/{name}", **QUESTIONS[name]} for name in names]
        write([json.dumps(each).encode() for each in asked])
        return []

    def call(self, number: Any, name: str, given: dict[str, Any], params: dict[str, Any]) -> Any:
        faults = {given.get("fault"): given.get("value", "")} if name == "misbehave" else self.faults
        for fault, value in faults.items():
            if fault in CALL or fault in SIZED:
                return CALL[fault] if fault in CALL else SIZED[fault](int(value or 0))
            if fault in QUESTIONS or fault == "ask_all":
                names = [each for each in QUESTIONS if each not in ("ping", "ask_nonsense")]
                return self.ask(number, params, names if fault == "ask_all" else [str(fault)])
            if fault == "list_changed":
                self.changed = True
                write([CHANGED])
                return FINE
            if fault == "late":
                return self.later(float(value), number)
        try:
            return self.later(given["seconds"], number) if name == "wait" else self.plain(name, given)
        except (KeyError, TypeError, OSError) as exc:
            return text(f"cannot call {name}: {exc!r}", isError=True)

    def later(self, seconds: float, number: Any) -> Any:
        timer = threading.Timer(seconds, write, [filled([ANSWER], number, FINE)])
        timer.daemon = True
        timer.start()
        return []

    def plain(self, name: str, given: dict[str, Any]) -> Any:
        if name == "echo":
            return text(json.dumps(given)) if "tenant" in given else text(given["text"])
        if name == "add":
            return text(str(given["a"] + given["b"]))
        if name == "fail":
            return text(given["message"], isError=True)
        if name == "environment":
            return text(json.dumps(dict(os.environ)))
        mode = {"remember": "a", "recall": "r"}[name]
        with open(self.state, mode, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would double the time to start
            return text(file.read() if mode == "r" else f"{file.write(given['text'])} characters")


def main(arguments: list[str]) -> None:
    options, faults = {"--era": "both", "--state": "memory.txt"}, {}
    for flag, value in zip(arguments[::2], arguments[1::2], strict=True):
        name, _, setting = value.partition("=")
        if flag == "--fault" and name in KNOWN:
            faults[name] = setting
        elif flag in options:
            options[flag] = value
        else:
            sys.exit(f"faulty: there is no {flag} {value}\n\n{__doc__}")
    Faulty(options["--era"], options["--state"], faults).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
