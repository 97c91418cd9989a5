"""LABELS.csv and SCORES.csv of `palate study agreement`, read strictly.

LABELS.csv has the columns `user,session,reply,label`, and `occasion` where replies were rated more
than once. SCORES.csv has `condition,user,session,reply,score`, and may have `confidence` and
`length`. `reply` is a whole number from 0, the same in both; `label` one of 1..5; an empty `score`
is a missing one; an empty `occasion` is 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from palate.csv_input import DECIMAL, WHOLE, read_table, wrong
from palate.errors import InputError
from palate.studies.agreement_rows import ConditionScore, LabelRow

LABEL_COLUMNS = ("user", "session", "reply", "label")
SCORE_COLUMNS = ("condition", "user", "session", "reply", "score")

_LABEL = re.compile(r"[1-5](\.0*)?", re.ASCII)  # tables with gaps write 3 as 3.0


def read_labels(path: Path) -> list[LabelRow]:
    """The rows of a file of labels.

    Raises:
        InputError: the file cannot be read or a line is wrong; names the file and the line.
    """
    rows: list[LabelRow] = []
    lines: dict[tuple[str, str, int, int], int] = {}
    texts: dict[str, str] = {}  # one object for each name: they recur in many rows
    for line, fields in read_table(path, LABEL_COLUMNS, ("occasion",)).rows:
        user, session, reply, label, occasion = fields
        _check_names(path, line, LABEL_COLUMNS, fields[:2])
        key = (
            texts.setdefault(user, user),
            texts.setdefault(session, session),
            _whole(path, line, "reply", reply),
            _whole(path, line, "occasion", occasion or "1"),
        )
        if not _LABEL.fullmatch(label):
            raise wrong(path, line, f"has the label {label!r}: give one of 1, 2, 3, 4, 5")
        _check_new(path, line, lines.setdefault(key, line))
        rows.append(LabelRow(*key[:3], int(label[0]), key[3]))
    if not rows:
        raise InputError(f"{path} has a header and no labels: add at least one row")
    return rows


def read_condition_scores(path: Path) -> list[ConditionScore]:
    """The rows of a file of scores.

    Raises:
        InputError: the file cannot be read or a line is wrong; names the file and the line.
    """
    rows: list[ConditionScore] = []
    lines: dict[tuple[str, str, str, int], int] = {}
    texts: dict[str, str] = {}
    for line, fields in read_table(path, SCORE_COLUMNS, ("confidence", "length")).rows:
        condition, user, session, reply, score, confidence, length = fields
        _check_names(path, line, SCORE_COLUMNS, fields[:3])
        key = (
            texts.setdefault(condition, condition),
            texts.setdefault(user, user),
            texts.setdefault(session, session),
            _whole(path, line, "reply", reply),
        )
        _check_new(path, line, lines.setdefault(key, line))
        row = ConditionScore(
            *key,
            _number(path, line, "score", score),
            _number(path, line, "confidence", confidence),
            _number(path, line, "length", length),
        )
        if row.length is not None and row.length < 0:
            raise wrong(path, line, f"has the length {length!r}: give one from 0, or nothing")
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has a header and no scores: add at least one row")
    return rows


def _check_names(path: Path, line: int, whats: Sequence[str], names: Sequence[str]) -> None:
    if not all(names):
        what = whats[names.index("")]
        raise wrong(path, line, f"has no {what}: fill it in")


def _check_new(path: Path, line: int, first: int) -> None:
    if first != line:
        raise wrong(path, line, f"repeats line {first}: keep one of the two")


def _whole(path: Path, line: int, what: str, text: str) -> int:
    if not WHOLE.fullmatch(text):
        raise wrong(path, line, f"has the {what} {text!r}: give a whole number from 0")
    return int(text)


def _number(path: Path, line: int, what: str, text: str) -> float | None:
    if not text:
        return None
    number = float(text) if DECIMAL.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise wrong(path, line, f"has the {what} {text!r}: give a finite number, or nothing")
    return number
