"""The name that a server gets when its user gives none."""

from pathlib import Path

import pytest

from mcptrials.starter import from_command, from_url


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("python -m my_server --db x.db", "my_server"),
        ("/usr/bin/python3.12 server.py --db x.db", "shop"),
        ("node ./shop-mcp/dist/index.js", "shop-mcp"),
        ("npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /data", "server-filesystem"),
        ("uvx --from git+https://x/y mcp-server-git --repository r", "mcp-server-git"),
        ("uv run --directory /srv/tools main.py", "shop"),
        ("docker run -i --rm -e API_KEY mcp/fetch", "fetch"),
        ("./bin/weather --token abcdefgh", "weather"),
        ("python --token swordfish -m srv", "srv"),
        ("python", "server"),
    ],
)
def test_a_command_gives_a_server_the_name_of_what_it_runs(words: str, name: str) -> None:
    assert from_command(words.split(), None, Path("/home/ann/shop")).name == name


def test_a_url_gives_a_server_the_name_of_its_host() -> None:
    assert from_url("https://www.example.com/mcp", None, Path()).name == "example"
    assert from_url("http://127.0.0.1:8000/mcp", None, Path()).name == "server"
    assert from_url("http://127.0.0.1:8000/mcp", "mine", Path()).name == "mine"
