"""What a reader must know before believing the figures, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from palate.studies.agreement_results import CHANCE, FEW_SESSIONS, ConditionAgreement

_NAMED = 5  # users that a remark names
_MANY_MISSING = 0.1  # share of a condition's pairs


def remarks(
    conditions: Mapping[str, ConditionAgreement], ceiling: ConditionAgreement | None
) -> tuple[str, ...]:
    """What is missing, what rests on little, and what cannot be told from chance."""
    found = [remark for name, one in conditions.items() for remark in _of_condition(name, one)]
    if ceiling is None:
        found.append(
            "No reply was rated a second time, so how far these people agree with themselves, the "
            "most that a judge can reach, is not known."
        )
    return tuple(found)


def _of_condition(name: str, one: ConditionAgreement) -> Iterator[str]:
    possible = one.pairs + one.missing_pairs
    if one.missing_pairs > _MANY_MISSING * possible:
        share = one.missing_pairs / possible
        yield (
            f"{name}: {share:.0%} of the pairs drop because a score is missing; set it beside "
            "another condition only by the tests, which use the pairs that both have."
        )
    if one.unlabelled:
        yield f"{name}: scores of replies that nobody rated, left out: {one.unlabelled:,}."
    without = [user for user, own in one.users.items() if own.agreement is None]
    if without:
        yield f"{name}: no pair of {_listed(without)}: outside the macro mean."
    few = [user for user, own in one.users.items() if 0 < own.sessions < FEW_SESSIONS]
    if few:
        yield (
            f"{name}: fewer than {FEW_SESSIONS} sessions with pairs of {_listed(few)}: intervals "
            "that rest on them are rough."
        )
    if one.low is not None and one.high is not None and one.low <= CHANCE <= one.high:
        yield f"{name}: not told apart from chance, since the interval holds {CHANCE}."


def _listed(users: Sequence[str]) -> str:
    named = ", ".join(users[:_NAMED])
    more = len(users) - _NAMED
    return f"{named} and {more:,} more" if more > 0 else named
