"""A history file as bytes of UTF-8, whatever it is packed and encoded in, within stated limits.

gzip and the encodings UTF-8, UTF-16 and UTF-32 (as Windows programs save them) are told by
content. Lines are read one by one; what is unpacked is counted, so that a small file cannot fill
the memory.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from palate.errors import InputError

MAX_BYTES = 512 * 1024 * 1024  # of a file, unpacked
MAX_DOCUMENT = 128 * 1024 * 1024  # of JSON that is one value, which is read at once
MAX_LINE = MAX_DOCUMENT  # programs write a whole dump on one line

_GZIP = b"\x1f\x8b"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NumberedLine(NamedTuple):
    """A line without its end, in UTF-8; numbers count from 1."""

    number: int
    raw: bytes


class _Counted(io.RawIOBase):
    """What is read from `inner`, refused beyond `MAX_BYTES`."""

    def __init__(self, inner: io.BufferedIOBase, path: Path) -> None:
        self._inner = inner
        self._path = path
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        data = self._inner.read(len(buffer))
        self._read += len(data)
        if self._read > MAX_BYTES:
            raise InputError(
                f"{self._path} holds more than {MAX_BYTES >> 20} MB; divide it into parts"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inner.close()
        super().close()


def lines(path: Path) -> Iterator[NumberedLine]:
    """The lines of a file, cut at line feeds alone: texts may hold U+2028.

    Raises:
        InputError: the file cannot be read, is too large, or a line is.
    """
    with _told(path), _opened(path) as stream:
        number = 0
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise InputError(
                    f"{path} line {number} is longer than {MAX_LINE >> 20} MB; check that it is "
                    "the right file"
                )
            yield NumberedLine(number, line.rstrip(b"\r\n"))


def document(path: Path) -> bytes:
    """The whole of a file that is one JSON value.

    Raises:
        InputError: the file cannot be read or is too large.
    """
    with _told(path), _opened(path) as stream:
        content = stream.read(MAX_DOCUMENT + 1)
    if len(content) > MAX_DOCUMENT:
        raise InputError(
            f"{path} is one JSON value of more than {MAX_DOCUMENT >> 20} MB; divide it into parts "
            "or write one session a line"
        )
    return content


class _told:  # noqa: N801  # reads as a clause of the with statement
    """Tells what the system or the packing refuses in one sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        path = self._path
        if isinstance(error, FileNotFoundError):
            raise InputError(f"{path} does not exist; check the path of the chat file") from None
        if isinstance(error, (EOFError, gzip.BadGzipFile, zlib.error)):
            raise InputError(f"{path} is a damaged gzip file; pack or copy it again") from None
        if isinstance(error, UnicodeError):
            raise InputError(f"{path} is damaged UTF-16 or UTF-32; save it as UTF-8") from None
        if isinstance(error, OSError):
            raise InputError(
                f"{path} cannot be read as a chat file: {error.strerror or error}"
            ) from None
        if isinstance(error, ValueError) and "null byte" in str(error):
            raise InputError(f"{str(path)!r} cannot be the path of a file; mend it") from None


def _opened(path: Path) -> IO[bytes]:
    """The file unpacked and in UTF-8 without a byte order mark."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe is read but once
        raise InputError(f"{path} is no file but a pipe or a device; save what it gives to a file")
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    inner = gzip.GzipFile(path) if packed else path.open("rb")
    stream = io.BufferedReader(_Counted(inner, path), 1 << 16)
    mark, encoding = _encoding(stream.peek(4)[:4])
    stream.read(len(mark))
    if encoding == "utf-8":
        return stream
    return _in_utf8(stream, encoding)


def _encoding(start: bytes) -> tuple[bytes, str]:
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return mark, encoding
    # JSON and the headings of tables begin with two ASCII characters.
    if len(start) >= 2 and start[0] and not start[1]:
        return b"", "utf-16-le"
    if len(start) >= 2 and not start[0] and start[1]:
        return b"", "utf-16-be"
    return b"", "utf-8"


class _Recoded(io.RawIOBase):
    """UTF-8 of another encoding; half an emoji passes, to be mended where JSON is read."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, "surrogatepass", newline="")
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        if not self._waiting:
            self._waiting = self._text.read(1 << 14).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._waiting))
        buffer[:size] = self._waiting[:size]
        self._waiting = self._waiting[size:]
        return size

    def close(self) -> None:
        self._text.close()
        super().close()


def _in_utf8(stream: IO[bytes], encoding: str) -> IO[bytes]:
    return io.BufferedReader(_Recoded(stream, encoding), 1 << 16)
