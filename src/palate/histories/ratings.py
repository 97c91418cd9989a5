"""Ratings in a table beside the chats: CSV with session, turn, satisfaction (or thumb), note."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from palate.errors import InputError
from palate.histories.formats.fields import comment
from palate.histories.formats.normal import Notes
from palate.histories.formats.tables import rows
from palate.histories.importing import Item
from palate.histories.mapping import ThumbValues, plain
from palate.histories.sessions import Thumbs, on_scale
from palate.types import Session, Turn

_COLUMNS = ("session", "turn", "satisfaction", "thumb", "note")


class Rating(NamedTuple):
    """One row: what a user said of one turn, counted from 0; None: nothing."""

    session: str
    turn: int
    satisfaction: int | None
    note: str | None
    place: str


def read_ratings(path: Path, thumbs: Thumbs | None) -> tuple[Rating, ...]:
    """The rows of a ratings table.

    Raises:
        InputError: a column is missing or unknown, a value is wrong, or two rows of one turn.
    """
    found: dict[tuple[str, int], Rating] = {}
    for value, line in rows(path):
        row = {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else {}
        place = f"{path} {line}"
        _check_columns(row, path)
        rating = Rating(
            row["session"],
            _turn(row["turn"], place),
            _satisfaction(row, thumbs, place),
            comment(value.get("note")) if isinstance(value, dict) else None,
            place,
        )
        key = (rating.session, rating.turn)
        if key in found:
            raise InputError(f"{place} rates turn {rating.turn} of {rating.session!r} again")
        found[key] = rating
    if not found:
        raise InputError(f"{path} holds no rating; its columns must be session,turn,satisfaction")
    return tuple(found.values())


def rated(
    items: Sequence[Item], ratings: Sequence[Rating], notes: Notes
) -> tuple[tuple[Item, ...], tuple[Rating, ...]]:
    """The sessions with these ratings, and the ratings whose session is not among them.

    A session is called by its id or by the id that its file gave it.

    Raises:
        InputError: a turn does not exist or is the user's.
    """
    by_session: defaultdict[str, list[Rating]] = defaultdict(list)
    for rating in ratings:
        by_session[rating.session].append(rating)
    done: list[Item] = []
    used: set[str] = set()
    for item in items:
        names = {item.session.session_id, _own_id(item.session)} & set(by_session)
        used |= names
        mine = [rating for name in sorted(names) for rating in by_session[name]]
        done.append(item._replace(session=_with(item.session, mine, notes)) if mine else item)
    return tuple(done), tuple(one for one in ratings if one.session not in used)


def _own_id(session: Session) -> str:
    source = session.extra.get("source")
    return str(source.get("id", "")) if isinstance(source, dict) else ""


def _with(session: Session, ratings: Sequence[Rating], notes: Notes) -> Session:
    turns = list(session.turns)
    for rating in ratings:
        turns[rating.turn] = _rated_turn(session, rating, notes)
    return session.model_copy(update={"turns": tuple(turns)})


def _rated_turn(session: Session, rating: Rating, notes: Notes) -> Turn:
    if rating.turn >= len(session.turns):
        raise InputError(
            f"{rating.place}: session {session.session_id} has turns 0 to "
            f"{len(session.turns) - 1}, not {rating.turn}"
        )
    turn = session.turns[rating.turn]
    if turn.speaker == "user" and rating.satisfaction is not None:
        raise InputError(
            f"{rating.place}: turn {rating.turn} of {session.session_id} is the user's; only "
            "replies of the character are rated"
        )
    satisfaction = turn.satisfaction if rating.satisfaction is None else rating.satisfaction
    if turn.satisfaction not in (None, satisfaction):
        notes.add("replaced", rating.place, f"{turn.satisfaction} by {satisfaction}")
    return turn.model_copy(update={"satisfaction": satisfaction, "note": rating.note or turn.note})


def _check_columns(row: dict[str, str], path: Path) -> None:
    unknown = [name for name in row if name and name not in _COLUMNS]
    if unknown:
        raise InputError(
            f"{path} has a column {unknown[0][:40]!r}; the columns are {', '.join(_COLUMNS)}"
        )
    for name in ("session", "turn"):
        if name not in row:
            raise InputError(f"{path} has no column {name}; the columns are {', '.join(_COLUMNS)}")
    if "satisfaction" not in row and "thumb" not in row:
        raise InputError(f"{path} has neither a column satisfaction nor a column thumb")


def _turn(text: str, place: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 9:
        return int(text)
    raise InputError(f"{place}: turn is {text[:40]!r}, but must be a number from 0")


def _satisfaction(row: dict[str, str], thumbs: Thumbs | None, place: str) -> int | None:
    text = row.get("satisfaction", "")
    if text:
        found = on_scale(text, None)
        if found is None:
            raise InputError(f"{place}: satisfaction is {text[:40]!r}, but must be 1 to 5 or empty")
        return found
    thumb = row.get("thumb", "")
    if not thumb:
        return None
    up, down = thumb in ThumbValues().up, thumb in ThumbValues().down
    if not (up or down):
        raise InputError(f"{place}: thumb is {thumb[:40]!r}, but must be up, down or empty")
    if thumbs is None:
        raise InputError(f"{place} holds a thumb; say with --thumbs what up and down count as")
    return thumbs.up if up else thumbs.down
