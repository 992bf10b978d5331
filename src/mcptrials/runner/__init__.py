"""Makes a run: checks everything first, then runs what is owed, then leaves a complete folder."""

from mcptrials.runner.options import Listener, RunOptions, Silent
from mcptrials.runner.runner import RunResult, run, run_async

__all__ = ["Listener", "RunOptions", "RunResult", "Silent", "run", "run_async"]
