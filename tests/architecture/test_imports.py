"""What is imported when, and what is public."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mcptrials

HEAVY = {"mcp", "mcp_types", "openai", "anthropic", "numpy", "scipy", "httpx", "httpx2", "jsonschema", "xllamacpp"}
MODULES_AFTER = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def imported_by(program: str) -> set[str]:
    """The modules after a program of one line, which may not warn."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert result.stdout == ""
    return set(json.loads(result.stderr))


def test_importing_the_package_prints_nothing_and_imports_next_to_nothing() -> None:
    found = imported_by(f"import mcptrials; {MODULES_AFTER}")
    assert not found & (HEAVY | {"pydantic", "anyio", "click", "rich", "ruamel"})
    assert {name for name in found if name.startswith("mcptrials")} == {"mcptrials"}


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["no-such-command"]])
def test_what_needs_no_command_imports_no_command(words: list[str]) -> None:
    program = (
        f"import contextlib, io, sys\nfrom mcptrials.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        f"    with contextlib.suppress(SystemExit): main({words!r})\n{MODULES_AFTER}"
    )
    found = imported_by(program)
    assert not found & (HEAVY | {"pydantic", "anyio", "ruamel"})
    commands = {"mcptrials.cli.check", "mcptrials.cli.run", "mcptrials.cli.show", "mcptrials.cli.demo"}
    assert not found & commands


def test_reading_runs_needs_neither_protocol_nor_providers() -> None:
    found = imported_by(
        f"import mcptrials.cli.report, mcptrials.cli.show, mcptrials.report, mcptrials.store; {MODULES_AFTER}"
    )
    assert not found & {"mcp", "mcp_types", "openai", "httpx", "httpx2", "xllamacpp"}


def test_loading_a_project_imports_no_protocol_and_no_provider() -> None:
    found = imported_by(f"import mcptrials.project, mcptrials.runner; {MODULES_AFTER}")
    assert not found & {"mcp", "mcp_types", "openai", "numpy", "scipy", "xllamacpp"}


def test_every_public_name_exists_and_they_are_few() -> None:
    assert [name for name in mcptrials.__all__ if not hasattr(mcptrials, name)] == []
    assert len(mcptrials.__all__) <= 30
    assert sorted(set(mcptrials.__all__)) == sorted(mcptrials.__all__)
    assert set(mcptrials.__all__) <= set(dir(mcptrials))


def test_no_public_name_is_that_of_a_module_which_would_replace_it_once_imported() -> None:
    modules = {path.stem for path in Path(mcptrials.__file__).parent.iterdir()}
    assert modules & set(mcptrials.__all__) == set()
