"""What a trial changed in files and tables, graded by what may change and by what the reference changes."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.shop_project import call, plays, shop, task

from mcptrials.errors import UsageError
from mcptrials.graders.changes import CHANGES, OnlyChanges, StateEqualsReference
from mcptrials.protocols import GradeInput
from mcptrials.record import Record
from mcptrials.runner import run
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome, StateValue

SHIP = call("set_status", id=1, status="sent")
NOTE = call("write_note", name="a", text="x")
EQUALS = {"type": "state_equals_reference", "ignore": ["shop.db/orders.changed_at"]}


def played(folder: Path, graders: list[Any], *scripts: Any, **keys: Any) -> list[Record]:
    """The records of tasks that are alike but for their scripts; the reference ships order 1."""
    tasks = [task(f"t{number}", graders, None, SHIP) for number in range(len(scripts))]
    project = shop(folder, tasks, {f"t{n}": script for n, script in enumerate(scripts)}, **keys)
    return sorted(run(project).run.records(), key=lambda record: record.task_id)


def verdicts(records: list[Record]) -> list[tuple[str, str | None]]:
    return [(record.verdict, record.cause) for record in records]


def test_a_trial_passes_when_it_leaves_the_state_of_the_reference_however_it_came_to_it(tmp_path: Path) -> None:  # C60
    detour = plays("done", call("list_orders"), call("set_status", id=1, status="x"), SHIP)
    other = plays("done", call("set_status", id=2, status="sent"))
    more = plays("done", SHIP, NOTE)
    records = played(tmp_path, [EQUALS], plays("done", SHIP), detour, plays("done"), other, more)
    passed, wrong = ("passed", None), ("failed", "wrong_state")
    assert verdicts(records) == [passed, passed, wrong, wrong, wrong]
    said = [record.graders[0].evidence or "" for record in records]
    assert 'missing: {"change": "added", "in": "shop.db/orders", "row": {"cents": 1250,' in said[2]
    assert 'not in the reference: {"change": "added", "content": ' in said[4]
    assert '"in": "notes/a.txt"' in said[4]
    state = records[0].state
    assert len(state["changes"].value) == len(state["reference: changes"].value) == 2


def test_columns_that_differ_each_time_make_no_state_equal_unless_they_are_ignored(tmp_path: Path) -> None:
    [record] = played(tmp_path, [{"type": "state_equals_reference"}], plays("done", SHIP))
    assert verdicts([record]) == [("failed", "wrong_state")]


def test_states_can_be_compared_by_the_projects_readers_and_their_order_does_not_count(tmp_path: Path) -> None:
    graders = [{"type": "state_equals_reference", "queries": ["orders", "status of 1"]}]
    records = played(tmp_path, graders, plays("done", NOTE, SHIP), plays("done"))
    assert verdicts(records) == [("passed", None), ("failed", "wrong_state")]


def test_only_changes_names_what_else_has_changed(tmp_path: Path) -> None:
    row = {"in": "shop.db/orders", "where": {"id": 1}}
    graders = [{"type": "only_changes", "allow": [row, "notes/*"]}]
    also = plays("done", SHIP, NOTE, call("set_status", id=3, status="sent"))
    records = played(tmp_path, graders, plays("done", SHIP, NOTE), plays("done"), also, broken_tasks="run")
    assert verdicts(records) == [("passed", None), ("passed", None), ("failed", "wrong_state")]
    assert '"id":3' in str(records[2].graders[0].evidence)


def test_a_reference_that_cannot_be_replayed_stops_the_run_before_any_trial(tmp_path: Path) -> None:
    project = shop(tmp_path, [task("t", [EQUALS], None, call("no_such_tool"))])
    with pytest.raises(UsageError, match="reference cannot be replayed: it calls 'shop/no_such_tool'"):
        run(project)
    assert not list(tmp_path.glob("runs/*"))


def test_a_task_without_a_reference_cannot_be_compared_with_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tasks.json:1.*has no 'reference'"):
        shop(tmp_path, [{"id": "t", "prompt": "x", "graders": [EQUALS]}])


@pytest.mark.parametrize("grader", [EQUALS, {"type": "only_changes"}])
def test_what_cannot_be_read_is_not_scored(tmp_path: Path, grader: Any) -> None:
    ruin = 'import pathlib, sys; pathlib.Path(sys.argv[1], "x.db").write_bytes(b"SQLite format 3\\0" + b"rubbish" * 99)'
    reset = [{"command": ["{python}", "-c", ruin, "{trial_dir}"]}]
    with pytest.raises(UsageError, match="what a trial changes cannot be found out"):
        played(tmp_path, [grader], plays("done"), environment={"reset": reset})
    given = Task.model_validate({"id": "t", "prompt": "x", "graders": [{"type": grader["type"]}], "reference": {}})
    made: Any = StateEqualsReference() if grader is EQUALS else OnlyChanges()
    state = {query.key: StateValue(error="the disk is gone") for query in made.needs(given)}
    outcome = Outcome(answer=None, framing="missing", state=state, stop="answer")
    judgement = made.grade(GradeInput(given, outcome, Transcript()))
    assert (judgement.value, "the disk is gone" in judgement.reason) == (None, True)
    assert made.grade(GradeInput(given, outcome.model_copy(update={"state": {}}), Transcript())).value is None


def judged(grader: StateEqualsReference, trial: list[Any], reference: list[Any]) -> bool | float | None:
    """What it says of these changes, beside those of the reference."""
    given = Task.model_validate({"id": "t", "prompt": "x", "graders": [{"type": EQUALS["type"]}], "reference": {}})
    values = zip(grader.needs(given), (trial, reference), strict=True)
    state = {query.key: StateValue(value=value) for query, value in values}
    outcome = Outcome(answer=None, framing="missing", state=state, stop="answer")
    return grader.grade(GradeInput(given, outcome, Transcript())).value


def test_each_row_that_comes_back_with_other_ignored_columns_cancels_one_that_went() -> None:
    def row(change: str, number: int) -> dict[str, Any]:
        return {"in": "shop.db/log", "change": change, "row": {"id": number, "text": "x"}}

    grader = StateEqualsReference(ignore=("*.id",))
    went, came = [row("removed", n) for n in (1, 2, 3)], [row("added", n) for n in (4, 5, 6)]
    assert judged(grader, [*went, *came], []) is True
    assert judged(grader, [*went, *came[:2]], [row("removed", 9)]) is True
    assert judged(grader, [*went, *came[:2]], []) is False
    assert judged(grader, [*went[:1], *came], [row("added", 9)]) is False
    assert judged(StateEqualsReference(), [*went, *came], []) is False


def test_a_column_that_a_row_lacks_is_not_one_that_holds_null() -> None:
    allowed = OnlyChanges.model_validate({"allow": [{"in": "*", "where": {"note": None}}]}).allow[0]
    assert allowed.covers({"in": "shop.db/orders", "change": "added", "row": {"note": None}})
    assert not allowed.covers({"in": "shop.db/orders", "change": "added", "row": {"id": 1}})
    assert not allowed.covers({"in": "notes/a.txt", "change": "added"})


def test_a_kind_of_change_that_is_not_allowed_is_found() -> None:
    allowed = OnlyChanges.model_validate({"allow": [{"in": "notes/*", "change": "added"}]}).allow[0]
    kinds = [allowed.covers({"in": "notes/a", "change": kind}) for kind in ("added", "removed", "changed")]
    assert kinds == [True, False, False]


def test_settings_that_let_everything_pass_are_refused() -> None:
    with pytest.raises(ValidationError, match="every state would do"):
        StateEqualsReference(ignore=("**",))
    assert CHANGES.key == "changes"
