"""Warnings that an arm's model was not the one asked for, or not asked as the project file says."""

from pathlib import Path
from typing import Any

import pytest
from tests.hand_made import manifest, record, run_of, task

from mcptrials.report import summarise
from mcptrials.report.asked import same_model
from mcptrials.trial import Arm

TASKS = [task(name) for name in "abcdef"]


def warnings(folder: Path, model: str, *answered: str | None, **params: Any) -> list[str]:
    """Those of a run of one arm, whose trials were answered by these models."""
    arm = Arm(variant="base", host="loop", model=model)
    records = [
        record(TASKS[index].id, 1, arm=arm, effective_model=name, params=params) for index, name in enumerate(answered)
    ]
    found = summarise(run_of(folder / "run", manifest(TASKS, [arm]), records))["warnings"]
    return [line for line in found if line.startswith("base · loop")]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4", "gpt-4-0613"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-opus-4-0", "claude-opus-4-20250514"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
        ("gemini-2.0-flash", "models/gemini-2.0-flash-001"),
        ("command-r", "command-r-08-2024"),
        ("qwen3", "qwen3:latest"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("meta/llama-3:free", "meta/llama-3"),
        ("foo-q4", "/models/foo-q4.gguf"),
        ("name", "name-2026-01-01"),
    ],
)
def test_a_name_without_a_version_may_be_answered_by_any_version_of_it(asked: str, answered: str) -> None:
    assert same_model(asked, answered)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-4", "gpt-4-turbo"),
        ("gpt-4", "gpt-4-turbo-2024-04-09"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("gpt-5", "gpt-5.1"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
        ("claude-opus-4", "claude-opus-4-1-20250805"),
        ("qwen3:8b", "qwen3:4b"),
        ("llama3", "gpt-3.5-turbo"),
        ("name", ""),
    ],
)
def test_another_model_or_version_is_another(asked: str, answered: str) -> None:
    assert not same_model(asked, answered)


@pytest.mark.parametrize("adapter", ["openai", "openai-responses", "anthropic", "mine"])
def test_an_answer_by_another_model_is_warned_of_once_per_arm(adapter: str, tmp_path: Path) -> None:
    found = warnings(tmp_path, f"{adapter}:big", "small", "big", "small")
    assert found == [
        f"base · loop · {adapter}:big: asked for 'big', answered by 'small', 'big': the rates are of another model"
    ]


def test_a_model_that_changes_within_a_run_is_warned_of_even_among_its_own_versions(tmp_path: Path) -> None:
    [line] = warnings(tmp_path, "openai:big", "big-2026-01-01", "big-2026-02-01")
    assert line.endswith("answered by 'big-2026-01-01', 'big-2026-02-01': the model changed within the run")


def test_a_change_within_one_trial_is_seen_too(tmp_path: Path) -> None:
    assert len(warnings(tmp_path, "openai:big", "big", effective_models=["big-0301", "big"])) == 1


def test_many_names_are_cut_short(tmp_path: Path) -> None:
    [line] = warnings(tmp_path, "openai:big", *[f"big-{number}0000000" for number in range(1, 6)])
    assert "'big-30000000' and 2 more" in line


@pytest.mark.parametrize(
    ("model", "answered"),
    [
        ("openai:big", ["big-2026-01-01", "big-2026-01-01"]),
        ("openai:big", [None, None]),
        ("openai:big", []),
        ("local:small?ctx=9", ["small-q4_k_m"]),
        ("scripted:s.yaml", ["scripted"]),
        ("./mine.py:Model", ["whatever"]),
        ("package.module:Model", ["whatever"]),
    ],
)
def test_nothing_is_said_where_all_is_well_or_unknown(model: str, answered: list[str | None], tmp_path: Path) -> None:
    assert warnings(tmp_path, model, *answered) == []


def test_what_was_not_sent_is_warned_of(tmp_path: Path) -> None:
    found = warnings(tmp_path, "openai:big", "big", "big", dropped=["temperature", "seed"])
    assert found == ["base · loop · openai:big: the model does not take temperature, seed, which was not sent"]


def test_names_that_are_none_are_passed_over(tmp_path: Path) -> None:
    odd = {"effective_models": ["gpt-4o", [1], None, {}], "dropped": 5}
    assert warnings(tmp_path, "openai:gpt-4o", "gpt-4o", **odd) == []
