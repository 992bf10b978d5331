"""The documents say what is there, and what they show works."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.real_servers.catalogue import SERVERS

from mcptrials.project import Project

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mcptrials"
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z,]+\])?==[A-Za-z0-9.!+_-]+( ; [^@/]+)?")


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def code_map() -> set[str]:
    """The modules in the first column of the code map."""
    table = text("docs/architecture.md").split("## Code map")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def modules() -> set[str]:
    """Every module that holds code; a package whose `__init__` only names its parts is its parts."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] not in ("__init__", "__main__"):
            found.add(".".join(parts))
    return found


def test_the_code_map_names_every_module_and_no_other() -> None:
    packages = {path.parent.relative_to(PACKAGE).as_posix().replace("/", ".") for path in PACKAGE.rglob("__init__.py")}
    assert modules() - code_map() == set()
    assert code_map() - modules() - packages == set()


def test_the_architecture_is_described_in_150_lines() -> None:
    assert len(text("docs/architecture.md").splitlines()) <= 150


def test_the_layers_of_the_document_are_those_that_are_checked() -> None:
    [contract] = [each for each in pyproject()["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    drawn = text("docs/architecture.md").split("## Layers")[1].split("```")[1].split("\n")
    assert [line for line in drawn if line] == contract["layers"]


def pyproject() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def test_every_dependency_has_its_reason() -> None:
    project = pyproject()["project"]
    extras = [item for items in project["optional-dependencies"].values() for item in items]
    names = [re.split(r"[><=\[; ]", item)[0] for item in (*project["dependencies"], *extras)]
    document = text("docs/dependencies.md")
    assert [name for name in names if f"| {name} |" not in document and f"**{name}**" not in document] == []


PINNED = [
    *("constraints.txt", "tests/sdk1.txt", "bench/peer.txt"),
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("tests/real_servers/requirements/*.txt"))),
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("examples/*/requirements.txt"))),
]


@pytest.mark.parametrize("name", PINNED)
def test_pins_are_exact_versions_without_addresses(name: str) -> None:
    lines = text(name).splitlines()
    assert lines
    assert [line for line in lines if not PIN.fullmatch(line)] == []


def test_node_servers_are_pinned_to_exact_versions() -> None:
    files = [ROOT / "tests" / "real_servers" / "node" / "package.json", *ROOT.glob("examples/*/package.json")]
    pins = [pin for file in files for pin in json.loads(file.read_text("utf-8"))["dependencies"].values()]
    assert len(pins) == 4
    assert [pin for pin in pins if not re.fullmatch(r"\d+\.\d+\.\d+", pin)] == []


def test_the_page_of_the_servers_is_that_of_the_pinned_ones() -> None:
    rows = re.findall(r"^\| (\S+) \| (\d[\w.]*) \| ", text("docs/servers.md"), flags=re.MULTILINE)
    assert rows == [(server.package, server.version) for server in SERVERS]


def yaml_blocks(name: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text(name), flags=re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_yaml_that_is_shown_can_be_read(name: str) -> None:
    for block in yaml_blocks(name):
        assert YAML(typ="safe", pure=True).load(block) is not None


def test_the_first_project_of_the_readme_loads(tmp_path: Path) -> None:
    named = {block.split("\n")[0].removeprefix("# "): block for block in yaml_blocks("README.md")}
    for file, block in named.items():
        (tmp_path / file).write_text(block)
    for fixture in re.findall(r"\{?(fixtures/[\w.]+):", named["mcptrials.yaml"]):
        (tmp_path / fixture).parent.mkdir(exist_ok=True)
        (tmp_path / fixture).touch()
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", named["mcptrials.yaml"]), "x")
    project = Project.load(tmp_path / "mcptrials.yaml", environ=variables)
    assert len(project.suite.tasks) >= 1


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
)
def test_links_between_documents_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(name))
    assert [target for target in targets if not ((ROOT / name).parent / target).exists()] == []
