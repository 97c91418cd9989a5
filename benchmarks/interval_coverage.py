"""How often does a 95 % interval hold the truth? `python benchmarks/interval_coverage.py`.

Simulated panels with known truth: a score is the candidate's level plus an effect of the card that
all users share, one of the card for this user, and noise of the conversation. Four intervals for P̄
are compared, and the one in use also for the difference between two candidates. About 20 seconds
on one core; the figures stand in docs/adr/0005-intervals.md.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from palate.statistics import by_cluster, cluster_draws, half_width

USERS, CARDS, REPETITIONS = 5, 10, 2
SHARED, OWN, NOISE = 0.4, 0.2, 0.4  # standard deviations, in points of the 1..5 scale
LEVEL = 3.0


def panel(generator, cards, candidates=1):
    """Scores (candidates, users, cards, repetitions) whose true means are all LEVEL.

    The card effect is partly the candidate's own: half of its variance is shared by candidates.
    """
    half = SHARED / np.sqrt(2)
    shape = (candidates, USERS, cards, REPETITIONS)
    card = generator.normal(0, half, (1, 1, cards, 1))
    card = card + generator.normal(0, half, (candidates, 1, cards, 1))
    own = generator.normal(0, OWN, (candidates, USERS, cards, 1))
    return LEVEL + card + own + generator.normal(0, NOISE, shape)


def joint(values, draws, seed):
    """Estimate of P̄ and its draws, one draw of cards for all users."""
    sums = by_cluster(values)
    weights = cluster_draws(values.shape[-2], draws, seed)
    return sums.means().mean(axis=0), sums.redrawn(weights).mean(axis=0)


def each_user(values, draws, seed):
    """The same with cards drawn for each user alone."""
    sums = by_cluster(values)
    cards = values.shape[-2]
    redrawn = [
        by_cluster(values[u]).redrawn(cluster_draws(cards, draws, seed * USERS + u))
        for u in range(USERS)
    ]
    return sums.means().mean(axis=0), np.mean(redrawn, axis=0)


def percentile_holds(mean, redrawn, cards):
    low, high = np.percentile(redrawn, [2.5, 97.5])
    return low <= LEVEL <= high


def t_holds(mean, redrawn, cards):
    return abs(mean - LEVEL) <= float(half_width(redrawn, np.array(cards)))


VARIANTS = {
    "each user alone, percentiles": (each_user, percentile_holds),
    "each user alone, t": (each_user, t_holds),
    "one draw for all, percentiles": (joint, percentile_holds),
    "one draw for all, t (in use)": (joint, t_holds),
}


def coverage(cards, panels, draws):
    """Share of panels whose interval holds the truth, for each variant and for differences."""
    generator = np.random.default_rng(0)
    held = dict.fromkeys([*VARIANTS, "difference of two, t (in use)"], 0)
    for seed in range(panels):
        first, second = panel(generator, cards, candidates=2)
        for name, (draw, holds) in VARIANTS.items():
            held[name] += holds(*draw(first, draws, seed), cards)
        mean, redrawn = joint(first - second, draws, seed)
        held["difference of two, t (in use)"] += t_holds(mean + LEVEL, redrawn, cards)
    return {name: count / panels for name, count in held.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--panels", type=int, default=600, help="simulated panels per row")
    parser.add_argument("--draws", type=int, default=400, help="bootstrap draws per panel")
    chosen = parser.parse_args()
    start = time.perf_counter()
    print(f"{USERS} users, {REPETITIONS} repetitions, {chosen.panels} panels, {chosen.draws} draws")
    print(f"standard deviations: shared card {SHARED}, card and user {OWN}, noise {NOISE}")
    for cards in (4, CARDS, 30):
        print(f"\n{cards} cards")
        for name, share in coverage(cards, chosen.panels, chosen.draws).items():
            error = (share * (1 - share) / chosen.panels) ** 0.5
            print(f"  {name:32s} {share:6.1%}  (± {1.96 * error:.1%})")
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
