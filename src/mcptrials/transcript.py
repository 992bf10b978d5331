"""Transcript: the ordered events of a trial; tool calls, usage and the answer are views of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from mcptrials.events import (
    ContractViolation,
    Event,
    FinalAnswer,
    ModelAttempt,
    ModelReply,
    PromptGiven,
    ServerExited,
    ServerStarted,
    ToolAnswered,
    ToolCalled,
    Usage,
)


@dataclass(frozen=True, slots=True)
class CallMade:
    """A tool call with its answer; `answer` is None when the trial ended before it came."""

    call: ToolCalled
    answer: ToolAnswered | None

    @property
    def sent(self) -> bool:
        """Whether it reached a server's input."""
        return self.answer is None or self.answer.status != "not_sent"


class Transcript:
    """Events in order. Append-only: a transcript never forgets or edits.

    What it is made of is read when it is first asked for.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._source = events

    @cached_property
    def _events(self) -> list[Event]:
        return list(self._source)

    def append(self, event: Event) -> None:
        self._events.append(event)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def prompted(self) -> bool:
        """Whether the model was given its task: the servers were ready."""
        return any(isinstance(event, PromptGiven) for event in self._events)

    @property
    def replies(self) -> tuple[ModelReply, ...]:
        return tuple(event for event in self._events if isinstance(event, ModelReply))

    @property
    def attempts(self) -> tuple[ModelAttempt, ...]:
        return tuple(event for event in self._events if isinstance(event, ModelAttempt))

    @property
    def calls(self) -> tuple[CallMade, ...]:
        """Tool calls in the order in which the model asked for them."""
        answers = {event.call_id: event for event in self._events if isinstance(event, ToolAnswered)}
        asked = (event for event in self._events if isinstance(event, ToolCalled))
        return tuple(CallMade(event, answers.get(event.call_id)) for event in asked)

    @property
    def servers(self) -> tuple[ServerStarted, ...]:
        return tuple(event for event in self._events if isinstance(event, ServerStarted))

    @property
    def exits(self) -> tuple[ServerExited, ...]:
        return tuple(event for event in self._events if isinstance(event, ServerExited))

    @property
    def violations(self) -> tuple[ContractViolation, ...]:
        return tuple(event for event in self._events if isinstance(event, ContractViolation))

    @property
    def answer(self) -> FinalAnswer | None:
        """The last answer taken, if any."""
        taken = [event for event in self._events if isinstance(event, FinalAnswer)]
        return taken[-1] if taken else None

    @property
    def usage(self) -> Usage:
        """Sums over the replies; one unknown makes a sum unknown, and without a reply nothing was reported."""
        if not self.replies:
            return Usage()
        usages = [reply.usage or Usage() for reply in self.replies]
        return Usage(
            input_tokens=total(usage.input_tokens for usage in usages),
            output_tokens=total(usage.output_tokens for usage in usages),
            cached_input_tokens=total(usage.cached_input_tokens for usage in usages),
            reasoning_tokens=total(usage.reasoning_tokens for usage in usages),
        )


def total(counts: Iterable[int | None]) -> int | None:
    """The sum, or None when one part is unknown."""
    known = 0
    for count in counts:
        if count is None:
            return None
        known += count
    return known
