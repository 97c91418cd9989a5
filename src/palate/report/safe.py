"""Text from cards, chats and models, made harmless for each place it is shown in, never removed.

HTML is escaped by Jinja2's autoescape; this module covers the other places: JSON inside a script
element, a spreadsheet's cell, a terminal.
"""

from __future__ import annotations

import json
import re

# What a terminal acts on. Longest forms first: the strings of OSC, DCS, SOS, PM and APC end with
# BEL or ST; of one without an end only the beginning goes, so that it can hide no text.
_ESCAPES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# A cell that begins with one of these is a formula to some spreadsheet (the full-width forms are
# read as formulas in East Asian locales); tab and carriage return hide one behind them.
_FORMULA = re.compile(r"[ \u00a0\u3000]*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")

# "<" covers </script and <!--; ">" and "&" keep XML parsers content; the two separators end a
# line in JavaScript; a lone surrogate is no UTF-8.
_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def terminal_safe(text: str, *, lines: bool = False) -> str:
    """`text` without escape codes, control characters and marks that turn the writing direction.

    Line breaks become spaces, so that one value stays on one line, unless `lines` is set.
    """
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if not lines:
        plain = re.sub(r"[\t\n\r\v\f\x85\u2028\u2029]+", " ", plain)
    return _CONTROLS.sub("", plain)


def csv_safe(text: str) -> str:
    """`text` for a CSV cell: an apostrophe before what a spreadsheet would run; numbers stay."""
    if _FORMULA.match(text) and not _NUMBER.match(text):
        return "'" + text
    return text


def script_json(value: object) -> str:
    """`value` as JSON that may stand inside a script element and parses back to the same value.

    Raises:
        ValueError: a float is not finite; JSON has no word for it.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE_IN_SCRIPT.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
