"""The Node server of docs/quickstart.md, with the SDK that the servers of npm bring."""

from pathlib import Path

import pytest
from tests.quickstart import write_files
from tests.real_servers.catalogue import SERVERS
from tests.real_servers.evaluating import evaluate, require

pytestmark = pytest.mark.real_servers


def test_the_node_server_of_the_quickstart_is_evaluated(tmp_path: Path) -> None:
    [server] = [server for server in SERVERS if server.name == "everything"]
    require(server)
    project = tmp_path / "project"
    project.mkdir()
    write_files("My server is Node", project)
    (project / "node_modules").symlink_to(server.folder / "node_modules")
    records = evaluate(project / "mcptrials.yaml", tmp_path).run.records()
    assert {(record.verdict, record.cause, record.tool_errors) for record in records} == {
        ("passed", None, 0),
        ("failed", "wrong_state", 0),
    }
