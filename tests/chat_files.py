"""Writes the chat files of the import tests, and reads them as `palate history import` does."""

import json
from pathlib import Path

from palate.histories.importing import Imported, Options, read_file


def lines(path: Path, *values: object) -> Path:
    """JSON Lines."""
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    path.write_text(text, "utf-8")
    return path


def document(path: Path, value: object) -> Path:
    """One JSON value, indented as people's tools write it."""
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")
    return path


def imported(path: Path, **options) -> Imported:
    return read_file(path, Options(**{"user": "u1", **options}))


def session(path: Path, **options):
    (item,) = imported(path, **options).items
    return item.session


def turns(path: Path, **options) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in session(path, **options).turns]


def noted(path: Path, **options) -> list[tuple[str, str]]:
    """Kind and place of each note, those about card, character and absent fields left out."""
    notes = imported(path, **options).notes.listed
    left_out = ("absent", "card", "character")
    return [(note.kind, note.place) for note in notes if note.kind not in left_out]
