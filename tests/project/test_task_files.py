"""Task files: what a task may say, how several stand in one file, and how a faulty one is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.environment import Environment
from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.task import GraderSpec, Task

PROJECT = """\
{"version": 1,
 "servers": {"tracker": {"command": "python"}},
 "environment": {"readers": {
   "labels of {key}": {"sql": "select label from labels where key = :key", "url": "sqlite:///{trial_dir}/t.db"},
   "status of {key}": {"sql": "select status from issues where key = :key", "url": "sqlite:///{trial_dir}/t.db"},
   "{word} of BILL-1": {"sql": "select :word", "url": "sqlite:///{trial_dir}/t.db"}}},
 "models": ["scripted:script.yaml"],
 "tasks": ["tasks/*"]}
"""
FOUNDING_TASK = """\
{
  "id": "issues-017",
  "split": "train",
  "prompt": "PROMPT",
  "grader": [
    { "type": "exact_answer", "expected": "BILL-482" },
    { "type": "state_check", "query": "labels of BILL-482", "expected_contains": "needs-review" }
  ],
  "expected_tools": ["search_issues", "get_issue_history", "update_issue"],
  "tags": ["search", "write"]
}
""".replace(
    "PROMPT",
    "Find the bug that was reopened most often in the Billing project during March 2026 and add the label needs-review "
    "to it. Reply with the issue key only.",
)
GRADER = "{type: exact_answer, expected: x}"


def load(folder: Path, **files: str | bytes) -> Project:
    """A project with these task files; `a_yaml` is tasks/a.yaml."""
    (folder / "project.json").write_text(PROJECT, "utf-8")
    (folder / "tasks").mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / "tasks" / ".".join(name.rsplit("_", 1))
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Project.load(folder / "project.json", environ={})


def only(folder: Path, text: str) -> Task:
    (task,) = load(folder, a_yaml=text).suite.tasks
    return task


def refusal(folder: Path, **files: str | bytes) -> str:
    """The one line that refuses the task files, without their folder."""
    with pytest.raises(UsageError) as caught:
        load(folder, **files)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{folder}/", "")


def with_grader(grader: str) -> str:
    return f"id: t\nprompt: p\ngraders:\n  - {grader}\n"


def test_the_task_of_the_founding_document_loads_as_it_is(tmp_path: Path) -> None:
    (task,) = load(tmp_path, issues_json=FOUNDING_TASK).suite.tasks
    assert task == Task(
        id="issues-017",
        split="train",
        prompt=json.loads(FOUNDING_TASK)["prompt"],
        graders=(
            GraderSpec(type="exact_answer", settings={"expected": "BILL-482"}),
            GraderSpec(
                type="state_check", settings={"query": "labels of BILL-482", "expected_contains": "needs-review"}
            ),
        ),
        expected_tools=("search_issues", "get_issue_history", "update_issue"),
        tags=("search", "write"),
    )


EVERYTHING = """\
id: Everything-1.2_x
prompt: Do it.
graders:
  - {type: exact_answer, expected: [A, 12, true], aliases: [B], kind: text, name: answer, gate: true, weight: 2}
  - {type: exact_answer, expected: "1.10", kind: number, abs_tol: 0.5, rel_tol: 0}
  - {type: exact_answer, expected: BILL-482, kind: id}
  - {type: state_check, query: status of BILL-2, expected: done, expected_contains: do, expected_absent: open,
     expected_count: 1, expected_regex: "^do"}
  - {type: state_check, read: {file: "{trial_dir}/a.json", as: json}, path: "$.a[0]", expected: null}
  - {type: state_check, read: {sql: select 1, url: "sqlite:///{trial_dir}/a.db"}, expected: 1}
  - {type: state_check, read: {command: ["{python}", -V]}, expected_contains: Python}
  - {type: no_tool_call, gate: false}
  - {type: required_tools, tools: [a, server/b]}
  - {type: forbidden_tools, tools: [c]}
  - {type: call_order, tools: [a, b]}
  - {type: max_calls, max: 3}
reference: {answer: A, calls: [{server: tracker, tool: add_label, args: {key: K}}]}
expects: not_found
expected_tools: [a, tracker/b]
purpose: regression
split: held_out
tags: [x]
group: g
source: a ticket
notes: none
combine: any
environment: {files: {a: "{trial_dir}/a"}, readers: {more: {file: x}}, reset: [], state_hash: []}
limits: {turns: 3, cost_usd: null}
trials: 2
noop_should_pass: true
"""


def test_every_documented_key_is_accepted(tmp_path: Path) -> None:
    project = load(tmp_path, a_yaml=EVERYTHING)
    (task,) = project.suite.tasks
    assert len(task.graders) == 12
    assert [spec.gate for spec in task.graders] == [True, *[None] * 6, False, *[None] * 4]
    assert project.limits(task).turns == 3
    assert project.limits(task).tool_calls == 40
    assert [*project.environment(task).readers][-1] == "more"
    assert project.environment(task).files == {"a": "{trial_dir}/a"}


def test_a_file_holds_a_task_or_a_list_or_defaults_with_tasks(tmp_path: Path) -> None:
    suite = load(
        tmp_path,
        a_yaml=f"id: one\nprompt: p\ngrader: {GRADER}\n",
        b_json='[{"id": "two", "prompt": "p", "grader": {"type": "exact_answer", "expected": "x"}}]',
        c_jsonl=FOUNDING_TASK.replace("\n", " ") + "\n\n",
        d_yaml=f"defaults: {{prompt: p, split: test, grader: {GRADER}, tags: [d]}}\n"
        "tasks:\n  - {id: four}\n  - {id: five, split: train, graders: [{type: no_tool_call}], tags: []}\n",
        e_yaml="",
    ).suite
    assert [task.id for task in suite.tasks] == ["one", "two", "issues-017", "four", "five"]
    four, five = suite.tasks[3:]
    assert (four.split, four.tags, four.graders[0].type) == ("held_out", ("d",), "exact_answer")
    assert (five.split, five.tags, five.graders[0].type) == ("train", (), "no_tool_call")


def test_a_prompt_may_stand_in_a_file_beside_the_project(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Line one.\nLine two.\n", "utf-8")
    assert only(tmp_path, f"id: t\nprompt: {{file: prompt.md}}\ngrader: {GRADER}\n").prompt == "Line one.\nLine two.\n"


@pytest.mark.parametrize("split", ["held_out", "held-out", "test"])
def test_the_held_out_split_has_three_spellings(tmp_path: Path, split: str) -> None:
    assert only(tmp_path, f"id: t\nprompt: p\nsplit: {split}\ngrader: {GRADER}\n").split == "held_out"


def test_a_task_that_expects_abstention_gets_a_deciding_rule_against_calls(tmp_path: Path) -> None:
    task = only(tmp_path, f"id: t\nprompt: p\nexpects: abstain\ngrader: {GRADER}\n")
    assert [spec.type for spec in task.graders] == ["exact_answer", "no_tool_call"]
    task = only(tmp_path, "id: t\nprompt: p\nexpects: abstain\ngrader: {type: no_tool_call}\n")
    assert [spec.type for spec in task.graders] == ["no_tool_call"]


START = "id: t\nprompt: p\n"
FAULTS = [
    (START + f"grader: {GRADER}\npromt: q\n", "tasks/a.yaml:4: promt: unknown key 'promt'; did you mean 'prompt'?"),
    (
        START + f"grader: {GRADER}\nreference: {{calls: [{{tol: x}}]}}\n",
        "tasks/a.yaml:4: reference.calls[0].tol: unknown key 'tol'; did you mean 'tool'?",
    ),
    (
        START + f"grader: {GRADER}\nlimits:\n  turnz: 3\n",
        "tasks/a.yaml:5: limits.turnz: unknown key 'turnz'; did you mean 'turns'?",
    ),
    (
        START + f"grader: {GRADER}\nlimits:\n  turns: 0\n",
        "tasks/a.yaml:5: limits.turns: should be greater than or equal to 1, not 0",
    ),
    (
        START + f"grader: {GRADER}\nenvironment:\n  filez: {{}}\n",
        "tasks/a.yaml:5: environment.filez: unknown key 'filez'; did you mean 'files'?",
    ),
    (
        START + f"grader: {GRADER}\nenvironment:\n  readers: {{q: {{file: x, az: y}}}}\n",
        "tasks/a.yaml:5: environment.readers.q.az: unknown key 'az'; known here: as, before_close, file, path",
    ),
    (START, "tasks/a.yaml:1: key 'graders' is missing"),
    (f"id: t\ngrader: {GRADER}\n", "tasks/a.yaml:1: key 'prompt' is missing"),
    (f"prompt: p\ngrader: {GRADER}\n", "tasks/a.yaml:1: key 'id' is missing"),
    (START + "graders: []\n", "tasks/a.yaml:3: graders: should have at least 1 item(s)"),
    (START + "graders: 3\n", "tasks/a.yaml:3: graders: should be a list, not 3"),
    (START + "graders: [exact_answer]\n", "tasks/a.yaml:3: graders[0]: a grader is a mapping with a 'type'"),
    (START + "grader: {expected: x}\n", "tasks/a.yaml:3: grader: a grader is a mapping with a 'type'"),
    (
        START + f"grader: {GRADER}\ngraders: [{GRADER}]\n",
        "tasks/a.yaml:3: grader: both 'grader' and 'graders' are given; keep one",
    ),
    (
        START + "grader: {type: exact_anwser, expected: x}\n",
        "tasks/a.yaml:3: grader.type: there is no grader 'exact_anwser'; did you mean 'exact_answer'?",
    ),
    (
        START + "grader:\n  - {type: exact_answer, expected: x}\n  - type: exact_answer\n    expectd: x\n",
        "tasks/a.yaml:6: grader[1].expectd: unknown key 'expectd'; did you mean 'expected'?",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, wieght: 2}\n",
        "tasks/a.yaml:3: grader.wieght: unknown key 'wieght'; did you mean 'weight'?",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, gate: yes}\n",
        "tasks/a.yaml:3: grader.gate: should be true or false, not 'yes'",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, weight: 0}\n",
        "tasks/a.yaml:3: grader.weight: should be greater than 0, not 0",
    ),
    (START + "grader: {type: exact_answer}\n", "tasks/a.yaml:3: grader: key 'expected' is missing"),
    (START + "grader: {type: exact_answer, expected: }\n", "tasks/a.yaml:3: grader.expected: should be text, not null"),
    (START + "grader: {type: exact_answer, expected: {a: b}}\n", "tasks/a.yaml:3: grader.expected: should be text"),
    (
        START + "grader: {type: exact_answer, expected: []}\n",
        "tasks/a.yaml:3: grader.expected: it is empty: an empty answer never matches",
    ),
    (
        START + "grader: {type: exact_answer, expected: ['x', ' \"\" ']}\n",
        "tasks/a.yaml:3: grader.expected: it is empty: an empty answer never matches",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, kind: dat}\n",
        "tasks/a.yaml:3: grader.kind: should be 'number', 'text', 'id', 'date', 'datetime', 'set', 'list', 'boolean', "
        "'percent', 'money', 'quantity', 'choice', 'url', 'phone', 'json', 'none' or 'regex', not 'dat'; did you mean "
        "'date'?",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, kind: date}\n",
        "tasks/a.yaml:3: grader.expected: it is no date with one reading, such as 2024-03-05",
    ),
    (
        START + "grader: {type: exact_answer, expected: 5, abstol: 1}\n",
        "tasks/a.yaml:3: grader.abstol: unknown key 'abstol'; did you mean 'abs_tol'?",
    ),
    (
        START + "grader: {type: exact_answer, expected: NaN}\n",
        "tasks/a.yaml:3: grader.expected: it is no number, which 'kind: number' and tolerances need",
    ),
    (
        START + "grader: {type: exact_answer, expected: '.*', kind: regex}\n",
        "tasks/a.yaml:3: grader.expected: it fits an empty answer as well",
    ),
    (
        START + "grader: {type: exact_answer, expected: ['5', five], kind: number}\n",
        "tasks/a.yaml:3: grader.expected: it is no number, which 'kind: number' and tolerances need",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, abs_tol: -1}\n",
        "tasks/a.yaml:3: grader.abs_tol: should be greater than or equal to 0, not -1",
    ),
    (
        START + "grader: {type: exact_answer, expected: x, abs_tol: 1}\n",
        "tasks/a.yaml:3: grader.abs_tol: 'abs_tol' is for kind money, number, percent, quantity, and this is text, "
        "which has case_sensitive, aliases",
    ),
    (
        START + "grader: {type: exact_answer, expected: 5, kind: text, abs_tol: 1}\n",
        "tasks/a.yaml:3: grader.abs_tol: 'abs_tol' is for kind money, number, percent, quantity, and this is text, "
        "which has case_sensitive, aliases",
    ),
    (
        START + "grader: {type: max_calls, max: -1}\n",
        "tasks/a.yaml:3: grader.max: should be greater than or equal to 0, not -1",
    ),
    (
        START + "grader: {type: required_tools, tools: []}\n",
        "tasks/a.yaml:3: grader.tools: should have at least 1 item(s)",
    ),
    (
        START + "grader: {type: required_tools, tools: [a]}\n",
        "tasks/a.yaml:3: grader: no grader decides: every trial would pass; add gate: true to one",
    ),
    (f"id: t\nprompt: ''\ngrader: {GRADER}\n", "tasks/a.yaml:2: prompt: is empty, not ''"),
    (f"id: t\nprompt: ' \t\n  '\ngrader: {GRADER}\n", "tasks/a.yaml:2: prompt: the prompt is empty"),
    (f"id: t\nprompt: 5\ngrader: {GRADER}\n", 'tasks/a.yaml:2: prompt: should be text, not 5; write "5"'),
    (f"id: t\nprompt: [p]\ngrader: {GRADER}\n", "tasks/a.yaml:2: prompt: should be text"),
    (f"id: t\nprompt: {{fil: x}}\ngrader: {GRADER}\n", "tasks/a.yaml:2: prompt: a prompt is text or {file: path}"),
    (
        f"id: t\nprompt: {{file: no.md}}\ngrader: {GRADER}\n",
        "tasks/a.yaml:2: prompt.file: prompt 'no.md': the file does not exist; check the path",
    ),
    (
        f"id: 'a b'\nprompt: p\ngrader: {GRADER}\n",
        "tasks/a.yaml:1: id: an id is 1 to 100 of A-Z a-z 0-9 . _ - and begins with a letter or digit",
    ),
    (
        f"id: ../x\nprompt: p\ngrader: {GRADER}\n",
        "tasks/a.yaml:1: id: an id is 1 to 100 of A-Z a-z 0-9 . _ - and begins with a letter or digit",
    ),
    (
        START + f"grader: {GRADER}\nexpects: abstian\n",
        "tasks/a.yaml:4: expects: should be 'act', 'abstain', 'refuse' "
        "or 'not_found', not 'abstian'; did you mean 'abstain'?",
    ),
    (START + f"grader: {GRADER}\ntags: search\n", "tasks/a.yaml:4: tags: should be a list, not 'search'"),
    (START + f"grader: {GRADER}\ntags: [1]\n", 'tasks/a.yaml:4: tags[0]: should be text, not 1; write "1"'),
    (START + f"grader: {GRADER}\ntrials: 0\n", "tasks/a.yaml:4: trials: should be greater than or equal to 1, not 0"),
    (
        START + f"grader: {GRADER}\nsplit: dev\n",
        "tasks/a.yaml:4: split: should be 'train' or 'held_out', not 'dev'; known here: held_out, train",
    ),
    ("- 3\n", "tasks/a.yaml:1: [0]: a task is a mapping; write at least id, prompt and graders"),
    ("just text\n", "tasks/a.yaml:1: a task is a mapping; write at least id, prompt and graders"),
    ("tasks: {}\n", "tasks/a.yaml:1: tasks: 'tasks' should be a list"),
    ("tasks: []\ndefaults: []\nfoo: 1\n", "tasks/a.yaml:3: foo: unknown key 'foo'; known here: defaults, tasks"),
    ("tasks: []\ndefaults: [1]\n", "tasks/a.yaml:2: defaults: 'defaults' should be a mapping"),
    (
        f"defaults:\n  splt: test\ntasks:\n  - {{id: t, prompt: p, grader: {GRADER}}}\n",
        "tasks/a.yaml:2: defaults.splt: unknown key 'splt'; did you mean 'split'?",
    ),
    (
        "defaults:\n  grader: {type: exact_answer}\ntasks:\n  - {id: t, prompt: p}\n",
        "tasks/a.yaml:2: defaults.grader: key 'expected' is missing",
    ),
    (
        f"tasks:\n  - id: t\n    prompt: p\n    grader: {GRADER}\n    trials: 0\n",
        "tasks/a.yaml:5: tasks[0].trials: should be greater than or equal to 1, not 0",
    ),
    ("", "project.json:8: tasks: the task files hold no task; add a task"),
]


@pytest.mark.parametrize(("text", "line"), FAULTS)
def test_a_faulty_task_is_refused_in_one_line_with_its_place(tmp_path: Path, text: str, line: str) -> None:
    assert refusal(tmp_path, a_yaml=text) == line


def test_an_id_is_taken_whatever_its_case_and_file(tmp_path: Path) -> None:
    line = refusal(
        tmp_path,
        a_yaml=f"- {{id: T-1, prompt: p, grader: {GRADER}}}\n",
        b_json='{"id": "t-1",\n "prompt": "p", "grader": {"type": "exact_answer", "expected": "x"}}',
    )
    assert line == "tasks/b.json:1: id: task id 't-1' is taken (see tasks/a.yaml:1: [0].id); rename one"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "a_jsonl",
            FOUNDING_TASK.replace("\n", " ") + "\n{",
            "tasks/a.jsonl:2: not valid JSON: Expecting property name enclosed in double quotes (column 2)",
        ),
        ("a_json", "", "tasks/a.json:1: not valid JSON: Expecting value (column 1)"),
        ("a_json", '{"id": "t",\n"id": "u"}', "tasks/a.json:2: id: key 'id' stands twice; keep one"),
        ("a_yaml", b"id: \xff", "tasks/a.yaml:1: the file is not UTF-8: invalid start byte; save it as UTF-8"),
    ],
)
def test_a_broken_task_file_is_refused_with_its_line(tmp_path: Path, name: str, text: str | bytes, line: str) -> None:
    assert refusal(tmp_path, **{name: text}) == line


def test_the_hash_of_a_task_does_not_depend_on_its_files_format(tmp_path: Path) -> None:
    yaml = f"id: t\nprompt: p\nlimits: {{call_seconds: 1.5}}\ngraders: [{GRADER}]\n"
    grader = {"type": "exact_answer", "expected": "x"}
    text = json.dumps({"id": "t", "prompt": "p", "limits": {"call_seconds": 1.5}, "grader": grader})
    first = only(tmp_path, yaml)
    (second,) = load(tmp_path, a_yaml="", b_json=text).suite.tasks
    assert first.hash == second.hash
    assert Task.model_validate(json.loads(first.model_dump_json())).hash == first.hash


def test_the_environments_fingerprint_depends_on_what_the_fixtures_hold(tmp_path: Path) -> None:
    (tmp_path / "db").write_text("one", "utf-8")
    text = with_grader(GRADER) + 'environment: {files: {db: "{trial_dir}/db"}}\n'
    project = load(tmp_path, a_yaml=text)
    environment = Environment(project.environment(project.suite.tasks[0]), project.dir)
    first = environment.fingerprint()
    assert environment.fingerprint() == first
    (tmp_path / "db").write_text("two", "utf-8")
    assert environment.fingerprint() != first


@settings(deadline=None, max_examples=60)
@given(text=st.text(min_size=1, max_size=40).filter(lambda text: text.strip()), name=st.sampled_from(["json", "jsonl"]))
def test_any_prompt_comes_through_unchanged(tmp_path_factory: pytest.TempPathFactory, text: str, name: str) -> None:
    task = {"id": "t", "prompt": text, "grader": {"type": "exact_answer", "expected": "x"}}
    project = load(tmp_path_factory.mktemp("prompt"), **{f"a_{name}": json.dumps(task)})
    assert project.suite.tasks[0].prompt == text
