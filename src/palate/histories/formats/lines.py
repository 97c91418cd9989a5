"""palate's own JSON Lines, one session a line: read as they are, ids and ratings included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from palate.errors import InputError
from palate.histories.files import session_of
from palate.histories.formats import fields
from palate.histories.formats.normal import Notes, Record
from palate.types import Session

NAME = "palate"


def matches(values: Sequence[object]) -> bool:
    """Whether these first values of a file are such sessions."""
    return any(
        isinstance(value, dict)
        and "session_id" in value
        and any("speaker" in turn for turn in fields.objects(value.get("turns")))
        for value in values
    )


def sessions(records: Iterable[Record], notes: Notes) -> Iterator[tuple[Session, str]]:
    """The sessions of a file with their places; one that is wrong is noted and left out."""
    for value, place in records:
        if not isinstance(value, dict):
            notes.add("refused", place, "no session")
            continue
        try:
            yield session_of(value, place or "the file"), place
        except InputError as error:
            notes.add("refused", place, str(error))
