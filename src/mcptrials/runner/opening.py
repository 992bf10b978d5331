"""Opening: the sessions of a trial, in the way that each server was found to need before the run."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from mcptrials import plugins
from mcptrials.errors import ServerError
from mcptrials.project import ServerConfig
from mcptrials.protocols import OpenSession, ServerChannel, ServerSession, SessionHooks
from mcptrials.runner.preflight import ServerFacts
from mcptrials.servers.asking import Client


def opener(
    facts: Mapping[str, ServerFacts], configs: Mapping[str, ServerConfig], connect_s: float, trial_dir: Path
) -> OpenSession:
    """Sessions in the era that each server was found to speak: pinned, since it changes codes and texts.

    A tool list that is broken in a trial ends it, unless the project says to go on without the broken tools.
    """
    open_session = plugins.load("servers", "session")

    @asynccontextmanager
    async def opened(server: str, channel: ServerChannel, hooks: SessionHooks) -> AsyncIterator[ServerSession]:
        config = configs[server]
        client = Client(config.client_policy, trial_dir, config.list_changed == "refresh")
        era = facts[server].era
        async with open_session(server, channel, hooks, era=era, connect_s=connect_s, client=client) as session:
            if session.problems and config.on_invalid_tool == "stop":
                hooks.violation("broken_tool_list", session.problems[0])
                what = f"server {server!r}: its tool list was whole before the run and is broken: {session.problems[0]}"
                raise ServerError("contract_violation", what)
            yield session

    return opened
