"""Faults: a suite is worth what it notices, so faults are planted in the server and references played against them.

This is mutation analysis (DeMillo, Lipton and Sayward 1978) with the server as the program and the suite as its test.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcptrials import plugins
from mcptrials.audit.trail import is_lost, told_by
from mcptrials.encoding import canonical_hash
from mcptrials.protocols import ServerSession
from mcptrials.runner.rehearsal import Played, Rehearsal
from mcptrials.task import ReferenceCall
from mcptrials.transcript import CallMade

Kind = Literal[
    "filter dropped",
    "wrong row",
    "truncated page",
    "off-by-one count",
    "stale read",
    "write not done",
    "write elsewhere",
]
MAX_PLAYED = 10
"""References that are played against one fault."""
_COUNT = re.compile(
    r"(?i)\b(total|count|found|results?|hits|matches)(\W{1,4})(\d{1,9})\b|\b(\d{1,9})( (?:results?|hits|matches))\b"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One planted fault, and the tasks that notice it; where references are played again, the first of them."""

    kind: Kind
    server: str
    tool: str
    argument: str | None
    noticed_by: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        return {
            "fault": self.kind,
            "server": self.server,
            "tool": self.tool,
            "argument": self.argument,
            "noticed_by": list(self.noticed_by),
        }


class Planting:
    """The faults of the tools that references call."""

    def __init__(self, rehearsal: Rehearsal, played: Sequence[Played]) -> None:
        self._rehearsal, self._played = rehearsal, played
        self._replay = plugins.load("hosts", "mcptrials.hosts.replay:Replay")
        self._rewriting = plugins.load("hosts", "mcptrials.hosts.rewriting:Planted")
        self._on_disk = {server for one in played for server, _ in rehearsal.landed(one)}
        """Servers whose writes are seen on the disk."""
        made = [each for one in played for each in one.transcript.calls if each.call.server and each.answer]
        self._made: dict[tuple[str, str], list[CallMade]] = {}
        for each in made:
            self._made.setdefault((str(each.call.server), each.call.tool), []).append(each)

    async def faults(self) -> list[Fault]:
        found: list[Fault] = []
        for server, tool in self._made:
            if self._reads(server, tool):
                found += self._misread(server, tool)
                found += await self._unfiltered(server, tool)
                found += await self._stale(server, tool)
            else:
                found += await self._unwritten(server, tool)
        return found

    def _reads(self, server: str, tool: str) -> bool:
        """Whether a tool changes nothing: it says so, or says nothing and a reference that calls it left no trace."""
        if self._rehearsal.is_reading(server, tool):
            return True
        calling = (one for one in self._played if any(_is(made, server, tool) for made in one.transcript.calls))
        return server in self._on_disk and any(not self._rehearsal.writes(one) for one in calling)

    def _misread(self, server: str, tool: str) -> Iterator[Fault]:
        """Faults of answers alone: what references were answered is altered, and their trail looked at."""
        alterations: dict[Kind, Callable[[CallMade], str | None]] = {
            "wrong row": lambda made: self._other_answer(server, tool, made),
            "truncated page": lambda made: _truncated(told_by(made)),
            "off-by-one count": lambda made: _miscounted(told_by(made)),
        }
        for kind, alter in alterations.items():
            if any(alter(made) is not None for made in self._made[server, tool]):
                noticed = [one.task.id for one in self._played if _is_noticed(one, server, tool, alter)]
                yield Fault(kind, server, tool, None, tuple(noticed))

    def _other_answer(self, server: str, tool: str, made: CallMade) -> str | None:
        """What the tool answered to other arguments."""
        others = (told_by(other) for other in self._made[server, tool] if other.call.arguments != made.call.arguments)
        return next((other for other in others if other != told_by(made)), None)

    async def _unfiltered(self, server: str, tool: str) -> list[Fault]:
        """An optional argument that is ignored: the calls are made without it, all in one environment."""
        faults = []
        for argument in self._rehearsal.optional_arguments(server, tool):
            concerned = [one for one in self._played if _uses(one, server, tool, argument)]
            noticed: list[str] = []
            for alike in self._rehearsal.worlds(self._rehearsal.tasks[one.task.id] for one in concerned):
                ids = {bench.task.id for bench in alike}
                some = [one for one in concerned if one.task.id in ids]
                noticed += await self._lost_without(argument, server, tool, some)
            faults.append(Fault("filter dropped", server, tool, argument, tuple(noticed)))
        return faults

    async def _lost_without(self, argument: str, server: str, tool: str, some: Sequence[Played]) -> list[str]:
        made = [each for one in some for each in one.transcript.calls if _is(each, server, tool)]
        calls = [
            ReferenceCall(
                server=server, tool=tool, args={k: v for k, v in each.call.arguments.items() if k != argument}
            )
            for each in made
        ]
        benches = [self._rehearsal.tasks[one.task.id] for one in some]
        together = await self._rehearsal.play_together(benches, self._replay(calls))
        answers = {
            canonical_hash(asked.call.arguments): told_by(answered)
            for asked, answered in zip(made, together.transcript.calls, strict=False)
        }
        return [
            one.task.id
            for one in some
            if _is_noticed(one, server, tool, lambda made: answers.get(canonical_hash(made.call.arguments)))
        ]

    async def _stale(self, server: str, tool: str) -> list[Fault]:
        """What is read after a write, as it was before it."""
        if all(self._reads(*key) for key in self._made):
            return []
        reading = [one for one in self._played if self._read_later(one, server, tool)]
        for one in reading[:MAX_PLAYED]:
            later = self._read_later(one, server, tool)
            if await self._fails(one, server, _stale_with(tool, later)):
                return [Fault("stale read", server, tool, None, (one.task.id,))]
        return [Fault("stale read", server, tool, None, ())]

    def _read_later(self, one: Played, server: str, tool: str) -> list[Any]:
        """The arguments with which the tool is asked once something was written."""
        wrote, later = False, []
        for made in one.transcript.calls:
            if wrote and _is(made, server, tool):
                later.append(made.call.arguments if made.call.sent is None else made.call.sent)
            wrote = wrote or not self._reads(str(made.call.server), made.call.tool)
        return later

    async def _unwritten(self, server: str, tool: str) -> list[Fault]:
        lossy = plugins.load("hosts", "mcptrials.hosts.rewriting:Lossy")
        straying = plugins.load("hosts", "mcptrials.hosts.rewriting:Straying")
        made = self._made[server, tool]
        hidden = frozenset().union(*map(_injected, made))
        answers = {canonical_hash(each.call.arguments): each.answer.result for each in made if each.answer}
        faults = [
            await self._first("write not done", server, tool, lambda session: lossy(session, tool, answers, hidden))
        ]
        if len(answers) > 1:
            elsewhere = _elsewhere([each.call.arguments for each in made], hidden)
            faults.append(
                await self._first("write elsewhere", server, tool, lambda session: straying(session, tool, elsewhere))
            )
        return faults

    async def _first(self, kind: Kind, server: str, tool: str, plant: Callable[[ServerSession], Any]) -> Fault:
        """The first task whose reference fails on the faulty server; the others are not played any more."""
        calling = [one for one in self._played if any(_is(made, server, tool) for made in one.transcript.calls)]
        for one in calling[:MAX_PLAYED]:
            if await self._fails(one, server, plant):
                return Fault(kind, server, tool, None, (one.task.id,))
        return Fault(kind, server, tool, None, ())

    async def _fails(self, one: Played, server: str, plant: Callable[[ServerSession], Any]) -> bool:
        reference = one.task.reference
        if reference is None:
            return False
        host = self._replay(reference.calls, reference.answer, self._rewriting(server, plant))
        played = await self._rehearsal.play(self._rehearsal.tasks[one.task.id], host)
        if played.ended.decision.blame == "harness":
            return False  # a failure of ours says nothing of the suite
        if played.trouble or played.complaint:
            return True
        return is_lost(one, [told_by(made) for made in played.transcript.calls])


def _stale_with(tool: str, later: Sequence[Any]) -> Callable[[ServerSession], Any]:
    stale = plugins.load("hosts", "mcptrials.hosts.rewriting:Stale")
    return lambda session: stale(session, tool, later)


def _is_noticed(one: Played, server: str, tool: str, alter: Callable[[CallMade], str | None]) -> bool:
    """Whether a task's trail is lost when a tool's answers are altered; a refusal that is none any more is noticed."""
    shown = []
    for made in one.transcript.calls:
        other = alter(made) if _is(made, server, tool) else None
        if other is not None and made.answer and made.answer.status == "tool_error" and other != told_by(made):
            return True
        shown.append(told_by(made) if other is None else other)
    return is_lost(one, shown)


def _uses(one: Played, server: str, tool: str, argument: str) -> bool:
    return any(_is(made, server, tool) and argument in made.call.arguments for made in one.transcript.calls)


def _is(made: CallMade, server: str, tool: str) -> bool:
    return (made.call.server, made.call.tool) == (server, tool)


def _truncated(text: str) -> str | None:
    """The first half of the lines, if there are some."""
    lines = text.splitlines()
    return "\n".join(lines[: (len(lines) + 1) // 2]) if len(lines) > 1 else None


def _miscounted(text: str) -> str | None:
    """Every count is one more; None where none is given."""

    def more(match: re.Match[str]) -> str:
        word, between, count, first, after = match.groups()
        return f"{word}{between}{int(count) + 1}" if word else f"{int(first) + 1}{after}"

    other = _COUNT.sub(more, text)
    return other if other != text else None


def _injected(made: CallMade) -> frozenset[str]:
    """What the project added to a call: the server gets it, and no reference names it."""
    asked, sent = made.call.arguments, made.call.sent
    return (
        frozenset(sent) - frozenset(asked) if isinstance(sent, Mapping) and isinstance(asked, Mapping) else frozenset()
    )


def _elsewhere(arguments: Sequence[Any], hidden: frozenset[str]) -> Callable[[Any], Any]:
    """Gives, for some arguments, the next other ones, with what is injected as it is."""

    def other(sent: Any) -> Any:
        own = {name: value for name, value in sent.items() if name not in hidden} if hidden else sent
        at = next((index for index, each in enumerate(arguments) if each == own), 0)
        found = next((each for each in (*arguments[at:], *arguments[:at]) if each != own), own)
        return {**found, **{name: sent[name] for name in hidden if name in sent}} if hidden else found

    return other
