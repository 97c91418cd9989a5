"""What a check of a history says: one sentence each, how grave it is, and where it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from palate.types import Record, Session

NAMED_PLACES = 3  # in the sentence; `places` has them all

Level = Literal["stop", "weak", "note"]
LEVELS: tuple[Level, ...] = ("stop", "weak", "note")


class Finding(Record):
    """One sentence about a history.

    `level`: "stop" where no simulator or no rubric can be made, "weak" where what is made will be
    poor, "note" for what its owner should know. `places` are session ids, or turns as SESSION#TURN
    with turns counted from 0, as evidence in rubrics is.
    """

    level: Level
    kind: str
    text: str
    places: tuple[str, ...] = ()


def turn_place(session: Session, turn: int) -> str:
    """A turn as rubrics cite it."""
    return f"{session.session_id}#{turn}"


def listed(places: Sequence[str]) -> str:
    """The first few places, and how many more there are."""
    more = len(places) - NAMED_PLACES
    named = ", ".join(places[:NAMED_PLACES])
    return f"{named} and {more:,} more" if more > 0 else named


def counted(number: int, one: str, many: str = "") -> str:
    """The number with its noun: "1 session", "2 sessions"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def of_all(number: int, whole: int, one: str, verb: tuple[str, str]) -> str:
    """For example "1 of 8 sessions has" or "all 8 sessions have"; `verb` in both numbers."""
    if number == whole and whole > 1:
        return f"All {whole:,} {one}s {verb[1]}"
    nouns = one if whole == 1 else f"{one}s"
    return f"{number:,} of {whole:,} {nouns} {verb[0] if number == 1 else verb[1]}"
