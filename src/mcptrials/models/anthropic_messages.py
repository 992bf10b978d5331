"""Models behind Anthropic's Messages API, or any server that speaks like it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anthropic

from mcptrials.errors import ProviderError, UsageError
from mcptrials.events import ToolShown
from mcptrials.models.anthropic_body import anthropic_tools, native_images, system_blocks, turns, with_cache_marks
from mcptrials.models.anthropic_reply import read_reply
from mcptrials.models.connection import find_key, unused_client
from mcptrials.models.exchange import Exchange
from mcptrials.models.refused import Refused, parameters
from mcptrials.protocols import Endpoint, Message, Reply
from mcptrials.trial import TrialKey

OWN_ENDPOINT = "https://api.anthropic.com"
"""Given explicitly: the SDK would look for another in the environment, where no record shows it."""
MAX_TOKENS = 4096
"""The API insists on a limit; the loop always gives one."""


class AnthropicMessages:
    """A model behind the Messages API; one request is one attempt.

    Besides what the API takes, `prompt_cache` among a request's settings is `auto` (the default: what a conversation
    repeats is marked for the provider's cache) or `off` (no marks are sent).

    Args:
        name: the model's name at the provider.
        base_url: another server than Anthropic's, with or without /v1 at its end; then the environment's
            ANTHROPIC_API_KEY is not sent.
        timeout_s: for a whole request.
        headers: sent with every request.
        extra_body: keys that stand in every request body.
    """

    scripted = False

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        self._name, self._extra_body, self._refused = name, dict(extra_body or {}), Refused()
        key = find_key("Anthropic", "ANTHROPIC_API_KEY", base_url=base_url, api_key=api_key)
        client = _client(base_url, key.value, headers)
        self._exchange = Exchange(client, key, timeout_s)
        self._endpoint = Endpoint(str(client.base_url).rstrip("/"), name, key.value)

    @property
    def endpoint(self) -> Endpoint | None:
        return self._endpoint

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        body, raw = await self._exchange.settle(
            "/v1/messages", lambda: self._body(messages, tools, settings), self._learn
        )
        reply = read_reply(raw, messages)
        images = native_images(body["messages"])
        return replace(reply, params=parameters(body), dropped=self._refused.names, native_images=images)

    async def aclose(self) -> None:
        await self._exchange.aclose()

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        wanted = {"max_tokens": MAX_TOKENS, **settings}
        cache = wanted.pop("prompt_cache", "auto")
        if cache not in ("auto", "off"):
            raise UsageError(f"prompt_cache is {cache!r}", where=f"model {self._name!r}", hint="use auto or off")
        body: dict[str, Any] = {"model": self._name, "messages": turns(messages)}
        if system := system_blocks(messages):
            body["system"] = system
        if tools:
            body["tools"] = anthropic_tools(tools)
        body = with_cache_marks(body) if cache == "auto" else body
        return self._refused.without(body | wanted | self._extra_body)

    def _learn(self, refusal: ProviderError, body: Mapping[str, Any]) -> None:
        self._refused.learn(refusal.message, body)


def _client(base_url: str | None, key: str, headers: Mapping[str, str] | None) -> anthropic.AsyncAnthropic:
    client = anthropic.AsyncAnthropic(
        api_key=key,
        base_url=(base_url or OWN_ENDPOINT).rstrip("/").removesuffix("/v1"),
        max_retries=0,
        timeout=None,
        default_headers=headers,
        http_client=unused_client(),
    )
    if base_url:  # the SDK took more of them from the environment: they are Anthropic's business only
        client._custom_headers = dict(headers or {})
    return client
