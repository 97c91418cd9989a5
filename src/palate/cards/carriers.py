"""Telling by its content what a file is, and taking the card's JSON text out of it.

The ending of a file's name says nothing (but that odd text is meant as YAML): cards are renamed,
and pictures with a CHARX behind them are called .png or .jpeg. A carrier may hold several copies of
a card; they come best first, and `palate.cards.files` takes the first that reads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from palate.cards import charx, oobabooga, png
from palate.cards.bounds import MAX_BYTES, opened, too_large
from palate.errors import InputError

Carrier = Literal["json", "png", "charx", "yaml"]

_JPEG = b"\xff\xd8\xff"
_ZIP = (b"PK\3\4", b"PK\5\6")
_OTHER_PICTURES = (b"GIF8", b"RIFF", b"BM")
_HEIF = b"ftyp"  # AVIF and its relatives, after a length
_YAML_ENDINGS = (".yaml", ".yml")


class Copy(NamedTuple):
    """JSON text of a card, and what to call the place where it was found."""

    text: bytes
    where: str


class Contents(NamedTuple):
    """What a file carries; `copies` has at least one, best first; `notes` are warnings."""

    carrier: Carrier
    copies: tuple[Copy, ...]
    notes: tuple[str, ...]


def contents(path: Path) -> Contents:
    """What the file carries, told by its first bytes.

    Raises:
        InputError: missing, no file, no card in it, damaged, or larger than any card.
    """
    with opened(path) as file:
        head = file.read(8)
        if head.startswith(png.SIGNATURE[:4]):
            return _picture(file, str(path))
        if head.startswith(_ZIP) or (head.startswith(_JPEG) and charx.has_zip(file)):
            return _zip(file, str(path))
        if head.startswith((*_OTHER_PICTURES, _JPEG)) or head[4:] == _HEIF:
            raise InputError(
                f"{path}: no card found; cards are carried by PNG, CHARX, JSON and YAML files, not "
                "by the data of other pictures; export the card again"
            )
        return _text(file, path)


def _text(file: BinaryIO, path: Path) -> Contents:
    if os.fstat(file.fileno()).st_size > MAX_BYTES:
        raise too_large(str(path))
    file.seek(0)
    text = file.read(MAX_BYTES + 1)
    if oobabooga.is_yaml(text) or _is_meant_as_yaml(text, path):
        return Contents("yaml", (Copy(oobabooga.read(text, str(path)), str(path)),), ())
    return Contents("json", (Copy(text, str(path)),), ())


def _is_meant_as_yaml(text: bytes, path: Path) -> bool:
    begin = text[:65536].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return path.suffix.lower() in _YAML_ENDINGS and begin not in (b"{", b"")


def _zip(file: BinaryIO, where: str) -> Contents:
    return Contents("charx", (Copy(charx.read(file, where), f"{where} ({charx.CARD})"),), ())


def _picture(file: BinaryIO, where: str) -> Contents:
    picture = png.read(file, where)
    if not picture.copies and charx.has_zip(file):
        return _zip(file, where)
    readable = [copy for copy in picture.copies if copy.fault is None]
    if not readable:
        raise InputError(_no_card(picture, where))
    copies = tuple(Copy(copy.text, f"{where} (chunk {copy.keyword})") for copy in readable)
    return Contents("png", copies, _notes(picture, readable[0], where))


def _no_card(picture: png.Picture, where: str) -> str:
    if picture.copies:
        worst = picture.copies[0]
        return (
            f"{where}: card data damaged in chunk {worst.keyword}: {worst.fault}; "
            "export the card again"
        )
    if picture.cut:
        return f"{where}: no card found; the picture is cut off"
    return f"{where}: no card found; the picture carries none (no chunk chara or ccv3)"


def _notes(picture: png.Picture, used: png.Copy, where: str) -> tuple[str, ...]:
    notes = []
    for copy in picture.copies:
        older = png.KEYWORDS.index(copy.keyword) < png.KEYWORDS.index(used.keyword)
        if older and (copy.fault or not copy.sound):
            why = copy.fault or "its checksum is wrong"
            notes.append(
                f"{where}: the newer copy of the card (chunk {copy.keyword}) is damaged ({why}); "
                f"the older one (chunk {used.keyword}) is used"
            )
    if used.keyword in picture.differing:
        notes.append(f"{where} has chunks {used.keyword} that differ; the first of them is used")
    if not used.sound:
        notes.append(
            f"{where}: the checksum of chunk {used.keyword} is wrong; its text may be damaged"
        )
    if picture.cut:
        notes.append(f"{where} is cut off after the card; the picture is damaged")
    return tuple(notes)
