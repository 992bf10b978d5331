"""Audit: everything that can be said of a project before a run, as lines with a level, a cause and a fix."""

from mcptrials.audit.checking import check_project
from mcptrials.audit.line import Audit, Line

__all__ = ["Audit", "Line", "check_project"]
