"""The shape that keeps the code readable: sizes, names, flags, and what is never written."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mcptrials.cli.group import TABLE

PACKAGE = Path(__file__).parents[2] / "src" / "mcptrials"
FILES = sorted(PACKAGE.rglob("*.py"))
COMMON_OPTIONS = {"project_file", "settings", "as_json", "quiet"}
BROAD_EXCEPTS = [
    "cli/outcome.py",  # the outermost boundary: a bug ends in exit code 70
    "environment/own_thread.py",  # what a thread raised is raised in the one that waits
    "errors.py",  # `boundary` attributes what fails inside
    "executors/local.py",  # the other trials are cancelled first, then it is raised again
    "servers/fork/forking.py",  # a script's failure is shown as the interpreter shows it
    "servers/thread_channel.py",  # a server's own thread: what ends it is told to the trial
]
LATE_IMPORTS = {
    "stats/quantile.py",  # scipy.special, when an interval is computed
    "models/hub_child.py",  # huggingface_hub, in a program of its own
    "models/local_server.py",  # xllamacpp, in a program of its own
    "store/run.py",  # pandas, when a frame is asked for
}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "common", "base", "manager", "misc", "_utils"}
    assert [path for path in FILES if {path.stem, path.parent.name} & drawers] == []


def test_every_module_begins_with_one_sentence_that_says_what_it_is() -> None:
    silent = [path for path in FILES if path.stat().st_size and not (ast.get_docstring(parsed(path)) or "").strip()]
    assert silent == []


@pytest.mark.parametrize(("folder", "limit"), [("src", 400), ("bench", 400), ("examples", 400), ("tests", 500)])
def test_no_file_is_too_long(folder: str, limit: int) -> None:
    found = (PACKAGE.parents[1] / folder).rglob("*.py")
    files = [path for path in found if ".servers" not in path.parts]  # the installed servers of the examples
    assert [str(path) for path in files if len(path.read_text("utf-8").splitlines()) > limit] == []


def test_no_function_is_longer_than_60_lines_and_the_usual_one_is_short() -> None:
    sizes = {f"{path.name}:{each.name}": lines_of(each) for path in FILES for each in functions(path)}
    assert {name: size for name, size in sizes.items() if size > 60} == {}
    assert sorted(sizes.values())[len(sizes) // 2] <= 10


def test_run_trial_stays_on_one_screen() -> None:
    [run_trial] = [each for each in functions(PACKAGE / "rollout" / "rollout.py") if each.name == "run_trial"]
    assert lines_of(run_trial) <= 60


def test_nothing_is_global() -> None:
    found = [str(path) for path in FILES for node in ast.walk(parsed(path)) if isinstance(node, ast.Global)]
    assert found == []


def test_imports_stand_at_the_top_but_for_the_heaviest() -> None:
    found = set()
    for path in FILES:
        for function in functions(path):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    found.add(path.relative_to(PACKAGE).as_posix())
    assert found <= LATE_IMPORTS


def test_broad_excepts_that_do_not_just_clean_up_are_the_known_few() -> None:
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node)
    ]
    assert found == BROAD_EXCEPTS


def _is_broad(caught: ast.expr | None) -> bool:
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(name is None or ast.unparse(name) in ("Exception", "BaseException") for name in names)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


@pytest.mark.parametrize("name", TABLE)
def test_a_command_has_at_most_eight_flags_of_its_own(name: str) -> None:
    module, _, attribute = TABLE[name][0].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    options = {option.name for option in command.params if isinstance(option, click.Option)}
    assert options >= COMMON_OPTIONS
    assert len(options - COMMON_OPTIONS) <= 8
    assert command.get_short_help_str()
