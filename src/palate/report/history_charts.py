"""Shapes of the history page: bars and points, as places on their axes in percent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from palate.habits import Habits
from palate.histories.figures import Figures, Ratings
from palate.report.templating import position
from palate.types import MAX_SCORE, MIN_SCORE

MAX_POINTS = 24  # of a line; longer courses are drawn by stretches
MAX_BARS = 16

HABIT_WORDS: Mapping[str, str] = {
    "emoji": "with an emoji or smiley",
    "actions": "with an action (*smiles*)",
    "exclamation": "with an exclamation mark",
    "question": "with a question mark",
    "ellipsis": "with an ellipsis",
    "no_final_mark": "without a mark at the end",
    "lower_case": "without a capital letter",
}


class Bar(NamedTuple):
    """A bar from the left edge; `width` is of the whole axis, `text` its number in words."""

    label: str
    width: str
    text: str
    kind: str = ""  # a class of the style sheet


class Segment(NamedTuple):
    """A part of a bar that is as long as its axis: the ratings of one label."""

    label: int
    x: str
    width: str
    number: int


class Point(NamedTuple):
    """The mean rating of one stretch of a line; `mean` and `y` are None where none was given."""

    label: str
    x: str
    y: str | None
    number: int
    mean: float | None


def rating_bars(ratings: Ratings) -> tuple[Bar, ...]:
    """A bar for each of the labels 1..5, on an axis from none to all."""
    whole = ratings.number or 1
    return tuple(
        Bar(str(label), _percent(number / whole), f"{number:,} ({number / whole:.0%})", f"r{label}")
        for label, number in enumerate(ratings.counts, MIN_SCORE)
    )


def segments(ratings: Ratings) -> tuple[Segment, ...]:
    """The labels 1..5 side by side; none where nothing is rated."""
    found, before = [], 0
    for label, number in enumerate(ratings.counts, MIN_SCORE):
        if number:
            x, width = before / ratings.number, number / ratings.number
            found.append(Segment(label, _percent(x), _percent(width), number))
        before += number
    return tuple(found)


def course(figures: Figures) -> tuple[Point, ...]:
    """Mean ratings over a session, by the number of the reply after the opening."""
    return _line({at.reply: at.ratings for at in figures.course})


def time(figures: Figures) -> tuple[Point, ...]:
    """Mean ratings over the history, by the number of the session."""
    return _line({of.number: of.ratings for of in figures.time})


def leaving_bars(figures: Figures) -> tuple[Bar, ...]:
    """How many sessions were left after how many messages of the user."""
    if not figures.left_after:
        return ()
    counts = _stretched(figures.left_after)
    most = max(number for _, number in counts)
    return tuple(
        Bar(label, _percent(number / most), _sessions(number), "count") for label, number in counts
    )


def habit_bars(habits: Habits | None) -> tuple[Bar, ...]:
    """A bar for each habit, on an axis from no message to all of them."""
    measured = {} if habits is None else habits.model_dump()
    return tuple(
        Bar(told, _percent(share), f"{share:.0%}", "count")
        for name, told in HABIT_WORDS.items()
        if (share := measured.get(name)) is not None
    )


def ending_bars(figures: Figures) -> tuple[Bar, ...]:
    """A bar for each ending, on an axis from none to all sessions."""
    told = {"quit": "left by choice", "limit": "stopped by a limit", "unknown": "not known"}
    return tuple(
        Bar(told[end], _percent(number / figures.sessions), _sessions(number), "count")
        for end, number in figures.endings.items()
    )


def _line(by_number: Mapping[int, Ratings]) -> tuple[Point, ...]:
    """Points at the middle of even stretches from number 1 to the last."""
    last = max(by_number, default=0)
    stretches = _stretches(1, last, _stretch(last, MAX_POINTS))
    return tuple(_point(first, end, last, by_number) for first, end in stretches)


def _point(first: int, end: int, last: int, by_number: Mapping[int, Ratings]) -> Point:
    held = [by_number[number] for number in range(first, end + 1) if number in by_number]
    number = sum(ratings.number for ratings in held)
    total = sum((ratings.mean or 0.0) * ratings.number for ratings in held)
    mean = total / number if number else None
    x = position((first + end) / 2, 1, last) if last > 1 else "50.00%"
    y = None if mean is None else position(MAX_SCORE + MIN_SCORE - mean, MIN_SCORE, MAX_SCORE)
    return Point(_range(first, end), x, y, number, mean)


def _stretched(counts: Mapping[int, int]) -> Sequence[tuple[str, int]]:
    """Counts by number, in at most MAX_BARS stretches from the smallest number to the largest."""
    low, high = min(counts), max(counts)
    size = _stretch(high - low + 1, MAX_BARS)
    return [
        (_range(first, end), sum(counts.get(number, 0) for number in range(first, end + 1)))
        for first, end in _stretches(low, high, size)
    ]


def _stretches(low: int, high: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(low, high + 1, size):
        yield first, min(first + size - 1, high)


def _stretch(length: int, most: int) -> int:
    return max(1, -(-length // most))


def _range(first: int, end: int) -> str:
    return f"{first:,}" if first == end else f"{first:,}–{end:,}"


def _sessions(number: int) -> str:
    return f"{number:,} session" if number == 1 else f"{number:,} sessions"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
