"""What a paired design can detect, and how many tasks it needs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance

from mcptrials.stats.quantile import t_power, t_quantile
from mcptrials.stats.rate import checked_trials

MOST_TASKS = MOST_TRIALS = 10**9


@dataclass(frozen=True, slots=True)
class PairedDesign:
    """Two arms on the same tasks. The defaults are assumptions for when nothing is known: say so beside the numbers."""

    omega2: float = 0.1
    """Variance between tasks of the true difference."""
    sigma2: tuple[float, float] = (0.15, 0.15)
    """Variance of a trial within its task, of each arm."""
    trials: tuple[int, int] = (5, 5)
    """Trials per task, of each arm."""

    def __post_init__(self) -> None:
        if not (0 <= self.omega2 < math.inf and all(0 <= each < math.inf for each in self.sigma2)):
            raise ValueError(f"omega2={self.omega2!r}, sigma2={self.sigma2!r}: expected finite variances, at least 0")
        if min(self.trials) < 1:
            raise ValueError(f"trials={self.trials!r}: expected at least 1 of each arm")

    @property
    def task_variance(self) -> float:
        """Variance of one task's measured difference: omega2 + sigma2_a/K_a + sigma2_b/K_b."""
        return self.omega2 + sum(noise / k for noise, k in zip(self.sigma2, self.trials, strict=True))


def design_of(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]) -> PairedDesign | None:
    """The design of an earlier comparison, with its variances estimated; None when the trials cannot tell.

    omega2 = Var(d_i) - mean_i(s_ai^2/K_ai + s_bi^2/K_bi), clipped at 0; sigma2 = mean_i s_i^2 of each arm; trials = the
    median of K_i. Needs two common tasks with two trials in each arm.
    Source: as `variance_components`, on differences. Unit: the score's, squared.

    Raises:
        ValueError: a score outside [0, 1].
    """
    a, b = checked_trials(a, "a"), checked_trials(b, "b")
    pairs = [(a[task_id], b[task_id]) for task_id in a if len(a[task_id]) > 1 and len(b.get(task_id, ())) > 1]
    if len(pairs) < 2:  # noqa: PLR2004 - a variance needs two
        return None
    noise = [(variance(x), variance(y)) for x, y in pairs]
    of_means = fmean(s_a / len(x) + s_b / len(y) for (s_a, s_b), (x, y) in zip(noise, pairs, strict=True))
    return PairedDesign(
        omega2=max(0.0, variance([fmean(y) - fmean(x) for x, y in pairs]) - of_means),
        sigma2=(fmean(s_a for s_a, _ in noise), fmean(s_b for _, s_b in noise)),
        trials=(_median([len(x) for x, _ in pairs]), _median([len(y) for _, y in pairs])),
    )


def power_of(design: PairedDesign, n_tasks: float, difference: float, alpha: float = 0.05) -> float:
    """The chance that the two-sided t test of `n_tasks` differences finds a true `difference`.

    By the noncentral t with n - 1 degrees of freedom and noncentrality difference sqrt(n / task_variance). The exact
    test that decides has up to 11 points less with 10 tasks, 5 with 20: `simulated_power` runs that one.
    Source: Cohen 1988, chapter 2. Units: scores, a probability. Assumes roughly normal differences.

    Raises:
        ValueError: less than 2 tasks, or `alpha` outside (0, 1).
    """
    _check(0.5, alpha)
    if not n_tasks > 1:
        raise ValueError(f"n_tasks={n_tasks!r}: expected at least 2")
    if design.task_variance == 0:
        return 1.0 if difference else alpha
    shift = abs(difference) * math.sqrt(n_tasks / design.task_variance)
    return t_power(shift, n_tasks - 1, t_quantile(1 - alpha / 2, n_tasks - 1))


def required_tasks(
    design: PairedDesign, difference: float, power: float = 0.8, alpha: float = 0.05, normal: bool = False
) -> int:
    """Tasks needed to find a true `difference` with probability `power` by a two-sided test at `alpha`.

    The smallest n >= 2 whose `power_of` reaches `power`; with `normal`, (z_{alpha/2} + z_power)^2 task_variance /
    difference^2, rounded up, which understates small n.
    Source: Miller 2024, arXiv:2411.00640, eq. 9; Cohen 1988. Units: scores; tasks. Assumes what `power_of` does.

    Raises:
        ValueError: a `difference` of 0 or beyond 1, a probability outside (0, 1), or no design of a size that exists.
    """
    _check(power, alpha)
    if not 0 < abs(difference) <= 1:
        raise ValueError(f"difference={difference!r}: expected a number in [-1, 1] other than 0")
    by_z = _z(power, alpha) ** 2 * design.task_variance / difference**2
    if by_z > MOST_TASKS:
        raise ValueError(f"difference={difference!r} needs {by_z:.2g} tasks: too small to be found")
    if normal:
        return max(1, math.ceil(by_z))
    n = max(2, math.floor(by_z))
    while power_of(design, n, difference, alpha) < power:
        n += 1
    return n


def minimal_detectable_effect(
    design: PairedDesign, n_tasks: float, power: float = 0.8, alpha: float = 0.05, normal: bool = False
) -> float:
    """The smallest true difference that `n_tasks` tasks find with probability `power`.

    Solves `power_of` = `power`; with `normal`, (z_{alpha/2} + z_power) sqrt(task_variance / n), which understates it
    for small n. Above 1 no difference of rates can be found.
    Source: Miller 2024, arXiv:2411.00640, eq. 10. Units: scores. Assumes what `power_of` does.

    Raises:
        ValueError: fewer than two tasks, or a probability outside (0, 1).
    """
    _check(power, alpha)
    if not n_tasks > 1:
        raise ValueError(f"n_tasks={n_tasks!r}: expected at least 2")
    standard_error = math.sqrt(design.task_variance / n_tasks)
    if normal or standard_error == 0:
        return _z(power, alpha) * standard_error
    high = _z(power, alpha) * standard_error
    while power_of(design, n_tasks, high, alpha) < power:
        high *= 2
    return _bisect(lambda effect: power_of(design, n_tasks, effect, alpha) >= power, 0.0, high)


@dataclass(frozen=True, slots=True)
class Allocation:
    """How to spend on tasks and trials."""

    trials: int
    """Trials per task, of each arm."""
    optimum: float
    """The same before it is made whole; infinite when only trials vary."""
    tasks: int | None
    """Tasks that the budget pays for; None without a budget."""


def best_allocation(
    omega2: float, sigma2: float, cost_per_task: float, cost_per_trial: float, budget: float | None = None
) -> Allocation:
    """Trials per task that give the smallest standard error for the money.

    Var = (omega2 + sigma2/K)/n at the cost n (cost_per_task + K cost_per_trial) is least at
    K* = sqrt((sigma2/omega2) (cost_per_task/cost_per_trial)); of the whole numbers beside it, the better. For a paired
    comparison give omega2 of the differences, sigma2 and cost_per_trial summed over the arms. When writing a task is
    free, one trial per task is best; when tasks cost and do not differ, as many trials as can be paid.
    Source: Cochran 1977, Sampling Techniques, section 10.6. Units: score^2; any unit of cost.

    Raises:
        ValueError: a negative or infinite number, a trial that costs nothing, or a budget below one task's cost.
    """
    amounts = {"omega2": omega2, "sigma2": sigma2, "cost_per_task": cost_per_task, "budget": budget or 0.0}
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            raise ValueError(f"{name}={amount!r}: expected a finite number, at least 0")
    if not 0 < cost_per_trial < math.inf:
        raise ValueError(f"cost_per_trial={cost_per_trial!r}: expected a finite number above 0")
    most = None if budget is None else math.floor(min((budget - cost_per_task) / cost_per_trial, MOST_TRIALS))
    if most is not None and most < 1:
        raise ValueError(f"budget={budget!r} does not pay for one trial of one task")
    spread = sigma2 * cost_per_task
    optimum = math.sqrt(spread / (omega2 * cost_per_trial)) if omega2 and spread else (math.inf if spread else 1.0)

    def cost(trials: int) -> float:
        return (omega2 + sigma2 / trials) * (cost_per_task + trials * cost_per_trial)

    below = max(1, math.floor(min(optimum, most if most is not None else MOST_TRIALS)))
    trials = min((below, below + 1) if most is None or below < most else (below,), key=cost)
    tasks = None if budget is None else math.floor(budget / (cost_per_task + trials * cost_per_trial))
    return Allocation(trials, optimum, tasks)


def _check(power: float, alpha: float) -> None:
    if not 0 < alpha < power < 1:
        raise ValueError(f"power={power!r}, alpha={alpha!r}: expected 0 < alpha < power < 1")


def _z(power: float, alpha: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


def _median(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]


def _bisect(reached: Callable[[float], bool], low: float, high: float) -> float:
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
