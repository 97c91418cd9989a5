"""The frozen evaluation panel: ten characters of the library (paper 3.2).

The rule [choice]: the library's genres, in their listed order, make ten strata of three. Of each
stratum the character comes first whose SHA-256 of "palate panel VERSION ID" is lowest, passing
over characters of the sample study and over a relationship or a mood that an earlier stratum has
taken. Chance within strata: nobody picked favourites. `library/panel.json` records the outcome
with the digests of the card files. Another panel gives other scores, so it is another version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from palate.cards.labels import FOLDER, LANGUAGES, Labels
from palate.errors import InputError
from palate.json_input import parsed

SIZE = 10


class Panel(NamedTuple):
    """The panel as frozen: its version, its characters, and the SHA-256 of each card file."""

    version: int
    characters: tuple[str, ...]
    files: Mapping[str, str]  # "en/ID-en.json" -> SHA-256 in hexadecimal

    @property
    def sha256(self) -> str:
        """One digest over all files, in order of their names."""
        lines = "".join(f"{name} {digest}\n" for name, digest in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()


@cache
def panel() -> Panel:
    """The panel as it was frozen; `panel_files` checks that the files still are it.

    Raises:
        InputError: the installed record is damaged.
    """
    path = FOLDER / "panel.json"
    value = parsed(path.read_bytes(), str(path))
    try:
        if not isinstance(value, dict):
            raise TypeError
        return Panel(int(value["version"]), tuple(value["characters"]), dict(value["files"]))
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is damaged; install palate anew") from None


def panel_files(languages: Sequence[str] = LANGUAGES) -> tuple[Path, ...]:
    """The panel's card files in these languages, checked against their digests.

    Raises:
        InputError: a file is missing or is not what was frozen.
    """
    frozen = panel()
    return tuple(
        _checked(f"{tag}/{character}-{tag}.json", frozen)
        for tag in languages
        for character in frozen.characters
    )


def digest_of(path: Path) -> str:
    """SHA-256 of a card file's bytes, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def chosen(library: Iterable[Labels], *, version: int, passed_over: Collection[str]) -> list[str]:
    """The panel that the rule gives for a library whose genres come in their listed order."""
    labels = list(library)
    genres = list(dict.fromkeys(one.genre for one in labels))
    width = -(-len(genres) // SIZE)
    taken: set[str] = set()
    found = []
    for start in range(0, len(genres), width):
        stratum = genres[start : start + width]
        free = [
            one
            for one in labels
            if one.genre in stratum
            and one.character not in passed_over
            and not taken & {one.relationship, one.mood}
        ]
        first = min(free, key=lambda one: _lot(one.character, version))
        taken |= {first.relationship, first.mood}
        found.append(first.character)
    return found


def _lot(character: str, version: int) -> str:
    return hashlib.sha256(f"palate panel {version} {character}".encode()).hexdigest()


def _checked(name: str, frozen: Panel) -> Path:
    path = FOLDER / name
    if not path.is_file() or digest_of(path) != frozen.files.get(name):
        raise InputError(
            f"{path} is not the card that the panel was frozen with; install palate anew, or copy "
            "the cards into your study with `palate cards export` and change them there"
        )
    return path
