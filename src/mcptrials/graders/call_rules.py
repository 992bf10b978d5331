"""Rules on which tools were called: reported by default, deciding with `gate: true`."""

from typing import ClassVar

from pydantic import Field

from mcptrials.counting import counted
from mcptrials.frozen import Items, UserData
from mcptrials.protocols import GradeInput, Judgement, StateQuery
from mcptrials.task import Task
from mcptrials.transcript import CallMade


def _names(given: GradeInput) -> list[str]:
    return [made.call.tool for made in given.transcript.calls]


def _is(name: str, made: CallMade) -> bool:
    """Whether a call is of the tool `name` or `server/name`."""
    return name in (made.call.tool, f"{made.call.server}/{made.call.tool}")


def _positions(name: str, given: GradeInput) -> list[int]:
    return [i for i, made in enumerate(given.transcript.calls) if _is(name, made)]


def _reached(name: str, given: GradeInput) -> list[int]:
    """Where the tool itself was called: one that was renamed is not reached by the name that the model cannot see."""
    calls = given.transcript.calls
    return [i for i in _positions(name, given) if not calls[i].call.unknown_tool or _worked(calls[i])]


def _worked(made: CallMade) -> bool:
    """Servers may have tools that they do not list."""
    return made.answer is not None and made.answer.status == "ok"


class NoToolCall(UserData):
    """Passes when the model asked for no call at all."""

    default_gate: ClassVar[bool] = True

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        names = _names(given)
        return Judgement(False, "called", f"called {', '.join(names)}") if names else Judgement(True, "match")


class RequiredTools(UserData):
    """Passes when each tool was called at least once."""

    default_gate: ClassVar[bool] = False

    tools: Items[str] = Field(min_length=1)

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        missing = [name for name in self.tools if not _reached(name, given)]
        return Judgement(False, "not_called", f"never called {', '.join(missing)}") if missing else _MATCH


class ForbiddenTools(UserData):
    """Passes when none of the tools was called."""

    default_gate: ClassVar[bool] = False

    tools: Items[str] = Field(min_length=1)

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        called = [name for name in self.tools if _positions(name, given)]
        return Judgement(False, "called", f"called {', '.join(called)}") if called else _MATCH


class CallOrder(UserData):
    """Passes when the tools were called in this order; other calls may stand between."""

    default_gate: ClassVar[bool] = False

    tools: Items[str] = Field(min_length=1)

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        last = -1
        for name in self.tools:
            later = [position for position in _reached(name, given) if position > last]
            if not later:
                return Judgement(False, "out_of_order", f"no call of {name} after position {last + 1}")
            last = later[0]
        return _MATCH


class MaxCalls(UserData):
    """Passes when the model asked for at most `max` calls."""

    default_gate: ClassVar[bool] = False

    max: int = Field(ge=0)

    def needs(self, task: Task) -> tuple[StateQuery, ...]:
        return ()

    def grade(self, given: GradeInput) -> Judgement:
        count = len(_names(given))
        return Judgement(count <= self.max, "match" if count <= self.max else "too_many", counted(count, "call"))


_MATCH = Judgement(True, "match")
