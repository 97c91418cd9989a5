"""What agreement is measured on: a person's ratings of replies, and scores of the same replies.

Rows may come from anywhere: a CSV, a study's held-out turns, a benchmark. Here they become arrays
in one fixed order (user, session, reply), so that the order of rows has no influence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from palate.errors import InputError
from palate.histories import Split
from palate.histories.figures import reply_turns
from palate.statistics import Floats, Ints
from palate.types import MAX_SCORE, MIN_SCORE


class LabelRow(NamedTuple):
    """A rating 1..5 that `user` gave to a reply; `reply` is its number within the session.

    Of several ratings of one reply the lowest `occasion` is the label, the next the second rating.
    """

    user: str
    session: str
    reply: int
    label: int
    occasion: int = 1


class ConditionScore(NamedTuple):
    """A score of a reply under one condition: any finite number, a higher one for a better reply.

    `score` None: missing. `confidence` is any finite number, higher for surer; `length` is that of
    the reply in any unit.
    """

    condition: str
    user: str
    session: str
    reply: int
    score: float | None
    confidence: float | None = None
    length: float | None = None


class Labels(NamedTuple):
    """Rated replies as arrays, ordered by user, session and reply; sessions lie within users."""

    users: tuple[str, ...]
    places: dict[tuple[str, str, int], int]  # (user, session, reply) -> number of the reply
    label: Ints  # of each reply
    second: Floats  # of each reply; NaN where it was rated once
    session: Ints  # of each reply
    user: Ints  # of each reply
    user_sessions: tuple[int, ...]  # sessions of each user

    @property
    def sessions(self) -> int:
        """Number of sessions of all users."""
        return sum(self.user_sessions)


class Scores(NamedTuple):
    """One condition's scores of the rated replies, NaN where there is none."""

    score: Floats
    confidence: Floats
    length: Floats
    unlabelled: int  # scores of replies that nobody rated; they count for nothing


def held_out_labels(split: Split) -> Iterator[LabelRow]:
    """The ratings that a user gave to held-out replies; openings are no replies (paper 4.3).

    `reply` is the number of the turn, from 0, as in the session's own references.
    """
    for session, _ in split.held_out:
        for turn in reply_turns(session):
            label = split.labels.satisfaction(session.session_id, turn)
            if label is not None:
                yield LabelRow(split.user_id, session.session_id, turn, label)


def gather_labels(rows: Iterable[LabelRow]) -> Labels:
    """Ratings as arrays.

    Raises:
        InputError: none, one off the scale, or two of the same reply and occasion.
    """
    ordered = sorted(rows, key=itemgetter(0, 1, 2, 4))
    if not ordered:
        raise InputError("there is no label: agreement needs the ratings of a person")
    places: dict[tuple[str, str, int], int] = {}
    label: list[int] = []
    second: list[float] = []
    before: tuple[tuple[str, str, int], int] | None = None
    for row in ordered:
        key = row[:3]
        if before == (key, row.occasion):
            raise InputError(f"{_named(key)} has two labels of one occasion: keep one of the two")
        before = key, row.occasion
        if not MIN_SCORE <= row.label <= MAX_SCORE:
            raise InputError(f"{_named(key)} has the label {row.label}: give one in 1..5")
        if key not in places:
            places[key] = len(label)
            label.append(row.label)
            second.append(math.nan)
        elif math.isnan(second[-1]):
            second[-1] = row.label
    return _arrays(places, label, second)


def gather_scores(rows: Iterable[ConditionScore], labels: Labels) -> dict[str, Scores]:
    """Each condition's scores of the rated replies, conditions in alphabetical order.

    Raises:
        InputError: none belongs to a rated reply, one is not finite, or two of the same reply.
    """
    found: dict[str, list[ConditionScore]] = {}
    for row in rows:
        found.setdefault(row.condition, []).append(row)
    gathered = {name: _scores(found[name], labels) for name in sorted(found)}
    if not found:
        raise InputError("there is no score: agreement needs at least one condition's")
    if all(one.unlabelled == len(found[name]) for name, one in gathered.items()):
        user, session, reply = next(iter(labels.places))
        raise InputError(
            "no score belongs to a labelled reply: name users, sessions and replies alike in both "
            f"(the first label is of user {user!r}, session {session!r}, reply {reply})"
        )
    return gathered


def _arrays(
    places: dict[tuple[str, str, int], int], label: list[int], second: list[float]
) -> Labels:
    sessions = list(dict.fromkeys(key[:2] for key in places))  # in order, as `places` is
    users = list(dict.fromkeys(user for user, _ in sessions))
    session_number = {key: n for n, key in enumerate(sessions)}
    user_number = {user: n for n, user in enumerate(users)}
    counts = np.bincount([user_number[user] for user, _ in sessions])
    return Labels(
        users=tuple(users),
        places=places,
        label=np.array(label, dtype=np.int64),
        second=np.array(second, dtype=np.float64),
        session=np.array([session_number[key[:2]] for key in places], dtype=np.int64),
        user=np.array([user_number[key[0]] for key in places], dtype=np.int64),
        user_sessions=tuple(int(count) for count in counts),
    )


def _scores(rows: list[ConditionScore], labels: Labels) -> Scores:
    keys = [row[1:4] for row in rows]
    if len(set(keys)) < len(keys):
        key = next(key for key, number in Counter(keys).items() if number > 1)
        raise InputError(
            f"condition {rows[0].condition!r} scores {_named(key)} twice: keep one of the two"
        )
    place = np.array([labels.places.get(key, -1) for key in keys], dtype=np.int64)
    held = place >= 0
    columns = np.full((3, len(labels.label)), np.nan)
    for n, column in enumerate(columns):
        column[place[held]] = _numbers(rows, n)[held]
    return Scores(columns[0], columns[1], columns[2], int((~held).sum()))


def _numbers(rows: list[ConditionScore], column: int) -> Floats:
    """The score, confidence or length of each row; NaN for None."""
    values = [row[4 + column] for row in rows]
    numbers = np.array(values, dtype=np.float64)
    finite = np.isfinite(numbers)
    if len(values) - values.count(None) != finite.sum():
        at = next(n for n, value in enumerate(values) if value is not None and not finite[n])
        raise InputError(
            f"condition {rows[at].condition!r} gives {_named(rows[at][1:4])} the value "
            f"{values[at]}: give a number, or nothing"
        )
    return numbers


def _named(key: tuple[str, str, int]) -> str:
    user, session, reply = key
    return f"reply {reply} of session {session!r} of user {user!r}"
