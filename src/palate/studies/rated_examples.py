"""K replies that a person rated, from training sessions alone, to judge by (condition `examples`).

The draw covers the scale: the ratings that occur take turns, so that rare ones are there too.
Within a rating, and between ratings where K is not a multiple, the seed decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from palate.histories.figures import reply_turns
from palate.judging.study_questions import RatedExample
from palate.studies.excerpts import excerpt
from palate.types import Session, TrainingSession, digest

DEFAULT_EXAMPLES = 8  # K [choice]


class DrawnExample(NamedTuple):
    """An example and where it stands, as "SESSION#TURN"."""

    example: RatedExample
    source: str


def rated_examples(
    training: Sequence[TrainingSession], *, count: int, seed: int
) -> tuple[DrawnExample, ...]:
    """At most `count` rated replies in a seeded order, each rating as often as another if it can.

    Raises:
        TypeError: something other than training sessions, which would leak the held-out part.
    """
    found: dict[int, list[tuple[str, Session, int]]] = defaultdict(list)
    for item in training:
        if not isinstance(item, TrainingSession):
            raise TypeError(f"examples are drawn from training sessions, not {type(item).__name__}")
        session = item.session
        for turn in reply_turns(session):
            rating = session.turns[turn].satisfaction
            if rating is not None and session.turns[turn].text.strip():
                rank = digest(["example", seed, session.user_id, session.session_id, turn])
                found[rating].append((rank, session, turn))
    drawn = _in_turns(found, count, seed)
    return tuple(_example(rating, session, turn) for _, rating, session, turn in sorted(drawn))


def _in_turns(
    found: dict[int, list[tuple[str, Session, int]]], count: int, seed: int
) -> list[tuple[str, int, Session, int]]:
    """The ratings take turns until there are enough; which begins is the seed's."""
    order = sorted(found, key=lambda rating: digest(["rating", seed, rating]))
    ranked = {rating: sorted(found[rating], key=lambda one: one[0]) for rating in order}
    drawn: list[tuple[str, int, Session, int]] = []
    for round_ in range(max(map(len, ranked.values()), default=0)):
        for rating in order:
            if len(drawn) < count and round_ < len(ranked[rating]):
                rank, session, turn = ranked[rating][round_]
                drawn.append((rank, rating, session, turn))
    return drawn


def _example(rating: int, session: Session, turn: int) -> DrawnExample:
    before = turn - 1
    while before > 0 and session.turns[before].speaker == "character":
        before -= 1
    cut = excerpt(session, turn, from_turn=before)
    return DrawnExample(RatedExample(cut, rating), f"{session.session_id}#{turn}")
