"""State as a function of the user's sees it: called in a thread of its own, never trusted to end or to give JSON."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.environment.looking import asked, found, make_place

from mcptrials.trial import StateValue

pytestmark = pytest.mark.anyio
FUNCTIONS = """
import asyncio, threading, sys, time

def place(place, **params):
    return [str(place.trial_dir), params]

async def slowly(place, *, key, times=1):
    await asyncio.sleep(0)
    return key * times

def thread(place):
    return threading.current_thread() is threading.main_thread()

def fails(place):
    raise ValueError("two\\nlines")

def leaves(place):
    sys.exit(3)

def stuck(place):
    time.sleep(600)

async def waits(place):
    await asyncio.sleep(600)

def odd(place, kind):
    return {"set": {1}, "nan": float("nan"), "surrogate": "\\ud800", "keys": {1: (2,)}, "huge": "x" * (17 << 20)}[kind]

number = 7
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "looks.py").write_text(FUNCTIONS, "utf-8")
    return tmp_path


def look(function: str, **more: Any) -> dict[str, Any]:
    return {"python": f"./looks.py:{function}", **more}


async def test_a_function_is_called_with_the_place_and_its_parameters(project: Path) -> None:
    trial_dir = str(make_place(project).trial_dir)
    assert (await found(project, look("place"))).value == [trial_dir, {}]
    state = await found(project, {"python": {"function": "./looks.py:place", "params": {"a": [1, "{trial_dir}"]}}})
    assert state.value == [trial_dir, {"a": [1, trial_dir]}]
    assert (await found(project, look("thread"))).value is False


async def test_names_are_parameters_of_their_own_unless_a_parameter_mentions_them(project: Path) -> None:
    assert (await asked(project, "{key}!", look("slowly"), "ab!")).value == "ab"
    assert (await asked(project, "{key}!", look("slowly", params={"times": 2}), "ab!")).value == "abab"
    state = await asked(project, "{a} of {b}", look("place", params={"key": "<{a}>"}), "{b} of y/../z")
    assert state.value[1] == {"key": "<{b}>", "b": "y/../z"}


@pytest.mark.parametrize(
    ("reader", "error"),
    [
        (look("fails"), "'./looks.py:fails' failed: ValueError: two lines"),
        (look("leaves"), "'./looks.py:leaves' failed: SystemExit: 3"),
        (look("stuck", timeout_seconds=0.2), "'./looks.py:stuck' did not end within 0.2 s"),
        (look("waits", timeout_seconds=0.2), "'./looks.py:waits' did not end within 0.2 s"),
        (look("number"), "'./looks.py:number' failed: TypeError: 'int' object is not callable"),
        (look("slowly"), "failed: TypeError: slowly() missing 1 required keyword-only argument: 'key'"),
        (look("none"), "cannot load './looks.py:none': AttributeError"),
        (look("odd", params={"kind": "set"}), "no JSON: TypeError: Object of type set is not JSON serializable"),
        (look("odd", params={"kind": "nan"}), "no JSON: ValueError"),
        (look("odd", params={"kind": "huge"}), "returned more than 16 MiB"),
    ],
)
async def test_a_function_that_gives_no_value_is_an_error(project: Path, reader: dict[str, Any], error: str) -> None:
    began = time.monotonic()
    state = await found(project, reader)
    assert state.value is None
    assert error in str(state.error)
    assert "\n" not in str(state.error)
    assert time.monotonic() - began < 10


async def test_what_json_spells_otherwise_is_as_the_record_will_hold_it(project: Path) -> None:
    assert await found(project, look("odd", params={"kind": "keys"})) == StateValue(value={"1": [2]})


def test_a_function_that_never_ends_does_not_hold_up_the_exit(project: Path) -> None:
    reader = look("stuck", timeout_seconds=0.1)
    program = (
        "import anyio, pathlib\nfrom tests.environment.looking import found\n"
        f"print(anyio.run(found, pathlib.Path({str(project)!r}), {reader!r}).error)"
    )
    root = Path(__file__).parents[2]
    output = subprocess.check_output([sys.executable, "-c", program], cwd=root, text=True, timeout=30)
    assert output == "'./looks.py:stuck' did not end within 0.1 s\n"
