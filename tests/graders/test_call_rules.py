"""Rules on calls report by default; only `no_tool_call` decides by itself."""

from typing import Any

import pytest

from mcptrials import plugins
from mcptrials.events import ToolAnswered, ToolCalled
from mcptrials.graders.call_rules import CallOrder, ForbiddenTools, MaxCalls, NoToolCall, RequiredTools
from mcptrials.protocols import GradeInput, Judgement
from mcptrials.task import Task
from mcptrials.transcript import Transcript
from mcptrials.trial import Outcome

TASK = Task.model_validate({"id": "t", "prompt": "p", "graders": [{"type": "no_tool_call"}]})


def transcript(*names: str) -> Transcript:
    """Calls of `server/tool`; of a tool that no server has when there is no slash."""
    events = Transcript()
    for number, name in enumerate(names):
        server, slash, tool = name.partition("/")
        owner, called = (server, tool) if slash else (None, name)
        events.append(
            ToolCalled(
                at_ms=number,
                call_id=str(number),
                shown_name=called,
                server=owner,
                tool=called,
                arguments={},
                raw_arguments="{}",
                unknown_tool=not slash,
                argument_error=None,
            )
        )
        events.append(
            ToolAnswered(
                at_ms=number,
                ms=1,
                call_id=str(number),
                server=owner,
                tool=called,
                status="ok" if slash else "not_sent",
                result={},
                error=None,
                shown="",
            )
        )
    return events


def judged(rule: Any, *names: str) -> Judgement:
    outcome = Outcome(answer="x", framing="tagged", stop="answer")
    judgement: Judgement = rule.grade(GradeInput(TASK, outcome, transcript(*names)))
    return judgement


@pytest.mark.parametrize(
    ("type_", "decides"),
    [
        ("no_tool_call", True),
        ("required_tools", False),
        ("forbidden_tools", False),
        ("call_order", False),
        ("max_calls", False),
    ],
)
def test_which_rules_decide_by_default(type_: str, decides: bool) -> None:
    assert plugins.load("graders", type_).default_gate is decides


def test_no_call_is_no_call_even_of_a_tool_that_is_not_there() -> None:
    assert judged(NoToolCall()) == Judgement(True, "match")
    assert judged(NoToolCall(), "s/a", "s/b") == Judgement(False, "called", "called a, b")
    assert judged(NoToolCall(), "unknown").value is False


@pytest.mark.parametrize(
    ("tools", "calls", "passed", "evidence"),
    [
        (["a"], ["s/a"], True, None),
        (["a", "b"], ["s/b", "s/a", "s/b"], True, None),
        (["s/a"], ["s/a"], True, None),
        (["other/a"], ["s/a"], False, "never called other/a"),
        (["a", "c", "d"], ["s/a"], False, "never called c, d"),
        (["a"], [], False, "never called a"),
        (["a"], ["a"], False, "never called a"),
    ],
)
def test_required_tools_are_each_called(tools: list[str], calls: list[str], passed: bool, evidence: str | None) -> None:
    judgement = judged(RequiredTools(tools=tuple(tools)), *calls)
    assert (judgement.value, judgement.evidence) == (passed, evidence)
    assert judgement.reason == ("match" if passed else "not_called")


@pytest.mark.parametrize(
    ("tools", "calls", "passed"),
    [
        (["a"], ["s/b"], True),
        (["a"], [], True),
        (["b", "a"], ["s/a"], False),
        (["s/a"], ["t/a"], True),
        (["s/a"], ["t/a", "s/a"], False),
        (["a"], ["a"], False),
    ],
)
def test_forbidden_tools_are_never_called(tools: list[str], calls: list[str], passed: bool) -> None:
    assert judged(ForbiddenTools(tools=tuple(tools)), *calls).value is passed


@pytest.mark.parametrize(
    ("tools", "calls", "passed"),
    [
        (["a", "b"], ["s/a", "s/b"], True),
        (["a", "b"], ["s/x", "s/a", "s/x", "s/b", "s/a"], True),
        (["a", "b"], ["s/b", "s/a"], False),
        (["a", "b"], ["s/b", "s/a", "s/b"], True),
        (["a", "a"], ["s/a"], False),
        (["a", "a"], ["s/a", "s/a"], True),
        (["a"], [], False),
        (["a", "b"], ["a", "s/b"], False),
        (["s/a", "t/a"], ["t/a", "s/a"], False),
    ],
)
def test_a_call_order_allows_other_calls_between(tools: list[str], calls: list[str], passed: bool) -> None:
    judgement = judged(CallOrder(tools=tuple(tools)), *calls)
    assert judgement.value is passed
    assert judgement.reason == ("match" if passed else "out_of_order")


@pytest.mark.parametrize(("most", "calls", "passed"), [(0, 0, True), (0, 1, False), (2, 2, True), (2, 3, False)])
def test_at_most_so_many_calls_are_asked_for(most: int, calls: int, passed: bool) -> None:
    judgement = judged(MaxCalls(max=most), *["s/a"] * calls)
    assert (judgement.value, judgement.evidence) == (passed, f"{calls} call{'s' * (calls != 1)}")


@pytest.mark.parametrize("rule", [NoToolCall(), RequiredTools(tools=("a",)), MaxCalls(max=1)])
def test_a_rule_on_calls_needs_no_state(rule: Any) -> None:
    assert rule.needs(TASK) == ()
