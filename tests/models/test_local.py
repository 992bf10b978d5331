"""Names of local models, and calls they write as text; what needs weights is tested beside this."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from mcptrials.errors import UsageError
from mcptrials.events import CallAsked, ToolShown
from mcptrials.models.local import DEFAULT_CTX, FENCE_TEMPLATE, LocalModel, parse_name, read_leniently
from mcptrials.models.registry import QWEN_CODER
from mcptrials.protocols import Assistant, Reply, ReplyStop, User

LOOK = ToolShown(shown_name="look", server="s", tool="look", description=None, input_schema={})
CALL = '{"name": "look", "arguments": {"key": 1}}'


def reply(text: str | None, *calls: CallAsked, stop: ReplyStop = "answer") -> Reply:
    return Reply(
        text=text, reasoning=None, calls=calls, stop=stop, usage=None, model=None, native={"content": text}, raw={}
    )


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF\3\0\0\0")
    return path


def test_a_registered_name_brings_its_template() -> None:
    name = parse_name("qwen2.5-coder-1.5b")
    assert (name.model, name.template, name.ctx) == (QWEN_CODER, FENCE_TEMPLATE, DEFAULT_CTX)
    assert name.effective_name == "qwen2.5-coder-1.5b@cc324af070c2"
    assert FENCE_TEMPLATE.is_file()


def test_a_file_of_the_user_brings_its_own_template_unless_one_is_given(gguf: Path, tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("{{ messages }}")
    assert parse_name(str(gguf)).template is None
    name = parse_name(f"{gguf}?template={template}&ctx=4096")
    assert (name.model, name.template, name.ctx, name.effective_name) == (gguf, template, 4096, "mine")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt-7", "there is no local model 'gpt-7'"),
        ("/nowhere/x.gguf", "cannot read the model file"),
        ("x.gguf", "cannot read the model file"),
        ("qwen2.5-coder-1.5b?ctx=many", "no number of tokens"),
        ("qwen2.5-coder-1.5b?ctx=", "no number of tokens"),
        ("qwen2.5-coder-1.5b?ctx=0", "no number of tokens"),
        ("qwen2.5-coder-1.5b?threads=3", "unknown option 'threads'"),
        ("qwen2.5-coder-1.5b?template=/nowhere", "no such chat template"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_starts(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LocalModel(name)


def test_a_missing_runtime_is_answered_with_what_to_install(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError, match=r"pip install 'mcptrials\[local\]'"):
        anyio.run(LocalModel(str(gguf)).start)


def test_a_model_that_never_started_is_closed_all_the_same() -> None:
    model = LocalModel("qwen2.5-coder-1.5b")
    anyio.run(model.aclose)
    assert model.endpoint is None


def test_the_server_refuses_to_serve_without_a_key() -> None:
    argv = [sys.executable, "-m", "mcptrials.models.local_server", "x.gguf", "--alias=x", "--ctx=1", "--threads=1"]
    done = subprocess.run(argv, input="", capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no API key on standard input\n")


def test_a_call_written_as_text_becomes_a_call_that_says_so() -> None:
    found = read_leniently(reply(f"I look.\n{CALL}"), [LOOK], [User("?"), Assistant(reply("x"))])
    assert found.calls == (CallAsked(id="text_1_0", name="look", raw_arguments='{"key": 1}'),)
    assert (found.stop, found.call_source, found.native) == ("calls", "lenient", {"content": f"I look.\n{CALL}"})


@pytest.mark.parametrize(
    "given",
    [
        reply("It is 3."),
        reply(None),
        reply('{"name": "unknown", "arguments": {}}'),
        reply(CALL, CallAsked(id="a", name="look", raw_arguments="{}"), stop="calls"),
    ],
)
def test_a_reply_without_calls_in_its_text_stays_as_it_is(given: Reply) -> None:
    assert read_leniently(given, [LOOK], []) is given


def test_without_tools_nothing_is_a_call() -> None:
    assert read_leniently(reply(CALL), [], []).calls == ()
