"""A script in place of a model: its file, its errors, and success rates that are known exactly."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from mcptrials.errors import ProviderError, ServerError, UsageError
from mcptrials.events import Usage
from mcptrials.matrix import trial_seed
from mcptrials.models.scripted import Scripted
from mcptrials.protocols import Reply, User
from mcptrials.trial import TrialKey

pytestmark = pytest.mark.anyio

EVERYTHING = """\
version: 1
seed: 3
tasks:
  look:
    pass_rate: 0.5
    steps:
      - text: I look it up.
        calls: [{tool: get, args: {key: é, n: 1.5}}, {tool: get, raw_arguments: "{not json"}, {tool: list}]
        usage: {input_tokens: 10, output_tokens: 5, cached_input_tokens: 2, reasoning_tokens: 1}
      - {text: Here it is., answer: "42", delay_ms: 1}
    otherwise:
      - {text: I will not., stop: refused}
default:
  steps:
    - {answer: hello}
"""


def key(task: str = "look", seed: int = 1, number: int = 1) -> TrialKey:
    return TrialKey(task_id=task, arm="arm", number=number, attempt=1, seed=seed)


def scripted(folder: Path, text: str) -> Scripted:
    (folder / "script.yaml").write_text(text, "utf-8")
    return Scripted("script.yaml", project_dir=folder)


async def replies(model: Scripted, trial: TrialKey, count: int) -> Sequence[Reply]:
    with anyio.fail_after(10):
        return [await model.request([User("go")], [], {}, trial) for _ in range(count)]


async def test_every_key_of_the_file_is_played(tmp_path: Path) -> None:
    model = scripted(tmp_path, EVERYTHING)
    first, second, beyond = await replies(model, key(seed=1), 3)
    assert (first.text, first.stop, first.model) == ("I look it up.", "calls", "scripted")
    assert first.usage == Usage(input_tokens=10, output_tokens=5, cached_input_tokens=2, reasoning_tokens=1)
    assert [(asked.id, asked.name, asked.raw_arguments) for asked in first.calls] == [
        ("call_0_0", "get", '{"key":"é","n":1.5}'),
        ("call_0_1", "get", "{not json"),
        ("call_0_2", "list", "{}"),
    ]
    assert (second.text, second.stop, second.usage) == ("Here it is.\n<answer>42</answer>", "answer", None)
    assert (beyond.text, beyond.calls, beyond.stop) == (None, (), "answer")
    assert model.scripted
    assert model.endpoint is None


async def test_a_trial_that_is_to_fail_plays_the_other_list(tmp_path: Path) -> None:
    (reply,) = await replies(scripted(tmp_path, EVERYTHING), key(seed=2), 1)
    assert (reply.text, reply.stop) == ("I will not.", "refused")


async def test_a_task_without_a_script_plays_the_default(tmp_path: Path) -> None:
    (reply,) = await replies(scripted(tmp_path, EVERYTHING), key("other"), 1)
    assert reply.text == "<answer>hello</answer>"


async def test_a_task_that_the_script_does_not_know_is_an_error_of_use(tmp_path: Path) -> None:
    model = scripted(tmp_path, "tasks: {look: {steps: []}}")
    with pytest.raises(UsageError, match="says nothing on task 'other' and has no 'default'"):
        await model.request([], [], {}, key("other"))
    with pytest.raises(UsageError, match="did you mean it by 'look'\\? else add the task to the script"):
        await model.request([], [], {}, key("loook"))


async def test_trials_play_by_themselves_however_they_are_mixed(tmp_path: Path) -> None:
    model = scripted(tmp_path, "default: {steps: [{answer: a}, {answer: b}, {answer: c}]}")
    one, two = key(number=1), key(number=2)
    order = [one, two, two, one, one, two]
    with anyio.fail_after(10):
        texts = [(await model.request([], [], {}, trial)).text for trial in order]
    assert texts == [f"<answer>{letter}</answer>" for letter in "aabbcc"]


@pytest.mark.parametrize(
    ("error", "cause", "status", "retryable"),
    [
        ("{status: 429, retry_after_s: 3}", "rate_limit", 429, True),
        ("{status: 401}", "auth", 401, False),
        ("{status: 402}", "quota", 402, False),
        ("{status: 400}", "http", 400, False),
        ("{status: 503}", "http", 503, True),
        ("{cause: connection}", "connection", None, True),
        ("{cause: timeout}", "timeout", None, True),
    ],
)
async def test_failures_of_a_provider_are_played(
    error: str, cause: str, status: int | None, retryable: bool, tmp_path: Path
) -> None:
    model = scripted(tmp_path, f"default: {{steps: [{{error: {error}}}, {{answer: a}}]}}")
    with pytest.raises(ProviderError) as caught:
        await model.request([], [], {}, key())
    failure = caught.value
    assert (failure.cause, failure.status, failure.retryable) == (cause, status, retryable)
    assert failure.retry_after_s == (3 if status == 429 else None)
    (after,) = await replies(model, key(), 1)
    assert after.text == "<answer>a</answer>"


async def test_an_overflow_of_the_window_is_the_servers(tmp_path: Path) -> None:
    model = scripted(tmp_path, "default: {steps: [{error: {cause: context_overflow}}]}")
    with pytest.raises(ServerError) as caught:
        await model.request([], [], {}, key())
    assert caught.value.cause == "context_overflow"


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("version: 1\ntask:\n  look: {}\n", "script.yaml:2: task", "unknown key 'task'; did you mean 'tasks'?"),
        ("version: 2\n", "script.yaml:1: version", "should be 1, not 2"),
        (
            "tasks:\n  look:\n    steps:\n      - txt: hello\n",
            "script.yaml:4: tasks.look.steps[0].txt",
            "unknown key 'txt'; did you mean 'text'?",
        ),
        (
            "tasks:\n  look:\n    steps:\n      - calls: [{args: {}}]\n",
            "script.yaml:4: tasks.look.steps[0].calls[0]",
            "key 'tool' is missing",
        ),
        (
            "tasks:\n  look:\n    pass_rate: 1.5\n    steps: []\n",
            "script.yaml:3: tasks.look.pass_rate",
            "less than or equal to 1, not 1.5",
        ),
        (
            "tasks:\n  look:\n    pass_rate: 0.5\n    steps: []\n",
            "script.yaml:2: tasks.look",
            "'pass_rate' below 1 needs 'otherwise'",
        ),
        (
            "default:\n  steps:\n    - {error: {status: 500}, answer: a}\n",
            "script.yaml:3: default.steps[0]",
            "a step with 'error' has no reply",
        ),
        ("default:\n  steps:\n    - {stop: bored}\n", "script.yaml:3: default.steps[0].stop", "not 'bored'"),
        ("tasks: [\n", "script.yaml:2", "not valid YAML"),
        ("- look\n", "script.yaml:1", "should be a mapping"),
    ],
)
def test_mistakes_are_told_with_file_line_and_key(text: str, where: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        scripted(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/{where}")
    assert what in str(caught.value)


def test_a_script_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing.yaml: the file does not exist"):
        Scripted("nothing.yaml", project_dir=tmp_path)


def passes(model: Scripted, task: str, trials: int) -> list[bool]:
    async def one(number: int) -> bool:
        trial = key(task, seed=trial_seed(0, task, "arm", number), number=number)
        return (await model.request([], [], {}, trial)).text == "<answer>yes</answer>"

    async def every() -> list[bool]:
        return [await one(number) for number in range(trials)]

    return anyio.run(every)


def test_success_rates_are_what_the_script_says_and_the_same_every_time(tmp_path: Path) -> None:
    body = "{steps: [{answer: 'yes'}], otherwise: [{answer: 'no'}], pass_rate: %s}"
    rates = {"never": 0, "rare": 0.1, "even": 0.5, "often": 0.9, "always": 1}
    text = "seed: 7\ntasks:\n" + "".join(f"  {task}: {body % rate}\n" for task, rate in rates.items())
    drawn = {task: passes(scripted(tmp_path, text), task, 1000) for task in rates}
    again = passes(scripted(tmp_path, text), "even", 1000)
    other = passes(scripted(tmp_path, text.replace("seed: 7", "seed: 8")), "even", 1000)
    assert again == drawn["even"]
    assert other != drawn["even"]
    assert {task: sum(results) for task, results in drawn.items()} == PASSED
    for task, rate in rates.items():
        assert abs(sum(drawn[task]) - 1000 * rate) <= 4 * (1000 * rate * (1 - rate)) ** 0.5


PASSED = {"never": 0, "rare": 106, "even": 486, "often": 910, "always": 1000}
"""Pinned: a change of the draw would change every published demonstration."""
