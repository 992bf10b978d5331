"""CPU time of the statistics of a large experiment."""

import random
import time

from mcptrials.stats import compare_paired, estimate, estimate_pass_at, estimate_pass_hat, holm, sign_flip_p

TASKS, TRIALS, ARMS = 1000, 20, 6
FLIPPED = 2000


def experiment_cpu_s() -> float:
    """Every estimate of six arms of 1,000 tasks with 20 trials, and the comparison of each arm with the first."""
    rng = random.Random(0)
    arms = [
        {f"t{task}": [int(rng.random() < 0.5 + arm / 100) for _ in range(TRIALS)] for task in range(TASKS)}
        for arm in range(ARMS)
    ]
    began_s = time.process_time()
    for arm in arms:
        estimate(arm), estimate_pass_at(arm, 5), estimate_pass_hat(arm, 5)
    found = [compare_paired(arms[0], arm) for arm in arms[1:]]
    holm([each.p_exact for each in found if each.p_exact is not None])
    return time.process_time() - began_s


def sign_flip_cpu_s() -> float:
    """The exact test of 2,000 differences in twentieths."""
    rng = random.Random(0)
    differences = [rng.randint(-19, 20) / 20 for _ in range(FLIPPED)]
    began_s = time.process_time()
    sign_flip_p(differences)
    return time.process_time() - began_s
