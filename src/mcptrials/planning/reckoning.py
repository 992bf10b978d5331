"""Reckoning: all that can be said of a planned comparison, as the document of `mcptrials power`."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mcptrials.counting import counted
from mcptrials.planning.ground import Ground
from mcptrials.record import SCHEMA_VERSION
from mcptrials.stats import best_allocation
from mcptrials.stats.chance import (
    MOST_SIMULATED,
    MOST_TASKS,
    MOST_TRIALS,
    SIMULATED_RUNS,
    Chances,
    Experiment,
    repeated,
)
from mcptrials.stats.paired import ALPHA, FEWEST_UNITS

EFFECTS = (0.05, 0.1, 0.2, 0.3)
"""Differences that are reckoned with where none is asked for."""
MIN_TASKS = 5


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked; None is what stands in the project or the run."""

    tasks: int | None = None
    trials: int | None = None
    effect: float | None = None
    """A true difference, as a share."""
    power: float = 0.8
    cost_task: float | None = None
    cost_trial: float | None = None
    """Of one trial of one arm, in the unit of `cost_task`."""


def reckon(ground: Ground, wish: Wish, tell: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The document: what is detectable, what differences need, what it uses, and on which assumptions.

    Args:
        tell: called before each simulation.
    """
    sizes = ground.sizes if wish.tasks is None else repeated(ground.sizes, wish.tasks)
    plan = Experiment(sizes, ground.noise.design(wish.trials or ground.trials))
    chances = Chances(ground.seed, tell)
    effects = EFFECTS if wish.effect is None else (wish.effect,)
    return {
        "schema_version": SCHEMA_VERSION,
        "source": dict(ground.source),
        "design": _design(plan),
        "never": None if plan.can_decide else _never(plan),
        "detectable": _detectable(plan, wish.power, chances),
        "effects": [_effect(plan, effect, wish.power, chances) for effect in effects],
        "allocation": _allocation(plan, wish, chances),
        "use": ground.use.of(plan.n_trials),
        "assumptions": _assumptions(ground, plan, wish),
        "warnings": [*ground.warnings, *_warnings(plan)],
    }


def _design(plan: Experiment) -> dict[str, Any]:
    return {
        "arms": 2,
        "n_tasks": plan.n_tasks,
        "n_groups": len(plan.sizes),
        "trials_per_task": plan.trials,
        "n_trials": plan.n_trials,
    }


def _never(plan: Experiment) -> str:
    grouped = len(plan.sizes) < plan.n_tasks
    units = counted(len(plan.sizes), "group") if grouped else counted(plan.n_tasks, "task")
    missing = FEWEST_UNITS - len(plan.sizes)
    more = counted(missing, "more group" if grouped else "more task")
    return (
        f"{units} can never decide, whatever the trials say: with fewer than {FEWEST_UNITS} that differ the exact test "
        f"cannot reach {100 * ALPHA:.0f} %; add at least {more}"
    )


def _detectable(plan: Experiment, power: float, chances: Chances) -> dict[str, Any]:
    difference = chances.detectable(plan, power)
    if difference is None:
        return {"difference": None, "power": None, "se": None, "method": None}
    return {"difference": difference, **asdict(chances.of(plan, difference))}


def _effect(plan: Experiment, difference: float, power: float, chances: Chances) -> dict[str, Any]:
    """What one true difference needs."""
    tasks = chances.tasks_needed(plan, difference, power)
    return {
        "difference": difference,
        **asdict(chances.of(plan, difference)),
        "tasks_needed": tasks,
        "trials_needed": chances.trials_needed(plan, difference, power),
    }


def _allocation(plan: Experiment, wish: Wish, chances: Chances) -> dict[str, Any] | None:
    """How the same money, or the least money for the effect that is asked for, is spent best; None without prices."""
    if wish.cost_task is None or wish.cost_trial is None:
        return None

    def cost(of: Experiment) -> float:
        return of.n_tasks * (wish.cost_task or 0) + of.n_trials * (wish.cost_trial or 0)

    # One task may take a part of the budget only: the test needs some.
    budget = max(cost(plan), cost(plan.resized(FEWEST_UNITS).tried(1)))
    best = best_allocation(
        plan.design.omega2, sum(plan.design.sigma2), wish.cost_task, 2 * wish.cost_trial, budget / FEWEST_UNITS
    )
    other = plan.tried(min(best.trials, MOST_TRIALS))
    other = other.resized(min(max(1, int(budget / cost(other.resized(1)))), MOST_TASKS))
    optimum = None if best.optimum == math.inf else best.optimum
    same = {
        "n_tasks": other.n_tasks,
        "cost": cost(other),
        "detectable": chances.detectable(other, wish.power),
    }
    found = {"cost": cost(plan), "trials_per_task": other.trials, "optimum": optimum}
    return {**found, "same_cost": same, "for_effect": _cheapest(other, wish, chances, cost)}


def _cheapest(
    plan: Experiment, wish: Wish, chances: Chances, cost: Callable[[Experiment], float]
) -> dict[str, Any] | None:
    if wish.effect is None:
        return None
    tasks = chances.tasks_needed(plan, wish.effect, wish.power)
    return None if tasks is None else {"n_tasks": tasks, "cost": cost(plan.resized(tasks))}


def _assumptions(ground: Ground, plan: Experiment, wish: Wish) -> dict[str, Any]:
    return {
        **asdict(ground.noise),
        "alpha": ALPHA,
        "power": wish.power,
        "test": "exact sign flips" + (" of groups" if ground.grouped else ""),
        "scope": "tasks-like-these",
        "seed": ground.seed,
        "runs": SIMULATED_RUNS,
        "lines": list(_assumption_lines(ground, plan, wish)),
    }


def _assumption_lines(ground: Ground, plan: Experiment, wish: Wish) -> Iterator[str]:
    noise, source = ground.noise, ground.source["name"]
    where = {"measured": f"measured in {source}", "assumed": "assumed"}
    yield f"variance of true differences between tasks {noise.omega2:.3f} ({where[noise.omega2_from]})"
    yield f"variance of a trial within its task {noise.sigma2:.3f} ({where[noise.sigma2_from]})"
    if noise.sigma2_from == "assumed" and ground.source["kind"] == "run":
        yield "the run cannot tell: it takes 5 tasks with two trials each, of which some pass and some fail"
    if ground.grouped:
        yield "tasks of a group share their difference, the worst case"
    if ground.unequal and wish.trials is None:
        yield f"tasks have unequal numbers of trials: reckoned with {plan.trials}, their median"
    if wish.tasks is not None:
        yield "other tasks are like those at hand"
    if plan.trials > MOST_TRIALS:
        yield f"more than {MOST_TRIALS} trials a task are simulated as {MOST_TRIALS}, which have next to no noise left"
    yield f"without +-, or beyond {MOST_SIMULATED} independent tasks: by the formula of the t test, as good then"


def _warnings(plan: Experiment) -> Iterator[str]:
    if plan.n_tasks < MIN_TASKS:
        yield f"too few tasks for inference: {plan.n_tasks}; at least {MIN_TASKS} are needed, 20 are a start"
