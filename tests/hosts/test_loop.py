"""The loop in whole trials: what ends one, whose fault that is, and what the model starts with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.projects import DONE, call, calls, faulty, misbehave, play

from mcptrials.events import Failure, FinalAnswer, LimitReached, ModelRequest, PromptGiven
from mcptrials.transcript import Transcript

pytestmark = pytest.mark.anyio

ECHO = calls(call("echo", text="hi"))
SERVER = "{python} -m mcptrials.servers.faulty"


def limits_reached(transcript: Transcript) -> list[tuple[str, float]]:
    return [(each.limit, each.value) for each in transcript.events if isinstance(each, LimitReached)]


def requests(transcript: Transcript) -> int:
    return sum(isinstance(event, ModelRequest) for event in transcript.events)


def prompt(transcript: Transcript) -> PromptGiven:
    (found,) = (event for event in transcript.events if isinstance(event, PromptGiven))
    return found


# --- What the model starts with, and its answer --------------------------------------------------------------------


async def test_the_model_starts_with_the_task_the_frame_and_the_tools_as_listed(tmp_path: Path) -> None:
    played = await play(tmp_path, DONE)
    given = prompt(played.transcript)
    assert given.user.startswith("Do it.\n\nWhen the task is done, write the final answer")
    assert given.system
    assert "between <answer> and </answer>" in given.system
    assert [tool.shown_name for tool in given.tools][:3] == ["echo", "add", "fail"]
    assert given.tools[0].description == "The tool echo."
    assert list(given.tools[0].input_schema) == ["type", "properties", "required"]
    assert played.verdict == ("passed", "none", None)
    assert played.record.agent_harness == "loop-1"


async def test_instructions_of_the_servers_are_shown_only_when_asked_for(tmp_path: Path) -> None:
    for hosts, shown in ((["loop"], False), ([{"host": "loop", "instructions": True}], True)):
        folder = tmp_path / str(shown)
        folder.mkdir()
        given = prompt((await play(folder, DONE, hosts=hosts)).transcript)
        assert given.system
        assert given.system.endswith("\n\nAsk.") == shown


@pytest.mark.parametrize(
    ("step", "answer", "framing", "verdict", "cause"),
    [
        ({"answer": "done"}, "done", "tagged", "passed", None),
        ({"text": "done"}, "done", "untagged", "passed", None),
        (
            {"text": "I think <answer>undone</answer>, no: <answer>done</answer>"},
            "done",
            "hedged",
            "failed",
            "wrong_answer",
        ),
        ({"answer": "undone"}, "undone", "tagged", "failed", "wrong_answer"),
        ({"text": "I am not sure. " * 20}, None, "missing", "failed", "no_answer"),
        ({}, None, "missing", "failed", "no_answer"),
        ({"text": "<answer>do", "stop": "length"}, "do", "tagged", "failed", "wrong_answer"),
    ],
)
async def test_the_final_message_is_the_answer_in_whatever_frame(
    step: Mapping[str, Any], answer: str | None, framing: str, verdict: str, cause: str | None, tmp_path: Path
) -> None:
    played = await play(tmp_path, step)
    (final,) = (event for event in played.transcript.events if isinstance(event, FinalAnswer))
    assert (final.answer, final.framing) == (answer, framing)
    assert played.record.verdict == verdict
    assert (played.record.cause, played.record.blame) == (cause, "agent" if cause else "none")


# --- Stops of the model --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", ["refused", "malformed_call"])
async def test_a_reply_that_is_no_answer_fails_the_agent_by_its_name(stop: str, tmp_path: Path) -> None:
    played = await play(tmp_path, ECHO, {"text": "done", "stop": stop})
    assert played.verdict == ("failed", "agent", stop)
    assert played.record.stop == stop


async def test_a_reply_cut_off_at_its_length_is_graded_by_what_it_says(tmp_path: Path) -> None:
    played = await play(tmp_path, {"answer": "done", "stop": "length"})
    assert (played.verdict, played.record.stop) == (("passed", "none", None), "length")


async def test_a_conversation_that_outgrows_the_model_fails_the_server(tmp_path: Path) -> None:  # C28
    played = await play(tmp_path, ECHO, {"error": {"cause": "context_overflow"}})
    assert played.verdict == ("failed", "server", "context_overflow")
    assert [attempt.error is None for attempt in played.transcript.attempts] == [True, False]


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ({"status": 401}, "auth"),
        ({"status": 402}, "quota"),
        ({"status": 400}, "http"),
        ({"status": 429, "retry_after_s": 100_000}, "rate_limit"),
    ],
)
async def test_a_provider_that_gives_nothing_makes_the_trial_invalid(
    error: Mapping[str, Any], cause: str, tmp_path: Path
) -> None:
    played = await play(tmp_path, ECHO, {"error": error})
    assert played.verdict == ("invalid", "provider", cause)
    assert played.record.passed is None
    assert played.record.sent_calls == 1


# --- Limits --------------------------------------------------------------------------------------------------------


async def test_turns_are_bounded_before_the_next_request(tmp_path: Path) -> None:
    played = await play(tmp_path, *[ECHO] * 5, DONE, limits={"turns": 3})
    assert played.verdict == ("failed", "agent", "limit:turns")
    assert limits_reached(played.transcript) == [("turns", 3)]
    assert (requests(played.transcript), played.record.sent_calls) == (3, 3)


async def test_the_last_turn_may_still_answer(tmp_path: Path) -> None:
    played = await play(tmp_path, ECHO, DONE, limits={"turns": 2})
    assert played.record.verdict == "passed"


async def test_calls_are_bounded_before_any_of_the_turn_is_sent(tmp_path: Path) -> None:
    three = calls(*[call("echo", text="hi")] * 3)
    played = await play(tmp_path, three, three, DONE, limits={"tool_calls": 5})
    assert played.verdict == ("failed", "agent", "limit:tool_calls")
    assert limits_reached(played.transcript) == [("tool_calls", 5)]
    assert (played.record.tool_calls, played.record.sent_calls) == (6, 3)


async def test_tokens_are_bounded_before_the_next_request(tmp_path: Path) -> None:
    spending = ECHO | {"usage": {"input_tokens": 400, "output_tokens": 100}}
    played = await play(tmp_path, *[spending] * 5, DONE, limits={"tokens": 1000})
    assert played.verdict == ("failed", "agent", "limit:tokens")
    assert (requests(played.transcript), played.record.input_tokens, played.record.output_tokens) == (2, 800, 200)


async def test_tokens_that_are_not_reported_are_unknown_and_not_bounded(tmp_path: Path) -> None:
    known = ECHO | {"usage": {"input_tokens": 400, "output_tokens": 100}}
    played = await play(tmp_path, known, ECHO, known, DONE, limits={"tokens": 600})
    assert played.record.verdict == "passed"
    assert (played.record.input_tokens, played.record.output_tokens) == (None, None)


async def test_time_spent_in_a_tool_that_does_not_answer_is_the_servers(tmp_path: Path) -> None:
    waiting = calls(call("wait", seconds=60))
    played = await play(tmp_path, waiting, DONE, limits={"trial_seconds": 1, "call_seconds": 60})
    assert played.verdict == ("failed", "server", "limit:time")
    assert limits_reached(played.transcript) == [("time", 1)]
    assert played.record.duration_ms
    assert 500 < played.record.duration_ms < 5000


async def test_time_spent_in_the_model_is_the_providers(tmp_path: Path) -> None:
    played = await play(tmp_path, ECHO, DONE | {"delay_ms": 60_000}, limits={"trial_seconds": 1})
    assert played.verdict == ("invalid", "provider", "limit:time")


# --- Servers that fail ---------------------------------------------------------------------------------------------


async def test_a_crash_in_a_call_fails_the_server(tmp_path: Path) -> None:
    played = await play(tmp_path, ECHO, misbehave("crash", "3"), DONE)
    assert played.verdict == ("failed", "server", "crash")
    assert played.statuses == ["ok", "transport_lost"]
    assert played.record.server_faults == ("call_transport_lost", "exit_code:3")
    (failure,) = (event for event in played.transcript.events if isinstance(event, Failure))
    assert failure.message == "server 'faulty' went away during a call of 'misbehave'"


async def test_a_shutdown_by_force_is_noted_and_counts_neither_as_time_nor_against_the_answer(tmp_path: Path) -> None:
    program = f"test -e started && exec {SERVER} --fault ignore_eof; touch started; exec {SERVER}"
    played = await play(
        tmp_path, ECHO, DONE, servers={"faulty": {"command": "sh", "args": ["-c", program], "sandbox": "off"}}
    )
    assert played.record.verdict == "passed"
    assert played.record.server_faults == ("shutdown:terminated",)
    assert played.record.shutdown_ms
    assert played.record.shutdown_ms > 1900
    assert played.record.duration_ms
    assert played.record.duration_ms < 1900


async def test_a_call_that_timed_out_is_the_servers_fault_when_the_answer_then_fails(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("hang"), {"answer": "?"}, limits={"call_seconds": 0.3})
    assert played.verdict == ("failed", "server", "call_timeout")
    assert played.shown == ["Error: the tool did not answer within 0.3 s"]


async def test_a_call_that_timed_out_does_not_spoil_a_right_answer(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("hang"), ECHO, DONE, limits={"call_seconds": 0.3})
    assert played.verdict == ("passed", "none", None)
    assert played.statuses == ["timeout", "ok"]
    assert played.record.server_faults == ("call_timeout",)


async def test_an_output_that_cannot_be_read_any_further_fails_the_server(tmp_path: Path) -> None:
    played = await play(tmp_path, misbehave("huge", "70"), DONE)
    assert played.verdict == ("failed", "server", "contract_violation")
    assert played.record.error is None
    assert played.record.stop == "contract_violation"


async def test_a_server_that_starts_once_and_then_no_more_makes_the_trial_invalid(tmp_path: Path) -> None:
    program = f"test -e started && echo 'port is taken' >&2 && exit 4; touch started; exec {SERVER}"
    server = {"command": "sh", "args": ["-c", program], "sandbox": "off"}
    played = await play(tmp_path, DONE, servers={"faulty": server})
    assert played.verdict == ("invalid", "server", "server_start")
    assert played.record.error
    assert "exited with code 4 before the handshake was done" in played.record.error
    assert "port is taken" in played.record.error


async def test_servers_that_are_not_ready_within_the_trials_time_did_not_start(tmp_path: Path) -> None:
    servers = {"faulty": faulty("slow_start=0.6")}
    played = await play(tmp_path, DONE, servers=servers, limits={"trial_seconds": 0.2})
    assert played.verdict == ("invalid", "server", "server_start")


async def test_one_of_two_servers_that_crashes_ends_the_trial(tmp_path: Path) -> None:
    servers = {"left": faulty(), "right": faulty()}
    crash = calls(call("right__misbehave", fault="crash", value="3"))
    played = await play(tmp_path, calls(call("left__echo", text="hi")), crash, DONE, servers=servers)
    assert played.verdict == ("failed", "server", "crash")
    exits = {exit_.server: (exit_.how, exit_.exit_code) for exit_ in played.transcript.exits}
    assert exits == {"left": ("closed", 0), "right": ("crashed", 3)}


async def test_what_a_server_leaves_running_is_noted(tmp_path: Path) -> None:
    played = await play(tmp_path, ECHO, DONE, servers={"faulty": faulty("grandchild", "stray")})
    assert played.record.server_faults == ("left_processes",)
    (exit_,) = played.transcript.exits
    assert exit_.left_processes == 2


async def test_a_secret_that_a_tool_lets_slip_stops_the_trial_and_stands_in_no_file(tmp_path: Path) -> None:
    servers = {"faulty": faulty(env={"TRACKER_TOKEN": "hunter2-and-more"})}
    played = await play(tmp_path, calls(call("environment")), DONE, servers=servers)
    assert played.verdict == ("invalid", "harness", "secret")
    assert requests(played.transcript) == 2
    assert len(played.transcript.attempts) == 1
    written = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert len(written) >= 4
    assert not any(b"hunter2" in content for content in written)
