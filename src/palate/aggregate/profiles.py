"""The profile of each candidate: its numbers, what they rest on, and the warnings beside them."""

from __future__ import annotations

import math

from palate.aggregate.columns import PARTS, PER_POINT, names, scale
from palate.aggregate.estimates import Estimates, interval
from palate.aggregate.panel import Panel
from palate.aggregate.results import (
    COVERAGE_LIMIT,
    FEW_CARDS,
    CandidateResult,
    Coverage,
    Interval,
    Mark,
    PersonalScore,
)
from palate.types import TRACKS


def reasons(panel: Panel, n: int) -> dict[str, str]:
    """Why columns of candidate `n` have no value: {column: reason}, empty if all have one."""
    why = {
        f"user:{user}": f"no scored reply of user {user}"
        for u, user in enumerate(panel.users)
        if not panel.scored[0, u, n]
    }
    gaps = {track: _gap(panel, t, n) for t, track in enumerate(TRACKS)}
    for column, tracks in PARTS.items():
        missing = [f"{track}: {gaps[track]}" for track in tracks if gaps[track]]
        if missing:
            why[column] = "; ".join(missing)
    return why


def _gap(panel: Panel, t: int, n: int) -> str:
    """What candidate `n` lacks on track `t`, or "": other users' scores are no substitute."""
    if not panel.scored[t].any():
        return "no scores at all"
    lacking = [user for u, user in enumerate(panel.users) if not panel.scored[t, u, n]]
    return f"no score of user {', '.join(lacking)}" if lacking else ""


def profile(panel: Panel, estimates: Estimates, n: int) -> CandidateResult:
    """The profile of candidate `n`."""
    why = reasons(panel, n)
    columns = {
        column: _interval(estimates, k, n, column) for k, column in enumerate(names(panel.users))
    }
    personal = {
        user: _personal(panel, columns[f"user:{user}"], u, n) for u, user in enumerate(panel.users)
    }
    return CandidateResult(
        name=panel.candidates[n],
        personal=personal,
        p_bar=_in_points(columns["u_score"]),
        generic=columns["generic"],
        session=columns["session"],
        u_score=columns["u_score"],
        g_score=columns["g_score"],
        overall=columns["overall"],
        coverage=panel.coverage[n],
        marks=_marks(panel.coverage[n], columns),
        reasons=why | ({"p_bar": why["u_score"]} if "u_score" in why else {}),
    )


def _interval(estimates: Estimates, k: int, n: int, column: str) -> Interval | None:
    mean = float(estimates.means[k, n])
    if math.isnan(mean):
        return None
    half = float(estimates.half_widths[k, n])
    return interval(mean, half, int(estimates.cards[k, n]), scale(column))


def _in_points(index: Interval | None) -> Interval | None:
    """P̄ from the U-Score, which is P̄ in per cent of the highest score."""
    if index is None:
        return None
    low, high = (None if b is None else b / PER_POINT for b in (index.low, index.high))
    return index.model_copy(update={"mean": index.mean / PER_POINT, "low": low, "high": high})


def _personal(panel: Panel, score: Interval | None, u: int, n: int) -> PersonalScore:
    trajectories = int((panel.values[0, u, n] > 0).sum())
    return PersonalScore(
        mean=score.mean if score else None,
        low=score.low if score else None,
        high=score.high if score else None,
        replies=int(panel.scored[0, u, n]),
        unscored=int(panel.unscored[0, u, n]),
        trajectories=trajectories,
        trajectories_planned=int(panel.planned[u]),
        cards=score.cards if score else 0,
        few_cards=score.few_cards if score else True,
        reason=score.reason if score else f"no scored reply of user {panel.users[u]}",
    )


def _marks(coverage: Coverage, columns: dict[str, Interval | None]) -> tuple[Mark, ...]:
    """Warnings: any gap in the scores, since a gap can raise a mean, and intervals on few cards."""
    marks = []
    pairs = (
        (coverage.scored, coverage.replies, "replies"),
        (coverage.sessions_scored, coverage.sessions_planned, "sessions"),
    )
    short = [f"{part} of {whole} {what} scored" for part, whole, what in pairs if part < whole]
    if short:
        low = any(part < COVERAGE_LIMIT * whole for part, whole, _ in pairs)
        limit = f" (limit {COVERAGE_LIMIT * 100:.0f} %)" if low else ""
        kind = "low coverage" if low else "incomplete"
        marks.append(
            Mark.model_validate({"kind": kind, "text": f"{kind}: {', '.join(short)}{limit}"})
        )
    cards = [column.cards for column in columns.values() if column]
    if cards and min(cards) < FEW_CARDS:
        text = f"few cards: intervals rest on as few as {min(cards)}"
        marks.append(Mark(kind="few cards", text=text))
    return tuple(marks)
