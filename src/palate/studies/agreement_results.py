"""What an agreement study says: the object that `palate study agreement --json` prints.

Agreement lies in 0..1; 0.5 is chance. None stands for "not measured", with a reason beside it
where it is not plain. Intervals are 95 %.
"""

from __future__ import annotations

from palate.types import Record

CHANCE = 0.5
FEW_SESSIONS = 5  # intervals that rest on fewer sessions of a user are remarked on


class UserAgreement(Record):
    """Agreement of one condition with one user; None without a pair.

    `pairs` have different labels and both scores; `judge_ties` are those with equal scores, which
    count 0.5 in `agreement` and are left out of `agreement_without_ties`. `missing` replies have a
    label and no score; `missing_pairs` would be pairs with them. `sessions` have at least one pair.
    """

    agreement: float | None
    low: float | None
    high: float | None
    agreement_without_ties: float | None
    pairs: int
    judge_ties: int
    missing: int
    missing_pairs: int
    sessions: int


class ConfidentPart(Record):
    """Agreement on the pairs of which both scores have at least this confidence.

    `share` is that of the condition's pairs, 0..1, or None where it has none.
    """

    threshold: float
    macro: float | None
    low: float | None
    high: float | None
    pairs: int
    share: float | None


class LengthCorrelation(Record):
    """Spearman's correlation with the length of the reply over the scored replies that have one.

    `label` is that of the person's own ratings on the same replies: a judge that likes long replies
    is biased as far as the people do not.
    """

    score: float | None
    label: float | None
    replies: int
    reason: str | None


class ConditionAgreement(Record):
    """Agreement of one condition, macro mean over the users with pairs, and what it rests on.

    `reason` says why `macro`, or `low` and `high`, are None. `unlabelled` scores belong to replies
    that nobody rated and count for nothing.
    """

    macro: float | None
    low: float | None
    high: float | None
    macro_without_ties: float | None
    pairs: int
    judge_ties: int
    missing: int
    missing_pairs: int
    unlabelled: int
    users: dict[str, UserAgreement]
    reason: str | None = None
    confident: ConfidentPart | None = None
    length: LengthCorrelation | None = None


class Comparison(Record):
    """Condition `a` against `b` on the pairs that both score.

    `difference` is that of the macro means, a - b, with its interval; `p` is two-sided, from
    swapping the two within a session at random: over all ways if `exact`, else over drawn ones.
    p-values are not adjusted for the number of comparisons.
    """

    a: str
    b: str
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    exact: bool
    pairs: int
    sessions: int
    reason: str | None = None


class Agreement(Record):
    """The whole study; `ceiling` is the second rating's agreement with the first, or None."""

    conditions: dict[str, ConditionAgreement]
    ceiling: ConditionAgreement | None
    tests: tuple[Comparison, ...]
    labels: int
    sessions: int
    pairs: int
    seed: int
    resamples: int
    remarks: tuple[str, ...]
