"""The project file: what it may hold, what it means, and how it is refused before any spend."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.redaction import Redactor

TASK = '{"id": "t", "prompt": "p", "graders": [{"type": "exact_answer", "expected": "x"}]}'
SMALL = """\
version: 1
servers:
  tracker: {command: python}
models: ["scripted:script.yaml"]
tasks: [tasks.json]
"""
EVERYTHING = """\
version: 1
servers:
  tracker:
    command: "{python}"
    args: [server.py, --db, "{trial_dir}/tracker.db"]
    env: {TOKEN: "${TRACKER_TOKEN}"}
    cwd: servers
    era: auto
    on_invalid_tool: stop
    tools: {allow: [search_issues], hide: [delete_issue]}
    writes: denied
variants:
  base: {}
  v2: {tracker: {args: [server2.py]}}
  none: none
environment:
  files: {fixtures/tracker.db: "{trial_dir}/tracker.db"}
  reset:
    - {command: ["{python}", reset.py]}
    - {sql: "delete from labels", url: "sqlite:///{trial_dir}/tracker.db", timeout_seconds: 5}
  state_hash: [{file: "{trial_dir}/tracker.db"}]
  readers:
    "labels of {key}":
      {sql: "select label from labels where key = :key", url: "sqlite:///{trial_dir}/tracker.db"}
    notes: {file: "{trial_dir}/notes.json", as: json, path: items}
    version: {command: [git, --version], value: stdout, timeout_seconds: 5}
models:
  - scripted:script.yaml
  - model: "openai:some-model"
    base_url: "http://127.0.0.1:8901/v1"
    api_key: "${MODEL_KEY}"
    headers: {X-Team: evals}
    settings: {temperature: 0.7}
    concurrency: 2
hosts: [loop, {host: loop, instructions: true}]
trials: 5
concurrency: 8
limits: {turns: 20, tool_calls: 40, tokens: 200000, output_tokens_per_request: 4096, connect_seconds: 30,
         call_seconds: 60, trial_seconds: 300, cost_usd: null}
tasks: ["tasks/*.yaml", "tasks.json"]
preflight: [["{python}", -m, pytest, -q]]
judges: []
seed: 0
max_invalid: 0.05
keep_trial_dirs: false
use: unattended
runs: runs
"""


def project(folder: Path, text: str, *settings: str, environ: Mapping[str, str] | None = None) -> Project:
    (folder / "mcptrials.yaml").write_text(text, "utf-8")
    if not (folder / "tasks.json").exists():
        (folder / "tasks.json").write_text(TASK, "utf-8")
    return Project.load(folder, settings, environ or {})


def refusal(folder: Path, text: str, *settings: str, environ: Mapping[str, str] | None = None) -> str:
    """The one line that refuses a project, without its folder."""
    with pytest.raises(UsageError) as caught:
        project(folder, text, *settings, environ=environ)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{folder}/", "")


def with_line(text: str, line: str) -> str:
    """A project file with one more line at its end."""
    return f"{text}{line}\n"


def test_a_small_project_is_enough(tmp_path: Path) -> None:
    config = project(tmp_path, SMALL).config
    assert (config.trials, config.concurrency, config.seed, config.max_invalid) == (5, 8, 0, 0.05)
    assert [*config.variants] == ["base"]
    assert [host.host for host in config.hosts] == ["loop"]
    assert config.limits.model_dump() == {
        "turns": 20,
        "tool_calls": 40,
        "tokens": 200_000,
        "output_tokens_per_request": 4096,
        "connect_seconds": 30,
        "call_seconds": 60,
        "trial_seconds": 300,
        "cost_usd": None,
    }


def test_every_documented_key_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "a.yaml").write_text(
        '{id: a, prompt: p, grader: {type: exact_answer, expected: "1"}}', "utf-8"
    )
    loaded = project(tmp_path, EVERYTHING, environ={"TRACKER_TOKEN": "t0k3n-tracker", "MODEL_KEY": "k3y-of-model"})
    assert [task.id for task in loaded.suite.tasks] == ["a", "t"]
    assert loaded.config.servers["tracker"].env == {"TOKEN": "t0k3n-tracker"}
    assert loaded.config.models[1].api_key == "k3y-of-model"
    assert loaded.config.servers_of("v2")["tracker"].args == ("server2.py",)
    assert loaded.config.servers_of("v2")["tracker"].writes == "denied"
    assert loaded.config.servers_of("none") == {}
    assert len(loaded.arms()) == 3 * 2 * 2
    assert loaded.secrets == {"TRACKER_TOKEN": "t0k3n-tracker", "MODEL_KEY": "k3y-of-model"} | {
        "servers.tracker.env.TOKEN": "t0k3n-tracker",
        "models[1].api_key": "k3y-of-model",
    }


def test_keys_that_models_take_from_the_environment_by_themselves_are_secrets_too(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "sk-0penai", "ANTHROPIC_API_KEY": "sk-4nthropic", "OTHER_API_KEY": "sk-0ther"}
    minimal = "version: 1\nservers: {s: {command: x}}\nmodels: [openai:m]\ntasks: [tasks.json]\n"
    loaded = project(tmp_path, minimal, environ=environ)
    assert loaded.secrets == {"OPENAI_API_KEY": "sk-0penai", "ANTHROPIC_API_KEY": "sk-4nthropic"}


def test_a_project_may_be_named_by_its_folder_or_its_file_and_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(TASK, "utf-8")
    (tmp_path / "p.json").write_text(
        json.dumps({"version": 1, "servers": {"s": {"command": "x"}}, "models": ["local:m"], "tasks": ["tasks.json"]}),
        "utf-8",
    )
    assert Project.load(tmp_path / "p.json", environ={}).dir == tmp_path
    assert project(tmp_path, SMALL).path == tmp_path / "mcptrials.yaml"
    with pytest.raises(UsageError, match="does not exist"):
        Project.load(tmp_path / "none.yaml")


def test_a_project_file_without_content_says_how_to_begin(tmp_path: Path) -> None:
    assert refusal(tmp_path, "") == "mcptrials.yaml: a project file is a mapping; begin it with 'version: 1'"
    assert refusal(tmp_path, "- a\n") == "mcptrials.yaml:1: a project file is a mapping; begin it with 'version: 1'"
    (tmp_path / "p.jsonl").write_text("", "utf-8")
    with pytest.raises(UsageError, match="holds 0 documents instead of one"):
        Project.load(tmp_path / "p.jsonl")


SERVER = "  tracker: {command: python}\n"
UNKNOWN_KEYS = [
    ("triels: 3", "mcptrials.yaml:6: triels: unknown key 'triels'; did you mean 'trials'?"),
    ("limits: {turnz: 3}", "mcptrials.yaml:6: limits.turnz: unknown key 'turnz'; did you mean 'turns'?"),
    ("environment: {file: {}}", "mcptrials.yaml:6: environment.file: unknown key 'file'; did you mean 'files'?"),
    (
        "environment:\n  readers:\n    a b: {sql: select 1,\n      ulr: x}",
        "mcptrials.yaml:9: environment.readers[\"a b\"].ulr: unknown key 'ulr'; did you mean 'url'?",
    ),
    (
        "environment:\n  reset:\n    - {command: [x]}\n    - {command: [x], vlaue: json}",
        "mcptrials.yaml:9: environment.reset[1].vlaue: unknown key 'vlaue'; did you mean 'value'?",
    ),
    (
        "environment:\n  state_hash: [{file: x, valu: json}]",
        "mcptrials.yaml:7: environment.state_hash[0].valu: unknown key 'valu'; "
        "known here: as, before_close, file, path",
    ),
    (
        "variants:\n  v2:\n    tracker: {arg: [x]}",
        "mcptrials.yaml:8: variants.v2.tracker.arg: unknown key 'arg'; did you mean 'args'?",
    ),
    (
        "variants:\n  v2: {traker: {}}",
        "mcptrials.yaml:7: variants.v2.traker: there is no server 'traker' to patch; did you mean 'tracker'?",
    ),
    (
        "hosts:\n  - {host: loop, instruction: true}",
        "mcptrials.yaml:7: hosts[0].instruction: unknown key 'instruction'; did you mean 'instructions'?",
    ),
    ("hosts: [lop]", "mcptrials.yaml:6: hosts[0]: there is no host 'lop'; did you mean 'loop'?"),
]


NAME = "1 to 64 of A-Z a-z 0-9 . _ - that begin with a letter or digit"


@pytest.mark.parametrize(("more", "line"), UNKNOWN_KEYS)
def test_an_unknown_name_is_refused_with_its_place_and_the_nearest_name(tmp_path: Path, more: str, line: str) -> None:
    assert refusal(tmp_path, with_line(SMALL, more)) == line


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            "{command: python}",
            "{command: python, agrs: [x]}",
            "mcptrials.yaml:3: servers.tracker.agrs: unknown key 'agrs'; did you mean 'args'?",
        ),
        (
            "{command: python}",
            "{command: python, tools: {hidden: [x]}}",
            "mcptrials.yaml:3: servers.tracker.tools.hidden: unknown key 'hidden'; did you mean 'hide'?",
        ),
        (
            '["scripted:script.yaml"]',
            "\n  - {model: scripted:x,\n     basurl: y}",
            "mcptrials.yaml:6: models[0].basurl: unknown key 'basurl'; did you mean 'base_url'?",
        ),
        (
            "scripted:script.yaml",
            "opnai:gpt",
            "mcptrials.yaml:4: models[0]: there is no model 'opnai'; did you mean 'openai'?",
        ),
        (
            "scripted:script.yaml",
            "gpt",
            "mcptrials.yaml:4: models[0]: a model is written "
            "ADAPTER:NAME, such as openai:NAME, local:NAME or scripted:FILE",
        ),
        (
            '["scripted:script.yaml"]',
            '["scripted:a", {model: "scripted:a", api_key: other-key}]',
            "mcptrials.yaml:4: models[1]: the same as models[0]: their results could not be told apart; remove one",
        ),
        (
            "{command: python}",
            "{}",
            "mcptrials.yaml:3: servers.tracker: a server has one of 'command', 'url' and 'python', and has none",
        ),
        ("{command: python}", "{command: ''}", "mcptrials.yaml:3: servers.tracker.command: is empty, not ''"),
        (
            "{command: python}",
            "{command: python, url: http://x}",
            "mcptrials.yaml:3: servers.tracker: a server has one of 'command', 'url' and 'python', not command and url",
        ),
        (
            "{command: python}",
            "{url: http://x, args: [a]}",
            "mcptrials.yaml:3: servers.tracker: 'args' goes with 'command', not with 'url'",
        ),
        (
            "{command: python}",
            "{url: x.example/mcp}",
            "mcptrials.yaml:3: servers.tracker.url: is an absolute URL such as https://example.org/mcp",
        ),
        (
            "{command: python}",
            '{url: "http://x:99999/"}',
            "mcptrials.yaml:3: servers.tracker.url: is no URL: Port out of range 0-65535",
        ),
        (
            "{command: python}",
            '{url: "http://x/é"}',
            "mcptrials.yaml:3: servers.tracker.url: is a URL of ASCII characters without spaces: write others "
            "in their %-form",
        ),
        (
            "{command: python}",
            '{url: "http://x", headers: {X-Key: "a\\nb"}}',
            "mcptrials.yaml:3: servers.tracker.headers: the value of 'X-Key' is empty, or has spaces at its ends, "
            "line ends or non-ASCII characters",
        ),
        (
            "{command: python}",
            '{url: "http://x", headers: {"X Key": "a"}}',
            "mcptrials.yaml:3: servers.tracker.headers: 'X Key' is no name of a header",
        ),
        (
            "{command: python}",
            '{url: "http://x", headers: {mcp-session-id: "a"}}',
            "mcptrials.yaml:3: servers.tracker.headers: the header 'mcp-session-id' is set by the client itself; "
            "remove it",
        ),
        (
            "{command: python}",
            '{url: "http://x", headers: {authorization: "a"}, token_command: [b]}',
            "mcptrials.yaml:3: servers.tracker: both 'token_command' and the header 'Authorization' say who we are; "
            "remove one",
        ),
        (
            "{command: python}",
            '{url: "http://me:pass@x", token_command: [b]}',
            "mcptrials.yaml:3: servers.tracker: both 'token_command' and the user in 'url' say who we are; remove one",
        ),
        (
            "{command: python}",
            "{python: server}",
            "mcptrials.yaml:3: servers.tracker.python: a factory is written module:function or ./file.py:function",
        ),
        ("version: 1", "version: 2", "mcptrials.yaml:1: version: should be 1, not 2"),
        ("version: 1\n", "", "mcptrials.yaml:1: key 'version' is missing"),
        ('models: ["scripted:script.yaml"]\n', "", "mcptrials.yaml:1: key 'models' is missing"),
        (SERVER, "  {}\n", "mcptrials.yaml:2: servers: should have at least 1 item(s)"),
        ("tasks: [tasks.json]", "tasks: []", "mcptrials.yaml:5: tasks: should have at least 1 item(s)"),
        ("tasks: [tasks.json]", "tasks: tasks.json", "mcptrials.yaml:5: tasks: should be a list, not 'tasks.json'"),
        ("tasks: [tasks.json]", 'tasks: [""]', "mcptrials.yaml:5: tasks[0]: is empty, not ''"),
        (
            "tasks: [tasks.json]",
            "tasks:\n  - tasks.json\n  - nope/*.yaml",
            "mcptrials.yaml:7: tasks[1]: no task file matches 'nope/*.yaml'; paths are relative to the project file",
        ),
        (
            "tasks: [tasks.json]",
            "tasks: ['a**b']",
            "mcptrials.yaml:5: tasks[0]: 'a**b': Invalid pattern: '**' can only be an entire path component",
        ),
        (
            "{command: python}",
            "{command: python, env: {PORT: 8080}}",
            'mcptrials.yaml:3: servers.tracker.env.PORT: should be text, not 8080; write "8080"',
        ),
        (
            "{command: python}",
            "{command: python, args: [1.10]}",
            'mcptrials.yaml:3: servers.tracker.args[0]: should be text, not 1.10; write "1.10"',
        ),
        (
            "{command: python}",
            "{command: python, era: modrn}",
            "mcptrials.yaml:3: servers.tracker.era: should be 'auto', "
            "'modern' or 'legacy', not 'modrn'; did you mean 'modern'?",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in SMALL
    assert refusal(tmp_path, SMALL.replace(old, new)) == line


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("trials: 0", "mcptrials.yaml:6: trials: should be greater than or equal to 1, not 0"),
        ("trials: 10001", "mcptrials.yaml:6: trials: should be less than or equal to 10000, not 10001"),
        ("variants: {../x: {}}", f"mcptrials.yaml:6: variants[\"../x\"]: '../x' is no name: {NAME}"),
        ("variants: {'': {}}", f"mcptrials.yaml:6: variants[\"\"]: '' is no name: {NAME}"),
        ("variants: {a: {}, A: {}}", "mcptrials.yaml:6: variants.A: 'A' and 'a' differ in case only; rename one"),
        ('runs: "a\\0"', "mcptrials.yaml:6: runs: a path holds no NUL character"),
        ("trials: true", "mcptrials.yaml:6: trials: should be a whole number, not true"),
        ("trials: 2.0", "mcptrials.yaml:6: trials: should be a whole number, not 2.0"),
        ("trials: '3'", "mcptrials.yaml:6: trials: should be a whole number, not '3'"),
        ("max_invalid: 1.5", "mcptrials.yaml:6: max_invalid: should be less than or equal to 1, not 1.5"),
        ("keep_trial_dirs: yes", "mcptrials.yaml:6: keep_trial_dirs: should be true or false, not 'yes'"),
        ("limits: {turns: 0}", "mcptrials.yaml:6: limits.turns: should be greater than or equal to 1, not 0"),
        ("limits: {turns: -1}", "mcptrials.yaml:6: limits.turns: should be greater than or equal to 1, not -1"),
        ("limits: {turns: null}", "mcptrials.yaml:6: limits.turns: should be a whole number, not null"),
        ("limits: {trial_seconds: 0}", "mcptrials.yaml:6: limits.trial_seconds: should be greater than 0, not 0"),
        ("limits: {trial_seconds: .inf}", "mcptrials.yaml:6: limits.trial_seconds: .inf is no finite number"),
        ("limits: {call_seconds: null}", "mcptrials.yaml:6: limits.call_seconds: should be a number, not null"),
        ("limits: {cost_usd: 0}", "mcptrials.yaml:6: limits.cost_usd: should be greater than 0, not 0"),
        (
            "limits: {cost_usd: 5.0}",
            "mcptrials.yaml:6: limits.cost_usd: a limit on cost needs prices, which are not known yet; "
            "remove it and use 'tokens'",
        ),
        ("limits: 3", "mcptrials.yaml:6: limits: should be a mapping, not 3"),
        ("preflight: [pytest]", "mcptrials.yaml:6: preflight[0]: should be a list, not 'pytest'"),
        ("preflight: [[]]", "mcptrials.yaml:6: preflight[0]: should have at least 1 item(s)"),
        ("judges: [{}]", "mcptrials.yaml:6: judges: judges are not supported yet; remove the key"),
        ("variants: {}", "mcptrials.yaml:6: variants: should have at least 1 item(s)"),
        ("variants: {v: nothing}", "mcptrials.yaml:6: variants.v: should be a mapping, not 'nothing'"),
        (
            "variants:\n  v: {tracker: {args: [x, 1]}}",
            'mcptrials.yaml:7: variants.v.tracker.args[1]: should be text, not 1; write "1"',
        ),
        (
            "variants: {v: {override: x}}",
            "mcptrials.yaml:6: variants.v.override: 'override' is neither 'overrides' nor 'naming', so it should be a "
            "mapping: the patch of a server; did you mean 'overrides'?",
        ),
        (
            "use: retry-it",
            "mcptrials.yaml:6: use: should be 'retry' or 'unattended', not 'retry-it'; did you mean 'retry'?",
        ),
        ("trials: 3\ntrials: 4", "mcptrials.yaml:7: trials: key 'trials' stands twice; keep one"),
    ],
)
def test_a_setting_out_of_its_bounds_is_refused_with_its_place(tmp_path: Path, more: str, line: str) -> None:
    assert refusal(tmp_path, with_line(SMALL, more)) == line


READER = "environment:\n  readers:\n    "


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            'environment:\n  files: {a.db: "/tmp/a.db"}',
            'mcptrials.yaml:7: environment.files["a.db"]: the target '
            "must lie under {trial_dir}/: trials run side by side",
        ),
        (
            'environment:\n  files: {a: "{trial_dir}-b/a"}',
            "mcptrials.yaml:7: environment.files.a: the target must lie under {trial_dir}/: trials run side by side",
        ),
        (
            'environment:\n  files: {a: "{trial_dir}/../a"}',
            "mcptrials.yaml:7: environment.files.a: the target must lie under {trial_dir}/: trials run side by side",
        ),
        (
            "environment:\n  reset: [{file: a}]",
            "mcptrials.yaml:7: environment.reset[0]: a reset step is "
            "{command: [...]} or {sql: ..., url: ...}; copy files with 'files'",
        ),
        (
            READER + "q: {sqll: select 1}",
            "mcptrials.yaml:8: environment.readers.q: a reader has "
            "exactly one of sql, file, command, tool, http, python, changes; this one has sqll",
        ),
        (
            READER + "q: {sql: select 1, file: x}",
            "mcptrials.yaml:8: environment.readers.q: a reader has "
            "exactly one of sql, file, command, tool, http, python, changes; this one has sql, file",
        ),
        (
            READER + "q: 3",
            "mcptrials.yaml:8: environment.readers.q: a reader is a mapping with one of "
            "sql, file, command, tool, http, python, changes",
        ),
        (READER + "q: {sql: select 1}", "mcptrials.yaml:8: environment.readers.q: key 'url' is missing"),
        (READER + "q: {sql: '', url: sqlite:///x}", "mcptrials.yaml:8: environment.readers.q.sql: is empty, not ''"),
        (
            READER + "q: {command: []}",
            "mcptrials.yaml:8: environment.readers.q.command: should have at least 1 item(s)",
        ),
        (
            READER + "q: {file: x, as: jsn}",
            "mcptrials.yaml:8: environment.readers.q.as: should be 'text', "
            "'json', 'lines' or 'exists', not 'jsn'; did you mean 'json'?",
        ),
        (
            READER + "q: {file: x, path: a.b}",
            "mcptrials.yaml:8: environment.readers.q.path: 'path' leads into JSON only",
        ),
        (
            READER + "q: {file: x, as: json, path: 'a['}",
            "mcptrials.yaml:8: environment.readers.q.path: path 'a[' is malformed at '['; write a.b[0].c",
        ),
        (
            READER + "'of {a}': {sql: 'select :b, :c', url: sqlite:///x}",
            'mcptrials.yaml:8: environment.readers["of {a}"]: the reader uses b, c, which the pattern does not name',
        ),
        (
            READER + "'{a} of {a}': {sql: 'select :a', url: sqlite:///x}",
            'mcptrials.yaml:8: environment.readers["{a} of {a}"]: the pattern has one name twice',
        ),
    ],
)
def test_an_environment_that_cannot_work_is_refused_with_its_place(tmp_path: Path, more: str, line: str) -> None:
    assert refusal(tmp_path, with_line(SMALL, more)) == line


def test_colons_in_literals_and_comments_of_sql_are_no_parameters(tmp_path: Path) -> None:
    sql = "select 'a:b', \\\"c:d\\\" from t -- :e\n where x = :key /* :f */ and y = 'it''s :g'"
    more = f'environment:\n  readers:\n    "of {{key}}": {{url: sqlite:///x, sql: "{sql}"}}'
    assert project(tmp_path, with_line(SMALL, more)).config.environment is not None


def test_writes_are_denied_until_an_environment_is_declared(tmp_path: Path) -> None:
    bare = project(tmp_path, SMALL)
    task, server = bare.suite.tasks[0], bare.config.servers["tracker"]
    assert bare.writes(task, server) == "denied"
    assert project(tmp_path, with_line(SMALL, "environment: {}")).writes(task, server) == "allowed"
    assert bare.writes(task.model_copy(update={"environment": {}}), server) == "allowed"
    assert bare.writes(task, server.model_copy(update={"writes": "allowed"})) == "allowed"


def test_arms_tell_apart_what_decides_a_models_behaviour_and_hold_no_key(tmp_path: Path) -> None:
    text = SMALL.replace(
        '["scripted:script.yaml"]',
        '["openai:m", {model: "openai:m", base_url: "http://h"}, {model: "openai:m", settings: {temperature: 0}}]',
    )
    loaded = project(tmp_path, text)
    assert len(loaded.arms()) == 3
    again = project(tmp_path, text.replace('"openai:m",', '{model: "openai:m", api_key: s3cr3t-key},', 1))
    assert list(again.arms()) == list(loaded.arms())
    assert Redactor(again.secrets).find(repr([arm for arm, _, _ in again.arms().values()])) is None


@pytest.mark.parametrize("version", ["true", "1.0", "'1'", "2"])
def test_the_version_is_the_whole_number_one(tmp_path: Path, version: str) -> None:
    line = refusal(tmp_path, SMALL.replace("version: 1", f"version: {version}"))
    assert line.startswith("mcptrials.yaml:1: version: should be ")


@pytest.mark.parametrize("name", ["''", "../x", "a b", "a/b", "-x", "ä", "x" * 65, '"a\\n✓ b"'])
def test_a_server_has_a_name_that_files_and_screens_can_hold(tmp_path: Path, name: str) -> None:
    assert NAME in refusal(tmp_path, SMALL.replace("tracker:", f"{name}:", 1))
