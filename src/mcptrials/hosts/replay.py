"""Replay: plays given calls and gives a given answer, where a model would decide."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from mcptrials.encoding import dump_text
from mcptrials.events import CallAsked, PromptGiven, ToolShown
from mcptrials.hosts.loop import hooks
from mcptrials.hosts.toolbox import Toolbox
from mcptrials.protocols import HostContext, HostResult, Model, ServerChannel, ServerSession
from mcptrials.task import ReferenceCall

Rewriting = Callable[[ServerSession], ServerSession]
"""What may stand between the calls and a server."""


def _unchanged(session: ServerSession) -> ServerSession:
    return session


@dataclass(frozen=True)
class Replay:
    """Plays its calls one after the other, whatever their answers are."""

    calls: Sequence[ReferenceCall] | Callable[[Sequence[ToolShown]], Sequence[ReferenceCall]] = ()
    """The calls, or what chooses them by the tools that are shown."""
    answer: str | None = None
    rewriting: Rewriting = field(default=_unchanged)

    @property
    def version(self) -> str:
        return "replay-1"

    async def run(
        self, prompt: str, model: Model, servers: Mapping[str, ServerChannel], context: HostContext
    ) -> HostResult:
        async with AsyncExitStack() as stack:
            sessions = {}
            for name, channel in servers.items():
                opened = context.open_session(name, channel, hooks(name, context))
                sessions[name] = self.rewriting(await stack.enter_async_context(opened))
            toolbox = Toolbox(sessions, context)
            context.emit(PromptGiven(at_ms=context.clock.now_ms(), system=None, user=prompt, tools=toolbox.tools))
            calls = self.calls(toolbox.tools) if callable(self.calls) else self.calls
            for number, call in enumerate(calls):
                await toolbox.call(CallAsked(id=f"{number}", name=_shown(call, toolbox), raw_arguments=_text(call)))
        return HostResult(None if self.answer is None else f"<answer>{self.answer}</answer>", "answer")


def _text(call: ReferenceCall) -> str:
    return dump_text(call.args)


def _shown(call: ReferenceCall, toolbox: Toolbox) -> str:
    """The name under which a model would call the tool; its own when it is shown none."""
    fitting = [tool for tool in toolbox.tools if tool.tool == call.tool and call.server in (None, tool.server)]
    return fitting[0].shown_name if len(fitting) == 1 else f"{call.server}/{call.tool}" if call.server else call.tool
