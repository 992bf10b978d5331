"""A record of any version can be read, and what was not measured is null."""

import json
from typing import Any

import pytest

from mcptrials.encoding import dump_line, parse_json
from mcptrials.record import SCHEMA_VERSION, Record

FOUNDING_RECORD = """\
{
  "task_id": "issues-017", "trial": 3, "model": "model-a", "agent_harness": "eval-loop-1.2",
  "server_version": "1.5.0", "passed": false,
  "graders": [ { "type": "exact_answer", "passed": true }, { "type": "state_check", "passed": false } ],
  "tool_calls": 14, "tool_errors": 3, "protocol_errors": 0, "input_tokens": 48210, "output_tokens": 2315,
  "duration_ms": 41870, "transcript": "runs/2026-11-03/issues-017-3.jsonl"
}
"""


def record(**changes: Any) -> Record:
    return Record.model_validate(json.loads(FOUNDING_RECORD) | changes)


def test_the_record_of_the_founding_document_is_a_record() -> None:
    read = record()
    assert (read.task_id, read.trial, read.passed, read.scored) == ("issues-017", 3, False, True)
    assert [(grade.type, grade.passed) for grade in read.graders] == [("exact_answer", True), ("state_check", False)]
    assert (read.input_tokens, read.output_tokens, read.duration_ms) == (48210, 2315, 41870)


def test_a_record_begins_with_the_names_of_the_founding_document() -> None:
    written = json.loads(record().model_dump_json())
    assert [*written][:14] == [*json.loads(FOUNDING_RECORD)]
    assert json.loads(FOUNDING_RECORD)["graders"][0].items() <= written["graders"][0].items()


def test_every_name_of_the_contract_is_there() -> None:
    names = """schema_version run_id arm arm_label variant attempt block seed split tags group purpose verdict cause
    blame answer state stop tool_sequence sent_calls unknown_tools argument_errors contract_violations server_faults
    cached_input_tokens reasoning_tokens cost_usd model_ms tool_ms wait_ms startup_ms shutdown_ms protocol_version
    server_name tools_hash suite_hash task_hash environment_hash reply_hash params effective_model started_at
    versions trial_dir unknown_at"""
    assert set(names.split()) <= Record.model_fields.keys()
    assert record().schema_version == SCHEMA_VERSION == 1


def test_what_was_not_measured_is_null_and_survives_as_null() -> None:
    unknown = record(passed=None, input_tokens=None, output_tokens=None, duration_ms=None, server_version=None)
    assert not unknown.scored
    written = parse_json(dump_line(unknown.model_dump(mode="json")))
    for name in ("passed", "input_tokens", "output_tokens", "duration_ms", "cost_usd", "model_ms", "reply_hash"):
        assert written[name] is None
    assert Record.model_validate(written) == unknown


def test_a_record_with_everything_reads_back_equal() -> None:
    full = record(
        server_version={"tracker": "1.5.0", "other": None},
        state={"labels of BILL-482": {"value": ["a", {"b": None}], "error": None}, "x": {"error": "gone"}},
        graders=[{"type": "judge", "name": "j", "passed": None, "value": 0.5, "gate": False, "reason": "r"}],
        tags=["search"],
        tool_sequence=["a", "b"],
        answer="lone \ud800 surrogate",
        params={"limits": {"turns": 3}},
    )
    assert Record.model_validate(parse_json(dump_line(full.model_dump(mode="json")))) == full


def test_keys_of_a_later_version_are_kept() -> None:
    later = record(schema_version=2, new_key={"a": 1}, graders=[{"type": "t", "passed": True, "new": 1}])
    written = json.loads(later.model_dump_json())
    assert (written["schema_version"], written["new_key"], written["graders"][0]["new"]) == (2, {"a": 1}, 1)


@pytest.mark.parametrize("change", [{"passed": "maybe"}, {"tool_calls": None}, {"verdict": "won"}, {"graders": "none"}])
def test_what_is_no_record_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"validation error"):
        record(**change)
