"""Models behind OpenAI's chat completions, or any server that speaks like it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcptrials.errors import ProviderError
from mcptrials.events import ToolShown
from mcptrials.models.chat_body import chat_messages, chat_tools
from mcptrials.models.chat_reply import read_reply
from mcptrials.models.openai_client import open_openai
from mcptrials.models.refused import Refused, parameters
from mcptrials.protocols import Endpoint, Message, Reply
from mcptrials.trial import TrialKey


class OpenAIChat:
    """A model behind chat completions; one request is one attempt.

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
        # What the provider turned out to want, learnt from its first refusal.
        self._limit_key = "max_tokens"
        self._with_reasoning = False

    @property
    def endpoint(self) -> Endpoint | None:
        return self._endpoint

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        body, raw = await self._exchange.settle(
            "/chat/completions", lambda: self._body(messages, tools, settings), self._learn
        )
        return replace(read_reply(raw, messages), params=parameters(body), dropped=self._refused.names)

    async def aclose(self) -> None:
        await self._exchange.aclose()

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._name,
            "messages": chat_messages(messages, with_reasoning=self._with_reasoning),
        }
        if tools:
            body["tools"] = chat_tools(tools)
        body |= {self._limit_key if key == "max_tokens" else key: value for key, value in settings.items()}
        return self._refused.without(body | self._extra_body)

    def _learn(self, refusal: ProviderError, body: Mapping[str, Any]) -> None:
        """Takes from a refusal the dialect that we have not spoken yet."""
        if "max_completion_tokens" in refusal.message and "max_tokens" in body:
            self._limit_key = "max_completion_tokens"
        elif "reasoning_content" in refusal.message:
            self._with_reasoning = True
        else:
            self._refused.learn(refusal.message, body)
