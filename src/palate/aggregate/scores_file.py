"""SCORES.csv: scores from anywhere, read strictly.

Columns `user,card,candidate,repetition,track,reply,score`, in any order; other columns are ignored.
`track` is personal, generic or session; `repetition` counts from 1; `reply` from 0 over the
character's replies without the opening, empty for the session track; an empty `score` is an
unscored verdict; a planned cell without a reply is a row with `reply` and `score` empty. UTF-8,
with or without a byte order mark, with any line ends.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from palate.errors import InputError
from palate.types import MAX_SCORE, MIN_SCORE, TRACKS, ScoreRow, Track

COLUMNS = ("user", "card", "candidate", "repetition", "track", "reply", "score")

_WHOLE = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)


def read_scores(path: Path) -> list[ScoreRow]:
    """The rows of the file.

    Raises:
        InputError: the file cannot be read or a line is wrong; names the file and the line.
    """
    lines = _lines(path, _text(path))
    header_line, header = next(lines, (0, []))
    if not header:
        raise InputError(f"{path} is empty: give the columns {','.join(COLUMNS)} and their rows")
    places = _places(path, header_line, header)
    rows: list[ScoreRow] = []
    seen = _Seen(path)
    for number, fields in lines:
        if len(fields) != len(header):
            raise _wrong(
                path, number, f"has {len(fields)} fields, not {len(header)} like the header"
            )
        row = _row(path, number, {name: fields[at].strip() for name, at in places.items()})
        seen.add(number, row)
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has a header and no scores: add at least one row")
    return rows


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}): check the path") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _wrong(path, line, "is not UTF-8: save the file as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _wrong(path, line, "holds a NUL character: save the file as UTF-8 text")
    return text


def _lines(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers (from 1, of a record's last line) and fields; blank lines are passed over."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise _wrong(
            path, reader.line_num, f"is not valid CSV ({error}): check its quotes"
        ) from error


def _places(path: Path, line: int, header: list[str]) -> dict[str, int]:
    names = [name.strip() for name in header]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        found = ", ".join(names)
        raise _wrong(path, line, f"lacks the column {', '.join(missing)}: the header has {found}")
    for name in COLUMNS:
        if names.count(name) > 1:
            raise _wrong(path, line, f"has the column {name} twice: keep one")
    return {name: names.index(name) for name in COLUMNS}


def _row(path: Path, line: int, fields: dict[str, str]) -> ScoreRow:
    for name in ("user", "card", "candidate"):
        if not fields[name]:
            raise _wrong(path, line, f"has no {name}: fill it in")
    track = _track(path, line, fields["track"])
    repetition = fields["repetition"]
    if not _WHOLE.fullmatch(repetition) or int(repetition) < 1:
        raise _wrong(path, line, f"has the repetition {repetition!r}: give a whole number from 1")
    reply = _reply(path, line, track, fields["reply"])
    score = _score(path, line, fields["score"])
    if track != "session" and reply is None and score is not None:
        raise _wrong(path, line, f"scores no reply on the {track} track: give its number from 0")
    return ScoreRow(
        user=fields["user"],
        card=fields["card"],
        candidate=fields["candidate"],
        repetition=int(repetition),
        track=track,
        reply=reply,
        score=score,
    )


def _track(path: Path, line: int, text: str) -> Track:
    for track in TRACKS:
        if text == track:
            return track
    raise _wrong(path, line, f"has the track {text!r}: give one of {', '.join(TRACKS)}")


def _reply(path: Path, line: int, track: Track, text: str) -> int | None:
    if not text:
        return None
    if track == "session":
        raise _wrong(
            path, line, f"has the reply {text!r} on the session track: leave it empty there"
        )
    if not _WHOLE.fullmatch(text):
        raise _wrong(path, line, f"has the reply {text!r}: give a whole number from 0, or nothing")
    return int(text)


def _score(path: Path, line: int, text: str) -> float | None:
    if not text:
        return None
    if not _DECIMAL.fullmatch(text) or not MIN_SCORE <= float(text) <= MAX_SCORE:
        raise _wrong(path, line, f"has the score {text!r}: give a number in 1..5, or nothing")
    return float(text)


class _Seen:
    """The rows so far, to find a second one for the same thing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[ScoreRow, int] = {}
        self._cells: dict[ScoreRow, tuple[int, bool]] = {}

    def add(self, line: int, row: ScoreRow) -> None:
        key = row._replace(score=None)
        first = self._lines.setdefault(key, line)
        if first != line:
            raise _wrong(self._path, line, f"repeats line {first}: keep one of the two")
        if row.track == "session":
            return
        empty = row.reply is None
        before, was_empty = self._cells.setdefault(key._replace(reply=None), (line, empty))
        if was_empty != empty:
            what = f"says otherwise than line {before} whether the trajectory has a reply"
            raise _wrong(self._path, line, f"{what}: remove one of the two")


def _wrong(path: Path, line: int, what: str) -> InputError:
    return InputError(f"{path}, line {line} {what}")
