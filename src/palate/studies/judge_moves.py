"""What a judge check found: how far scores moved from the first answer, with intervals.

A move is a changed question's score less the first one's, on the same reply and dimension. The
sampling unit is the session: its replies are not independent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from palate.language import Language
from palate.statistics import by_cluster, cluster_draws, half_width
from palate.studies.judge_check import CHANGES, Checked, Kind, TurnTrack
from palate.studies.judge_pairs import OrderFlips
from palate.types import Record

OVERALL = "overall"
RESAMPLES = 2000
_POINT = 1 - 1e-9  # expected scores are sums of rounded numbers


class Move(Record):
    """How one dimension moved under one change, in points of the scale 1..5.

    `form` None: all forms of an injection together. `mean_abs` is the mean distance, `moved` the
    share of scores that moved by a point or more, `raised` of those that rose so far, `bias` the
    mean move with its 95 % interval. `lost` counts verdicts in which only one of the two had a
    score here. None: not measured, for `reason`.
    """

    language: Language
    track: TurnTrack
    kind: Kind
    form: int | None
    dimension: str
    scores: int
    sessions: int
    mean_abs: float | None
    moved: float | None
    raised: float | None
    bias: float | None
    low: float | None
    high: float | None
    lost: int
    reason: str | None


class Unscored(Record):
    """Verdicts of one kind that gave no scores, by reason."""

    language: Language
    track: TurnTrack
    kind: Kind
    asked: int
    unscored: int
    reasons: dict[str, int]


class JudgeCheck(Record):
    """A whole check; `missing` questions had no answer, and are in no number."""

    judge: str
    revisions: tuple[str, ...]
    form: str
    items: int
    users: tuple[str, ...]
    seed: int
    resamples: int
    missing: int
    moves: tuple[Move, ...]
    unscored: tuple[Unscored, ...]
    orders: tuple[OrderFlips, ...]
    prompts: dict[str, str]
    remarks: tuple[str, ...]
    made_at: str


class _Pair(NamedTuple):
    session: str
    first: Checked
    changed: Checked


def moves(found: Iterable[Checked], *, seed: int, resamples: int = RESAMPLES) -> tuple[Move, ...]:
    """Every language, track, change and dimension; the overall first, injections by form last."""
    by_group: dict[tuple[Language, TurnTrack], list[Checked]] = defaultdict(list)
    for one in found:
        by_group[one.language, one.track].append(one)
    return tuple(
        move
        for (language, track), group in sorted(by_group.items())
        for move in _of_group(language, track, group, seed, resamples)
    )


def _of_group(
    language: Language, track: TurnTrack, group: Sequence[Checked], seed: int, resamples: int
) -> Iterator[Move]:
    first = {_place(one): one for one in group if one.kind == "first"}
    names = list(dict.fromkeys(name for one in first.values() for name in one.scores))
    dimensions = [OVERALL, *(names if track == "generic" else ())]
    for kind in CHANGES:
        of_kind = [one for one in group if one.kind == kind]
        pairs = [
            _Pair(f"{one.user}/{one.session}", first[_place(one)], one)
            for one in of_kind
            if _place(one) in first
        ]
        if not of_kind:
            continue
        forms = sorted({one.form for one in of_kind}) if kind == "injected" else []
        for dimension in dimensions:
            yield _move(pairs, (language, track, kind, None, dimension), seed, resamples)
        for form in forms:
            own = [pair for pair in pairs if pair.changed.form == form]
            yield _move(own, (language, track, kind, form, OVERALL), seed, resamples)


def _place(one: Checked) -> tuple[str, str, int]:
    return one.user, one.session, one.turn


def _move(
    pairs: Sequence[_Pair],
    about: tuple[Language, TurnTrack, Kind, int | None, str],
    seed: int,
    resamples: int,
) -> Move:
    by_session: dict[str, list[float]] = defaultdict(list)
    lost = 0
    for pair in pairs:
        if pair.first.unscored is not None or pair.changed.unscored is not None:
            continue  # counted as unscored, not as a move
        before, after = _score(pair.first, about[-1]), _score(pair.changed, about[-1])
        if before is not None and after is not None:
            by_session[pair.session].append(after - before)
        else:
            lost += (before is None) != (after is None)
    values = np.array([value for own in by_session.values() for value in own])
    language, track, kind, form, dimension = about
    low, high = _interval(list(by_session.values()), seed, resamples)
    return Move(
        language=language,
        track=track,
        kind=kind,
        form=form,
        dimension=dimension,
        scores=len(values),
        sessions=len(by_session),
        mean_abs=_mean(np.abs(values)),
        moved=_mean(np.abs(values) >= _POINT),
        raised=_mean(values >= _POINT),
        bias=_mean(values),
        low=low,
        high=high,
        lost=lost,
        reason=_reason(len(values), len(by_session)),
    )


def _score(one: Checked, dimension: str) -> float | None:
    return one.overall if dimension == OVERALL else one.scores.get(dimension)


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _reason(scores: int, sessions: int) -> str | None:
    if not scores:
        return "no reply has this score before and after"
    return None if sessions > 1 else "no interval: all replies are of one session"


def _interval(
    by_session: Sequence[Sequence[float]], seed: int, resamples: int
) -> tuple[float | None, float | None]:
    """Of the mean move, by a bootstrap over sessions; moves lie in -4..4."""
    if len(by_session) < 2:
        return None, None
    values = np.full((len(by_session), max(map(len, by_session))), np.nan)
    for row, own in enumerate(by_session):
        values[row, : len(own)] = own
    sums = by_cluster(values)
    draws = cluster_draws(len(by_session), resamples, seed)
    half = float(half_width(sums.redrawn(draws), sums.clusters()))
    if not np.isfinite(half):
        return None, None
    mean = float(sums.means())
    return max(mean - half, -4.0), min(mean + half, 4.0)


def unscored(found: Iterable[Checked]) -> tuple[Unscored, ...]:
    """How many verdicts gave no scores, the first answers among them."""
    groups: dict[tuple[Language, TurnTrack, Kind], list[Checked]] = defaultdict(list)
    for one in found:
        groups[one.language, one.track, one.kind].append(one)
    order: Mapping[Kind, int] = {kind: n for n, kind in enumerate(("first", *CHANGES))}
    return tuple(
        Unscored(
            language=language,
            track=track,
            kind=kind,
            asked=len(group),
            unscored=sum(one.unscored is not None for one in group),
            reasons=dict(Counter(one.unscored for one in group if one.unscored is not None)),
        )
        for (language, track, kind), group in sorted(
            groups.items(), key=lambda entry: (*entry[0][:2], order[entry[0][2]])
        )
    )


def over(found: JudgeCheck, most: float) -> tuple[Move, ...]:
    """The moves that a gate does not let pass: further than `most` on average, or not measured."""
    return tuple(one for one in found.moves if one.mean_abs is None or one.mean_abs > most)


def remarks(found: Sequence[Move], counted: Sequence[Unscored], missing: int) -> tuple[str, ...]:
    """What the numbers say, where an interval leaves out 0, and what they rest on."""
    said = [line for one in found if one.dimension == OVERALL for line in _said(one)]
    gaps = sum(one.unscored for one in counted)
    if gaps:
        said.append(f"{gaps} of {sum(one.asked for one in counted)} verdicts were unscored")
    if missing:
        said.append(f"{missing} questions have no answer yet and are in no number")
    return tuple(said)


def _said(one: Move) -> Iterator[str]:
    where = f"{one.track} track, {one.language}"
    if one.kind == "again" and one.mean_abs:
        yield f"the same question twice gave other scores ({where}: {one.mean_abs:.2f} on average)"
    if one.form is not None or one.low is None or one.high is None or one.bias is None:
        return
    if one.kind == "padded" and not one.low <= 0 <= one.high:
        way = "higher" if one.bias > 0 else "lower"
        yield f"padded copies of a reply score {way} ({where}: {one.bias:+.2f})"
    if one.kind == "injected" and one.low > 0:
        yield f"instructions inside a reply raise its score ({where}: {one.bias:+.2f})"
