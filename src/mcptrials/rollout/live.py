"""The trial's own servers after its host ended: asked on the connections that the host used, and not in its name."""

from collections.abc import Collection, Mapping
from typing import Any

from mcptrials.protocols import CallResult, OpenSession, ServerChannel, SessionHooks, unheard
from mcptrials.rollout.bench import ArmBench
from mcptrials.rollout.log import TrialLog


class StillRunning:
    """See `environment.LiveServers`. Its frames stand in the wire log; they are no part of the conversation."""

    def __init__(
        self, channels: Mapping[str, ServerChannel], arm: ArmBench, open_session: OpenSession, log: TrialLog
    ) -> None:
        self._channels, self._arm, self._open, self._log = channels, arm, open_session, log

    @property
    def names(self) -> Collection[str]:
        return self._channels.keys()

    async def call(self, server: str, tool: str, arguments: Any, timeout_s: float) -> CallResult:
        """One call that is no part of the conversation.

        Raises:
            ServerError: nothing can be asked of it.
        """
        channel, heard = self._channels[server], self._log.overheard[server]
        if heard.silent:  # the host never turned to it, so there is nothing to take up
            taken_up = self._open(server, channel, SessionHooks(unheard, unheard))
        else:
            taken_up = self._arm.continue_session(server, channel, heard.spoken)
        async with taken_up as session:
            return await session.call(tool, arguments, timeout_s)
