"""`mcptrials check` on the words of tasks: what a prompt leaves open, gives away, or makes to change."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.shop_project import call, shop, task, write_shop

from mcptrials.audit import Audit, check_project
from mcptrials.project import Project

READ = call("get_order", id=1)
TOTAL = {"type": "exact_answer", "expected": 1250, "kind": "number"}


def look(project: Project, only: str | None = None) -> Audit:
    return check_project(project, (), offline=True, notice=lambda _: None, only=only)


def reasons(project: Project) -> dict[str, list[str]]:
    return {row["task_id"]: row["reasons"] for row in look(project).tasks}


NEEDS: Mapping[str, tuple[dict[str, Any], str, str, str]] = {
    "unit": (
        {"expected": "12.50", "unit": "kg"},
        "How heavy is it?",
        "How heavy is it in grams?",
        "its prompt names no unit, and its grader takes 'kg'",
    ),
    "tolerance": (
        {"expected": "12.5", "kind": "number", "abs_tol": 0.1},
        "What is the mean?",
        "What is the mean, within 0.1?",
        "its prompt names no precision, and its grader has a tolerance",
    ),
    "decimals": (
        {"expected": "3.14159", "kind": "number"},
        "What is the ratio?",
        "What is the ratio, to five decimals?",
        "its prompt names no precision, and its grader takes no rounding to fewer than 2 decimals",
    ),
    "comma": (
        {"expected": "12.5", "kind": "number", "decimal_comma": True},
        "What is the mean?",
        "What is the mean? Write it like 0,5.",
        "its prompt does not ask for a decimal comma, which its grader expects",
    ),
    "pattern": (
        {"expected": "A-[0-9]+", "kind": "regex"},
        "Which shelf is it on?",
        "Which shelf is it on? The format is A-1.",
        "its prompt names no form, and its grader takes what fits a pattern",
    ),
    "day": (
        {"expected": "2026-03-05"},
        "When was it sent?",
        "When was it sent? Reply as YYYY-MM-DD.",
        "its prompt names no form of the date, and of 05/03/2024 nobody can tell the month",
    ),
    "moment": (
        {"expected": "2026-03-05T14:30:00Z"},
        "When did it start?",
        "When did it start, in UTC?",
        "its prompt names no time zone, and its grader takes no time without one",
    ),
    "order": (
        {"expected": ["Ada", "Bob"], "kind": "list"},
        "Who ordered?",
        "Who ordered? The oldest order comes first.",
        "its prompt names no order, and its grader takes the items in one order only",
    ),
    "json": (
        {"expected": '{"id": 1}'},
        "Which one?",
        'Which one? Reply as JSON with the key "id".',
        "its prompt does not ask for JSON",
    ),
    "choice": (
        {"expected": "B"},
        "Which option is right?",
        "Which is right? (A) Ada, (B) Bob",
        "its prompt does not list the options, one of which its grader expects",
    ),
    "word": (
        {"expected": "not_found"},
        "Who ordered 9?",
        "Who ordered 9? If nobody did, reply: not found",
        "its prompt does not agree on the word for 'there is none', which its grader expects",
    ),
    "case": (
        {"expected": "Ada", "kind": "text", "case_sensitive": True},
        "Who ordered?",
        "Who ordered? The name exactly as it is stored.",
        "its prompt does not say that upper and lower case count",
    ),
    "list as text": (
        {"expected": "Ada, Bob", "kind": "text"},
        "Who ordered?",
        "Who ordered? Sort the names.",
        "its answer is a list that is compared as one text, in one order and with one separator",
    ),
    "long text": (
        {"expected": "the order was sent late as the stock ran out"},
        "What went wrong?",
        "What went wrong? Quote the remark.",
        "its answer is a text of 10 words, which nobody finds word for word by chance",
    ),
}  # fmt: skip


def asks(task_id: str, prompt: str, grader: dict[str, Any], answer: str, **keys: Any) -> dict[str, Any]:
    own = {"type": "exact_answer", **grader}
    return task(task_id, [own], answer, prompt=prompt, group="alike", expects="abstain", **keys)


def test_what_a_grader_needs_and_a_prompt_leaves_open_is_named(tmp_path: Path) -> None:
    tasks = []
    for name, (grader, vague, clear, _) in NEEDS.items():
        expected = grader["expected"]
        answer = "A-1" if name == "pattern" else ", ".join(expected) if isinstance(expected, list) else expected
        answer = f"{answer} kg" if name == "unit" else answer
        tasks += [asks(f"{name.replace(' ', '-')}-vague", vague, grader, answer)]
        tasks += [asks(f"{name.replace(' ', '-')}-clear", clear, grader, answer)]
    found = reasons(shop(tmp_path, tasks))
    for name, (_, _, _, why) in NEEDS.items():
        said = found[f"{name.replace(' ', '-')}-vague"]
        assert why in said, name
        assert why not in found[f"{name.replace(' ', '-')}-clear"], name


def test_a_list_with_its_other_orders_as_aliases_is_no_trap(tmp_path: Path) -> None:
    grader = {"expected": "Ada, Bob", "kind": "text", "aliases": ["Bob, Ada"]}
    assert reasons(shop(tmp_path, [asks("t", "Who?", grader, "Ada, Bob")])) == {"t": []}


def test_a_tolerance_below_the_last_decimal_needs_no_word(tmp_path: Path) -> None:
    fine = {"expected": "59.97", "kind": "number", "abs_tol": 0.001}
    wide = {"expected": "59.97", "kind": "number", "rel_tol": 0.001}
    tasks = [asks("fine", "What is it?", fine, "59.97"), asks("wide", "What is it?", wide, "59.97")]
    found = reasons(shop(tmp_path, tasks))
    assert (found["fine"], len(found["wide"])) == ([], 1)


def ticket(task_id: str, prompt: str, answer: str = "Ada", *calls: Any, **keys: Any) -> dict[str, Any]:
    graders = [{"type": "exact_answer", "expected": answer}]
    return task(task_id, graders, answer, *(calls or (READ,)), prompt=prompt, **keys)


def test_an_answer_that_stands_where_no_work_is_needed_is_a_leak(tmp_path: Path) -> None:
    changes = [{"type": "state_check", "query": "status of 1", "expected": "sent"}]
    changes.append({"type": "exact_answer", "expected": "done"})
    tasks = [
        ticket("told", "Ada, a customer, made order 1. Who did?"),
        ticket("offered", "Is it Ada or Bob who made order 1?"),
        ticket("asked", "Who made order 1?"),
        ticket("described", "What does the note tool do?", "Write a note"),
        ticket("in-a-file", "Which code does order 1 have?", "7315-X"),
        ticket("the-file", "Which file has the invoice?", "invoice-1.txt"),
        ticket("few", "Of the 3 orders of Ada, how many are open?", "3"),
        task("written", changes, "done", call("set_status", id=1, status="sent"), prompt="Send 1, then reply done."),
    ]
    (tmp_path / "letters").mkdir()
    for name in ("code_7315-x_final.txt", "invoice-1.txt"):
        (tmp_path / "letters" / name).write_text("")
    environment = {
        "files": {"shop.db": "{trial_dir}/shop.db", "letters": "{trial_dir}/letters"},
        "readers": {"status of {id}": {"sql": "select status from orders where id = :id", "url": URL}},
    }
    found = reasons(shop(tmp_path, tasks, environment=environment))
    leaks = {each: [said for said in own if said.startswith("leaks")] for each, own in found.items()}
    assert leaks == {
        "told": ["leaks: its answer stands in its prompt, so that it passes without the server"],
        "offered": [],
        "asked": [],
        "described": ["leaks: its answer stands in the description of tool 'write_note'"],
        "in-a-file": ["leaks: its answer stands in the name of fixture 'code_7315-x_final.txt'"],
        "the-file": [],
        "few": [],
        "written": [],
    }


URL = "sqlite:///{trial_dir}/shop.db"


def test_a_key_that_no_call_was_told_is_doubted(tmp_path: Path) -> None:
    tasks = [ticket("nowhere", "Which order?", "ORD-77"), ticket("there", "Which order is 1250?", "Ada")]
    found = reasons(shop(tmp_path, tasks))
    why = "its answer stands in nothing that its reference's calls were answered: do they lead to it?"
    assert found == {"nowhere": [why], "there": []}


@pytest.mark.parametrize(
    ("prompt", "declared", "word"),
    [
        ("How many orders came in last week?", True, "last week"),
        ("How many orders came in last week? It is 2026-03-02.", True, None),
        ("Who ordered two days ago?", True, "days ago"),
        ("Which orders are overdue?", True, "overdue"),
        ("What is the latest order?", False, "latest"),
        ("What is the latest order?", True, None),
        ("How many orders are now open?", False, "How many orders are now open"),
        ("How many of them are still open?", False, "How many of them are still open"),
        ("Change the status; reply with what it is now.", True, None),
    ],
)
def test_an_answer_that_changes_by_itself_is_unstable(
    tmp_path: Path, prompt: str, declared: bool, word: str | None
) -> None:
    project = shop(tmp_path, [ticket("t", prompt)], **({} if declared else {"environment": None}))
    if not declared:
        server = (tmp_path / "shop.py").read_text()
        (tmp_path / "shop.py").write_text(server.replace("Path(trial_dir)", f"Path({str(tmp_path)!r})"))
    said = [each for each in reasons(project)["t"] if each.startswith("unstable")]
    assert [f"{word!r}" in each for each in said] == ([True] if word else [])


def test_a_server_that_answers_otherwise_each_time_is_told(tmp_path: Path) -> None:
    folder = write_shop(tmp_path, [])
    server = (folder / "shop.py").read_text()
    ticking = server.replace("READS = ", "import itertools\nCOUNT = itertools.count()\nREADS = ", 1).replace(
        'return "\\n".join(f"{name}', 'return f"ticket T-{next(COUNT)}\\n" + "\\n".join(f"{name}', 1
    )
    (folder / "ticking.py").write_text(ticking)
    servers = {"shop": {"python": "./ticking.py:make"}}
    tasks = [ticket("t", "Which ticket?", "T-0")]
    said = reasons(shop(folder, tasks, servers=servers))["t"]
    assert any("played again, its reference's calls are answered otherwise" in each for each in said), said


def test_a_held_out_answer_is_not_told_by_what_is_wrong_with_it(tmp_path: Path) -> None:
    strict = [{"type": "exact_answer", "expected": "2026-03-05", "kind": "text"}]
    tasks = [task("t", strict, "2026-03-05", READ, prompt="When? It was 2026-03-05.", split="held_out")]
    said = reasons(shop(tmp_path, tasks))["t"]
    assert len(said) == 2
    assert "2026" not in " ".join(said)
    assert "March" not in " ".join(said)


def plain(number: int, prompt: str, **keys: Any) -> dict[str, Any]:
    return task(f"t{number}", [TOTAL], "1250", READ, prompt=prompt, **keys)


PROMPTS = (
    "How much does order 1 cost in cents?",
    "Add up the cents of order 1 and of nothing else.",
    "Look for the sum that Ada has to pay first.",
    "Which amount stands on the invoice of the earliest order?",
    "Tell the price of whatever was bought before all others.",
)


def test_prompts_that_are_nearly_the_same_are_named_unless_they_are_one_group(tmp_path: Path) -> None:
    rules = "You may look at anything. Reply with the number only. Never guess."
    tasks = [plain(number, f"{prompt} {rules}") for number, prompt in enumerate(PROMPTS)]
    again = "How much does order 1 cost then in cents?"
    alike = "near-duplicate: its prompt is nearly that of task t0"
    same = {**plain(5, f"{again} {rules}")}
    apart = {**plain(6, f"{again} {rules}"), "split": "held_out"}
    found = reasons(shop(tmp_path / "a", [*tasks, same, apart]))
    assert {each: own for each, own in found.items() if own} == {
        "t5": [f"{alike}; the two count as two, and tell as much as one"],
        "t6": [f"{alike}, of the other split: held-out tasks then measure what was tuned"],
    }
    grouped = [tasks[0] | {"group": "g"}, *tasks[1:], same | {"group": "g"}]
    assert not any(reasons(shop(tmp_path / "b", grouped)).values())


def suite_lines(audit: Audit) -> dict[str, tuple[str, str]]:
    return {line.subject: (line.level, line.what) for line in audit.lines if line.subject in ("classes", "calls")}


def test_a_suite_without_a_negative_class_or_with_single_calls_alone_is_warned_of(tmp_path: Path) -> None:
    tasks = [plain(number, prompt) for number, prompt in enumerate(PROMPTS)]
    found = suite_lines(look(shop(tmp_path / "a", tasks), only="t0"))
    assert found["classes"] == (
        "warn",
        "few tasks in which nothing is to be done or found: act 5; a model that always does the same looks good",
    )
    assert found["calls"][0] == "warn"
    assert found["calls"][1].startswith("weak tasks: 5 of 5 references make one call or none, the longest 1")
    long = [each | {"reference": {"answer": "1250", "calls": [call("list_orders"), READ]}} for each in tasks]
    idle = [asks(f"n{n}", f"{n} and {n}?", {"expected": str(2 * n)}, str(2 * n)) for n in (3, 4)]
    found = suite_lines(look(shop(tmp_path / "b", [*long, *idle]), only="t0"))
    assert found == {
        "classes": ("ok", "act 5, abstain 2"),
        "calls": ("ok", "0 of 5 references make one call or none, the longest 2"),
    }
    assert suite_lines(look(shop(tmp_path / "c", tasks[:4]), only="t0")) == {}
