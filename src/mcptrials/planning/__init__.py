"""What an experiment can find, before it is paid for."""

from mcptrials.planning.ground import Ground, ground_of_project, ground_of_run
from mcptrials.planning.reckoning import Wish, reckon

__all__ = ["Ground", "Wish", "ground_of_project", "ground_of_run", "reckon"]
