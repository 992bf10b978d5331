"""What a host makes of results - text or structured content, images, a bound - is a policy that is recorded."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, Played, call, calls, faulty, misbehave, play

from mcptrials.errors import UsageError
from mcptrials.events import PresentationChange
from mcptrials.hosts.long_result import shortened
from mcptrials.presentation import ResultPolicy, present_result
from mcptrials.protocols import Place

pytestmark = pytest.mark.anyio

BOTH = {"content": [{"type": "text", "text": "42 issues"}], "structuredContent": {"n": 42}}
TWICE = {"content": [{"type": "text", "text": '{ "n": 42 }'}], "structuredContent": {"n": 42}}


@pytest.mark.parametrize(
    ("content", "result", "text", "policies"),
    [
        ("text", BOTH, "42 issues", []),
        ("structured", BOTH, '{"n":42}', ["structured_content"]),
        ("both", BOTH, '42 issues\n{"n":42}', ["structured_content_too"]),
        ("both", TWICE, '{ "n": 42 }', []),
        ("structured", {"content": [{"type": "text", "text": "a"}]}, "a", []),
        ("both", {"content": [], "structuredContent": [1]}, "[1]", ["structured_content"]),
        ("structured", {"content": [], "structuredContent": 0}, "0", ["structured_content"]),
        ("structured", {**BOTH, "structuredContent": None}, "42 issues", []),
        ("both", {**BOTH, "isError": True}, 'Error: 42 issues\n{"n":42}', ["structured_content_too", "mark_error"]),
        (
            "both",
            {**BOTH, "structuredContent": {"a": "\ud800"}},
            '42 issues\n{"a":"\\ud800"}',
            ["structured_content_too"],
        ),
    ],
)  # C32
def test_a_policy_says_which_of_text_and_structured_content_is_read(
    content: Any, result: Any, text: str, policies: list[str]
) -> None:
    shown, changes = present_result(result, ResultPolicy(content=content))
    assert (shown, [each.policy for each in changes]) == (text, policies)


def host(**settings: Any) -> dict[str, Any]:
    return {"hosts": [{"host": "loop", **settings}]}


def rules(played: Played, policy: str) -> list[str | None]:
    events = (event for event in played.transcript.events if isinstance(event, PresentationChange))
    return [each.rule for each in events if each.policy == policy]


async def test_the_policy_belongs_to_the_arm_and_stands_in_the_record(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("structured_only"), DONE, **host(results="both", images="placeholder"))
    assert played.record.params["host_settings"] == {"results": "both", "images": "placeholder"}
    other = tmp_path / "other"
    other.mkdir()
    assert (await play(other, DONE)).record.arm != played.record.arm


def saved(played: Played) -> list[str]:
    """The texts that stand in the trial's directory."""
    assert played.record.trial_dir
    return [file.read_text("utf-8") for file in Path(played.record.trial_dir).rglob("*.txt")]


LONG = "é" * 50_000


async def test_a_result_over_the_hosts_bound_is_cut_refused_or_saved(tmp_path: Path) -> None:  # C27
    shown: dict[str, str] = {}
    for how in ("truncate", "error", "file"):
        folder = tmp_path / how
        folder.mkdir()
        settings = host(max_result_tokens=1000, long_results=how)
        played = await play(folder, calls(call("echo", text=LONG)), DONE, keep_trial_dirs=True, **settings)
        assert played.verdict == ("passed", "none", None)
        (made,) = played.transcript.calls
        assert made.answer
        assert (made.answer.status, made.answer.result["content"][0]["text"]) == ("ok", LONG)
        assert rules(played, "long_result") == [how]
        shown[how] = made.answer.shown
        assert saved(played) == ([LONG] if how == "file" else [])
    assert shown["truncate"] == "é" * 2000 + "[...] (100000 bytes)"
    assert shown["error"] == "Error: the result has about 25,000 tokens, more than the 1,000 that are taken"
    assert "was saved to /" in shown["file"]
    assert shown["file"].endswith("é" * 1000 + "[...] (100000 bytes)")


async def test_a_result_within_the_bound_is_shown_whole(tmp_path: Path) -> None:
    played = await play(tmp_path, calls(call("echo", text="x" * 4000)), DONE, **host(max_result_tokens=1000))
    assert played.shown == ["x" * 4000]
    assert rules(played, "long_result") == []


def test_a_link_that_a_server_put_in_the_way_is_not_followed(tmp_path: Path) -> None:
    victim, own = tmp_path / "victim", tmp_path / "own"
    victim.mkdir()
    own.mkdir()
    (own / "tool-results").symlink_to(victim)
    place = Place(own, tmp_path, lambda _: None)  # type: ignore[arg-type,return-value]
    text, (change,) = shortened("x" * 9000, 1, "file", place, "1")
    assert "could not be saved" in text
    assert (change.rule, list(victim.iterdir())) == ("file", [])
    replaced = Place(own, tmp_path, place.wire, inode=(0, 0))
    assert "the trial's directory is another" in shortened("x" * 9000, 1, "file", replaced, "2")[0]


@pytest.mark.parametrize(
    "settings", [{"results": "json"}, {"images": "none"}, {"max_result_tokens": 0}, {"long_results": "drop"}]
)
async def test_a_setting_that_there_is_not_is_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await play(tmp_path, DONE, **host(**settings))
    assert next(iter(settings)) in str(caught.value)
    assert not (tmp_path / "runs").exists()


async def test_no_kind_of_content_is_lost_and_binary_is_never_text(tmp_path: Path) -> None:  # C30
    played = await play(tmp_path, misbehave("many_blocks"), DONE, servers={"faulty": faulty()})
    (made,) = played.transcript.calls
    assert made.answer
    kinds = [block.get("type") for block in made.answer.result["content"]]
    assert kinds == ["image", "resource", "resource", "resource_link", "video", "audio", None]
    assert played.shown[0].split("\n") == [
        "[image: image/png, 6 bytes]",
        "inside",
        "[resource: file:///b, 6 bytes]",
        "[resource_link: text/plain, file:///c, c]",
        "[video: video/mp4, 6 bytes]",
        "[audio: audio/wav, 6 bytes]",
        "[None: 6 bytes]",
    ]
    assert "aGVsbG8" not in played.shown[0]
    assert "aGVsbG8" in json.dumps(made.answer.result)
