"""Ended and make_record: what a trial came to, as one record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcptrials.encoding import canonical_hash
from mcptrials.events import PromptGiven, ServerStarted
from mcptrials.record import GradeRecord, Record
from mcptrials.rollout.bench import Bench, Promised
from mcptrials.rollout.log import TrialLog
from mcptrials.transcript import Transcript
from mcptrials.trial import Decision, Grade, Outcome, Trial, partial_credit


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial ended. Without an outcome it did not get to its end."""

    outcome: Outcome | None
    grades: Sequence[Grade]
    decision: Decision
    error: str | None = None


def make_record(trial: Trial, bench: Bench, log: TrialLog, ended: Ended) -> Record:
    """The record of a trial, whose counts and times are views of its transcript."""
    arm = bench.arms[trial.arm]
    values: dict[str, Any] = (
        _identity(trial, bench)
        | _verdict(ended)
        | _calls(log.transcript, several=len(arm.servers) > 1)
        | {"server_faults": _faults(log.transcript, arm.promised)}
        | _usage(log.transcript)
        | _times(log)
        | _servers(log.transcript.servers)
    )
    return Record(
        **values,
        agent_harness=arm.host.version,
        transcript=log.path,
        reply_hash=_reply_hash(log.transcript),
        params=_params(trial, bench, log.transcript),
        started_at=log.started_at,
        trial_dir=log.trial_dir,
        versions=dict(bench.versions),
    )


def _identity(trial: Trial, bench: Bench) -> dict[str, Any]:
    task, arm = bench.tasks[trial.task_id], bench.arms[trial.arm].arm
    return {
        "run_id": bench.run_id,
        "task_id": trial.task_id,
        "trial": trial.number,
        "attempt": trial.attempt,
        "block": trial.block,
        "seed": trial.seed,
        "arm": arm.id,
        "arm_label": arm.label,
        "variant": arm.variant,
        "model": arm.model,
        "split": bench.split,
        "tags": task.task.tags,
        "group": task.task.group,
        "purpose": task.task.purpose,
        "suite_hash": bench.suite_hash,
        "task_hash": task.task.hash,
        "environment_hash": task.environment_hash,
    }


def _verdict(ended: Ended) -> dict[str, Any]:
    decision, outcome = ended.decision, ended.outcome
    return {
        "passed": decision.passed,
        "verdict": decision.verdict,
        "blame": decision.blame,
        "cause": decision.cause,
        "error": ended.error,
        "answer": outcome.answer if outcome else None,
        "framing": outcome.framing if outcome else None,
        "partial": partial_credit(ended.grades),
        "state": outcome.state if outcome else {},
        "stop": outcome.stop if outcome else None,
        "graders": tuple(_grade_record(grade) for grade in ended.grades),
    }


def _grade_record(grade: Grade) -> GradeRecord:
    return GradeRecord(passed=grade.passed, **grade.model_dump())


def _calls(transcript: Transcript, *, several: bool) -> dict[str, Any]:
    made = transcript.calls
    answers = [call.answer for call in made if call.answer]
    names = [
        f"{each.call.server}/{each.call.tool}" if several and each.call.server else each.call.tool for each in made
    ]
    return {
        "tool_calls": sum(len(reply.calls) for reply in transcript.replies),
        "sent_calls": sum(call.sent for call in made),
        "tool_errors": sum(answer.status == "tool_error" for answer in answers),
        "protocol_errors": sum(answer.status == "protocol_error" for answer in answers),
        "unknown_tools": sum(each.call.unknown_tool for each in made),
        "unknown_at": tuple(at for at, each in enumerate(made) if each.call.unknown_tool),
        "argument_errors": sum(each.call.argument_error is not None for each in made),
        "tool_sequence": tuple(names),
        "contract_violations": len(transcript.violations),
    }


def _faults(transcript: Transcript, promised: Mapping[str, Promised]) -> tuple[str, ...]:
    """What went wrong with a server on the way, each kind once, in order."""
    faults = [change for met in transcript.servers for change in _changes(met, promised.get(met.server))]
    faults += [violation.what for violation in transcript.violations]
    faults += [f"call_{made.answer.status}" for made in transcript.calls if made.answer and made.answer.status in _BAD]
    for ended in transcript.exits:
        crash = "server_ended" if ended.exit_code is None else f"exit_code:{ended.exit_code}"
        faults += [crash] if ended.how == "crashed" else []
        faults += [f"limit:{ended.limit}"] if ended.limit else []
        faults += [f"shutdown:{ended.how}"] if ended.how in ("terminated", "killed") else []
        faults += ["left_processes"] if ended.left_processes else []
    return tuple(dict.fromkeys(faults))


def _changes(met: ServerStarted, promised: Promised | None) -> list[str]:
    if promised is None:
        return []
    tools, version = met.tools_hash != promised.tools_hash, met.version != promised.version
    return ["tools_changed"] * tools + ["version_changed"] * version


_BAD = ("timeout", "transport_lost")


def _usage(transcript: Transcript) -> dict[str, Any]:
    usage = transcript.usage
    models = [reply.model for reply in transcript.replies if reply.model]
    return usage.model_dump() | {"effective_model": models[-1] if models else None}


def _times(log: TrialLog) -> dict[str, Any]:
    transcript = log.transcript
    prompts = [event.at_ms for event in transcript.events if isinstance(event, PromptGiven)]
    duration = None
    if prompts and log.host_ended_ms is not None:
        duration = round(log.host_ended_ms - prompts[0] - log.waited_ms_at_end, 3)
    answers = [made.answer.ms for made in transcript.calls if made.answer]
    return {
        "duration_ms": duration,
        "model_ms": _sum(attempt.ms for attempt in transcript.attempts),
        "tool_ms": _sum(answers),
        "wait_ms": round(log.clock.waited_s * 1000, 3),
        "startup_ms": _sum(server.ms for server in transcript.servers),
        "shutdown_ms": _sum(ended.ms for ended in transcript.exits),
    }


def _sum(times_ms: Iterable[float]) -> float:
    return round(sum(times_ms), 3)


def _servers(started: Sequence[ServerStarted]) -> dict[str, Any]:
    """One server: its own values; several: mappings by server; none: null."""
    if not started:
        return {"server_name": None, "server_version": None, "protocol_version": None, "tools_hash": None}
    if len(started) == 1:
        only = started[0]
        return {
            "server_name": only.name,
            "server_version": only.version,
            "protocol_version": only.protocol_version,
            "tools_hash": only.tools_hash,
        }
    return {
        "server_name": {each.server: each.name for each in started},
        "server_version": {each.server: each.version for each in started},
        "protocol_version": {each.server: each.protocol_version for each in started},
        "tools_hash": canonical_hash({each.server: each.tools_hash for each in started}),
    }


def _reply_hash(transcript: Transcript) -> str | None:
    """Equal for trials whose replies are copies of each other, whatever their ids and times."""
    if not transcript.replies:
        return None
    replies = [[r.text, r.reasoning, [[c.name, c.raw_arguments] for c in r.calls]] for r in transcript.replies]
    return canonical_hash(replies)[:16]


def _params(trial: Trial, bench: Bench, transcript: Transcript) -> dict[str, Any]:
    """The inputs of the trial that are no identity: settings, limits, and hashes of what the model was given."""
    arm, task = bench.arms[trial.arm], bench.tasks[trial.task_id]
    given = next((event for event in transcript.events if isinstance(event, PromptGiven)), None)
    return {
        "model_settings": arm.arm.model_settings,
        "host_settings": arm.arm.host_settings,
        "limits": task.limits.model_dump(),
        "prompt_hash": canonical_hash([given.system, given.user])[:16] if given else None,
        "presentation_hash": canonical_hash([tool.model_dump() for tool in given.tools])[:16] if given else None,
        **_sent(transcript),
    }


def _sent(transcript: Transcript) -> dict[str, Any]:
    """What the model was really asked with, at the last request, and which models answered."""
    replies = transcript.replies
    last = replies[-1] if replies else None
    return {
        "sent": last.params or None if last else None,
        "dropped": list(last.dropped) if last else None,
        "native_images": last.native_images if last else None,
        "effective_models": list(dict.fromkeys(reply.model for reply in replies if reply.model)),
    }
