"""Dialogue: a transcript as blocks of text, in the order in which things happened."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

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
    ServerExited,
    ServerLog,
    StateRead,
    ToolAnswered,
    ToolCalled,
)
from mcptrials.record import NO_SUCH_TOOL, Record

Kind = Literal["user", "model", "reasoning", "call", "result", "error", "answer", "state", "note", "pass", "fail"]


@dataclass(frozen=True, slots=True)
class Block:
    """One thing that was said or happened."""

    kind: Kind
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a model was told before its task: most trials share one."""

    system: str | None
    tools: tuple[tuple[str, str], ...]
    """Shown names, each with the description and the schema as text."""


def briefing_of(event: PromptGiven) -> Briefing:
    shown = (
        (tool.shown_name, f"{tool.description or '(no description)'}\n\n{dump_text(tool.input_schema)}")
        for tool in event.tools
    )
    return Briefing(event.system, tuple(shown))


def blocks_of(events: Iterable[Event]) -> Iterator[Block]:
    """How a transcript reads; events that a person does not miss give nothing, and changes in a row are one block."""
    for changed, some in groupby(events, lambda event: isinstance(event, PresentationChange)):
        if changed:
            lines = [_change(event) for event in some if isinstance(event, PresentationChange)]
            yield Block("note", f"shown to the model otherwise than the server says ({len(lines)})", "\n".join(lines))
        else:
            for event in some:
                yield from _blocks(event)


def _change(event: PresentationChange) -> str:
    place = f" {event.rule} at {event.path}" if event.rule else ""
    return f"{event.policy}: {event.subject}{place}"


def _blocks(event: Event) -> Iterator[Block]:
    match event:
        case PromptGiven():
            yield Block("user", "user", event.user)
        case ModelReply():
            yield from _reply(event)
        case ToolCalled():
            yield from _call(event)
        case ToolAnswered():
            failed = event.status != "ok"
            title = f"{event.tool} → {event.status}, {event.ms:.0f} ms"
            yield Block("error" if failed else "result", title, event.shown)
        case FinalAnswer():
            yield Block("answer", f"answer ({event.framing})", "(none)" if event.answer is None else event.answer)
        case StateRead():
            found = f"error: {event.error}" if event.error else dump_text(event.value)
            yield Block("state", f"state of {event.query!r}", found)
        case _:
            yield from _fault(event)


def _reply(event: ModelReply) -> Iterator[Block]:
    if event.reasoning:
        yield Block("reasoning", "reasoning", event.reasoning)
    spent = f"{event.ms / 1000:.1f} s"
    if event.usage and event.usage.output_tokens is not None:
        spent += f", {event.usage.input_tokens} tokens in, {event.usage.output_tokens} out"
    stopped = "" if event.stop in ("answer", "calls") else f", stopped: {event.stop}"
    nothing = "" if event.text or event.calls else "(nothing)"
    yield Block("model", f"model, turn {event.turn} · {spent}{stopped}", event.text or nothing)


def _call(event: ToolCalled) -> Iterator[Block]:
    note = NO_SUCH_TOOL if event.unknown_tool else ""
    arguments = dump_text(event.arguments) if isinstance(event.arguments, dict) else event.raw_arguments
    yield Block("call", f"call {event.tool}{note}", arguments)
    if event.argument_error:
        yield Block("error", "does not fit the schema", event.argument_error)


def _fault(event: Event) -> Iterator[Block]:
    match event:
        case ModelAttempt() if event.error:
            yield Block("error", f"attempt {event.attempt}; waits {event.wait_ms / 1000:.1f} s", event.error)
        case ContractViolation():
            yield Block("error", f"{event.server} broke the protocol: {event.what}", event.detail)
        case ServerLog():
            yield Block("note", f"{event.server} {event.method}", dump_text(event.params))
        case LimitReached():
            yield Block("error", f"limit reached: {event.limit} = {event.value:g}")
        case Failure():
            yield Block("error", f"{event.blame}: {event.cause}", event.message)
        case ServerExited() if event.how != "closed" or event.exit_code:
            code = "" if event.exit_code is None else f", exit code {event.exit_code}"
            yield Block("error", f"server {event.server} ended: {event.how}{code}", event.stderr_tail.strip())


def graded(record: Record) -> Iterator[Block]:
    """What the graders said, and what went wrong."""
    if record.error:
        yield Block("error", "error", record.error)
    for grade in record.graders:
        word: Kind = "pass" if grade.passed else "fail"
        shown = "not graded" if grade.passed is None else word
        role = "" if grade.gate else " (reported only)"
        said = "\n".join(text for text in (grade.reason, grade.evidence) if text)
        yield Block("note" if grade.passed is None else word, f"{shown}: {grade.name or grade.type}{role}", said)
