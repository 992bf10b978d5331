"""One trial from a clean environment to a graded record."""

from mcptrials.rollout.bench import ArmBench, Bench, Promised, TaskBench
from mcptrials.rollout.clock import TrialClock
from mcptrials.rollout.log import TrialLog
from mcptrials.rollout.recording import Ended
from mcptrials.rollout.rollout import attempt, run_trial

__all__ = [
    "ArmBench",
    "Bench",
    "Ended",
    "Promised",
    "TaskBench",
    "TrialClock",
    "TrialLog",
    "attempt",
    "run_trial",
]
