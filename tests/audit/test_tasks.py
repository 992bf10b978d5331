"""`mcptrials check` on tasks: what is sound, and each way of being broken, with its reason."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.shop_project import call, plays, shop, task, write_shop

from mcptrials.audit import check_project
from mcptrials.errors import UsageError
from mcptrials.runner import run

SHIP = call("set_status", id=1, status="sent")
STATUS = {"type": "state_check", "query": "status of 1"}
SENT = STATUS | {"expected": "sent"}
TOTAL = {"type": "exact_answer", "expected": 1250, "kind": "number"}


def rows(folder: Path, tasks: Sequence[Any], only: str | None = None, **keys: Any) -> dict[str, tuple[str, list[str]]]:
    """By task: its status and the reasons."""
    audit = check_project(shop(folder, tasks, **keys), (), offline=True, notice=lambda _: None, only=only)
    return {row["task_id"]: (row["status"], row["reasons"]) for row in audit.tasks}


GOOD = [
    task("cents", [TOTAL], "1250", call("get_order", id=1)),
    task("ship", [SENT, {"type": "exact_answer", "expected": "sent"}], "sent", call("list_orders"), SHIP),
    task(
        "missing",
        [{"type": "exact_answer", "expected": "none"}],
        "none",
        call("get_order", id=9),
        expects="not_found",
        prompt="Who ordered 9? If there is no such order, reply: none",
    ),
    task("sum", [{"type": "exact_answer", "expected": "7"}], "7", expects="abstain"),
    task("equal", [{"type": "state_equals_reference", "ignore": ["*.changed_at"]}], None, SHIP),
    task("only", [SENT, {"type": "only_changes", "allow": ["shop.db/orders"]}], None, SHIP),
]


def test_sound_tasks_are_ok_each(tmp_path: Path) -> None:
    assert rows(tmp_path, GOOD) == {each["id"]: ("ok", []) for each in GOOD}


BROKEN: dict[str, tuple[Any, str]] = {
    "a vacuous state check": (
        task("t", [TOTAL, STATUS | {"expected_regex": "open|sent"}], "1250", SHIP),
        "passes with the right answer though nothing is done: no grader sees what its reference changes",
    ),
    "a wrong reference answer": (
        task("t", [TOTAL], "1260", call("get_order", id=1)),
        "its reference fails: grader 'exact_answer' says wrong: expected '1250', not '1260'",
    ),
    "reference calls that do not lead there": (
        task("t", [SENT], None, call("set_status", id=2, status="sent")),
        'its reference fails: grader \'state_check\' says wrong_state: expected "sent", found "open"',
    ),
    "an unknown tool": (
        task("t", [SENT], None, call("ship_order", id=1)),
        "tasks.json:1: [1].reference.calls[0].tool: there is no tool 'ship_order'",
    ),
    "a call that errs": (
        task("t", [TOTAL], "1250", call("get_order", id=9)),
        "its reference fails: its call of 'shop/get_order' fails (tool_error): Error executing tool get_order: "
        "there is no order 9",
    ),
    "a state that is there already": (
        task("t", [STATUS | {"expected": "open"}], None, call("get_order", id=1)),
        "passes with no answer and without a call",
    ),
    "an answer that others give": (
        task("t", [{"type": "exact_answer", "expected": ["1250", "9901"]}], "9901", call("get_order", id=1)),
        "passes with the answer of task cents and without a call",
    ),
    "a tolerance that takes all": (
        task("t", [TOTAL | {"abs_tol": 99999}], "1250", call("get_order", id=1)),
        "passes with the wrong answer '2501' and without a call",
    ),
    "a grader that cannot fail": (
        task("t", [TOTAL, STATUS | {"expected_regex": ".*"}], "1250", call("get_order", id=1)),
        "grader 'state_check' cannot fail: it passes the reference also when nothing is there to be read",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_way_of_being_broken_is_told_with_its_reason(tmp_path: Path, name: str) -> None:  # C58, C60
    broken, why = BROKEN[name]
    status, reasons = rows(tmp_path, [GOOD[0], broken])["t"]
    assert status == "broken"
    assert why in reasons


def test_a_task_that_needs_another_to_come_first_is_told_which(tmp_path: Path) -> None:
    pays = task("pays", [STATUS | {"expected": "paid"}], None, call("set_status", id=1, status="paid"))

    needs = {"type": "state_check", "read": {"file": "notes/a.txt"}, "expected": "x"}
    both = [task("note", [needs], None, call("write_note", name="a", text="x")), pays]
    both.append(task("after", [needs, STATUS | {"expected": "sent"}], None, SHIP))
    found = rows(tmp_path, both)
    assert (found["note"][0], found["pays"][0], found["after"][0]) == ("ok", "ok", "broken")
    assert "it passes after the reference of task note: it depends on it" in found["after"][1][0]


def test_state_that_outlives_a_trial_is_found_by_playing_references_again(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    count = {"type": "exact_answer", "expected": "1"}
    tasks = [task("first", [count], "1", call("get_order", id=1)), task("ship", [SENT], None, SHIP)]
    shop(folder, tasks)
    kept = (
        (folder / "shop.py")
        .read_text()
        .replace("def get_order(id: int) -> str:", "def get_order(id: int) -> str:\n        assert not SHIPPED")
    )
    kept = kept.replace("READS = ", "SHIPPED = []\nREADS = ").replace(
        'rows("update', 'SHIPPED.append(id)\n        rows("update'
    )
    (folder / "leaky.py").write_text(kept)
    found = rows(folder, tasks, servers={"shop": {"python": "./leaky.py:make"}})
    assert found["ship"] == ("ok", [])
    status, [reason, *_] = found["first"]
    assert status == "broken"
    assert "passes at first, and fails after the others were played" in reason
    assert "trials are not isolated" in reason


def test_what_is_asked_for_alone_is_rehearsed_and_held_out_answers_stay_unsaid(tmp_path: Path) -> None:
    tasks = [*GOOD, task("secret", [TOTAL], "777", call("get_order", id=1), split="held_out")]
    found = rows(tmp_path, tasks, only="secret")
    assert found["secret"][1][0] == "its reference fails: grader 'exact_answer' says wrong"
    assert list(found) == ["secret"]
    with pytest.raises(UsageError, match="picks no task"):
        rows(tmp_path / "again", tasks, only="nosuch")


def test_a_task_without_a_reference_is_a_warning(tmp_path: Path) -> None:
    bare = {"id": "bare", "prompt": "x", "graders": [TOTAL]}
    audit = check_project(shop(tmp_path, [GOOD[0], bare]), (), offline=True, notice=lambda _: None)
    assert audit.passed
    assert [row["status"] for row in audit.tasks] == ["ok", "warning"]
    [line] = [line for line in audit.lines if line.subject == "references"]
    assert "1 without a reference" in line.what


def test_a_run_refuses_what_check_found_broken_until_it_changes_or_the_project_says_so(tmp_path: Path) -> None:
    broken = task("t", [SENT], "x", call("set_status", id=2, status="sent"))
    script = {"t": plays("x", SHIP)}
    project = shop(tmp_path, [broken], script)
    run(project)  # nobody has looked yet, and without a server nothing is wrong with it
    assert not check_project(project, (), offline=True, notice=lambda _: None).passed
    with pytest.raises(
        UsageError, match="a task is broken: t: its reference fails: grader 'state_check' says wrong_state"
    ):
        run(project)
    assert run(shop(tmp_path, [broken], script, broken_tasks="run")).run.records()[0].passed
    mended = shop(tmp_path, [broken | {"reference": {"answer": "x", "calls": [SHIP]}}], script)
    assert run(mended).run.records()[0].passed


@pytest.mark.parametrize(
    "name", ["a wrong reference answer", "a state that is there already", "a tolerance that takes all"]
)
def test_a_run_sees_by_itself_what_needs_no_server(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"a task is broken: t: .*broken_tasks=run"):
        run(shop(tmp_path, [BROKEN[name][0]]))
    assert not list(tmp_path.glob("runs/*"))


def faults(folder: Path, tasks: Sequence[Any]) -> dict[tuple[str, str, str | None], list[str]]:
    """By fault, tool and argument: the tasks that notice it."""
    audit = check_project(shop(folder, tasks), (), offline=True, notice=lambda _: None)
    return {(row["fault"], row["tool"], row["argument"]): row["noticed_by"] for row in audit.faults}


SPOTS = [
    task("cents", [TOTAL], "1250", call("get_order", id=1)),
    task("count", [{"type": "exact_answer", "expected": "2"}], "2", call("list_orders", customer="Ada")),
    task(
        "missing", [{"type": "exact_answer", "expected": "none"}], "none", call("get_order", id=9), expects="not_found"
    ),
    task("ship", [SENT, {"type": "only_changes", "allow": [{"in": "shop.db/orders", "where": {"id": 1}}]}], None, SHIP),
    task(
        "pay",
        [
            {"type": "state_check", "query": "status of 3", "expected": "paid"},
            {"type": "exact_answer", "expected": "paid"},
        ],
        "paid",
        call("set_status", id=3, status="paid"),
        call("get_order", id=3),
    ),
]


def test_each_planted_fault_names_the_tasks_that_notice_it(tmp_path: Path) -> None:
    found = faults(tmp_path, SPOTS)
    assert found == {
        ("wrong row", "get_order", None): ["cents", "missing", "pay"],
        ("truncated page", "get_order", None): ["cents", "pay"],
        ("stale read", "get_order", None): ["pay"],
        ("filter dropped", "list_orders", "customer"): ["count"],
        ("truncated page", "list_orders", None): [],
        ("off-by-one count", "list_orders", None): ["count"],
        ("stale read", "list_orders", None): [],
        ("write not done", "set_status", None): ["ship"],
        ("write elsewhere", "set_status", None): ["ship"],
    }


def test_a_tool_that_says_nothing_of_itself_and_leaves_no_trace_is_taken_to_read(tmp_path: Path) -> None:
    folder = write_shop(tmp_path, SPOTS)
    server = (folder / "shop.py").read_text()
    (folder / "bare.py").write_text(server.replace("annotations=READS, ", "").replace("annotations=WRITES, ", ""))
    project = shop(folder, SPOTS, servers={"shop": {"python": "./bare.py:make"}})
    found = check_project(project, (), offline=True, notice=lambda _: None).faults
    kinds = {tool: {row["fault"] for row in found if row["tool"] == tool} for tool in ("get_order", "set_status")}
    assert kinds["get_order"] == {"wrong row", "truncated page", "stale read"}
    assert kinds["set_status"] == {"write not done", "write elsewhere"}


def test_a_suite_that_looks_at_less_notices_less(tmp_path: Path) -> None:
    ship = task("ship", [{"type": "exact_answer", "expected": "done"}], "done", SHIP, noop_should_pass=True)
    also = task(
        "pay",
        [{"type": "exact_answer", "expected": "well"}],
        "well",
        call("set_status", id=3, status="paid"),
        noop_should_pass=True,
    )
    assert faults(tmp_path, [ship, also]) == {
        ("write not done", "set_status", None): [],
        ("write elsewhere", "set_status", None): [],
    }


def test_faults_are_planted_in_calls_to_which_arguments_are_added(tmp_path: Path) -> None:
    inject = {"set_status": {"status": "paid"}}
    servers = {"shop": {"python": "./shop.py:make", "tools": {"inject": inject}}}
    tasks = [
        task(
            f"pay{id}",
            [{"type": "state_check", "query": f"status of {id}", "expected": "paid"}],
            None,
            call("set_status", id=id),
        )
        for id in (3, 4)
    ]
    audit = check_project(shop(tmp_path, tasks, servers=servers), (), offline=True, notice=lambda _: None)
    noticed = {row["fault"]: row["noticed_by"] for row in audit.faults}
    assert noticed == {"write not done": ["pay3"], "write elsewhere": ["pay3"]}


def test_state_that_only_a_running_server_knows_is_read_from_it(tmp_path: Path) -> None:
    asked = {"type": "state_check", "read": {"tool": "get_order", "args": {"id": 1}}}
    idle = task("idle", [asked | {"expected_contains": "open"}], None, call("get_order", id=1))
    ships = task("ships", [asked | {"expected_contains": "sent"}], None, SHIP)
    found = rows(tmp_path, [idle, ships])
    assert found["ships"] == ("ok", [])
    assert "passes with no answer and without a call" in found["idle"][1]


def test_a_suite_whose_server_fails_every_call_is_told_so_without_trying_each_task_after_each(tmp_path: Path) -> None:
    heard: list[str] = []
    tasks = [task(f"t{number}", [TOTAL], "1250", call("get_order", id=99)) for number in range(12)]
    audit = check_project(shop(tmp_path, tasks), (), offline=True, notice=heard.append)
    assert [row["status"] for row in audit.tasks] == ["broken"] * 12
    assert len(heard) < 20
    assert audit.faults == []


def test_a_damaged_memory_of_verdicts_is_none(tmp_path: Path) -> None:
    project = shop(tmp_path, [GOOD[0]], {"cents": plays("1250")})
    (tmp_path / ".mcptrials").mkdir()
    for content in ("{", "[]", '{"cents": 5}', '{"cents": []}', '{"cents": [null, "x"]}'):
        (tmp_path / ".mcptrials" / "check.json").write_text(content)
        assert run(project).run.records()[0].passed


def test_tasks_whose_environment_can_be_made_are_tried_though_that_of_another_cannot(tmp_path: Path) -> None:
    fails = {"reset": [{"command": ["{python}", "-c", "raise SystemExit(3)"]}]}
    draft = task(
        "draft", [TOTAL], "1", environment={"reset": [{"sql": "select 1", "url": "sqlite:///x.db"}]}, draft=True
    )
    tasks = [GOOD[0], task("lost", [TOTAL], "1250", environment=fails), draft]
    assert rows(tmp_path, tasks) == {"cents": ("ok", [])}
    assert rows(tmp_path / "again", [*tasks, GOOD[1]], only="ship") == {"ship": ("ok", [])}
