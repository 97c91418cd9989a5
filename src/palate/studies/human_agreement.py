"""Do scores order replies as the person does? Pairwise agreement (paper 4.3, Table 3).

    found = agreement(read_labels(labels), read_condition_scores(scores))
    found.conditions["personal"].macro

Of each session, the pairs of replies that the user rated differently: 1 where the scores order them
the same way, 0.5 for equal scores, 0 otherwise; pairs pooled per user, then the mean over the users
who have pairs (choice). A reply without a score drops its pairs, which are counted.

Intervals are 95 %, by bootstrap over sessions, drawn within each user (`palate.pairwise` has the
formula): they say what other sessions of these users would change, not what other users would.
Conditions are compared on the pairs that both score, by a permutation test over sessions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from palate.pairwise import PairCounts, sign_flips
from palate.statistics import Floats, spearman
from palate.studies.agreement_measures import (
    CEILING,
    CONDITION,
    CONFIDENT,
    TEST,
    Contrast,
    Estimates,
    Measured,
    contrast,
    estimate,
    measure,
    pairs_by_session,
    user_of_session,
)
from palate.studies.agreement_remarks import remarks
from palate.studies.agreement_results import (
    Agreement,
    Comparison,
    ConditionAgreement,
    ConfidentPart,
    LengthCorrelation,
    UserAgreement,
)
from palate.studies.agreement_rows import (
    ConditionScore,
    LabelRow,
    Labels,
    Scores,
    gather_labels,
    gather_scores,
)

RESAMPLES = 2000  # of the bootstrap, and of the permutation test where it draws

NO_PAIR = "no session has two replies that were rated differently and have a score each"
ONE_SESSION = "no interval: all pairs lie in one session of one user"


class _Interval(NamedTuple):
    """None: not measured; `reason` says why one of them is None."""

    value: float | None
    low: float | None
    high: float | None
    reason: str | None


class _Study(NamedTuple):
    """What every table is made from."""

    rated: Labels
    whole: PairCounts  # as if every reply had a score
    estimates: Estimates
    resamples: int
    seed: int


def agreement(
    labels: Iterable[LabelRow],
    scores: Iterable[ConditionScore],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float | None = None,
) -> Agreement:
    """Agreement of every condition with the people, its ceiling and the tests between conditions.

    Args:
        seed: of the bootstrap's and the permutations' draws; the order of rows has no influence.
        resamples: how many, at least 2.
        confidence: from which on a score is confident; None: the median of its condition.

    Raises:
        InputError: no rows, a label off the scale, a score that is not finite, two rows of the same
            thing, or no score of a labelled reply.
    """
    rated = gather_labels(labels)
    given = gather_scores(scores, rated)
    measured = {name: measure(rated, one, confidence) for name, one in given.items()}
    contrasts = [contrast(rated, measured, a, b) for a, b in combinations(measured, 2)]
    again = pairs_by_session(rated, rated.second)
    estimates = estimate(rated, measured, contrasts, again, resamples=resamples, seed=seed)
    whole = pairs_by_session(rated, rated.label.astype(np.float64))
    study = _Study(rated, whole, estimates, resamples, seed)
    conditions = {name: _condition(study, name, one) for name, one in measured.items()}
    twice = bool(np.isfinite(rated.second).any())
    ceiling = _totals(study, rated.second, again, CEILING) if twice else None
    return Agreement(
        conditions=conditions,
        ceiling=ceiling,
        tests=tuple(_comparisons(study, contrasts)),
        labels=len(rated.label),
        sessions=rated.sessions,
        pairs=int(whole.pairs.sum()),
        seed=seed,
        resamples=resamples,
        remarks=remarks(conditions, ceiling),
    )


def _condition(study: _Study, name: str, one: Measured) -> ConditionAgreement:
    totals = _totals(study, one.scores.score, one.counts, (CONDITION, name))
    confident = None if math.isnan(one.threshold) else _confident_part(study, name, one)
    return totals.model_copy(
        update={
            "unlabelled": one.scores.unlabelled,
            "confident": confident,
            "length": _length(study.rated, one.scores),
        }
    )


def _totals(
    study: _Study, scores: Floats, counts: PairCounts, key: tuple[str, ...]
) -> ConditionAgreement:
    users = _users(study, scores, counts, key)
    decided = [
        one.agreement_without_ties
        for one in users.values()
        if one.agreement_without_ties is not None
    ]
    macro = _macro(study, key, floor=0)
    return ConditionAgreement(
        macro=macro.value,
        low=macro.low,
        high=macro.high,
        macro_without_ties=sum(decided) / len(decided) if decided else None,
        pairs=sum(one.pairs for one in users.values()),
        judge_ties=sum(one.judge_ties for one in users.values()),
        missing=sum(one.missing for one in users.values()),
        missing_pairs=sum(one.missing_pairs for one in users.values()),
        unlabelled=0,
        users=users,
        reason=macro.reason,
    )


def _users(
    study: _Study, scores: Floats, counts: PairCounts, key: tuple[str, ...]
) -> dict[str, UserAgreement]:
    rated, row, found = study.rated, study.estimates.row[key], study.estimates.found
    number = len(rated.users)
    absent = np.bincount(rated.user, weights=~np.isfinite(scores), minlength=number)
    of_session = user_of_session(rated)
    possible, pairs, ordered, ties = (
        np.bincount(of_session, weights=values, minlength=number).astype(int).tolist()
        for values in (study.whole.pairs, counts.pairs, counts.concordant, counts.ties)
    )
    users: dict[str, UserAgreement] = {}
    for n, user in enumerate(rated.users):
        own = _interval(found.own[row, n], found.own_half_widths[row, n], floor=0)
        decided = pairs[n] - ties[n]
        users[user] = UserAgreement(
            agreement=own.value,
            low=own.low,
            high=own.high,
            agreement_without_ties=ordered[n] / decided if decided else None,
            pairs=pairs[n],
            judge_ties=ties[n],
            missing=int(absent[n]),
            missing_pairs=possible[n] - pairs[n],
            sessions=int(found.clusters[row, n]),
        )
    return users


def _confident_part(study: _Study, name: str, one: Measured) -> ConfidentPart:
    macro = _macro(study, (CONFIDENT, name), floor=0)
    pairs, possible = int(one.confident.pairs.sum()), int(one.counts.pairs.sum())
    return ConfidentPart(
        threshold=one.threshold,
        macro=macro.value,
        low=macro.low,
        high=macro.high,
        pairs=pairs,
        share=pairs / possible if possible else None,
    )


def _length(rated: Labels, scores: Scores) -> LengthCorrelation | None:
    length = np.where(np.isfinite(scores.score), scores.length, np.nan)
    if not np.isfinite(length).any():
        return None
    with np.errstate(over="ignore"):  # scores near 1e308 may lie infinitely far apart
        score = spearman(scores.score, length, "scores and lengths")
    label = spearman(rated.label.astype(np.float64), length, "labels and lengths")
    return LengthCorrelation(
        score=score.value,
        label=label.value,
        replies=score.n,
        reason=score.reason or label.reason,
    )


def _comparisons(study: _Study, contrasts: Sequence[Contrast]) -> Iterator[Comparison]:
    user = user_of_session(study.rated)
    parts = np.zeros((len(contrasts), len(user)))
    for row, one in zip(parts, contrasts, strict=True):
        # A session's part in the difference of the macro means: pairs are pooled within users.
        pooled = np.bincount(user, weights=one.pairs)
        row[:] = one.gained / np.maximum(pooled, 1)[user] / max(1, (pooled > 0).sum())
    flips = sign_flips(parts, draws=study.resamples, seed=study.seed)
    for one, flip in zip(contrasts, flips, strict=True):
        difference = _macro(study, (TEST, one.a, one.b), floor=-1)
        yield Comparison(
            a=one.a,
            b=one.b,
            difference=difference.value,
            low=difference.low,
            high=difference.high,
            p=None if difference.value is None else flip.p,
            exact=difference.value is not None and flip.exact,
            pairs=int(one.pairs.sum()),
            sessions=int((one.pairs > 0).sum()),
            reason=difference.reason,
        )


def _macro(study: _Study, key: tuple[str, ...], *, floor: int) -> _Interval:
    row, found = study.estimates.row[key], study.estimates.found
    return _interval(found.macro[row], found.half_widths[row], floor=floor)


def _interval(value: float, half: float, *, floor: int) -> _Interval:
    """`value` ± `half`, clipped to `floor`..1."""
    if math.isnan(value):
        return _Interval(None, None, None, NO_PAIR)
    if math.isnan(half):
        return _Interval(float(value), None, None, ONE_SESSION)
    low, high = max(floor, float(value - half)), min(1.0, float(value + half))
    return _Interval(float(value), low, high, None)
