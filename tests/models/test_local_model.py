"""The local model with its real weights: started, asked, crashed, closed."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import httpx2
import pytest

from mcptrials.errors import ProviderError, ServerError, UsageError
from mcptrials.events import ToolShown
from mcptrials.models.local import LocalModel
from mcptrials.protocols import Assistant, System, ToolOutput, User
from mcptrials.trial import TrialKey

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(1200)]

NAME = "qwen2.5-coder-1.5b"
COUNT = ToolShown(
    shown_name="count_issues",
    server="tracker",
    tool="count_issues",
    description="Count the open issues of a project.",
    input_schema={"type": "object", "properties": {"project": {"type": "string"}}, "required": ["project"]},
)
ASK = (
    System("You answer with the help of tools."),
    User("How many open issues are in project BILL? Use the tools."),
)


def trial(seed: int) -> TrialKey:
    return TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=seed)


def with_model(use: Callable[[LocalModel], Awaitable[None]], name: str = NAME) -> None:
    async def main() -> None:
        model = LocalModel(name)
        try:
            await use(model)
        finally:
            await model.aclose()

    anyio.run(main)


def pid_of(model: LocalModel) -> int:
    assert model._child is not None
    return model._child._process.pid


def test_it_calls_a_tool_and_answers_from_the_result() -> None:
    async def use(model: LocalModel) -> None:
        settings = {"max_tokens": 96, "temperature": 0}
        first = await model.request(ASK, [COUNT], settings, trial(1))
        assert (first.stop, first.call_source) == ("calls", "native")
        assert [(call.name, call.raw_arguments) for call in first.calls] == [("count_issues", '{"project": "BILL"}')]
        assert first.model == "qwen2.5-coder-1.5b@cc324af070c2"
        assert first.usage is not None
        assert first.usage.input_tokens
        result = ToolOutput(first.calls[0].id, "count_issues", "37", is_error=False)
        second = await model.request([*ASK, Assistant(first), result], [COUNT], settings, trial(1))
        assert "37" in (second.text or "")

    with_model(use)


def test_a_reply_ends_after_its_call() -> None:
    async def use(model: LocalModel) -> None:
        label = ToolShown(
            shown_name="add_label",
            server="tracker",
            tool="add_label",
            description="Add a label to an issue.",
            input_schema={"type": "object", "properties": {"key": {"type": "string"}, "label": {"type": "string"}}},
        )
        ask = [User("Add the label 'urgent' to the issue AUTH-291, then answer with its key.")]
        reply = await model.request(ask, [label, COUNT], {"max_tokens": 128}, trial(1))
        assert [call.name for call in reply.calls] == ["add_label"]
        assert reply.usage is not None
        assert (reply.usage.output_tokens or 128) < 64
        ours = {"temperature": 0.7, "top_p": 0.95, "seed": 1, "stop": ["```\n"]}
        assert {key: reply.params[key] for key in ours} == ours

    with_model(use)


def test_equal_requests_give_equal_replies_when_reproducible() -> None:
    async def use(model: LocalModel) -> None:
        async def say(text: str, seed: int) -> str | None:
            settings = {"max_tokens": 24, "reproducible": True}
            return (await model.request([User(text)], [], settings, trial(seed))).text

        first = await say("Write one line of a poem about rivers.", 1)
        await say("Name a colour.", 2)
        assert await say("Write one line of a poem about rivers.", 1) == first
        assert await say("Write one line of a poem about rivers.", 3) != first

    with_model(use)


def test_it_listens_only_for_those_who_know_its_key_and_tells_it_nobody() -> None:
    async def use(model: LocalModel) -> None:
        await model.start()
        endpoint = model.endpoint
        assert endpoint is not None
        assert endpoint.api_key is not None
        assert endpoint.base_url.startswith("http://127.0.0.1:")
        assert endpoint.api_key not in await anyio.Path(f"/proc/{pid_of(model)}/cmdline").read_text()
        async with httpx2.AsyncClient(base_url=endpoint.base_url, trust_env=False) as stranger:
            assert (await stranger.post("chat/completions", json={"messages": []})).status_code == 401

    with_model(use)


def test_a_conversation_longer_than_its_window_is_an_overflow() -> None:
    async def use(model: LocalModel) -> None:
        with pytest.raises(ServerError) as caught:
            await model.request([User("word " * 600)], [], {"max_tokens": 5}, trial(1))
        assert caught.value.cause == "context_overflow"

    with_model(use, f"{NAME}?ctx=512")


def test_after_a_crash_it_is_started_again_once() -> None:
    async def use(model: LocalModel) -> None:
        async def ask() -> None:
            await model.request([User("Say hi.")], [], {"max_tokens": 3}, trial(1))

        await ask()
        for retryable in (True, False):
            os.kill(pid_of(model), signal.SIGKILL)
            with pytest.raises(ProviderError, match="the local model died") as caught:
                await ask()
            assert (caught.value.cause, caught.value.retryable) == ("connection", retryable)
            if retryable:
                await ask()

    with_model(use)


def test_it_is_gone_when_closed() -> None:
    async def use(model: LocalModel) -> None:
        await model.start()
        pid = pid_of(model)
        await model.aclose()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert model.endpoint is None

    with_model(use)


PARENT = f"""
import anyio
from mcptrials.models.local import LocalModel

async def main():
    model = LocalModel({NAME!r})
    await model.start()
    print(model._child._process.pid, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


def test_it_does_not_outlive_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        ended = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    gone, _, _ = select.select([ended], [], [], 30)
    os.close(ended)
    assert gone


@pytest.mark.parametrize("content", [b"GGUF" + bytes(100), b"GGUF\3\0\0\0" + b"\xff" * 100])
def test_a_broken_file_is_answered_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="the model broken cannot be loaded: gguf_init") as caught:
        anyio.run(LocalModel(str(path)).start)
    assert "\n" not in str(caught.value)
