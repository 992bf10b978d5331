"""Noise: how much differences scatter between tasks, and trials within one, measured or assumed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal

from mcptrials.record import Record
from mcptrials.stats import PairedDesign, design_of, variance_components
from mcptrials.trial import Arm

Origin = Literal["measured", "assumed"]
MEASURABLE = 5
"""Tasks with two trials each: fewer say next to nothing of a variance."""

Scores = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Noise:
    """Both variances, with where they are from."""

    omega2: float = PairedDesign().omega2
    """Between tasks, of the true difference of two arms."""
    sigma2: float = PairedDesign().sigma2[0]
    """Within a task, of one trial."""
    omega2_from: Origin = "assumed"
    sigma2_from: Origin = "assumed"

    def design(self, trials: int) -> PairedDesign:
        return PairedDesign(self.omega2, (self.sigma2, self.sigma2), (trials, trials))


ASSUMED = Noise()


def measured_noise(arms: Mapping[str, Arm], records: Iterable[Record]) -> Noise:
    """What a run's trials say; where they cannot, what is usual.

    sigma2 is the mean over arms of the variance within tasks. omega2 is that of differences between arms that differ in
    their variant alone, as the arms of the next comparison will: two models differ on other tasks than two wordings do.
    Where no trial differs from another there is nothing to measure: such a run is at 0 or 100 %, not without noise.
    """
    scores: dict[str, Scores] = {arm: {} for arm in arms}
    for record in records:
        if record.passed is not None and record.arm in scores:
            scores[record.arm].setdefault(record.task_id, []).append(float(record.passed))
    components = [variance_components(each) for each in scores.values()]
    sigma2 = [each.sigma2 for each in components if each.sigma2 is not None and each.n_tasks >= MEASURABLE]
    found = ASSUMED
    if sigma2 and any(sigma2):
        found = Noise(sigma2=fmean(sigma2), sigma2_from="measured")
    omega2 = _between(arms, scores)
    if found.sigma2_from == "measured" and omega2:
        found = Noise(fmean(omega2), found.sigma2, "measured", found.sigma2_from)
    return found


def _between(arms: Mapping[str, Arm], scores: Mapping[str, Scores]) -> list[float]:
    """Of every pair of arms that differ in their variant alone."""
    alike = [(a, b) for a, b in combinations(arms, 2) if _without_variant(arms[a]) == _without_variant(arms[b])]
    designs = [design_of(scores[a], scores[b]) for a, b in alike if _shared(scores[a], scores[b]) >= MEASURABLE]
    return [design.omega2 for design in designs if design is not None]


def _without_variant(arm: Arm) -> Arm:
    return arm.model_copy(update={"variant": "", "overrides": None})


def _shared(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]) -> int:
    return sum(len(trials) > 1 and len(b.get(task_id, ())) > 1 for task_id, trials in a.items())
