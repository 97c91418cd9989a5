"""Where cards lie: files, folders of them, and the cards folder of a study."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from palate.cards.export import ENDINGS
from palate.errors import InputError

CARDS = "cards"  # the folder of a study that its cards are kept in


def card_files(places: Iterable[Path]) -> Iterator[Path]:
    """The card files that these files, folders and studies name, each once.

    Raises:
        InputError: a place does not exist, cannot be read or holds no card file.
    """
    found: dict[Path, None] = {}
    for place in places:
        inside = files_in(place)
        if not inside and not os.path.lexists(place):
            raise InputError(f"{place} does not exist; name a card file, a folder or a study")
        if not inside:
            raise InputError(f"{place} holds no card file ({', '.join(ENDINGS)})")
        found.update(dict.fromkeys(inside))
    yield from found


def files_in(place: Path) -> Sequence[Path]:
    """The card files of a folder or study, by name; a file is its own; () where there is none.

    Raises:
        InputError: it cannot be read.
    """
    try:
        place.lstat()
        folder = card_folder(place)
        if not place.is_dir():
            return [place]
        listed = sorted(folder.iterdir()) if folder.is_dir() else ()
        return [
            path
            for path in listed
            if path.suffix.lower() in ENDINGS
            and not path.name.startswith(".")
            and not path.is_dir()
        ]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise InputError(
            f"{place} cannot be read as a card or a folder of cards ({error.strerror}); mend its "
            "permissions or name another place"
        ) from None


def card_folder(place: Path) -> Path:
    """Where the cards of a study are; any other folder is one of cards itself."""
    return place / CARDS if is_study(place) else place


def is_study(place: Path) -> bool:
    """Whether it is a study's folder."""
    with contextlib.suppress(OSError):
        return (place / "study.toml").is_file()
    return False


def is_folder(place: Path) -> bool:
    """Whether it is a folder; not where the system refuses its name or hides it."""
    with contextlib.suppress(OSError):
        return place.is_dir()
    return False


def check_target(folder: Path) -> None:
    """Refuse a folder to write to that a file stands in the way of.

    Raises:
        InputError: it, or a folder above it, is a file.
    """
    above = next((one for one in (folder, *folder.parents) if os.path.lexists(one)), None)
    if above is not None and not is_folder(above):
        raise InputError(f"{above} is no folder; name a study or a folder to import into")
