"""One trial from a clean environment to a graded record."""

from mcptrials.rollout.bench import ArmBench, Bench, Promised, TaskBench
from mcptrials.rollout.clock import TrialClock
from mcptrials.rollout.rollout import run_trial

__all__ = ["ArmBench", "Bench", "Promised", "TaskBench", "TrialClock", "run_trial"]
