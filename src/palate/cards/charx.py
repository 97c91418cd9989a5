"""Cards in CHARX files: a zip with `card.json` at its root and the card's assets beside it.

The zip may follow a picture in the same file. Its directory is read here rather than by a zip
library, because a directory can be as hostile as its members: it is bounded before it is parsed,
nothing but `card.json` is ever unpacked, and writing copies the other members packed as they are.
Refused: encryption, names that lead outside, overlapping members, two files `card.json`, zip64.
"""

from __future__ import annotations

import struct
import unicodedata
import zlib
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import IO, BinaryIO, NamedTuple

from palate.cards.bounds import MAX_BYTES, copy_bytes, too_large
from palate.errors import InputError

CARD = "card.json"

_END = struct.Struct("<4s4H2LH")
_RECORD = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_DIRECTORY = 2 * 1024**2  # some 20,000 members
_LONGEST_TAIL = 65535 + _END.size  # a zip ends with a comment
_ENCRYPTED, _DESCRIPTOR, _UTF8 = 0x1, 0x8, 0x800
_STORED, _DEFLATED = 0, 8
_1980 = 0x21  # the first day that a zip can name: what is written has no date


class Member(NamedTuple):
    """A file in the zip, packed; `start` is the offset of its local header."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    start: int
    record: bytes


class Directory(NamedTuple):
    """The members, and where in the file the zip's first byte lies."""

    members: tuple[Member, ...]
    first: int


class _End(NamedTuple):
    size: int
    start: int
    offset: int  # what was put before the zip when its offsets were already written


def has_zip(file: BinaryIO) -> bool:
    """Whether a zip's end mark is where it has to be."""
    return _tail(file)[1] is not None


def read(file: BinaryIO, where: str) -> bytes:
    """The text of `card.json`.

    Raises:
        InputError: no card in it, damaged, or refused by one of this module's rules.
    """
    card = _card(directory(file, where), where)
    if card.size > MAX_BYTES or card.packed > MAX_BYTES:
        raise too_large(f"{where} ({CARD})")
    return _content(file, card, where)


def content(file: BinaryIO, name: str, where: str, limit: int) -> bytes | None:
    """The content of one member; None: there is none of this name, or it is larger than `limit`.

    Raises:
        InputError: damaged, or refused by one of this module's rules.
    """
    found = [m for m in directory(file, where).members if m.name == name]
    if (
        len(found) != 1
        or found[0].flags & _ENCRYPTED
        or max(found[0].packed, found[0].size) > limit
    ):
        return None
    return _content(file, found[0], where)


def names(file: BinaryIO, where: str) -> list[str]:
    """The members besides the card, folders left out."""
    members = directory(file, where).members
    return [m.name for m in members if m.name != CARD and not m.name.endswith("/")]


def directory(file: BinaryIO, where: str) -> Directory:
    """The checked list of members.

    Raises:
        InputError: no zip, damaged, or refused by one of this module's rules.
    """
    end = _end(file, where)
    file.seek(end.start)
    raw = file.read(end.size)
    members = []
    at = 0
    while at < len(raw):
        member = _member(raw, at, end.offset, where)
        members.append(member)
        at += len(member.record)
    if sum(member.packed for member in members) > end.start:
        raise InputError(f"{where}: card data refused: members of the zip overlap")
    first = min((member.start for member in members), default=end.start)
    return Directory(tuple(members), first)


def write(
    source: BinaryIO | None,
    target: IO[bytes],
    card: bytes,
    where: str,
    *,
    added: Sequence[tuple[str, bytes]] = (),
) -> None:
    """Write a CHARX with `card` as its card.json; all else is copied from `source`, if any.

    `added` are further members, name and content.
    """
    listed = directory(source, where) if source else Directory((), 0)
    if source:
        source.seek(0)
        copy_bytes(source, target, listed.first)
    written = False
    records = []
    for member in listed.members:
        if member.name != CARD and source:
            records.append(_copied(source, target, member, where))
        elif not written:
            written = True
            records.append(_added(target, CARD, card))
    if not written:
        records.append(_added(target, CARD, card))
    records += [_added(target, name, inside) for name, inside in added]
    start = target.tell()
    target.writelines(records)
    size, count = target.tell() - start, len(records)
    target.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))


def _tail(file: BinaryIO) -> tuple[bytes, int | None]:
    """The file's last bytes, and where among them the end mark begins."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _LONGEST_TAIL))
    tail = file.read(_LONGEST_TAIL)
    at = tail.rfind(b"PK\5\6", 0, len(tail) - _END.size + 4)
    return tail, at if at >= 0 else None


def _end(file: BinaryIO, where: str) -> _End:
    tail, at = _tail(file)
    if at is None:
        raise InputError(f"{where}: no card found; it has no complete zip in it")
    if tail[max(0, at - 20) : at].startswith(b"PK\6\7"):
        raise InputError(f"{where}: card data refused: a zip64 holds more than any card")
    _, disk, _, _, _, size, offset, _ = _END.unpack_from(tail, at)
    start = file.seek(0, 2) - len(tail) + at - size
    if size > _MAX_DIRECTORY:
        raise InputError(f"{where}: card data refused: the zip has too many members")
    if disk != 0 or start < offset:
        raise _damaged(where, "its directory is not where the zip says")
    return _End(size, start, start - offset)


def _member(raw: bytes, at: int, offset: int, where: str) -> Member:
    if len(raw) - at < _RECORD.size or raw[at : at + 4] != b"PK\1\2":
        raise _damaged(where, "its directory cannot be read")
    fields = _RECORD.unpack_from(raw, at)
    flags, method, _, _, checksum, packed, size, name_size, extra, comment = fields[3:13]
    length = _RECORD.size + name_size + extra + comment
    raw_name = raw[at + _RECORD.size : at + _RECORD.size + name_size]
    if len(raw) - at < length:
        raise _damaged(where, "its directory is cut off")
    name = raw_name.decode("utf-8" if flags & _UTF8 else "cp437", "replace")
    if _leads_outside(name):
        raise InputError(
            f"{where}: card data refused: member {name[:60]!r} leads outside of the zip"
        )
    record = raw[at : at + length]
    return Member(
        name, raw_name, flags, method, checksum, packed, size, fields[16] + offset, record
    )


def _leads_outside(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    drive = name[1:2] == ":"
    control = any(unicodedata.category(character) == "Cc" for character in name)
    return path.is_absolute() or drive or ".." in path.parts or control


def _card(listed: Directory, where: str) -> Member:
    found = [member for member in listed.members if member.name == CARD]
    if not found:
        raise InputError(f"{where}: no card found; the zip has no {CARD} at its root")
    if len(found) > 1:
        raise InputError(f"{where}: card data refused: the zip has {len(found)} files {CARD}")
    if found[0].flags & _ENCRYPTED:
        raise InputError(f"{where}: card data refused: it is encrypted; export it without")
    return found[0]


def _data_start(file: BinaryIO, member: Member, where: str) -> int:
    """Offset of a member's packed bytes; after it the file stands at the local name."""
    file.seek(member.start)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\3\4":
        raise _damaged(where, f"member {member.name[:60]!r} is not where the directory says")
    name, extra = _LOCAL.unpack(head)[9:]
    return member.start + _LOCAL.size + int(name) + int(extra)


def _content(file: BinaryIO, member: Member, where: str) -> bytes:
    file.seek(_data_start(file, member, where))
    found = _unpacked(file.read(member.packed), member, where)
    if len(found) != member.size or zlib.crc32(found) != member.checksum:
        raise _damaged(where, "its checksum is wrong")
    return found


def _unpacked(packed: bytes, card: Member, where: str) -> bytes:
    if card.method == _STORED:
        return packed
    if card.method != _DEFLATED:
        raise InputError(f"{where}: card data refused: {CARD} is packed in a way no CHARX needs")
    inflater = zlib.decompressobj(-15)
    try:
        text = inflater.decompress(packed, card.size + 1)
    except zlib.error:
        raise _damaged(where, "it cannot be unpacked") from None
    if not inflater.eof and len(text) > card.size:
        raise _damaged(where, "it unpacks to more than the zip says")
    return text


def _damaged(where: str, why: str) -> InputError:
    return InputError(f"{where}: card data damaged: {why}; export the card again")


def _copied(source: BinaryIO, target: IO[bytes], member: Member, where: str) -> bytes:
    """Copy a member as it is packed; the directory record of the copy."""
    data = _data_start(source, member, where)
    name_end = member.start + _LOCAL.size + len(member.raw_name)
    source.seek(name_end)
    extra = source.read(max(0, data - name_end))
    at = target.tell()
    # Sizes stand in the header, not after the data: whoever reads the copy needs no directory.
    flags = member.flags & ~_DESCRIPTOR
    target.write(_local(member, flags, extra))
    source.seek(data)
    copy_bytes(source, target, member.packed)
    record = bytearray(member.record)
    struct.pack_into("<H", record, 8, flags)
    struct.pack_into("<L", record, 42, at)
    return bytes(record)


def _local(member: Member, flags: int, extra: bytes) -> bytes:
    _, _, version, _, method, time, date = _RECORD.unpack_from(member.record)[:7]
    sizes = (member.checksum, member.packed, member.size, len(member.raw_name), len(extra))
    head = _LOCAL.pack(b"PK\3\4", version, flags, method, time, date, *sizes)
    return head + member.raw_name + extra


def _added(target: IO[bytes], member: str, content: bytes) -> bytes:
    """Write a member; its directory record."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflater.compress(content) + deflater.flush()
    name = member.encode()
    common = (
        20,
        0,
        _DEFLATED,
        0,
        _1980,
        zlib.crc32(content),
        len(packed),
        len(content),
        len(name),
        0,
    )
    at = target.tell()
    target.write(_LOCAL.pack(b"PK\3\4", *common) + name + packed)
    return _RECORD.pack(b"PK\1\2", 20, *common, 0, 0, 0, 0, at) + name
