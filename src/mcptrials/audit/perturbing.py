"""Perturbing: a grader whose expectation, or whose evidence, is made wrong must no longer pass a reference."""

from collections.abc import Iterator, Mapping
from typing import Any

from mcptrials.graders.changes import CHANGES
from mcptrials.grading import grade
from mcptrials.project import Project, make_grader
from mcptrials.protocols import GradeInput, Grader
from mcptrials.rollout import TaskBench
from mcptrials.runner.rehearsal import Played
from mcptrials.runner.standins import near_miss
from mcptrials.task import GraderSpec
from mcptrials.trial import Outcome, StateValue

_NOWHERE = {"in": "a place that nobody writes to", "change": "added", "content": "0"}


async def unshaken(played: Played, bench: TaskBench, project: Project) -> list[str]:
    """Deciding graders that pass the reference also when they should not, each with how that was seen."""
    outcome = played.ended.outcome
    if outcome is None:
        return []
    found = []
    for spec, grader in bench.graders:
        decides = grader.default_gate if spec.gate is None else spec.gate
        if not decides:
            continue
        for said, other, changed in (*_respecified(spec, grader, outcome, project), *_altered(spec, grader, outcome)):
            given = GradeInput(bench.task, changed, played.transcript, None, bench.environment.project_dir)
            if (await grade(spec, other, given)).passed:
                found.append(f"grader {spec.label!r} cannot fail: it passes the reference also {said}")
                break
    return found


_Try = tuple[str, Grader, Outcome]


def _respecified(spec: GraderSpec, grader: Grader, outcome: Outcome, project: Project) -> Iterator[_Try]:
    """The grader with a wrong expectation."""
    del grader
    for said, settings in _wrong_settings(spec.type, spec.settings):
        try:
            other = make_grader(spec.model_copy(update={"settings": settings}), project.dir)
        except (TypeError, ValueError):
            continue  # the wrong value is none of its kind
        yield said, other, outcome


def _wrong_settings(kind: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if kind == "exact_answer" and "expected" in settings:
        rest = {key: value for key, value in settings.items() if key != "aliases"}
        wrong = _wrong(settings["expected"])
        aliases = {"aliases": _wrong(list(settings["aliases"]))} if settings.get("aliases") else {}
        yield f"when {wrong!r} is expected", {**rest, "expected": wrong, **aliases}
    if kind == "state_check":
        yield from _wrong_states(settings)


def _wrong_states(settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One expectation of a state turned into its contrary; the others, which still hold, are left out."""
    asked = {key: settings[key] for key in ("query", "read", "path") if key in settings}
    if "expected" in settings:
        wrong = _wrong(settings["expected"])
        yield f"when {wrong!r} is expected", {**asked, "expected": wrong}
    for one, contrary in (("expected_contains", "expected_absent"), ("expected_absent", "expected_contains")):
        if one in settings:
            yield f"when {one!r} is turned into {contrary!r}", {**asked, contrary: settings[one]}
    if isinstance(count := settings.get("expected_count"), int):
        yield f"when {count + 1} items are expected", {**asked, "expected_count": count + 1}


def _wrong(expected: Any) -> Any:
    if isinstance(expected, list | tuple):
        return [_wrong(item) for item in expected] or ["something"]
    if isinstance(expected, Mapping):
        return {key: _wrong(value) for key, value in expected.items()} or {"something": "else"}
    if isinstance(expected, bool):
        return not expected
    if isinstance(expected, int):
        return 2 * expected + 1
    return near_miss(expected) if isinstance(expected, str) and expected.strip() else "something"


def _altered(spec: GraderSpec, grader: Grader, outcome: Outcome) -> Iterator[_Try]:
    """The outcome with a state that is none of those that a grader of it should take."""
    if spec.type == "state_check" and "expected_regex" in spec.settings:
        state = dict.fromkeys(outcome.state, StateValue(value=[]))
        yield "when nothing is there to be read", grader, outcome.model_copy(update={"state": state})
    found = outcome.state.get(CHANGES.key)
    if spec.type in ("only_changes", "state_equals_reference") and found is not None and found.value is not None:
        more = StateValue(value=[*found.value, _NOWHERE])
        state = {**outcome.state, CHANGES.key: more}
        yield "when something else has changed too", grader, outcome.model_copy(update={"state": state})
