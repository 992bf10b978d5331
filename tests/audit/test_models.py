"""Models in an audit: one tiny request to each that may cost something, none with `offline`."""

import json
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from tests.models.fake_openai import Answer, completion, error, fake_openai, text
from tests.projects import DONE, write_project

from mcptrials.audit import Line, check_project

pytestmark = pytest.mark.anyio

CALL = {"id": "c", "type": "function", "function": {"name": "ready", "arguments": "{}"}}
CALLED = completion({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls")


async def audited(folder: Path, answers: list[Answer], *, offline: bool = False) -> tuple[Line, list[Any]]:
    """The line of a model behind an endpoint that is not known to be free, and the requests that it got."""
    async with fake_openai(*answers) as fake:
        address = fake.url.replace("127.0.0.1", "0.0.0.0")  # noqa: S104 - another name of this machine
        project = write_project(folder, [DONE], models=[{"model": "openai:m", "base_url": address, "api_key": "k"}])
        audit = await to_thread.run_sync(lambda: check_project(project, (), offline=offline, notice=lambda _: None))
    [line] = [each for each in audit.lines if each.section == "models"]
    return line, fake.requests


async def test_a_model_that_may_cost_something_is_asked_for_one_tool_call(tmp_path: Path) -> None:
    line, requests = await audited(tmp_path, [CALLED])
    assert (line.level, line.what) == ("ok", "answered with the tool call it was asked for")
    [request] = requests
    assert [tool["function"]["name"] for tool in request.json["tools"]] == ["ready"]
    assert request.json["max_tokens"] == 4096  # the limit of a reply in the project


async def test_offline_makes_no_request(tmp_path: Path) -> None:
    line, requests = await audited(tmp_path, [], offline=True)
    assert (line.level, line.what, requests) == ("ok", "not asked: --offline", [])


async def test_a_model_that_calls_no_tool_is_a_warning_and_a_refused_key_a_failure(tmp_path: Path) -> None:
    line, _ = await audited(tmp_path, [text("I am ready.")])
    assert (line.level, line.what.partition(" called no tool")[0]) == ("warn", "model 'openai:m'")
    line, requests = await audited(tmp_path, [error(401, "no such key")])
    assert (line.level, len(requests)) == ("fail", 1)
    assert line.fix == "check 'api_key' of the model in the project file, or that environment variable"
    json.dumps(line.what)
