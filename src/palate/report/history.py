"""The picture of histories: one HTML file that works from disk, without a network or a script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from palate.histories.figures import MAX_ENTROPY, Figures
from palate.histories.findings import Finding, counted
from palate.report import history_charts as charts
from palate.report.policy import inline, policy
from palate.report.templating import environment
from palate.report.writing import write_page

MAX_CARDS = 40  # rows of a table; further cards are in the figures as JSON


class UserHistory(NamedTuple):
    """One user's history: its figures, and what the check says of it."""

    figures: Figures
    findings: tuple[Finding, ...] = ()


class Drawn(NamedTuple):
    """What the page shows of one user."""

    figures: Figures
    findings: tuple[Finding, ...]
    segments: tuple[charts.Segment, ...]
    ratings: tuple[charts.Bar, ...]
    endings: tuple[charts.Bar, ...]
    leaving: tuple[charts.Bar, ...]
    habits: tuple[charts.Bar, ...]
    course: tuple[charts.Point, ...]
    time: tuple[charts.Point, ...]


def write_history_page(histories: Sequence[UserHistory], path: Path, *, title: str) -> Path:
    """Write the page of these users to `path`, whole or not at all.

    Raises:
        StoreError: the file cannot be written.
    """
    style = inline("report.css", "history.css")
    page = (
        environment()
        .get_template("history.html")
        .render(
            title=title,
            lead=_lead(histories),
            users=[_drawn(history) for history in histories],
            max_entropy=MAX_ENTROPY,
            max_cards=MAX_CARDS,
            segments=charts.segments,
            policy=policy(style),
            style=style.text,
        )
    )
    return write_page(path, page)


def _lead(histories: Sequence[UserHistory]) -> str:
    sessions = sum(history.figures.sessions for history in histories)
    rated = sum(history.figures.ratings.number for history in histories)
    people = counted(len(histories), "person", "people")
    rates = counted(rated, "rated reply", "rated replies")
    return f"{people}, {counted(sessions, 'session')}, {rates}."


def _drawn(history: UserHistory) -> Drawn:
    figures = history.figures
    return Drawn(
        figures=figures,
        findings=history.findings,
        segments=charts.segments(figures.ratings),
        ratings=charts.rating_bars(figures.ratings),
        endings=charts.ending_bars(figures),
        leaving=charts.leaving_bars(figures),
        habits=charts.habit_bars(figures.habits),
        course=charts.course(figures),
        time=charts.time(figures),
    )
