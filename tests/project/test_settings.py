"""What a project file takes from outside itself: variables, secrets, and `--set` of the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcptrials.errors import UsageError
from mcptrials.project import Project
from mcptrials.project.secrets import refuse_in_names

TASK = '{"id": "t", "prompt": "p", "graders": [{"type": "exact_answer", "expected": "x"}]}'
SMALL = """\
version: 1
servers:
  tracker: {command: python}
models: ["scripted:script.yaml"]
tasks: [tasks.json]
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


def test_a_variable_is_filled_in_wherever_it_stands_and_noted_if_secret(tmp_path: Path) -> None:
    text = SMALL.replace("python}", 'python, args: ["--token=${T}", "${PORT}"], env: {A: "Bearer ${T}"}}')
    text = with_line(text, 'environment: {files: {"${F}/x": "{trial_dir}/x"}}')
    loaded = project(tmp_path, text, environ={"T": "s3cr3t!x", "PORT": "8080", "F": "fixtures"})
    server = loaded.config.servers["tracker"]
    assert server.args == ("--token=s3cr3t!x", "8080")
    assert server.env == {"A": "Bearer s3cr3t!x"}
    assert loaded.config.environment is not None
    assert loaded.config.environment.files == {"fixtures/x": "{trial_dir}/x"}
    assert "s3cr3t!x" in loaded.secrets.values()
    assert "8080" not in loaded.secrets.values()


def test_an_unknown_variable_is_refused_with_its_place(tmp_path: Path) -> None:
    text = SMALL.replace("python}", "python,\n    env: {TOKEN: 'x ${NO_SUCH}'}}")
    what = "the environment variable 'NO_SUCH' is not set; export NO_SUCH=... and run again"
    assert refusal(tmp_path, text) == f"mcptrials.yaml:4: servers.tracker.env.TOKEN: {what}"


def test_the_value_of_a_variable_is_quoted_in_no_error(tmp_path: Path) -> None:
    line = refusal(tmp_path, with_line(SMALL, "trials: ${T}"), environ={"T": "s3cr3t-value"})
    assert line == "mcptrials.yaml:6: trials: should be a whole number, not '[secret T]'"


def test_placeholders_of_a_trial_and_other_braces_stay_as_they_are(tmp_path: Path) -> None:
    text = SMALL.replace("python}", 'python, args: ["{trial_dir}/a", "{other}", "$HOME", "${1}"]}')
    assert project(tmp_path, text).config.servers["tracker"].args == ("{trial_dir}/a", "{other}", "$HOME", "${1}")


def test_secrets_that_stand_in_the_file_are_found_by_name_and_by_value(tmp_path: Path) -> None:
    text = """\
version: 1
servers:
  s:
    command: x
    args: [--api-key, aaaa-111111, "--token=bbbb-222222", -H, "Authorization: Bearer cccc3333zz", --style, plain]
    env: {DIFY_K: dddd4444zz, DB: "postgres://me:eeee5555zz@db/x", STYLE: plain, DIR: "{trial_dir}/key"}
variants:
  base: {}
  v2: {s: {env: {KEY: ffff6666zz}}}
models:
  - model: openai:m
    base_url: "http://host/v1?apiKey=gggg7777zz&team=one"
    headers: {Authorization: "Bearer hhhh8888zz", Accept: application/json}
    settings: {extra: {password: iiii9999zz}, style: plain}
tasks: [tasks.json]
"""
    secrets = set(project(tmp_path, text).secrets.values())
    found = {number for number in range(1, 10) if any(str(number) * 4 in secret for secret in secrets)}
    assert found == set(range(1, 10))
    assert {"cccc3333zz", "eeee5555zz", "gggg7777zz", "hhhh8888zz"} <= secrets
    assert not secrets & {"plain", "application/json", "one", "x", "{trial_dir}/key", "openai:m"}


@pytest.mark.parametrize(
    ("line", "value", "secret"),
    [
        ("env: {TENANT: '${V}'}", "customers", False),
        ("env: {TENANT: '${V}'}", "acme corporation", False),
        ("env: {TENANT: '${V}'}", "x8Kd91m", False),
        ("env: {TENANT: '${V}'}", "x8Kd91mN", True),
        ("env: {API_KEY: '${V}'}", "customers", True),
        ("args: [--password, '${V}']", "customers", True),
        ("args: ['--token=${V}']", "customers", True),
        ("args: ['${V}']", "customers", False),
        ("args: ['${MY_KEY}']", "customers", True),
        ("args: ['https://me:${V}@host/']", "customers", True),
    ],
)
def test_what_a_variable_brings_in_is_a_secret_by_its_name_its_place_or_its_look(
    tmp_path: Path, line: str, value: str, *, secret: bool
) -> None:
    text = SMALL.replace("python}", f"python, {line.replace(chr(39), chr(34))}}}")
    assert (value in project(tmp_path, text, environ={"V": value, "MY_KEY": value}).secrets.values()) is secret


def test_in_headers_words_are_secrets_and_in_the_name_of_a_model_nothing_is(tmp_path: Path) -> None:
    models = '[{model: "openai:${M}", headers: {X-Org: "${ORG}"}, api_key: "${K}"}]'
    text = SMALL.replace('["scripted:script.yaml"]', models)
    odd = {"M": "ft:gpt-4o-mini:acme::9aBcDeFg", "ORG": "customers", "K": "swordfish"}
    loaded = project(tmp_path, text, environ=odd)
    assert set(loaded.secrets.values()) == {"customers", "swordfish"}
    refuse_in_names(loaded.secrets, loaded.names())


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ("variants: {'${V}': {}}", "the variant name '[secret V]'"),
        ("environment: {readers: {'of ${V}': {file: x}}}", "the reader 'of [secret V]'"),
    ],
)
def test_a_secret_in_a_name_is_refused_and_not_shown(tmp_path: Path, more: str, place: str) -> None:
    loaded = project(tmp_path, with_line(SMALL, more), environ={"V": "sk-Ab3dEf6hIj9lMn2"})
    with pytest.raises(UsageError) as caught:
        refuse_in_names(loaded.secrets, loaded.names())
    assert str(caught.value).startswith(f"the value of V stands in {place}, which a run shows as it is")
    assert "sk-Ab3" not in str(caught.value)


def test_no_error_quotes_what_may_be_a_key_in_a_wrong_place(tmp_path: Path) -> None:
    key = "sk-Ab3dEf6hIj9lMn2pQr5"
    for setting in (f"models={key}", f"trials={key}", f"servers={key}", key, f"models[0].settings={key}"):
        with pytest.raises(UsageError) as caught:
            project(tmp_path, SMALL, setting)
        assert key not in str(caught.value)
    assert key not in refusal(tmp_path, with_line(SMALL, f"trials: {key}"))


def test_placeholder_keys_and_settings_of_every_day_are_no_secrets(tmp_path: Path) -> None:
    text = SMALL.replace(
        "python}", 'python, env: {AUTH: none, MAX_TOKENS: "200000", SESSION: "true", PROJECT: Billing}}'
    )
    text = text.replace('["scripted:script.yaml"]', '[{model: "openai:m", api_key: none}]')
    assert project(tmp_path, text).secrets == {}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("trials=3", ("trials", 3)),
        ("limits.turns=8", ("limits", "turns", 8)),
        ("models.0=local:m", ("models", 0, "model", "local:m")),
        ("models[0]={model: 'local:m', settings: {temperature: 0.5}}", ("models", 0, "settings", "temperature", 0.5)),
        ("servers.tracker.args=[a, b]", ("servers", "tracker", "args", 1, "b")),
        ('environment.readers["of {k}"]={file: x}', ("environment", "readers", "of {k}", "file", "x")),
        ("variants.v2.tracker.args=[z]", ("variants", "v2", "tracker", "args", 0, "z")),
        ("runs=", None),
    ],
)
def test_a_setting_of_the_command_line_takes_the_place_of_the_files(tmp_path: Path, setting: str, value: Any) -> None:
    if value is None:
        assert refusal(tmp_path, SMALL, setting) == "--set runs: runs: should be text, not null"
        return
    *key, expected = value
    found: Any = project(tmp_path, with_line(SMALL, "environment:"), setting).config.model_dump()
    for part in key:
        found = found[part]
    assert found == expected


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("trials", "--set 'trials' has no '='; write --set trials=3 or --set limits.turns=8"),
        ("=3", "--set '=3' has no '='; write --set trials=3 or --set limits.turns=8"),
        ("trials=0", "--set trials: trials: should be greater than or equal to 1, not 0"),
        ("triels=3", "--set triels: triels: unknown key 'triels'; did you mean 'trials'?"),
        ("limits.turnz=3", "--set limits.turnz: limits.turnz: unknown key 'turnz'; did you mean 'turns'?"),
        ("limits={turnz: 3}", "--set limits: limits.turnz: unknown key 'turnz'; did you mean 'turns'?"),
        ("models.7=local:m", "--set models.7: the list has 1 items and none is '7'; count from 0"),
        ("models[7].model=local:m", "--set models[7].model: the list has 1 items and none is 7; count from 0"),
        ("models[-1]=local:m", "--set models[-1]: the list has 1 items and none is -1; count from 0"),
        ("models.x=local:m", "--set models.x: the list has 1 items and none is 'x'; count from 0"),
        ("models.\u00b2=local:m", "--set models.\u00b2: the list has 1 items and none is '\u00b2'; count from 0"),
        ("version.x=1", "--set version.x: there is no mapping to set 'x' in; check the path"),
        ("version.x.y=1", "--set version.x.y: there is no mapping to set 'x' in; check the path"),
        ("a..b=1", "--set a..b: path 'a..b' is malformed at '..b'; write a.b[0].c"),
        ("trials=[1", "--set trials: not valid YAML: expected ',' or ']', but got '<stream end>'; quote the value"),
        ("trials=!!python/none x", "--set trials: tag tag:yaml.org,2002:python/none is not supported; quote the value"),
        ("seed=2026-01-01", "--set seed: seed: should be a whole number, not '2026-01-01'"),
        ("seed=.inf", "--set seed: .inf is no finite number; quote the value"),
        (
            "tasks[0]=no.json",
            "--set tasks[0]: tasks[0]: no task file matches 'no.json'; paths are relative to the project file",
        ),
    ],
)
def test_a_setting_that_cannot_be_applied_is_refused(tmp_path: Path, setting: str, line: str) -> None:
    assert refusal(tmp_path, SMALL, setting) == line


def test_an_error_elsewhere_still_names_the_file_when_something_was_set(tmp_path: Path) -> None:
    text = with_line(SMALL, "limits: {turns: 3, tokens: 0}")
    line = "mcptrials.yaml:6: limits.tokens: should be greater than or equal to 1, not 0"
    assert refusal(tmp_path, text, "limits.turns=4") == line
