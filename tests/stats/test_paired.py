"""The comparison of two arms, task by task."""

import itertools
import math
import random
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from scipy.stats import binom, permutation_test

from mcptrials.stats import PairedComparison, Scope, compare_paired, wilson_interval
from mcptrials.stats.permutation import deal
from mcptrials.stats.sign_flip import sign_flip_interval
from mcptrials.stats.stratified import stratified_interval

SCOPES: tuple[Scope, Scope] = ("tasks-like-these", "these-tasks")
Arm = dict[str, list[float]]


def suite(*passes_of_trials: tuple[int, int]) -> Arm:
    return {f"t{i}": [1.0] * c + [0.0] * (n - c) for i, (c, n) in enumerate(passes_of_trials)}


def ends(found: PairedComparison) -> tuple[float, float]:
    assert found.ci_low is not None
    assert found.ci_high is not None
    return found.ci_low, found.ci_high


def test_twelve_tasks_of_four_trials_equal_the_reference_values(oracles: dict[str, Any]) -> None:
    case = oracles["paired"]
    found = compare_paired(case["A"], case["B"])
    assert (found.difference, found.se, found.correlation, found.p_t, found.df) == pytest.approx(
        (case["diff_B_minus_A"], case["se_paired"], case["corr"], case["p_t"], case["df"]), abs=1e-12
    )
    assert (found.mean_a, found.mean_b) == pytest.approx((case["mean_A"], case["mean_B"]), abs=1e-12)
    assert found.ci_t == pytest.approx(case["ci95_t"], abs=1e-9)
    assert found.p_exact == case["p_sign_flip_exact"]
    assert (found.n_tasks, found.n_changed, found.n_trials) == (12, case["n_nonzero"], 96)


def test_a_t_interval_without_0_is_inconclusive_when_the_exact_test_says_so(oracles: dict[str, Any]) -> None:
    found = compare_paired(oracles["paired"]["A"], oracles["paired"]["B"])
    assert (found.verdict, found.reason) == ("inconclusive", "the t interval excludes 0, but the exact p = 0.0547")
    assert found.ci_low == 0.0


def test_on_exactly_these_tasks_it_equals_the_permutation_within_tasks(oracles: dict[str, Any]) -> None:
    case = oracles["paired"]
    found = compare_paired(case["A"], case["B"], scope="these-tasks")
    assert found.p_exact == pytest.approx(oracles["permutation"]["p"], abs=1e-9)
    assert found.se == pytest.approx(case["se_fixed_task_set"], abs=1e-12)
    assert found.verdict == "better"
    assert ends(found)[0] > 0


def test_groups_are_flipped_whole_and_widen_the_error(oracles: dict[str, Any]) -> None:
    case, clustered = oracles["paired"], oracles["paired_clustered"]
    groups = {task_id: str(label) for task_id, label in zip(case["A"], clustered["groups"], strict=True)}
    found = compare_paired(case["A"], case["B"], groups)
    assert (found.se, found.df, found.p_t) == pytest.approx(
        (clustered["se_cr2"], clustered["bm_df"], clustered["p_t_cr2_bm"]), abs=1e-12
    )
    # The differences of the five groups, all of one sign but one that is 0: 2 of 2^4 flips are as far from 0.
    assert found.p_exact == 0.125
    assert found.reason == "5 groups: the exact test needs at least 6 to decide anything"
    assert ends(found) == (-1.0, 1.0)


def test_one_trial_a_task_is_the_exact_mcnemar_test(oracles: dict[str, Any]) -> None:
    for case in oracles["mcnemar"]:
        gained, lost = case["B_pass_A_fail"], case["A_pass_B_fail"]
        a = suite(*[(0, 1)] * gained, *[(1, 1)] * lost, *[(1, 1)] * 4, *[(0, 1)] * 3)
        b = suite(*[(1, 1)] * gained, *[(0, 1)] * lost, *[(1, 1)] * 4, *[(0, 1)] * 3)
        assert compare_paired(a, b).p_exact == pytest.approx(case["p_exact"], abs=1e-12)


def test_scores_between_0_and_1_are_dealt_as_scipy_deals_them() -> None:
    rng = random.Random(5)
    a = {"t": [rng.randrange(201) / 200 for _ in range(6)]}
    b = {"t": [min(1.0, rng.randrange(201) / 200 + 0.2) for _ in range(5)]}
    reference = permutation_test((b["t"], a["t"]), lambda x, y: x.mean() - y.mean(), n_resamples=10_000)
    found = compare_paired(a, b, scope="these-tasks")
    assert found.p_exact == pytest.approx(float(reference.pvalue), abs=1e-9)
    swapped = compare_paired(b, a, scope="these-tasks")
    assert swapped.p_exact == pytest.approx(found.p_exact, abs=1e-12)


@pytest.mark.parametrize("scope", SCOPES)
def test_no_change_is_inconclusive_and_its_interval_has_width(scope: Scope) -> None:
    arm = suite(*[(5, 5)] * 20)
    found = compare_paired(arm, arm, scope=scope)
    assert (found.difference, found.p_exact, found.verdict, found.n_changed) == (0, 1, "inconclusive", 0)
    assert ends(found)[0] < 0 < ends(found)[1]
    assert found.reason.startswith("no task changed")
    if scope == "tasks-like-these":
        assert ends(found)[1] == pytest.approx(1 - 0.05 ** (1 / 20), abs=1e-12)
    else:
        # Wilson's, of as many trials as 20 x 5 count for when each task's rate is estimated: 9/10 of them.
        assert ends(found)[1] == pytest.approx(1 - wilson_interval(90, 90).low, abs=1e-8)


@pytest.mark.parametrize(
    ("c_b", "k_b", "c_a", "k_a", "low", "high"),
    [
        (56, 70, 48, 80, 0.0528, 0.3382),
        (9, 10, 3, 10, 0.1700, 0.8406),
        (6, 7, 2, 7, 0.0342, 0.8534),
        (5, 56, 0, 29, -0.0326, 0.1933),
        (0, 10, 0, 20, -0.1658, 0.2844),
        (0, 10, 0, 10, -0.2879, 0.2879),
        (10, 10, 0, 20, 0.7156, 1.0),
    ],
)
def test_the_interval_of_one_task_equals_the_published_ones(
    c_b: int, k_b: int, c_a: int, k_a: int, low: float, high: float
) -> None:
    """Newcombe 1998 (Statistics in Medicine 17), table II, method 6; the exact test moves the quantile a little."""
    pair = [1.0] * c_a + [0.0] * (k_a - c_a), [1.0] * c_b + [0.0] * (k_b - c_b)
    assert stratified_interval([pair], None) == pytest.approx((low, high), abs=5.1e-5)
    assert ends(compare_paired(suite((c_a, k_a)), suite((c_b, k_b)), scope="these-tasks")) == pytest.approx(
        (low, high), abs=0.04
    )


def test_the_rates_of_many_tasks_are_the_likeliest_ones() -> None:
    """V at the interval's ends, by a general maximiser: the ends lie 1.96 standard errors away."""
    counts = [(3, 5, 5, 5), (0, 5, 2, 5), (1, 2, 3, 8), (4, 4, 4, 4)]
    pairs = [([1.0] * a + [0.0] * (k - a), [1.0] * b + [0.0] * (m - b)) for a, k, b, m in counts]
    for x in stratified_interval(pairs, None):
        away, of_sum = math.fsum(b / m - a / k - x for a, k, b, m in counts), 0.0
        for a, k, b, m in counts:

            def unlikely(p: float, x: float = x, a: int = a, k: int = k, b: int = b, m: int = m) -> float:
                return float(-(xlogy(a, p) + xlogy(k - a, 1 - p) + xlogy(b, p + x) + xlogy(m - b, 1 - p - x)))

            bounds = max(0.0, -x) + 1e-12, min(1.0, 1 - x) - 1e-12
            p = minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-11}).x
            of_sum += (p * (1 - p) / k + (p + x) * (1 - p - x) / m) * (k + m) / (k + m - 1)
        assert abs(away) == pytest.approx(1.959964 * math.sqrt(of_sum), rel=1e-5)


@pytest.mark.parametrize(("n", "k"), [(1, 5), (1, 30), (3, 3), (10, 1)])
def test_all_against_none_on_these_tasks_is_no_certainty(n: int, k: int) -> None:
    """Rates that differ by `low` give such a result in 2 of 100 suites or so: 1 - low is no dust."""
    found = compare_paired(suite(*[(0, k)] * n), suite(*[(k, k)] * n), scope="these-tasks")
    assert (found.difference, found.verdict, found.ci_high) == (1, "better", 1)
    assert 0 < ends(found)[0] < 1 - 1 / (n * k)


@pytest.mark.parametrize("rates", [(0.1, 0.9), (0.5, 0.5), (0.97, 0.8)])
@pytest.mark.parametrize(("n", "k"), [(1, 5), (2, 3), (5, 1)])
def test_small_suites_are_covered_on_these_tasks(n: int, k: int, rates: tuple[float, float]) -> None:
    """Exactly: all results that can be, each with its chance."""
    chances = [binom.pmf(range(k + 1), k, rate) for rate in rates]
    held = 0.0
    for tasks in itertools.combinations_with_replacement(itertools.product(range(k + 1), repeat=2), n):
        orders = math.factorial(n) / math.prod(map(math.factorial, Counter(tasks).values()))
        chance = orders * math.prod(chances[0][a] * chances[1][b] for a, b in tasks)
        a, b = suite(*[(each, k) for each, _ in tasks]), suite(*[(each, k) for _, each in tasks])
        low, high = ends(compare_paired(a, b, scope="these-tasks"))
        held += chance * (low <= rates[1] - rates[0] <= high)
    assert held >= 0.925


def test_all_tasks_changing_alike_is_no_certainty_about_tasks_like_them() -> None:
    """Of n such tasks in a row 1 - 0.05^(1/n) can be of another kind, as where none changed."""
    for n in (6, 20):
        found = compare_paired(suite(*[(0, 3)] * n), suite(*[(3, 3)] * n))
        assert (found.verdict, found.ci_high) == ("better", 1)
        assert ends(found)[0] == pytest.approx(1 - 2 * (1 - 0.05 ** (1 / n)), abs=1e-12)


@pytest.mark.parametrize("n", [6, 10, 20])
@pytest.mark.parametrize("rare", [0.05, 0.1, 0.2])
def test_rare_tasks_of_another_kind_are_covered(n: int, rare: float) -> None:
    """Exactly: 0 to n tasks that stay as they were while the others go from 0 to 1, each number with its chance."""
    held = 0.0
    for unchanged in range(n + 1):
        b = suite(*[(0, 3)] * unchanged, *[(3, 3)] * (n - unchanged))
        low, high = ends(compare_paired(suite(*[(0, 3)] * n), b))
        held += float(binom.pmf(unchanged, n, rare)) * (low <= 1 - rare <= high)
    assert held >= 0.94


def test_fewer_than_six_changes_can_never_decide_and_it_says_so() -> None:
    a, b = suite(*[(0, 5)] * 5, *[(5, 5)] * 15), suite(*[(5, 5)] * 20)
    found = compare_paired(a, b)
    assert (found.p_exact, found.verdict) == (2 / 2**5, "inconclusive")
    assert found.reason == "only 5 of 20 tasks differ: with fewer than 6 p cannot reach 0.05"
    assert compare_paired(suite(*[(0, 5)] * 6, *[(5, 5)] * 14), b).verdict == "better"
    assert compare_paired(b, suite(*[(0, 5)] * 6, *[(5, 5)] * 14)).verdict == "worse"


def test_too_few_trials_of_these_tasks_can_never_decide_and_it_says_so() -> None:
    found = compare_paired(suite((0, 2)), suite((2, 2)), scope="these-tasks")
    assert found.verdict == "inconclusive"
    assert found.reason == "trials as few as these cannot give p below 0.33"


@pytest.mark.parametrize("scope", SCOPES)
def test_one_task_gives_a_difference_and_no_verdict_on_tasks_like_it(scope: Scope) -> None:
    found = compare_paired(suite((2, 10)), suite((8, 10)), scope=scope)
    assert found.difference == pytest.approx(0.6)
    if scope == "tasks-like-these":
        assert (found.verdict, found.se, found.p_t, ends(found)) == ("inconclusive", None, None, (-1, 1))
    else:
        assert found.verdict == "better"


def test_equivalence_needs_a_margin_and_tasks_enough() -> None:
    rng = random.Random(1)
    a = {f"t{i}": [float(rng.random() < 0.6) for _ in range(40)] for i in range(60)}
    b = {f"t{i}": [float(rng.random() < 0.6) for _ in range(40)] for i in range(60)}
    assert compare_paired(a, b).verdict == "inconclusive"
    assert compare_paired(a, b, margin=0.08).verdict == "equivalent"
    assert compare_paired(a, b, margin=0.001).verdict == "inconclusive"
    assert compare_paired(a, b, scope="these-tasks", margin=0.08).verdict == "equivalent"
    few = suite(*[(5, 5)] * 10)
    assert compare_paired(few, few, margin=0.1).verdict == "inconclusive"


@pytest.mark.parametrize(("n_tasks", "verdict"), [(10, "inconclusive"), (40, "equivalent")])
def test_few_tasks_that_hardly_differ_are_not_equivalent_since_others_may_be_missing(
    n_tasks: int, verdict: str
) -> None:
    """The rule of three: 10 tasks leave 26 % of tasks possible that differ wholly, 40 leave 7 %."""
    a = {f"t{i}": [0.5] for i in range(n_tasks)}
    b = {f"t{i}": [0.5 + 0.01 * (-1) ** i] for i in range(n_tasks)}
    assert compare_paired(a, b, margin=0.1).verdict == verdict


def test_it_is_the_90_percent_interval_that_must_lie_within_the_margin() -> None:
    """Two one-sided tests at 5 % each: a margin between the ends of the 90 % and the 95 % interval is enough."""
    moved = {f"t{i}": (1 if i % 5 else -1) * (i % 4) * 0.08 for i in range(40)}
    a, b = {each: [0.5] for each in moved}, {each: [0.5 + by] for each, by in moved.items()}
    ends = [sign_flip_interval(list(moved.values()), [1] * 40, alpha).high for alpha in (0.1, 0.05)]
    verdicts = [compare_paired(a, b, margin=margin).verdict for margin in (ends[0] - 0.001, sum(ends) / 2)]
    assert verdicts == ["better", "equivalent"]


def test_it_is_the_90_percent_interval_of_these_tasks_too() -> None:
    a = {f"t{i}": [1, 0, 1, 0, 1, 1] for i in range(12)}
    b = {f"t{i}": [1, 1, 0, 0, 1, i % 2] for i in range(12)}
    pairs = [(a[each], b[each]) for each in a]
    ends = [-stratified_interval(pairs, deal(pairs), alpha).low for alpha in (0.1, 0.05)]
    margins = (ends[0] - 0.001, sum(ends) / 2)
    verdicts = [compare_paired(a, b, scope="these-tasks", margin=margin).verdict for margin in margins]
    assert verdicts == ["inconclusive", "equivalent"]


def test_a_difference_below_the_margin_is_equivalent_and_names_its_direction() -> None:
    a, b = suite(*[(50, 100)] * 60), suite(*[(51, 100)] * 60)
    assert compare_paired(a, b).verdict == "better"
    found = compare_paired(a, b, margin=0.1)
    assert (found.verdict, found.reason) == (
        "equivalent", "both one-sided tests keep it within 0.1; better by less than that",
    )  # fmt: skip


def test_copied_trials_are_refused_on_these_tasks_with_the_reason() -> None:
    a, b = suite(*[(0, 5)] * 9), suite(*[(5, 5)] * 9)
    found = compare_paired(a, b, scope="these-tasks", copied=True)
    assert (found.verdict, found.p_exact, found.se, found.ci_low, found.ci_high) == ("inconclusive",) + (None,) * 4
    assert "trials repeat each other" in found.reason
    assert compare_paired(a, b, copied=True) == compare_paired(a, b)


def test_copying_every_trial_changes_nothing_for_tasks_like_these() -> None:
    rng = random.Random(3)
    a, b = (suite(*((rng.randint(0, 4), 4) for _ in range(15))) for _ in range(2))
    once, often = (
        compare_paired(a, b),
        compare_paired({t: x * 7 for t, x in a.items()}, {t: x * 7 for t, x in b.items()}),
    )
    assert replace(often, n_trials=once.n_trials) == once


def test_tasks_of_one_arm_are_left_out_and_listed() -> None:
    found = compare_paired({**suite((1, 2), (2, 2)), "only-a": [1]}, {**suite((2, 2), (2, 2)), "x": [0], "empty": []})
    assert (found.n_tasks, found.unpaired) == (2, ("only-a", "x"))


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ({}, {}, "no task has scored trials in both arms: 0 tasks in a, 0 in b"),
        ({"t": [1]}, {"t": []}, "no task has scored trials in both arms: 1 tasks in a, 0 in b"),
        ({"t": [1]}, {"t": [math.nan]}, "arm b, task 't': the score nan is not in"),
        ({"t": [1.5]}, {"t": [1]}, "arm a, task 't': the score 1.5 is not in"),
        ({"t": [None]}, {"t": [1]}, "arm a, task 't': the score None is not in"),
        ({"t": ["1"]}, {"t": [1]}, "arm a, task 't': the score '1' is not in"),
        ({"t": 1}, {"t": [1]}, "arm a, task 't': 1 is not a list of scores"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(a: Any, b: Any, words: str) -> None:
    for scope in SCOPES:
        with pytest.raises(ValueError, match=words):
            compare_paired(a, b, scope=scope)


@pytest.mark.parametrize("score", [10**400, -(10**400), 1j, "1", None, [1]])
def test_what_is_no_share_is_refused_however_large(score: Any) -> None:
    with pytest.raises(ValueError, match=r"arm a, task 't': the score .* is not in \[0, 1\]"):
        compare_paired({"t": [score]}, {"t": [1]})


def test_unknown_scopes_and_impossible_margins_are_refused() -> None:
    arm = suite((1, 2))
    with pytest.raises(ValueError, match="scope 'all': expected one of"):
        compare_paired(arm, arm, scope="all")  # type: ignore[arg-type]
    for margin in (0, -0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="expected a number above 0"):
            compare_paired(arm, arm, margin=margin)


scores = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
passes = st.sampled_from([0.0, 1.0])


@st.composite
def arms(draw: st.DrawFn) -> tuple[Arm, Arm]:
    kind = draw(st.sampled_from([scores, passes]))
    task = st.lists(kind, min_size=1, max_size=5)
    n = draw(st.integers(1, 9))
    return tuple({f"t{i}": draw(task) for i in range(n)} for _ in range(2))  # type: ignore[return-value]


@settings(max_examples=30, deadline=None)
@given(arms(), st.sampled_from(SCOPES), st.booleans())
def test_the_interval_holds_the_difference_and_excludes_0_when_the_verdict_does(
    pair: tuple[Arm, Arm], scope: Scope, grouped: bool
) -> None:
    a, b = pair
    groups = {task_id: f"g{i // 2}" for i, task_id in enumerate(a)} if grouped else None
    found = compare_paired(a, b, groups, scope)
    low, high = ends(found)
    assert found.p_exact is not None
    assert 0 < found.p_exact <= 1
    assert -1 <= low <= found.difference + 1e-9
    assert found.difference - 1e-9 <= high <= 1
    assert (low > 0 or high < 0) == (found.p_exact <= 0.05) == (found.verdict in ("better", "worse"))


@settings(max_examples=25, deadline=None)
@given(arms(), st.sampled_from(SCOPES), st.randoms(use_true_random=False))
def test_names_and_order_of_tasks_and_trials_do_not_matter_and_swapping_arms_mirrors(
    pair: tuple[Arm, Arm], scope: Scope, rng: random.Random
) -> None:
    a, b = pair
    order = rng.sample(sorted(a), len(a))
    moved_a, moved_b = ({f"x{t}": rng.sample(arm[t], len(arm[t])) for t in order} for arm in pair)
    found, moved, mirrored = (
        compare_paired(x, y, scope=scope) for x, y in ((a, b), (moved_a, moved_b), (b, a))
    )  # fmt: skip
    assert (moved.p_exact, *ends(moved)) == pytest.approx((found.p_exact, *ends(found)), abs=1e-9)
    assert (mirrored.p_exact, *ends(mirrored)) == pytest.approx(
        (found.p_exact, -ends(found)[1], -ends(found)[0]), abs=1e-9
    )


def test_a_thousand_tasks_and_a_million_trials_take_a_moment() -> None:
    rng = random.Random(2)
    a, b = ({f"t{i}": [float(rng.random() < p) for _ in range(20)] for i in range(1000)} for p in (0.5, 0.53))
    started = time.process_time()
    results = [compare_paired(a, b, scope=scope) for scope in SCOPES]
    assert time.process_time() - started < 4
    assert [found.verdict for found in results] == ["better", "better"]
    assert ends(results[0]) == pytest.approx(results[0].ci_t, abs=1e-4)


def test_one_task_of_a_million_trials_is_right() -> None:
    a, b = {"t": [1.0] * 250_000 + [0.0] * 250_000}, {"t": [1.0] * 251_500 + [0.0] * 248_500}
    found = compare_paired(a, b, scope="these-tasks")
    assert found.se is not None
    z = found.difference / found.se
    assert found.p_exact == pytest.approx(math.erfc(z / math.sqrt(2)), rel=0.02)
    assert ends(found) == pytest.approx(
        (found.difference - 1.96 * found.se, found.difference + 1.96 * found.se), abs=2e-5
    )
