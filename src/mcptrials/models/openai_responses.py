"""Models behind OpenAI's Responses API, or any server that speaks like it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcptrials.errors import ProviderError
from mcptrials.events import ToolShown
from mcptrials.models.openai_client import open_openai
from mcptrials.models.refused import Refused, parameters
from mcptrials.models.responses_body import input_items, responses_tools
from mcptrials.models.responses_reply import read_reply
from mcptrials.protocols import Endpoint, Message, Reply
from mcptrials.trial import TrialKey

ENCRYPTED_REASONING = "reasoning.encrypted_content"
_NO_INCLUDE = re.compile(
    r"encrypted content is not supported|reasoning\.encrypted_content|['\"`]include\b", re.IGNORECASE
)


class OpenAIResponses:
    """A model behind the Responses API; one request is one attempt, and the provider stores nothing.

    Args:
        name: the model's name at the provider.
        base_url: another server than OpenAI's; then the environment's OPENAI_API_KEY is not sent.
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
        self._exchange, self._endpoint = open_openai(name, base_url, api_key, timeout_s, headers)
        # Without the encrypted form, reasoning that nobody stored cannot be given back in the next request.
        self._include = [ENCRYPTED_REASONING]

    @property
    def endpoint(self) -> Endpoint | None:
        return self._endpoint

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        body, raw = await self._exchange.settle(
            "/responses", lambda: self._body(messages, tools, settings), self._learn
        )
        return replace(read_reply(raw, messages), params=parameters(body), dropped=self._refused.names)

    async def aclose(self) -> None:
        await self._exchange.aclose()

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._name, "input": input_items(messages), "store": False}
        if tools:
            body["tools"] = responses_tools(tools)
        if self._include:
            body["include"] = self._include
        body |= {"max_output_tokens" if key == "max_tokens" else key: value for key, value in settings.items()}
        return self._refused.without(body | self._extra_body)

    def _learn(self, refusal: ProviderError, body: Mapping[str, Any]) -> None:
        """Takes from a refusal what the model lacks: most that do not reason refuse to encrypt reasoning."""
        if _NO_INCLUDE.search(refusal.message):
            self._include = []
        else:
            self._refused.learn(refusal.message, body)
