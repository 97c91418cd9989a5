"""Shapes of the validation page: curves and bars as places on their axes, and tints of a matrix."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from palate.report.templating import position
from palate.simulators.validation.measures import Bars, Distribution, Leaving, OwnAgainstOthers

MOST_POINTS = 200  # of a curve; longer ones are drawn by means of stretches


class CurvePoint(NamedTuple):
    """A loss in nats a token after `step` steps."""

    step: int
    loss: float


class LossCurve(NamedTuple):
    """Training losses, and those of the sessions that only stopped the training."""

    training: tuple[CurvePoint, ...]
    validation: tuple[CurvePoint, ...]


class DrawnCurve(NamedTuple):
    """Points of polylines in a square of 100 by 100, and what its axes say."""

    training: str
    validation: str
    top: str
    bottom: str
    steps: int
    last: str
    best: str | None


class Column(NamedTuple):
    """One bar of the person and one of the simulator beside it, heights of 100 %."""

    label: str
    x: str
    width: str
    human: str
    human_y: str
    simulated: str
    simulated_y: str
    simulated_x: str
    told: str


class LeavingPoint(NamedTuple):
    """The chance of leaving at a user turn; `y` None where nothing was measured."""

    turn: int
    x: str
    real_y: str | None
    simulated_y: str | None
    real: str
    simulated: str


class HeatCell(NamedTuple):
    """Nats a token of a row's messages under a column's adapter; `tint` 0..16, -1 without."""

    value: float | None
    tint: int
    own: bool


def read_curve(path: Path) -> LossCurve | None:
    """The loss curve that training left; None where there is none to read."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return None
    training: list[CurvePoint] = []
    validation: list[CurvePoint] = []
    for line in lines:
        try:
            seen = json.loads(line)
            step = int(seen["step"])
            losses = (seen.get("loss"), seen.get("validation"))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # a torn line is a missing point
        for points, loss in zip((training, validation), losses, strict=True):
            if isinstance(loss, int | float) and math.isfinite(loss):
                points.append(CurvePoint(step, float(loss)))
    return LossCurve(tuple(training), tuple(validation)) if training else None


def curve(seen: LossCurve) -> DrawnCurve:
    """A loss curve: steps from 0 to the last, losses from the lowest to the highest."""
    training, validation = _thinned(seen.training), _thinned(seen.validation)
    losses = [point.loss for point in (*training, *validation)]
    low, high = min(losses), max(losses)
    last = max(point.step for point in (*training, *validation))
    best = min((point.loss for point in seen.validation), default=None)

    def drawn(points: Sequence[CurvePoint]) -> str:
        return " ".join(
            f"{_place(point.step, 0, last):.2f},{100 - _place(point.loss, low, high):.2f}"
            for point in points
        )

    return DrawnCurve(
        training=drawn(training),
        validation=drawn(validation),
        top=f"{high:.2f}",
        bottom=f"{low:.2f}",
        steps=last,
        last=f"{seen.training[-1].loss:.3f}",
        best=None if best is None else f"{best:.3f}",
    )


def _thinned(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    size = math.ceil(len(points) / MOST_POINTS) or 1
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [
        CurvePoint(some[len(some) // 2].step, sum(point.loss for point in some) / len(some))
        for some in stretches
    ]


def _place(value: float, low: float, high: float) -> float:
    return 50.0 if high <= low else 100 * (value - low) / (high - low)


def columns(lengths: Distribution) -> tuple[Column, ...]:
    """Bars of shares of messages by length, the person's beside the simulator's."""
    bars = _without_empty_ends(lengths.bars)
    totals = [max(sum(side), 1) for side in (bars.human, bars.simulated)]
    shares = [
        (human / totals[0], simulated / totals[1])
        for human, simulated in zip(bars.human, bars.simulated, strict=True)
    ]
    highest = max((max(pair) for pair in shares), default=0.0) or 1.0
    slot = 100 / max(len(shares), 1)
    labels = [_range(bars.edges, number) for number in range(len(shares))]
    return tuple(
        Column(
            label=labels[number],
            x=f"{number * slot + slot * 0.1:.2f}%",
            width=f"{slot * 0.4:.2f}%",
            human=f"{100 * human / highest:.2f}%",
            human_y=f"{100 - 100 * human / highest:.2f}%",
            simulated=f"{100 * simulated / highest:.2f}%",
            simulated_y=f"{100 - 100 * simulated / highest:.2f}%",
            simulated_x=f"{number * slot + slot * 0.5:.2f}%",
            told=f"{labels[number]}: person {human:.0%}, simulator {simulated:.0%}",
        )
        for number, (human, simulated) in enumerate(shares)
    )


def _without_empty_ends(bars: Bars) -> Bars:
    held = [n for n, both in enumerate(zip(bars.human, bars.simulated, strict=True)) if any(both)]
    if not held:
        return bars
    first, end = held[0], held[-1] + 1
    # The upper edge of the last bar kept, so that its label has an end where it had one.
    return Bars(
        edges=bars.edges[first : end + 1],
        human=bars.human[first:end],
        simulated=bars.simulated[first:end],
    )


def _range(edges: Sequence[float], number: int) -> str:
    low = f"{edges[number]:g}"
    if number + 1 >= len(edges):
        return f"{low}+"
    high = edges[number + 1]
    return low if high == edges[number] + 1 else f"{low}–{high - 1:g}"


def leaving_curve(measured: Leaving) -> tuple[LeavingPoint, ...]:
    """The chance of leaving by user turn, on an axis from 0 to 1."""
    last = max((at.turn for at in measured.by_turn), default=1)

    def height(value: float | None) -> str | None:
        return None if value is None else position(1 - value, 0, 1)

    return tuple(
        LeavingPoint(
            turn=at.turn,
            x=position(at.turn, 1, last) if last > 1 else "50.00%",
            real_y=height(at.real.value),
            simulated_y=height(at.simulated.value),
            real=_told(at.real.value, at.real.n),
            simulated=_told(at.simulated.value, at.simulated.n),
        )
        for at in measured.by_turn
    )


def _told(value: float | None, number: int) -> str:
    return "n/a" if value is None else f"{value:.2f} of {number}"


def heat(matrix: OwnAgainstOthers) -> tuple[tuple[HeatCell, ...], ...]:
    """Tints by row, as rows differ in how plain they are: the lowest, the best, is deepest."""
    found = []
    for row in matrix.rows:
        known = [value for value in row.nll if value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        found.append(
            tuple(
                HeatCell(
                    value,
                    -1 if value is None else round(16 * (1 - _place(value, low, high) / 100)),
                    person == row.user_id,
                )
                for person, value in zip(matrix.persons, row.nll, strict=True)
            )
        )
    return tuple(found)
