"""The SDK's dispatcher, whose requests from the server go to our policy instead of a typed callback.

A typed callback would refuse a request that it cannot parse, and could not be told from a client without a policy.
"""

from collections.abc import Mapping
from typing import Any

import anyio.abc
from anyio import TASK_STATUS_IGNORED
from mcp import MCPError
from mcp.shared.dispatcher import DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
)

from mcptrials import __version__
from mcptrials.servers.asking import Asking, Refusal
from mcptrials.servers.frames import FrameReader, FrameWriter

CLIENT_INFO = Implementation(name="mcptrials", version=__version__)
_CLIENT = CLIENT_INFO.model_dump(by_alias=True, mode="json", exclude_none=True)


class Engine(JSONRPCDispatcher[TransportContext]):
    """Correlates requests and answers both ways."""

    def __init__(self, reader: FrameReader, writer: FrameWriter, asking: Asking) -> None:
        super().__init__(reader, writer)
        self.asking = asking

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = TASK_STATUS_IGNORED,
    ) -> None:
        async def answered(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if not self.asking.takes(method):
                return await on_request(context, method, params)
            answer = self.asking.answer(method, params)
            if isinstance(answer, Refusal):
                raise MCPError(code=answer.code, message=answer.message)
            return answer

        await super().run(answered, on_notify, on_notify_intercept, task_status=task_status)


def modern_meta(version: str, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Modern requests carry version, identity and capabilities each time (spec, basic)."""
    return {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: _CLIENT,
        CLIENT_CAPABILITIES_META_KEY: dict(capabilities),
    }


def declaring(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What makes the SDK's session declare them: it does by the callbacks that it has. None is ever called."""
    names = {"elicitation": "elicitation_callback", "sampling": "sampling_callback", "roots": "list_roots_callback"}
    return {names[name]: _never for name in capabilities}


async def _never(*_: Any) -> Any:
    raise AssertionError("the engine answers before the session does")
