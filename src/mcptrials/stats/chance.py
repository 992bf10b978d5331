"""Chance: how likely a planned comparison finds a difference that is there."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mcptrials.stats.paired import FEWEST_UNITS
from mcptrials.stats.power import PairedDesign, minimal_detectable_effect, power_of, required_tasks
from mcptrials.stats.simulation import simulated_power

SIMULATED_RUNS = 1000
MOST_SIMULATED = 100
"""With more independent units the exact test has the power of the t test to within a point or two, and takes long."""
MOST_STEPS = 50_000
"""Likewise of units x tasks x trials: by then the differences are nearly continuous."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Two arms, the same tasks, so many trials of each, and how much these scatter."""

    sizes: tuple[int, ...]
    """Tasks of each group."""
    design: PairedDesign

    @property
    def n_tasks(self) -> int:
        return sum(self.sizes)

    @property
    def trials(self) -> int:
        """Per task, of the second arm."""
        return self.design.trials[1]

    @property
    def n_trials(self) -> int:
        """Of both arms."""
        return self.n_tasks * sum(self.design.trials)

    @property
    def large(self) -> bool:
        """Whether simulating it takes long, and the formula is as good."""
        units, steps = len(self.sizes), math.lcm(*self.simulated.trials)
        return units > MOST_SIMULATED or units * self.n_tasks * steps > MOST_STEPS

    @property
    def simulated(self) -> PairedDesign:
        """The design, with no more trials than make a difference."""
        a, b = (min(trials, MOST_TRIALS) for trials in self.design.trials)
        return replace(self.design, trials=(a, b))

    @property
    def can_decide(self) -> bool:
        return len(self.sizes) >= FEWEST_UNITS

    def resized(self, n_tasks: int) -> "Experiment":
        """With so many tasks, grouped as they are now: the groups are repeated, and the last one is cut."""
        return replace(self, sizes=repeated(self.sizes, n_tasks))

    def tried(self, trials: int) -> "Experiment":
        """With so many trials per task and arm."""
        return replace(self, design=replace(self.design, trials=(trials, trials)))


def repeated(sizes: Sequence[int], n_tasks: int) -> tuple[int, ...]:
    """Groups of these sizes, over and over, until there are so many tasks."""
    rounds, rest = divmod(n_tasks, sum(sizes))
    found = list(sizes) * rounds
    for size in sizes:
        if rest > 0:
            found.append(min(size, rest))
            rest -= size
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Chance:
    """A probability of finding a difference, and how well it is known."""

    power: float
    se: float | None
    """The simulation's own standard error; None where nothing was simulated."""
    method: Literal["simulated", "formula", "certain"]


class Chances:
    """Chances of experiments: the very test is simulated, or, of large ones, the formula is used."""

    def __init__(self, seed: int, tell: Callable[[], None] = lambda: None) -> None:
        """`tell` is called before each simulation."""
        self._seed, self._tell = seed, tell
        self._known: dict[tuple[Experiment, float], Chance] = {}

    def of(self, experiment: Experiment, difference: float) -> Chance:
        """That this difference is found, in its direction."""
        key = experiment, difference
        if key not in self._known:
            self._known[key] = self._reckoned(experiment, difference)
        return self._known[key]

    def _reckoned(self, experiment: Experiment, difference: float) -> Chance:
        if not experiment.can_decide:
            return Chance(0.0, None, "certain")
        if experiment.large:
            design, units = _of_units(experiment)
            return Chance(power_of(design, units, difference), None, "formula")
        self._tell()
        power = simulated_power(
            experiment.simulated, experiment.sizes, difference, seed=self._seed, runs=SIMULATED_RUNS
        )
        # Agresti and Coull's: all or none of the simulated comparisons do not make it certain.
        shrunk = (power * SIMULATED_RUNS + 2) / (SIMULATED_RUNS + 4)
        return Chance(power, math.sqrt(shrunk * (1 - shrunk) / SIMULATED_RUNS), "simulated")

    def detectable(self, experiment: Experiment, power: float) -> float | None:
        """The smallest difference that is found so often; None when none is."""
        if not experiment.can_decide:
            return None
        found = minimal_detectable_effect(*_of_units(experiment), power)
        if experiment.large:
            return found if found <= 1 else None
        guess = round(min(found, 1) * _STEPS)
        step = _smallest(lambda step: self.of(experiment, step / _STEPS).power >= power, _STEPS, guess)
        return None if step is None else step / _STEPS

    def tasks_needed(self, experiment: Experiment, difference: float, power: float) -> int | None:
        """The fewest tasks, grouped as they are, that find a difference so often; None when more than can be meant."""
        try:
            units = required_tasks(_of_units(experiment)[0], difference, power)
        except ValueError:
            return None
        guess = math.ceil(units * experiment.n_tasks / len(experiment.sizes))
        return _smallest(lambda n: self.of(experiment.resized(n), difference).power >= power, MOST_TASKS, guess)

    def trials_needed(self, experiment: Experiment, difference: float, power: float) -> int | None:
        """The fewest trials per task and arm that do with these tasks; None when no number does."""
        if not experiment.can_decide:
            return None
        units = _of_units(experiment)[1]

        def by_formula(trials: int) -> float:
            return power_of(_of_units(experiment.tried(trials))[0], units, difference)

        def enough(trials: int) -> bool:
            return self.of(experiment.tried(trials), difference).power >= power

        if by_formula(MOST_TRIALS) < power - _NEAR or not enough(MOST_TRIALS):
            return None
        guess = _smallest(lambda trials: by_formula(trials) >= power, MOST_TRIALS, 1)
        return _smallest(enough, MOST_TRIALS, guess or MOST_TRIALS)


_STEPS = 200
"""Differences are looked for in steps of half a point, below the simulation's own error."""
_NEAR = 0.1
"""The formula and the test differ by less."""
MOST_TASKS, MOST_TRIALS = 100_000, 50
"""More of either is not planned for: 50 trials have next to no noise left, and as much is simulated for more."""


def _of_units(experiment: Experiment) -> tuple[PairedDesign, float]:
    """The design of groups as units, and how many units of equal size would tell as much.

    The tasks of a group share their difference, so that its mean has the variance omega2 + sigma2 / tasks.
    """
    units = experiment.n_tasks**2 / sum(size * size for size in experiment.sizes)
    per_unit = experiment.n_tasks / units
    a, b = experiment.design.sigma2
    return replace(experiment.design, sigma2=(a / per_unit, b / per_unit)), units


def _smallest(enough: Callable[[int], bool], most: int, guess: int) -> int | None:
    """The smallest whole number that is enough, when larger ones are; looked for around a guess."""
    low, high = 0, max(1, min(guess, most))
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(max(high + 1, high * 5 // 4), most)
    while low == 0 and high > 1:
        lower = high * 4 // 5
        low, high = (low, lower) if enough(lower) else (lower, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
