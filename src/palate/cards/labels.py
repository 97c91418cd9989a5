"""Where the card library lies, and what its cards are listed and counted by."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "library"
LANGUAGES = ("en", "zh")


class Labels(NamedTuple):
    """What a library card is listed and counted by; the same in both languages.

    `relationship` is what the user is to the character; `difficulty` what it asks of a candidate.
    """

    character: str
    role: str
    genre: str
    relationship: str
    mood: str
    rhythm: str
    difficulty: tuple[str, ...]
