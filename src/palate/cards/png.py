"""Cards in PNG and APNG pictures: the text chunks `ccv3` and `chara`, read and written.

The V3 specification wants a tEXt chunk of base64; pictures in use also have zTXt and iTXt, other
letter case, chunks after the pixels, and plain JSON. Chunks are walked by seeking: pixels are
never read, so that a picture of any size is told at once. Rules, fixed here:

- A sound copy goes before one with a wrong checksum, `ccv3` before `chara`, the first chunk of a
  keyword before later ones. A copy with a wrong checksum is used, with a warning, only where there
  is no sound one.
- Writing leaves every other byte of the picture as it was; the new chunks stand where the first
  old one stood, or else at the end.
"""

from __future__ import annotations

import base64
import binascii
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, BinaryIO, NamedTuple

from palate.cards.bounds import MAX_BYTES, copy_bytes
from palate.errors import InputError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORDS = ("ccv3", "chara")  # the newer format first
ASSET = "chara-ext-asset_:"

_TEXT_KINDS = (b"tEXt", b"zTXt", b"iTXt")
_MAX_CHUNKS = 100_000  # 800 MB of pixels in the usual 8 kB chunks
_MAX_TEXT = MAX_BYTES * 4 // 3 + 1024  # base64 takes a third more
_MAX_COPIES = 16  # each may unpack to the limit before it is found to be too large
_LONGEST_KEYWORD = 256  # the longest that PNG allows is 79; an asset's path is in it
_CUT = "the file is cut off inside it"


class Chunk(NamedTuple):
    """Where a chunk lies: `start` is that of its length field; `end` is past its checksum."""

    kind: bytes
    start: int
    length: int
    whole: bool

    @property
    def end(self) -> int:
        """Offset of the next chunk."""
        return self.start + 12 + self.length


class Copy(NamedTuple):
    """One copy of the card: its JSON text, or the reason why it cannot be read.

    `sound` is false where the chunk's checksum is wrong.
    """

    keyword: str
    text: bytes
    fault: str | None
    sound: bool


class Picture(NamedTuple):
    """What was found: the copies, best first; `cut` where the file ends before the picture."""

    copies: tuple[Copy, ...]
    differing: tuple[str, ...]
    cut: bool


class _Damaged(Exception):
    """Why a chunk's text cannot be had."""


def read(file: BinaryIO, where: str) -> Picture:
    """The copies of the card in a picture; none if it carries no card.

    Raises:
        InputError: not a PNG, too many chunks, or more card text than any card has.
    """
    copies: list[Copy] = []
    differing: dict[str, None] = {}
    last = None
    seen = held = 0
    for last in chunks(file, where):
        keyword = _keyword(file, last)
        if keyword not in KEYWORDS:
            continue
        seen += 1
        copy = _copy(file, last, keyword)
        twin = next((c for c in copies if c[0] == keyword and c[2:] == copy[2:]), None)
        if twin is None:
            copies.append(copy)
        elif twin.text != copy.text:
            differing[keyword] = None
        held += len(copy.text)
        if held > 2 * MAX_BYTES or seen > _MAX_COPIES:
            raise InputError(f"{where}: card data refused: its card chunks hold too much text")
    copies.sort(key=lambda c: (c.fault is not None, not c.sound, KEYWORDS.index(c.keyword)))
    return Picture(tuple(copies), tuple(differing), last is None or last.kind != b"IEND")


def chunks(file: BinaryIO, where: str) -> Iterator[Chunk]:
    """The chunks up to IEND; one that the file's end cuts comes last, not `whole`.

    Raises:
        InputError: not a PNG, or more chunks than a picture needs.
    """
    size = file.seek(0, 2)
    file.seek(0)
    if file.read(len(SIGNATURE)) != SIGNATURE:
        raise InputError(f"{where}: no card found; the picture was damaged on its way here")
    at = len(SIGNATURE)
    for _ in range(_MAX_CHUNKS):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        chunk = Chunk(head[4:], at, int.from_bytes(head[:4], "big"), whole=True)
        if chunk.end > size:
            yield chunk._replace(whole=False)
            return
        yield chunk
        if chunk.kind == b"IEND":
            return
        at = chunk.end
    raise InputError(f"{where}: no card found; it has more than {_MAX_CHUNKS} chunks")


def assets(file: BinaryIO, where: str) -> list[str]:
    """Paths of the assets that some exporters put into text chunks (V3, PNG/APNG)."""
    found = (_keyword(file, chunk, fold=False) for chunk in chunks(file, where))
    return [name.removeprefix(ASSET) for name in found if name and name.startswith(ASSET)]


def write(
    source: BinaryIO, target: IO[bytes], texts: Sequence[tuple[str, bytes]], where: str
) -> None:
    """Copy a picture with `texts`, (keyword, JSON) each, as its only card chunks.

    Raises:
        InputError: the picture is cut off, so that a copy would be no picture either.
    """
    walked = list(chunks(source, where))
    if not walked or walked[-1].kind != b"IEND" or not walked[-1].whole:
        raise InputError(f"{where} is cut off, so its picture cannot be kept; export to JSON")
    old = {chunk.start for chunk in walked if _keyword(source, chunk) in KEYWORDS}
    place = min(old, default=walked[-1].start)
    source.seek(0)
    copy_bytes(source, target, place)
    target.writelines(_card_chunks(texts))
    for chunk in walked:
        if chunk.start >= place and chunk.start not in old:
            source.seek(chunk.start)
            copy_bytes(source, target, chunk.end - chunk.start)
    source.seek(walked[-1].end)
    shutil.copyfileobj(source, target)  # some programs keep data after the picture


def plain(target: IO[bytes], texts: Sequence[tuple[str, bytes]]) -> None:
    """Write a small grey picture with the card in it, for a card that has none."""
    width, height = 64, 96
    rows = (b"\0" + b"\xb0" * width) * height
    target.write(SIGNATURE)
    target.write(_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)))
    target.writelines(_card_chunks(texts))
    target.write(_chunk(b"IDAT", zlib.compress(rows, 9)))
    target.write(_chunk(b"IEND", b""))


def _card_chunks(texts: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    for keyword, text in texts:
        yield _chunk(b"tEXt", keyword.encode() + b"\0" + base64.b64encode(text))


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(data, zlib.crc32(kind))
    return len(data).to_bytes(4, "big") + kind + data + checksum.to_bytes(4, "big")


def _keyword(file: BinaryIO, chunk: Chunk, *, fold: bool = True) -> str | None:
    if chunk.kind not in _TEXT_KINDS:
        return None
    file.seek(chunk.start + 8)
    word = file.read(min(chunk.length, _LONGEST_KEYWORD)).partition(b"\0")[0].decode("latin-1")
    return word.strip().lower() if fold else word


def _copy(file: BinaryIO, chunk: Chunk, keyword: str) -> Copy:
    if not chunk.whole:
        return Copy(keyword, b"", _CUT, sound=False)
    if chunk.length > _MAX_TEXT:
        return Copy(keyword, b"", _more_than_any_card(), sound=False)
    file.seek(chunk.start + 8)
    data = file.read(chunk.length)
    checksum = zlib.crc32(data, zlib.crc32(chunk.kind))
    sound = file.read(4) == checksum.to_bytes(4, "big")
    try:
        return Copy(keyword, _json(_text(chunk.kind, data)), None, sound)
    except _Damaged as damage:
        return Copy(keyword, b"", str(damage), sound)


def _text(kind: bytes, data: bytes) -> bytes:
    """The text of a chunk without its keyword, inflated where it is deflated."""
    rest = data.partition(b"\0")[2]
    if kind == b"tEXt":
        return rest
    if kind == b"zTXt":
        return _inflated(rest[1:])
    deflated, after_flags = rest[:1] == b"\1", rest[2:]  # flag, method, language, translation
    text = after_flags.partition(b"\0")[2].partition(b"\0")[2]
    return _inflated(text) if deflated else text


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data, _MAX_TEXT)
    except zlib.error:
        raise _Damaged("it cannot be unpacked") from None
    if not inflater.eof:
        full = len(text) >= _MAX_TEXT
        raise _Damaged(_more_than_any_card() if full else "its packed text has no end")
    return text


def _json(text: bytes) -> bytes:
    """The JSON in a chunk's text: base64, or as some programs write it, plain."""
    text = text.strip()
    if text.startswith(b"{"):
        return text
    packed = text.translate(None, b" \t\r\n").rstrip(b"=")
    try:
        return base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
    except binascii.Error:
        raise _Damaged("it is neither base64 nor JSON") from None


def _more_than_any_card() -> str:
    return f"it holds more than {MAX_BYTES // 1024**2} MB, which no card needs"
