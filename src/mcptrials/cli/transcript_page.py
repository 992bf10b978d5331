"""A transcript as a person reads it: what was asked, what was thought, what was called, what came of it."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.rule import Rule

from mcptrials.cli.screen import SCRIPTED_LABEL, from_here, safe
from mcptrials.counting import counted
from mcptrials.encoding import dump_text
from mcptrials.events import (
    ContractViolation,
    Event,
    Failure,
    FinalAnswer,
    LimitReached,
    ModelAttempt,
    ModelReply,
    PresentationChange,
    PromptGiven,
    ServerAsked,
    ServerExited,
    ServerLog,
    ServerStarted,
    StateRead,
    ToolAnswered,
    ToolCalled,
    ToolsListed,
)
from mcptrials.record import NO_SUCH_TOOL, Record
from mcptrials.store import Run
from mcptrials.transcript import Transcript

SHORT = 600
"""Characters of a result that are shown unless all of it is asked for."""

Line = tuple[str, str]
"""Text and style of one line: a line end in it is shown, since it would begin a line that nobody wrote."""


def print_transcript(console: Console, run: Run, record: Record, transcript: Transcript, *, full: bool) -> None:
    """The whole page of one trial."""
    if run.scripted:
        console.print(safe(SCRIPTED_LABEL, "bold yellow"))
    _print_header(console, record)
    for event in transcript.events:
        for text, style in _lines(event, SHORT if not full else 1 << 30):
            console.print(safe(text, style))
    _print_grades(console, record)
    console.print(safe(f"file: {from_here(str(run.folder / record.transcript))}", "dim"))


def _print_header(console: Console, record: Record) -> None:
    console.print(Rule(safe(f"{record.task_id} · trial {record.trial}")))
    console.print(safe(f"{record.arm_label} · server {record.server_name} {record.server_version}", "dim"))
    cause = f" ({record.cause}; blame: {record.blame})" if record.cause else ""
    style = {"passed": "bold green", "failed": "bold red"}.get(record.verdict, "bold yellow")
    console.print(safe(f"{record.verdict}{cause}", style))
    if record.error:
        console.print(safe(record.error, "yellow"))
    console.print()


def _print_grades(console: Console, record: Record) -> None:
    console.print(Rule(safe("grades")))
    for grade in record.graders:
        word = {True: "pass", False: "fail", None: "not graded"}[grade.passed]
        style = {True: "green", False: "red", None: "yellow"}[grade.passed]
        role = "" if grade.gate else " (reported only)"
        evidence = f": {grade.evidence}" if grade.evidence else ""
        if grade.previous:
            was = {"True": "pass", "False": "fail"}.get(str(grade.previous.get("passed")), "not graded")
            evidence += f" (before: {was}, {grade.previous.get('reason')})"
        console.print(safe(f"{word:10} {grade.name}{role} · {grade.reason}{evidence}", style))
    duration = "" if record.duration_ms is None else f"{record.duration_ms / 1000:.1f} s · "
    tokens = "tokens not reported"
    if record.input_tokens is not None:
        tokens = f"{counted(record.input_tokens, 'token')} in, {record.output_tokens} out"
    calls = f"{counted(record.tool_calls, 'call')}, {counted(record.tool_errors, 'tool error')}"
    if record.unknown_tools:
        calls += f", {record.unknown_tools} of tools that are not there"
    console.print(safe(f"{duration}{calls} · {tokens}", "dim"))


def _lines(event: Event, limit: int) -> Iterator[Line]:
    """How an event reads; events that a person does not miss give nothing."""
    match event:
        case PromptGiven():
            yield from _prompt(event)
        case ServerStarted():
            tools = counted(event.tool_count, "tool")
            yield f"[{_at(event)}] server {event.server}: {tools}, {event.protocol_version}", "dim"
        case ModelReply():
            yield from _reply(event, limit)
        case ToolCalled():
            yield from _call(event)
        case ToolAnswered():
            yield from _answer(event, limit)
        case ModelAttempt() if event.error:
            yield f"[{_at(event)}] attempt {event.attempt}: {event.error}; waits {event.wait_ms / 1000:.1f} s", "yellow"
        case _:
            yield from _rest(event, limit)


def _rest(event: Event, limit: int) -> Iterator[Line]:
    match event:
        case PresentationChange():
            place = f" {event.rule} at {event.path}" if event.rule else ""
            yield f"    shown differently ({event.policy}): {event.subject}{place}", "dim"
        case ContractViolation():
            yield f"[{_at(event)}] server {event.server} broke the protocol: {event.what}: {event.detail}", "yellow"
        case LimitReached():
            yield f"[{_at(event)}] limit reached: {event.limit} = {event.value:g}", "bold yellow"
        case FinalAnswer():
            yield f"answer ({event.framing}): {event.answer}", "bold"
        case StateRead():
            found = f"error: {event.error}" if event.error else dump_text(event.value)
            yield f"state of {event.query!r}: {_short(found, limit)}", "magenta"
        case Failure():
            yield f"[{_at(event)}] {event.blame}: {event.cause}: {event.message}", "bold red"
        case ServerAsked() | ToolsListed() | ServerLog():
            yield _told(event)
        case ServerExited() if event.how != "closed" or event.exit_code or event.stderr_tail.strip():
            code = "" if event.exit_code is None else f", exit code {event.exit_code}"
            wrote = "; it wrote to stderr:" if event.stderr_tail.strip() else ""
            odd = event.how != "closed" or event.exit_code
            yield f"[{_at(event)}] server {event.server} ended: {event.how}{code}{wrote}", "yellow" if odd else "dim"
            yield from _indented(_short(event.stderr_tail.strip(), limit), "dim")


def _told(event: ServerAsked | ToolsListed | ServerLog) -> Line:
    """What a server says besides answering."""
    match event:
        case ServerAsked():
            got = _short(dump_text(event.answer), 200)
            return f"[{_at(event)}] {event.server} asked for {event.method} ({event.policy}): {got}", "yellow"
        case ToolsListed():
            what = event.error or event.tool_count
            return f"[{_at(event)}] server {event.server} was asked for its tools again: {what}", "dim"
        case ServerLog():
            return f"[{_at(event)}] {event.server} {event.method}: {_short(dump_text(event.params), 200)}", "dim"


def _prompt(event: PromptGiven) -> Iterator[Line]:
    if event.system:
        yield "system", "bold blue"
        yield from _indented(event.system, "dim")
    yield "user", "bold blue"
    yield from _indented(event.user, "")
    names = ", ".join(tool.shown_name for tool in event.tools) or "none"
    yield f"tools: {names}", "dim"


def _reply(event: ModelReply, limit: int) -> Iterator[Line]:
    spent = f"{event.ms / 1000:.1f} s"
    usage = event.usage
    if usage and usage.input_tokens is not None and usage.output_tokens is not None:
        spent += f", {counted(usage.input_tokens, 'token')} in, {usage.output_tokens} out"
    yield "", ""
    yield f"model, turn {event.turn} [{_at(event)}, {spent}]", "bold blue"
    if event.native_images:
        yield f"    was shown images themselves, not placeholders: {event.native_images} so far", "dim"
    if event.reasoning:
        yield from _indented(_short(event.reasoning, limit), "italic dim")
    if event.text:
        yield from _indented(event.text, "")
    if event.stop not in ("answer", "calls"):
        yield f"    stopped: {event.stop}", "yellow"
    if not event.text and not event.calls:
        yield "    (nothing)", "yellow"


def _call(event: ToolCalled) -> Iterator[Line]:
    note = NO_SUCH_TOOL if event.unknown_tool else ""
    yield f"  → {event.tool}({_arguments(event)}){note}", "cyan"
    if event.sent is not None:
        yield f"    sent with what the project injects: {_short(dump_text(event.sent), 200)}", "dim"
    if event.argument_error:
        yield f"    does not fit the schema: {event.argument_error}", "yellow"


def _arguments(event: ToolCalled) -> str:
    if not isinstance(event.arguments, dict):
        return event.raw_arguments
    return ", ".join(f"{name}={_value(value)}" for name, value in event.arguments.items())


def _value(value: Any) -> str:
    return dump_text(value)


def _answer(event: ToolAnswered, limit: int) -> Iterator[Line]:
    style = "green" if event.status == "ok" else "red"
    yield f"  ← {event.status}, {event.ms:.0f} ms", style
    yield from _indented(_short(event.shown, limit), "")


def _indented(text: str, style: str) -> Iterator[Line]:
    for line in text.split("\n") if text else ():
        yield f"    {line}" if line.strip() else "", style


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [... {len(text) - limit} more characters; --full shows all]"


def _at(event: Event) -> str:
    return f"{event.at_ms / 1000:.1f} s"
