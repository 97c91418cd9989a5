"""SCORES.csv: scores from anywhere, read strictly.

Columns `user,card,candidate,repetition,track,reply,score`, in any order; other columns are ignored.
`track` is personal, generic or session; `repetition` counts from 1; `reply` from 0 over the
character's replies without the opening, empty for the session track; an empty `score` is an
unscored verdict; a planned cell without a reply is a row with `reply` and `score` empty. UTF-8,
with or without a byte order mark, with any line ends.
"""

from __future__ import annotations

from pathlib import Path

from palate.csv_input import DECIMAL, WHOLE, read_table, wrong
from palate.errors import InputError
from palate.types import MAX_SCORE, MIN_SCORE, TRACKS, ScoreRow, Track

COLUMNS = ("user", "card", "candidate", "repetition", "track", "reply", "score")


def read_scores(path: Path) -> list[ScoreRow]:
    """The rows of the file.

    Raises:
        InputError: the file cannot be read or a line is wrong; names the file and the line.
    """
    rows: list[ScoreRow] = []
    seen = _Seen(path)
    for number, fields in read_table(path, COLUMNS, others=True).rows:
        row = _row(path, number, dict(zip(COLUMNS, fields, strict=True)))
        seen.add(number, row)
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has a header and no scores: add at least one row")
    return rows


def _row(path: Path, line: int, fields: dict[str, str]) -> ScoreRow:
    for name in ("user", "card", "candidate"):
        if not fields[name]:
            raise wrong(path, line, f"has no {name}: fill it in")
    track = _track(path, line, fields["track"])
    repetition = fields["repetition"]
    if not WHOLE.fullmatch(repetition) or int(repetition) < 1:
        raise wrong(path, line, f"has the repetition {repetition!r}: give a whole number from 1")
    reply = _reply(path, line, track, fields["reply"])
    score = _score(path, line, fields["score"])
    if track != "session" and reply is None and score is not None:
        raise wrong(path, line, f"scores no reply on the {track} track: give its number from 0")
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
    raise wrong(path, line, f"has the track {text!r}: give one of {', '.join(TRACKS)}")


def _reply(path: Path, line: int, track: Track, text: str) -> int | None:
    if not text:
        return None
    if track == "session":
        raise wrong(
            path, line, f"has the reply {text!r} on the session track: leave it empty there"
        )
    if not WHOLE.fullmatch(text):
        raise wrong(path, line, f"has the reply {text!r}: give a whole number from 0, or nothing")
    return int(text)


def _score(path: Path, line: int, text: str) -> float | None:
    if not text:
        return None
    if not DECIMAL.fullmatch(text) or not MIN_SCORE <= float(text) <= MAX_SCORE:
        raise wrong(path, line, f"has the score {text!r}: give a number in 1..5, or nothing")
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
            raise wrong(self._path, line, f"repeats line {first}: keep one of the two")
        if row.track == "session":
            return
        empty = row.reply is None
        before, was_empty = self._cells.setdefault(key._replace(reply=None), (line, empty))
        if was_empty != empty:
            what = f"says otherwise than line {before} whether the trajectory has a reply"
            raise wrong(self._path, line, f"{what}: remove one of the two")
