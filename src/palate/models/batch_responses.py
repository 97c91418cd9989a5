"""Batch response files, as services give them back: any order, parts missing, errors inside.

    {"custom_id": "…", "response": {"status_code": 200, "body": {…}}, "error": null}

A file is walked once and kept on the disk: only where each answer lies is in memory. A response
other than HTTP 200, and one with an error, is no answer but a failure with its reason. Of several
answers to one request the first counts; that they differ is told. A line that is no response (torn
at the end of a broken download, damaged, another format) is counted and left out. Packed files
(gzip) are read too.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import orjson

from palate.errors import InputError
from palate.models.answers import Malformed, decoded
from palate.models.faults import one_line, said_in

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
_MOST_REASON = 160  # characters of a failure's reason


class Response(NamedTuple):
    """An answer: the body, as an HTTP call would have brought it, and the line it stands in.

    `file` is the place of its file among those that were opened.
    """

    body: object
    line: bytes
    file: int


class _Place(NamedTuple):
    file: int
    start: int
    size: int
    content: bytes  # a hash of the body


class Responses:
    """The answers in `paths`; open until `close`, and a context manager.

    `failed`: reason of the last failure of each request, of those without an answer.
    `repeated` and `differing` count further answers to the same request, with the same body and
    with another; `damaged` the lines that could not be read, `torn` those at the end of a file.

    Raises:
        InputError: a file cannot be read, or is a file of requests.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.failed: dict[str, str] = {}
        self.repeated = self.differing = self.damaged = self.torn = 0
        self._stack = contextlib.ExitStack()
        self._files: list[IO[bytes]] = []
        self._places: dict[str, list[_Place]] = {}
        with contextlib.ExitStack() as opened:
            for path in paths:
                self._read(path, opened)
            self._stack = opened.pop_all()
        for answered in self._places.keys() & self.failed.keys():
            del self.failed[answered]

    def of(self, custom_id: str) -> Iterator[Response]:
        """The answers to a request, the first first."""
        for place in self._places.get(custom_id, ()):
            file = self._files[place.file]
            file.seek(place.start)
            line = file.read(place.size)
            yield Response(_body(_fields(line)), line, place.file)

    def ids(self, file: int | None = None) -> set[str]:
        """Requests that have an answer (in that file)."""
        return {
            custom_id
            for custom_id, places in self._places.items()
            if file is None or any(place.file == file for place in places)
        }

    def reasons(self, custom_ids: set[str]) -> Counter[str]:
        """How often each reason stands among the failures of these requests."""
        return Counter(why for custom_id, why in self.failed.items() if custom_id in custom_ids)

    def close(self) -> None:
        """Close the files."""
        self._stack.close()

    def __enter__(self) -> Responses:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read(self, path: Path, opened: contextlib.ExitStack) -> None:
        file, cut = _opened(path, opened)
        self._files.append(file)
        torn = self.torn
        start = found = requests = 0
        for line in file:
            if line.strip():
                kind = self._take(line, _Place(len(self._files) - 1, start, len(line), b""))
                found += kind == "response"
                requests += kind == "request"
            start += len(line)
        self.torn = max(self.torn, torn + cut)
        if requests and not found:
            raise InputError(
                f"{path} holds the requests of a batch, not its responses; name the file that the "
                "batch service gave back"
            )

    def _take(self, line: bytes, place: _Place) -> str:
        """Take a line in; what it was: "response", "request" or "" for neither."""
        fields = _fields(line)
        custom_id = fields.get("custom_id")
        if not isinstance(custom_id, str) or not ("response" in fields or "error" in fields):
            if "method" in fields and "body" in fields:
                self.damaged += 1
                return "request"
            self.torn += not line.endswith(b"\n")
            self.damaged += line.endswith(b"\n")
            return ""
        try:
            why = _failure(fields)
            if why:
                self.failed[custom_id] = why
            else:
                self._add(custom_id, fields, place)
        except (orjson.JSONEncodeError, RecursionError):  # nested deeper than anything we write
            self.damaged += 1
            return ""
        return "response"

    def _add(self, custom_id: str, fields: dict[str, object], place: _Place) -> None:
        body = orjson.dumps(_body(fields), option=orjson.OPT_SORT_KEYS)
        content = hashlib.sha256(body).digest()
        places = self._places.setdefault(custom_id, [])
        if any(content == other.content for other in places):
            self.repeated += 1
            return
        self.differing += bool(places)
        places.append(place._replace(content=content))


def _opened(path: Path, opened: contextlib.ExitStack) -> tuple[IO[bytes], bool]:
    """The file, unpacked where it is packed; whether its packing is cut off."""
    try:
        file: IO[bytes] = opened.enter_context(path.open("rb"))
        packed = file.read(2) == _GZIP
        file.seek(0)
        return _unpacked(path, opened) if packed else (file, False)
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read ({reason}); mend its path or the file") from None


def _unpacked(path: Path, opened: contextlib.ExitStack) -> tuple[IO[bytes], bool]:
    whole: IO[bytes] = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - entered
    cut = False
    with gzip.open(path) as packed:
        try:
            while chunk := packed.read1(_CHUNK):  # `read` would lose what came before the cut
                whole.write(chunk)
        except EOFError:
            cut = True
    whole.seek(0)
    return whole, cut


def _fields(line: bytes) -> dict[str, object]:
    """The JSON object of a line; empty where there is none."""
    try:
        value = decoded(line)
    except Malformed:
        return {}
    return value if isinstance(value, dict) else {}


def _body(fields: dict[str, object]) -> object:
    response = fields.get("response")
    return response.get("body") if isinstance(response, dict) else None


def _failure(fields: dict[str, object]) -> str:
    """Why a response is no answer; "" where it is one."""
    error, response = fields.get("error"), fields.get("response")
    if isinstance(response, dict):
        status, body = response.get("status_code", 200), _body(fields)
        if status != 200:
            return _short(f"HTTP {status}", body)
        if isinstance(body, dict) and not error:
            return ""
    return _short("", error or "no answer in it")


def _short(status: str, said: object) -> str:
    words = said_in(orjson.dumps(said)) if said else ""
    reason = one_line(": ".join(part for part in (status, words) if part), limit=_MOST_REASON)
    return reason or "an error without a word"  # never "", which would make it an answer
