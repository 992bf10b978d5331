"""The client of OpenAI's SDK, set up so that nothing but what we send is sent."""

from collections.abc import Mapping

import openai

from mcptrials.models.connection import find_key, unused_client
from mcptrials.models.exchange import Exchange
from mcptrials.protocols import Endpoint

OWN_ENDPOINT = "https://api.openai.com/v1"
"""Given explicitly: the SDK would look for another in the environment, where no record shows it."""


def open_openai(
    model: str, base_url: str | None, api_key: str | None, timeout_s: float, headers: Mapping[str, str] | None
) -> tuple[Exchange, Endpoint]:
    """The way to a server that speaks like OpenAI's, and where a real host finds the model.

    Raises:
        UsageError: there is no usable key.
    """
    key = find_key("OpenAI", "OPENAI_API_KEY", base_url=base_url, api_key=api_key)
    client = openai.AsyncOpenAI(
        api_key=key.value,
        base_url=base_url or OWN_ENDPOINT,
        max_retries=0,
        timeout=None,
        default_headers=headers,
        http_client=unused_client(),
    )
    if base_url:  # the SDK read these from the environment: they are OpenAI's business only
        client.organization = client.project = client.admin_api_key = None
        client._custom_headers = dict(headers or {})
    return Exchange(client, key, timeout_s), Endpoint(str(client.base_url).rstrip("/"), model, key.value)
