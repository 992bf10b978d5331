"""Statistics of repeated trials: pure functions of plain floats, each with its formula, source and assumptions."""

import importlib
from typing import TYPE_CHECKING, Any

from mcptrials.stats.interval import (
    Interval,
    all_pass_bound,
    effective_trials,
    shrunk_trials,
    wilson_interval,
    wilson_neff,
    wilson_shrunk,
)
from mcptrials.stats.multiplicity import benjamini_hochberg, holm
from mcptrials.stats.pass_k import largest_k, pass_at_k, pass_hat_k
from mcptrials.stats.power import (
    Allocation,
    PairedDesign,
    best_allocation,
    design_of,
    minimal_detectable_effect,
    power_of,
    required_tasks,
)
from mcptrials.stats.quantile import t_quantile
from mcptrials.stats.rate import Estimate, Method, Scope, estimate, estimate_pass_at, estimate_pass_hat
from mcptrials.stats.task_mean import TaskMean, average_tasks
from mcptrials.stats.variance import VarianceComponents, variance_components

if TYPE_CHECKING:
    from mcptrials.stats.copies import Copies, copies_exceed_chance, count_copies
    from mcptrials.stats.paired import PairedComparison, Verdict, compare_paired
    from mcptrials.stats.sign_flip import sign_flip_interval, sign_flip_p
    from mcptrials.stats.simulation import simulated_power

__all__ = (
    "Allocation",
    "Copies",
    "Estimate",
    "Interval",
    "Method",
    "PairedComparison",
    "PairedDesign",
    "Scope",
    "TaskMean",
    "VarianceComponents",
    "Verdict",
    "all_pass_bound",
    "average_tasks",
    "benjamini_hochberg",
    "best_allocation",
    "compare_paired",
    "copies_exceed_chance",
    "count_copies",
    "design_of",
    "effective_trials",
    "estimate",
    "estimate_pass_at",
    "estimate_pass_hat",
    "holm",
    "largest_k",
    "minimal_detectable_effect",
    "pass_at_k",
    "pass_hat_k",
    "power_of",
    "required_tasks",
    "shrunk_trials",
    "sign_flip_interval",
    "sign_flip_p",
    "simulated_power",
    "t_quantile",
    "variance_components",
    "wilson_interval",
    "wilson_neff",
    "wilson_shrunk",
)

# Of modules that compute with arrays: loaded when first asked for, since most commands only show rates.
_WITH_NUMPY = {
    "Copies": "copies",
    "PairedComparison": "paired",
    "Verdict": "paired",
    "compare_paired": "paired",
    "copies_exceed_chance": "copies",
    "count_copies": "copies",
    "sign_flip_interval": "sign_flip",
    "sign_flip_p": "sign_flip",
    "simulated_power": "simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_NUMPY:
        raise AttributeError(f"module 'mcptrials.stats' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mcptrials.stats.{_WITH_NUMPY[name]}"), name)
