"""Report: data computed from runs; rendered elsewhere."""

from mcptrials.report.summary import summarise

__all__ = ["summarise"]
