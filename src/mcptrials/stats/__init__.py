"""Statistics of repeated trials: pure functions of plain floats, each with its formula, source and assumptions."""

from mcptrials.stats.interval import (
    Interval,
    all_pass_bound,
    effective_trials,
    shrunk_trials,
    wilson_interval,
    wilson_neff,
    wilson_shrunk,
)
from mcptrials.stats.pass_k import largest_k, pass_at_k, pass_hat_k
from mcptrials.stats.quantile import t_quantile
from mcptrials.stats.rate import Estimate, Method, Scope, estimate, estimate_pass_at, estimate_pass_hat
from mcptrials.stats.task_mean import TaskMean, average_tasks
from mcptrials.stats.variance import VarianceComponents, variance_components

__all__ = (
    "Estimate",
    "Interval",
    "Method",
    "Scope",
    "TaskMean",
    "VarianceComponents",
    "all_pass_bound",
    "average_tasks",
    "effective_trials",
    "estimate",
    "estimate_pass_at",
    "estimate_pass_hat",
    "largest_k",
    "pass_at_k",
    "pass_hat_k",
    "shrunk_trials",
    "t_quantile",
    "variance_components",
    "wilson_interval",
    "wilson_neff",
    "wilson_shrunk",
)
