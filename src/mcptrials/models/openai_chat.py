"""Models behind OpenAI's chat completions, or any server that speaks like it."""

import os
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import openai

from mcptrials import excerpt
from mcptrials.encoding import dump_text, parse_json
from mcptrials.errors import ProviderError, UsageError, describe
from mcptrials.events import ToolShown
from mcptrials.models.chat_body import chat_messages, chat_tools
from mcptrials.models.chat_reply import read_reply
from mcptrials.models.http_failure import failure
from mcptrials.protocols import Endpoint, Message, Reply
from mcptrials.trial import TrialKey

PLACEHOLDER_KEY = "not-needed"
"""Sent to servers of the user's own that ask for no key."""
MAX_CONNECTIONS = 500


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
        self._name, self._timeout_s, self._extra_body = name, timeout_s, dict(extra_body or {})
        self._client = _client(base_url, api_key, headers)
        self._endpoint = Endpoint(str(self._client.base_url).rstrip("/"), name, self._client.api_key)
        # What the provider turned out to want, learnt from its first refusal.
        self._limit_key = "max_tokens"
        self._with_reasoning = False

    @property
    def endpoint(self) -> Endpoint | None:
        return self._endpoint

    async def request(
        self, messages: Sequence[Message], tools: Sequence[ToolShown], settings: Mapping[str, Any], trial: TrialKey
    ) -> Reply:
        try:
            raw = await self._post(self._body(messages, tools, settings))
        except ProviderError as refusal:
            if not self._learns(refusal, settings):
                raise
            raw = await self._post(self._body(messages, tools, settings))
        return read_reply(raw, messages)

    async def aclose(self) -> None:
        await self._client.close()

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
        return body | self._extra_body

    def _learns(self, refusal: ProviderError, settings: Mapping[str, Any]) -> bool:
        """Whether a refusal of the request names a dialect that we have not spoken yet."""
        if refusal.status != 400:  # noqa: PLR2004 - Bad Request
            return False
        before = self._limit_key, self._with_reasoning
        if "max_completion_tokens" in refusal.message and "max_tokens" in settings:
            self._limit_key = "max_completion_tokens"
        if "reasoning_content" in refusal.message:
            self._with_reasoning = True
        return before != (self._limit_key, self._with_reasoning)

    async def _post(self, body: Mapping[str, Any]) -> Any:
        content = dump_text(body).encode()
        try:
            with anyio.fail_after(self._timeout_s):
                # Bytes of ours and a raw response: the SDK would copy, rename and validate both ways.
                response = await self._client.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=content,
                    options={"headers": {"Content-Type": "application/json"}, "security": {"bearer_auth": True}},
                )
        except openai.APIStatusError as exc:
            raise failure(exc.status_code, _error_body(exc.response), exc.response.headers) from exc
        except (TimeoutError, openai.APITimeoutError) as exc:
            raise ProviderError("timeout", f"no reply within {self._timeout_s:g} s", retryable=True) from exc
        except openai.APIConnectionError as exc:
            raise ProviderError("connection", describe(exc.__cause__ or exc), retryable=True) from exc
        return _value(response)


def _client(base_url: str | None, api_key: str | None, headers: Mapping[str, str] | None) -> openai.AsyncOpenAI:
    key = api_key or (PLACEHOLDER_KEY if base_url else os.environ.get("OPENAI_API_KEY", ""))
    if not key:
        raise UsageError("no API key for OpenAI", hint="set OPENAI_API_KEY, or give base_url for another server")
    if not (key.isascii() and key.isprintable()):
        raise UsageError("the API key holds characters that no HTTP header can", hint="check for line breaks")
    client = openai.AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        timeout=None,
        default_headers=headers,
        http_client=_http_client(base_url or ""),
    )
    if base_url:  # the SDK read these from the environment: they are OpenAI's business only
        client.organization = client.project = client.admin_api_key = None
    return client


def _http_client(base_url: str) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS)
    url = urlsplit(base_url)
    if url.scheme == "http" and url.hostname in {"127.0.0.1", "localhost", "::1"}:
        # No proxy reaches this machine's loopback, and certificates, slow to load, have no part in plain HTTP.
        no_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return openai.DefaultAsyncHttpxClient(timeout=None, limits=limits, trust_env=False, verify=no_tls)
    return openai.DefaultAsyncHttpxClient(timeout=None, limits=limits)


def _value(response: httpx2.Response) -> Any:
    """The JSON value of a good answer; some gateways send their errors as good answers too."""
    try:
        value = parse_json(response.content)
    except (ValueError, RecursionError) as exc:
        message = f"the provider's reply is not JSON: {excerpt.beginning(response.text, 200)!r}"
        raise ProviderError("http", message, status=response.status_code, retryable=True) from exc
    if isinstance(value, dict) and value.get("error") and not value.get("choices"):
        code = value["error"].get("code") if isinstance(value["error"], dict) else None
        raise failure(code if isinstance(code, int) else 500, value, response.headers)
    return value


def _error_body(response: httpx2.Response) -> Any:
    try:
        return parse_json(response.content)
    except (ValueError, RecursionError):
        return response.text
