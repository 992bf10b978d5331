"""Runs written by hand whose trials have transcripts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hand_made import manifest, record, run_of, task

from mcptrials.comparison import Question
from mcptrials.encoding import dump_line
from mcptrials.events import (
    CallAsked,
    Event,
    FinalAnswer,
    ModelReply,
    PromptGiven,
    ToolAnswered,
    ToolCalled,
    ToolShown,
    Usage,
)
from mcptrials.page import Contents, Shown, contents_of
from mcptrials.record import Record
from mcptrials.store import Run

HOSTILE = (
    "</script></pre></details><script>document.title='owned'</script>"
    "<img src=x onerror=\"document.title='owned'\"><style>*{display:none}</style>"
    "<!-- ]]> & &lt; {{ 7 * 7 }} {% raw %} | a `b` *c* [d](javascript:alert(1)) @everyone #1 https://evil.example/ "
    "\x1b[2J\x07\x00 \u202egnp.exe\u202c \u2028 zero\u200bwidth \U000e0041tag \"'"
)


def events_of(said: str = "5", result: str = "five", asked: str = "How much?", tool: str = "add") -> list[Event]:
    """A trial with one call."""
    asked_call = CallAsked(id="1", name="add", raw_arguments="{}")
    usage = Usage(input_tokens=100, output_tokens=10)
    told = ToolShown(shown_name="add", server="s", tool=tool, description=said, input_schema={"type": "object"})
    reply: dict[str, Any] = {"call_source": "native", "usage": usage, "model": None, "native": None, "reasoning": said}
    call = ToolCalled(
        at_ms=3, call_id="1", shown_name="add", server="s", tool=tool, arguments={"a": said}, raw_arguments="{}",
        unknown_tool=False, argument_error=None,
    )  # fmt: skip
    return [
        PromptGiven(at_ms=0, system=said, user=asked, tools=(told,)),
        ModelReply(at_ms=1, ms=1, turn=1, text=said, calls=(asked_call,), stop="calls", **reply),
        call,
        ToolAnswered(
            at_ms=4, ms=1, call_id="1", server="s", tool=tool, status="ok", result=None, error=None, shown=result
        ),
        ModelReply(at_ms=5, ms=1, turn=2, text=said, calls=(), stop="answer", **reply),
        FinalAnswer(at_ms=6, answer=said, framing="tagged"),
    ]


def tell(run: Run, each: Record, events: Sequence[Event]) -> None:
    path = run.folder / each.transcript
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(dump_line(event.model_dump()) for event in events))


def told_run(folder: Path, records: Sequence[Record], events: Sequence[Event], **keys: Any) -> Run:
    """A run whose trials all have these events."""
    tasks = [task(task_id) for task_id in dict.fromkeys(each.task_id for each in records)]
    run = run_of(folder, manifest(tasks, run_id=folder.name, **keys), records)
    for each in records:
        tell(run, each, events)
    return run


def simple_records(tasks: str = "abcdef", trials: int = 2, **keys: Any) -> list[Record]:
    """Every second task passes always, the others every second time."""
    return [
        record(task_id, number, "failed" if index % 2 and number % 2 else "passed", **keys)
        for index, task_id in enumerate(tasks)
        for number in range(1, trials + 1)
    ]


def page_of(*runs: Run, shown: Shown = "train") -> Contents:
    return contents_of(runs, [], (), (Question(), shown))
