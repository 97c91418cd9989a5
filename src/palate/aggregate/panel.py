"""From rows of scores to arrays: one value a trajectory and track, and what is missing.

Users, cards and candidates are put in a natural order of their names ("u2" before "u10"), so that
the order of the rows changes nothing, the bootstrap draws included.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from palate.aggregate.results import Coverage, TrackCoverage
from palate.errors import InputError
from palate.statistics import Floats, Ints
from palate.types import MAX_SCORE, MIN_SCORE, TRACKS, ScoreRow, Track

MOST_CELLS = 10_000_000  # users × candidates × cards × repetitions: some gigabytes
MOST_CARDS = 50_000


@dataclass(frozen=True, slots=True)
class Panel:
    """Scores as arrays, with T tracks, U users, N candidates, C cards and R repetitions.

    `values` (T, U, N, C, R) is the mean over the scored replies of a trajectory, NaN without one;
    `scored` and `unscored` (T, U, N) count verdicts; `coverage` has one entry a candidate, in
    order, and `planned` (U) the cells (card, repetition) of a user that any candidate has.
    """

    users: tuple[str, ...]
    candidates: tuple[str, ...]
    cards: tuple[str, ...]
    repetitions: tuple[int, ...]
    values: Floats
    scored: Ints
    unscored: Ints
    planned: Ints
    coverage: tuple[Coverage, ...]


def natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names sorted with the numbers in them read as numbers."""
    return tuple(sorted(set(names), key=_natural_key))


def _natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    parts = re.split(r"([0-9]+)", name)
    # At even places stand texts, at odd ones numbers; a tuple of both keeps them comparable.
    return [(0, int(p), "") if i % 2 else (1, 0, p) for i, p in enumerate(parts)], name


def panel(rows: Iterable[ScoreRow]) -> Panel:
    """Arrange `rows`.

    Raises:
        InputError: no rows, a score off the scale, or two scores for the same thing.
    """
    ordered = sorted(rows, key=_identity)
    _check(ordered)
    users = natural_order(row.user for row in ordered)
    candidates = natural_order(row.candidate for row in ordered)
    cards = natural_order(row.card for row in ordered)
    repetitions = tuple(sorted({row.repetition for row in ordered}))
    places = _places(ordered, (users, candidates, cards, repetitions))
    scores = np.array([np.nan if row.score is None else row.score for row in ordered])
    shape = (len(TRACKS), len(users), len(candidates), len(cards), len(repetitions))
    _check_size(shape)
    verdicts = np.array([row.track == "session" or row.reply is not None for row in ordered])
    held = np.isfinite(scores)
    sums, counts, missing = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    np.add.at(sums, _at(places, held), scores[held])
    np.add.at(counts, _at(places, held), 1.0)
    np.add.at(missing, _at(places, verdicts & ~held), 1.0)
    return Panel(
        users=users,
        candidates=candidates,
        cards=cards,
        repetitions=repetitions,
        values=np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0),
        scored=counts.sum(axis=(3, 4)).astype(np.int64),
        unscored=missing.sum(axis=(3, 4)).astype(np.int64),
        planned=_planned(places, shape),
        coverage=_coverages(ordered, candidates),
    )


def _identity(row: ScoreRow) -> tuple[str, str, str, int, str, int]:
    reply = -1 if row.reply is None else row.reply
    return (row.user, row.card, row.candidate, row.repetition, row.track, reply)


def _check(ordered: Sequence[ScoreRow]) -> None:
    if not ordered:
        raise InputError("there are no scores to aggregate: give at least one row")
    for row in ordered:
        if row.score is not None and not MIN_SCORE <= row.score <= MAX_SCORE:
            raise InputError(f"{_where(row)}: the score {row.score} is not in 1..5, correct it")
    for row, following in pairwise(ordered):
        if _identity(row) == _identity(following):
            raise InputError(f"{_where(row)} is scored twice: keep one of the two rows")


def _check_size(shape: tuple[int, int, int, int, int]) -> None:
    """Refuse a table whose grid would not fit into memory, as one with mixed-up columns has."""
    if math.prod(shape[1:]) <= MOST_CELLS and shape[3] <= MOST_CARDS:
        return
    raise InputError(
        f"the scores span {shape[1]} users, {shape[2]} candidates, {shape[3]} cards and {shape[4]} "
        f"repetitions, and at most {MOST_CELLS:,} cells and {MOST_CARDS:,} cards are aggregated: "
        "check that no column holds the ids of another"
    )


def _where(row: ScoreRow) -> str:
    reply = "" if row.reply is None else f", reply {row.reply}"
    cell = f"user {row.user}, card {row.card}, candidate {row.candidate}"
    return f"{cell}, repetition {row.repetition}, track {row.track}{reply}"


def _places(
    ordered: Sequence[ScoreRow],
    axes: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[int, ...]],
) -> Ints:
    """Where each row stands on the five axes of `Panel.values`: shape (5, rows)."""
    track, user, candidate, card, repetition = (
        {name: i for i, name in enumerate(names)} for names in (TRACKS, *axes)
    )
    found = [
        (
            track[r.track],
            user[r.user],
            candidate[r.candidate],
            card[r.card],
            repetition[r.repetition],
        )
        for r in ordered
    ]
    return np.array(found, dtype=np.int64).T


def _at(places: Ints, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Ints, ...]:
    return tuple(places[:, chosen])


def _planned(places: Ints, shape: tuple[int, ...]) -> Ints:
    known = np.zeros((shape[1], shape[3], shape[4]), dtype=bool)
    known[places[1], places[3], places[4]] = True
    return np.asarray(known.sum(axis=(1, 2)), dtype=np.int64)


class _Tally(NamedTuple):
    """What was seen of one candidate: replies, sessions and tracks, each with its outcomes."""

    replies: dict[tuple[str, str, int, int], list[bool]]
    sessions: dict[tuple[str, str, int], dict[Track, bool]]
    tracks: dict[Track, list[bool]]


def _coverages(ordered: Sequence[ScoreRow], candidates: tuple[str, ...]) -> tuple[Coverage, ...]:
    tallies = {
        name: _Tally(defaultdict(list), defaultdict(dict), {track: [] for track in TRACKS})
        for name in candidates
    }
    cells = set()
    for row in ordered:
        cell = (row.user, row.card, row.repetition)
        tally, scored = tallies[row.candidate], row.score is not None
        cells.add(cell)
        session = tally.sessions[cell]
        session[row.track] = session.get(row.track, False) or scored
        if row.reply is not None:
            tally.replies[(*cell, row.reply)].append(scored)
        if row.reply is not None or row.track == "session":
            tally.tracks[row.track].append(scored)
    return tuple(_coverage(tallies[name], len(cells)) for name in candidates)


def _coverage(tally: _Tally, planned: int) -> Coverage:
    return Coverage(
        scored=sum(all(outcomes) for outcomes in tally.replies.values()),
        replies=len(tally.replies),
        sessions_scored=sum(all(tracks.values()) for tracks in tally.sessions.values()),
        sessions_planned=planned,
        tracks={
            track: TrackCoverage(scored=sum(outcomes), unscored=len(outcomes) - sum(outcomes))
            for track, outcomes in tally.tracks.items()
        },
    )
