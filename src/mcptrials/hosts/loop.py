"""Our own agent loop: the model calls tools and sees their results until it answers or a limit ends it."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Literal

from pydantic import Field

from mcptrials import answer
from mcptrials.events import (
    ContractViolation,
    LimitReached,
    ModelReply,
    ModelRequest,
    PresentationChange,
    PromptGiven,
    ServerAsked,
    ServerLog,
)
from mcptrials.frozen import UserData
from mcptrials.hosts.toolbox import Toolbox
from mcptrials.presentation import ResultPolicy
from mcptrials.protocols import (
    Asked,
    Assistant,
    HostContext,
    HostResult,
    Message,
    Model,
    Reply,
    ServerChannel,
    ServerSession,
    SessionHooks,
    System,
    User,
)
from mcptrials.transcript import total

SYSTEM_PROMPT = f"""\
You complete a task with the tools you are given. What you need to know is in the tools: look it up, do not guess.
Before each tool call, write one sentence: why you call this tool, and what is unclear in its description or in its \
last result, if anything.
Call no tool when the task needs none.
{answer.REQUEST}"""


class Loop(UserData):
    """The founding loop (requirement R3).

    Its system prompt asks for reasoning and feedback before calls and describes the answer frame; the request for the
    frame also stands in the user prompt, since other hosts have a system prompt of their own.
    """

    takes_sessions: ClassVar[Literal[True]] = True
    instructions: bool = False
    """Whether the servers' `instructions` are added to the system prompt: a choice of hosts, hence a condition."""
    results: Literal["text", "structured", "both"] = "text"
    """What of a result the model reads where it has both; text falls back to the structured content without any."""
    images: Literal["native", "placeholder"] = "native"
    """Whether a model whose provider takes images in results gets them as such."""
    max_result_tokens: int | None = Field(default=None, ge=1)
    """Of one result, by an estimate of 4 bytes a token: the bound that many hosts have."""
    long_results: Literal["error", "truncate", "file"] = "truncate"
    """What the model reads instead of a longer one: an error, its beginning, or that with a file that has it whole."""

    @property
    def version(self) -> str:
        return "loop-1"

    async def run(
        self, prompt: str, model: Model, servers: Mapping[str, ServerChannel], context: HostContext
    ) -> HostResult:
        async with AsyncExitStack() as stack:
            sessions = {
                name: await stack.enter_async_context(context.open_session(name, channel, hooks(name, context)))
                for name, channel in servers.items()
            }
            policy = ResultPolicy(
                content=self.results, images=self.images, max_tokens=self.max_result_tokens, long=self.long_results
            )
            toolbox = Toolbox(sessions, context, policy)
            messages = self._opening(prompt, sessions, toolbox, context)
            return await _converse(model, messages, toolbox, context)

    def _opening(
        self, prompt: str, sessions: Mapping[str, ServerSession], toolbox: Toolbox, context: HostContext
    ) -> list[Message]:
        system = SYSTEM_PROMPT
        if self.instructions:
            system = "\n\n".join([system, *_told(sessions, context)])
        user = answer.ask(prompt)
        event = PromptGiven(at_ms=context.clock.now_ms(), system=system, user=user, tools=toolbox.tools)
        context.emit(event)
        return [System(system), User(user)]


def _told(sessions: Mapping[str, ServerSession], context: HostContext) -> list[str]:
    """The servers' instructions, as the arm overrides them."""
    told = []
    for name, session in sessions.items():
        text = context.overrides.instructions_of(name, session.instructions)
        if text != session.instructions:
            now, before = context.clock.now_ms(), session.instructions
            context.emit(PresentationChange(at_ms=now, policy="override", subject=name, before=before, after=text))
        if text:
            told.append(text)
    return told


async def _converse(model: Model, messages: list[Message], toolbox: Toolbox, context: HostContext) -> HostResult:
    budget = _Budget(context)
    while True:
        if limit := budget.reached():
            return HostResult(None, f"limit:{limit}")
        await toolbox.refresh()
        reply = await _ask(model, messages, toolbox, context, budget)
        if reply.stop == "paused":
            messages.append(Assistant(reply))
            continue
        if reply.stop != "calls":
            return HostResult(reply.text, reply.stop)
        if limit := budget.spend(reply):
            return HostResult(None, f"limit:{limit}")
        messages.append(Assistant(reply))
        messages += [await toolbox.call(call) for call in reply.calls]


async def _ask(
    model: Model, messages: list[Message], toolbox: Toolbox, context: HostContext, budget: "_Budget"
) -> Reply:
    settings: dict[str, Any] = {"max_tokens": context.limits.output_tokens_per_request} | dict(context.settings)
    began = context.clock.now_ms()
    context.emit(ModelRequest(at_ms=began, turn=budget.turns, params=settings))
    reply = await model.request(messages, toolbox.tools, settings, context.trial)
    now = context.clock.now_ms()
    event = ModelReply(
        at_ms=now,
        ms=now - began,
        turn=budget.turns,
        text=reply.text,
        reasoning=reply.reasoning,
        calls=reply.calls,
        call_source=reply.call_source,
        stop=reply.stop,
        usage=reply.usage,
        model=reply.model,
        native=reply.raw,
        params=dict(reply.params),
        dropped=reply.dropped,
        native_images=reply.native_images,
    )
    context.emit(event)
    budget.turn_taken(reply)
    return reply


class _Budget:
    """Counts what the limits bound; every bound is checked before the next spend."""

    def __init__(self, context: HostContext) -> None:
        self._context, self._limits = context, context.limits
        self.turns = 1
        self._calls = 0
        self._tokens: int | None = 0

    def turn_taken(self, reply: Reply) -> None:
        self.turns += 1
        usage = reply.usage
        spent = [self._tokens, usage.input_tokens if usage else None, usage.output_tokens if usage else None]
        self._tokens = total(spent)

    def reached(self) -> str | None:
        """The limit that forbids another request, if any."""
        if self.turns > self._limits.turns:
            return self._report("turns", self._limits.turns)
        # Tokens that a provider does not report cannot be bounded; the other limits still are.
        if self._tokens is not None and self._tokens >= self._limits.tokens:
            return self._report("tokens", self._limits.tokens)
        return None

    def spend(self, reply: Reply) -> str | None:
        """Books the calls of a reply; the limit that forbids them, if any."""
        self._calls += len(reply.calls)
        over = self._calls > self._limits.tool_calls
        return self._report("tool_calls", self._limits.tool_calls) if over else None

    def _report(self, limit: str, value: float) -> str:
        self._context.emit(LimitReached(at_ms=self._context.clock.now_ms(), limit=limit, value=value))
        return limit


def hooks(server: str, context: HostContext) -> SessionHooks:
    """What a server does besides answering becomes events of the trial."""

    def violation(what: str, detail: str) -> None:
        context.emit(ContractViolation(at_ms=context.clock.now_ms(), server=server, what=what, detail=detail))

    def notification(method: str, params: Any) -> None:
        context.emit(ServerLog(at_ms=context.clock.now_ms(), server=server, method=method, params=params))

    def asked(each: Asked) -> None:
        context.emit(
            ServerAsked(
                at_ms=context.clock.now_ms(),
                server=server,
                method=each.method,
                params=each.params,
                policy=each.policy,
                answer=each.answer,
            )
        )

    return SessionHooks(violation, notification, asked)
