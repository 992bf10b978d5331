"""Run folders: written so that nothing recorded is ever lost, and read back."""

from mcptrials.store.finding import find_run
from mcptrials.store.ledger import log_look
from mcptrials.store.run import Run
from mcptrials.store.writer import RunWriter, TrialFiles

__all__ = ["Run", "RunWriter", "TrialFiles", "find_run", "log_look"]
