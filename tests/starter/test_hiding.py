"""No secret stays in an entry, wherever it stood and whatever it looks like."""

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.starter import Entry
from mcptrials.starter.harmless import harmless
from mcptrials.starter.hiding import without_secrets
from mcptrials.starter.variables import Variables

BASE = Path(__file__).parent
SECRETS = st.text(st.sampled_from(string.ascii_letters + string.digits + "+/=_-.$%!"), min_size=9, max_size=40)


@settings(deadline=None)
@given(SECRETS)
def test_a_value_with_a_telling_place_is_a_variable_and_nothing_of_it_is_left(secret: str) -> None:
    if harmless("token", secret, BASE) or harmless("", secret, BASE):  # an address, say, stays where no name tells
        return
    args = (
        "--token",
        secret,
        f"--api-key={secret}",
        f"Authorization: Bearer {secret}",
        f"SECRET={secret}",
        f"x{secret}",
    )
    env, headers = {"TOKEN": secret, "PLAIN": secret}, {"X-Api-Key": secret, "Authorization": f"Basic {secret}"}
    entry = Entry("shop", BASE, command="x", args=args, env=env, headers=headers)
    variables = Variables({})
    clean = without_secrets(entry, variables)
    assert not [text for text in (*clean.args, *clean.env.values(), *clean.headers.values()) if secret in text]
    assert list(map(variables.fill, clean.args)) == [*args]
    assert {name: variables.fill(value) for name, value in clean.env.items()} == env
    assert {name: variables.fill(value) for name, value in clean.headers.items()} == headers


@pytest.mark.parametrize(
    "args",
    [
        ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/usr/share", "."],
        ["run", "-i", "--rm", "-v", "/usr/share:/data", "ghcr.io/github/github-mcp-server:latest"],
        ["-m", "my_server", "--port", "8080", "--host", "127.0.0.1", "--log-level", "debug", "--max-rows=200"],
        ["--directory", "tests/starter", "run", "server.py", "--transport", "stdio", "--auth", "none"],
        ["--db", "sqlite:///shop.db", "https://api.example.com/v1/mcp?transport=stdio&region=eu"],
        ["serve", "--config", '{"depth": 3, "name": "Nord"}', "--query=select 1"],
    ],
)
def test_ordinary_arguments_stay_as_they_are(args: list[str]) -> None:
    variables = Variables({})
    assert without_secrets(Entry("s", BASE, command="x", args=tuple(args)), variables).args == tuple(args)
    assert variables.values == {}
