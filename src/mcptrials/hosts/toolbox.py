"""Toolbox: the tools that a model sees, and the way of its calls to the servers and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from mcptrials.encoding import LONG, TooDeepError, parse_foreign
from mcptrials.errors import ServerError
from mcptrials.events import (
    CallAsked,
    ContractViolation,
    PresentationChange,
    ServerStarted,
    ToolAnswered,
    ToolCalled,
    ToolShown,
    ToolsListed,
)
from mcptrials.hosts.arguments import misfit
from mcptrials.hosts.long_result import shortened
from mcptrials.presentation import (
    AS_TEXT,
    BYTES_PER_TOKEN,
    Change,
    RawTool,
    ResultPolicy,
    ToolFilter,
    present_protocol_error,
    present_result,
    present_tools,
)
from mcptrials.protocols import CallResult, HostContext, Place, ServerSession, ToolOutput


@dataclass(frozen=True, slots=True)
class _Plan:
    """A call as asked for, with where it goes."""

    call_id: str
    asked: CallAsked
    session: ServerSession | None
    tool: str
    schema: Any
    arguments: Any
    sent: Any
    """The arguments with what the project injects."""
    unreadable: str | None

    @property
    def unknown(self) -> bool:
        return self.schema is None


class Toolbox:
    """Routes the model's calls; what the model sees of the answers follows the presentation policy."""

    def __init__(
        self, sessions: Mapping[str, ServerSession], context: HostContext, policy: ResultPolicy = AS_TEXT
    ) -> None:
        self._sessions, self._context, self._policy = sessions, context, policy
        for session in sessions.values():
            self._tell(session)
        self._count = 0
        self._learn()

    def _learn(self) -> None:
        """What the model sees of the servers' lists as they are now."""
        listings = {name: session.tools for name, session in self._sessions.items()}
        self.tools, changes = present_tools(
            listings, self._context.filters, self._context.dialect, self._context.overrides
        )
        self._by_name: dict[str, ToolShown] = {tool.shown_name: tool for tool in self.tools}
        self._raw = {(name, tool["name"]): tool for name in listings for tool in listings[name]}
        self._promised = {whose: tool["outputSchema"] for whose, tool in self._raw.items() if "outputSchema" in tool}
        self._record(changes)

    async def refresh(self) -> None:
        """Takes a list again that changed, where the project lets the model see that."""
        for name, session in self._sessions.items():
            if session.list_changed and self._rule(name).list_changed == "refresh":
                await self._list_again(session)

    async def _list_again(self, session: ServerSession) -> None:
        """Also when the end of the trial cuts it off, the time that it took is told: it is the server's."""
        began = self._context.clock.now_ms()
        failure: str | None = "its changed tool list had not come when the trial ended"
        try:
            failure = await session.refresh(self._context.limits.call_seconds)
        finally:
            if failure is None:
                self._tell_problems(session)
                self._learn()
            else:
                self._violated(session.server, "changed_list_missing", failure)
            self._context.emit(_listed(session, self.tools, began, self._context.clock.now_ms(), failure))

    def _rule(self, server: str) -> ToolFilter:
        return self._context.filters.get(server, ToolFilter())

    def _tell(self, session: ServerSession) -> None:
        self._context.emit(_started(session, self._context.clock.now_ms()))
        self._tell_problems(session)

    def _tell_problems(self, session: ServerSession) -> None:
        for problem in session.problems:
            self._violated(session.server, "broken_tool_list", problem)

    def _violated(self, server: str, what: str, detail: str) -> None:
        now = self._context.clock.now_ms()
        self._context.emit(ContractViolation(at_ms=now, server=server, what=what, detail=detail))

    def _record(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            self._context.emit(
                PresentationChange(
                    at_ms=self._context.clock.now_ms(),
                    policy=change.policy,
                    subject=change.subject,
                    before=change.before,
                    after=change.after,
                    rule=change.rule,
                    path=change.path,
                )
            )

    async def call(self, asked: CallAsked) -> ToolOutput:
        """Sends one call and gives the model's view of its answer.

        Raises:
            ServerError: crash or contract_violation, when the server went away or cannot be read; the trial ends.
        """
        plan = self._plan(asked)
        self._context.emit(self._called(plan))
        began = self._context.clock.now_ms()
        if plan.unreadable or plan.session is None:
            return self._refused(plan, began)
        answer = await plan.session.call(plan.tool, plan.sent, self._context.limits.call_seconds)
        self._check_promise(plan.session.server, plan.tool, answer)
        shown, changes = self._shown(answer)
        shown, cut = await self._bounded(shown, plan.call_id)
        self._record((*changes, *cut))
        await self._keep(self._answered(plan, answer, shown, began))
        if answer.status == "transport_lost":
            raise ServerError("crash", f"server {plan.session.server!r} went away during a call of {plan.tool!r}")
        failed = answer.status != "ok" or any(change.rule == "error" for change in cut)
        blocks = answer.result if self._policy.images == "native" and not cut else None
        return ToolOutput(asked.id, asked.name, shown, failed, blocks)

    async def _bounded(self, shown: str, call_id: str) -> tuple[str, tuple[Change, ...]]:
        """A result within the host's bound, if it has one."""
        bound = self._policy.max_tokens
        if bound is None or len(shown) * 4 <= bound * BYTES_PER_TOKEN:
            return shown, ()  # 4 is the most that a character has bytes
        return await to_thread.run_sync(shortened, shown, bound, self._policy.long, self._context.place, call_id)

    async def _keep(self, answered: ToolAnswered) -> None:
        """A long answer is written beside the event loop: other trials must not wait, and their time run out."""
        if len(answered.shown) > LONG:
            await to_thread.run_sync(self._context.emit, answered)
        else:
            self._context.emit(answered)

    def _plan(self, asked: CallAsked) -> _Plan:
        tool = self._by_name.get(asked.name)
        arguments, unreadable = _arguments(asked.raw_arguments)
        session = self._sessions[tool.server] if tool else self._taker(asked.name)
        self._count += 1
        # What the model was shown may be adapted; its arguments go to the server, whose own schema they are checked by.
        name = tool.tool if tool else asked.name
        raw = self._raw.get((session.server, name)) if session else None
        schema = raw.get("inputSchema") if tool and raw else None
        # Also a call by a name that was not shown must not get around what is injected.
        sent = self._with_injected(session.server, raw, arguments) if session and raw and not unreadable else arguments
        return _Plan(f"{self._count}", asked, session, name, schema, arguments, sent, unreadable)

    def _with_injected(self, server: str, raw: RawTool, arguments: Any) -> Any:
        """What the project fixed counts, whatever the model sent under that name."""
        injected = self._rule(server).injected(raw)
        return {**arguments, **_expanded(injected, self._context.place)} if injected else arguments

    def _taker(self, name: str) -> ServerSession | None:
        """Who gets a call by a name that was not shown: the only server there is, whose own answer is worth seeing.

        Never by a way around the filter: a tool that is hidden, or that nobody declared to be harmless, stays so; and
        one that has another name for the model is reached by that alone.
        """
        if len(self._sessions) != 1:
            return None
        server, session = next(iter(self._sessions.items()))
        allowed = self._context.filters.get(server, ToolFilter()).shows({"name": name})
        overrides = self._context.overrides
        listed = any(tool["name"] == name for tool in session.tools)
        renamed = listed and bool(overrides.naming or overrides.of(server, name))
        return session if allowed and not renamed else None

    def _called(self, plan: _Plan) -> ToolCalled:
        checkable = not (plan.unknown or plan.unreadable)
        return ToolCalled(
            at_ms=self._context.clock.now_ms(),
            call_id=plan.call_id,
            shown_name=plan.asked.name,
            server=plan.session.server if plan.session else None,
            tool=plan.tool,
            arguments=plan.arguments,
            raw_arguments=plan.asked.raw_arguments,
            unknown_tool=plan.unknown,
            argument_error=misfit(plan.schema, plan.sent) if checkable else plan.unreadable,
            sent=None if plan.sent is plan.arguments else plan.sent,
        )

    def _refused(self, plan: _Plan, began: float) -> ToolOutput:
        shown = f"Error: {plan.unreadable or f'there is no tool {plan.asked.name!r}'}"
        self._context.emit(self._answered(plan, CallResult("not_sent", 0.0), shown, began))
        return ToolOutput(plan.asked.id, plan.asked.name, shown, True)

    def _check_promise(self, server: str, tool: str, answer: CallResult) -> None:
        """A server that gives an output schema must keep to it (spec, server/tools)."""
        schema = self._promised.get((server, tool))
        if schema is None or answer.status != "ok":
            return
        kept = "structuredContent" in answer.result
        broken = misfit(schema, answer.result["structuredContent"]) if kept else "there is no structuredContent"
        if broken:
            self._violated(server, "output_schema", f"{tool}: {broken}")

    def _shown(self, answer: CallResult) -> tuple[str, tuple[Change, ...]]:
        if answer.status == "protocol_error":
            return present_protocol_error(answer.error), ()
        if answer.status == "timeout":
            return f"Error: the tool did not answer within {self._context.limits.call_seconds:g} s", ()
        if answer.status == "input_required":
            return f"Error: the tool did not get what it asked for: {answer.error}", ()
        if answer.status == "transport_lost":
            return "", ()
        return present_result(answer.result, self._policy)

    def _answered(self, plan: _Plan, answer: CallResult, shown: str, began: float) -> ToolAnswered:
        return ToolAnswered(
            at_ms=began,
            ms=answer.ms,
            call_id=plan.call_id,
            server=plan.session.server if plan.session else None,
            tool=plan.tool,
            status=answer.status,
            result=answer.result,
            error=answer.error,
            shown=shown,
        )


def _started(session: ServerSession, at_ms: float) -> ServerStarted:
    return ServerStarted(
        at_ms=at_ms,
        ms=session.startup_ms,
        server=session.server,
        name=session.name,
        version=session.version,
        protocol_version=session.protocol_version,
        instructions=session.instructions,
        tools_hash=session.tools_hash,
        tool_count=len(session.tools),
        capabilities=dict(session.capabilities),
    )


def _listed(
    session: ServerSession, tools: tuple[ToolShown, ...], began_ms: float, now_ms: float, error: str | None
) -> ToolsListed:
    return ToolsListed(
        at_ms=now_ms,
        ms=now_ms - began_ms,
        server=session.server,
        tools_hash=session.tools_hash,
        tool_count=len(session.tools),
        tools=tools,
        error=error,
    )


def _expanded(value: Any, place: Place) -> Any:
    """A value of the project file with its {trial_dir} and the like filled in."""
    if isinstance(value, dict):
        return {key: _expanded(each, place) for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, place) for each in value]
    return place.expand(value) if isinstance(value, str) else value


def _arguments(raw: str) -> tuple[Any, str | None]:
    """The arguments, or why they cannot be read. No text at all means no arguments."""
    if not raw.strip():
        return {}, None
    try:
        arguments = parse_foreign(raw)
    except TooDeepError as exc:
        return None, f"the arguments are {exc}"
    except ValueError:
        return None, "the arguments are not valid JSON"
    if not isinstance(arguments, dict):
        return arguments, "the arguments are not a JSON object"
    return arguments, None
