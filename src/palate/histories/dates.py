"""Dates as chat programs write them, read the same under every locale and time zone.

What has a time zone (or counts seconds since 1970) becomes UTC and ends in "Z"; what has none
stays a local time without one: no zone is made up. Dates are kept for a reader; nothing is ever
sorted by them, since a clock that was changed would reorder a conversation.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone

# Below it a count is seconds, above it milliseconds: 1e11 seconds is the year 5138.
_MILLISECONDS_FROM = 1e11
# Digits of a date without marks (20231201183009) are no count: as milliseconds, after 2286.
_MILLISECONDS_TO = 1e13
# A count before March 1973 is no chat: an empty field that was saved as 0, or a small number.
_EARLIEST_COUNT = 1e8

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_ZONE = r"(?P<zone>[zZ]|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}(?::[0-9]{2})?)?"
_SECOND = r"(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?"
_CLOCK = rf"(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}}){_SECOND}"
_HALF = r"(?:\s*(?P<half>[aApP])\.?[mM]\.?)?"
_NUMBERS = r"(?P<year>[0-9]{4})[-/.](?P<month>[0-9]{1,2})[-/.](?P<day>[0-9]{1,2})"
_FORMS = tuple(
    re.compile(form)
    for form in (
        # 2025-12-01T18:30:09.250Z, 2025/12/1 18:30, 2025-12-01
        rf"{_NUMBERS}(?:[T\s]\s*{_CLOCK}{_HALF}\s*{_ZONE})?",
        # 2023-8-2 @07h 41m 05s 123ms, 2025-12-01@18h30m09s250ms, 2023-8-2 @07h 41m
        rf"{_NUMBERS}\s*@\s*(?P<hour>[0-9]{{1,2}})h\s*(?P<minute>[0-9]{{1,2}})m"
        r"(?:\s*(?P<second>[0-9]{1,2})s(?:\s*(?P<milli>[0-9]{1,3})ms)?)?",
        # July 4, 2023 9:05pm; Jul 4 2023 21:05:10
        rf"(?P<name>[A-Za-z]{{3,9}})\.?\s+(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s+"
        rf"(?P<year>[0-9]{{4}})(?:,?\s+(?:at\s+)?{_CLOCK}{_HALF})?",
        # 4 July 2023 21:05
        rf"(?P<day>[0-9]{{1,2}})\.?\s+(?P<name>[A-Za-z]{{3,9}})\.?,?\s+(?P<year>[0-9]{{4}})"
        rf"(?:,?\s+{_CLOCK}{_HALF})?",
        # 2023年8月2日 07:41:05
        r"(?P<year>[0-9]{4})年(?P<month>[0-9]{1,2})月(?P<day>[0-9]{1,2})日"
        rf"(?:\s*{_CLOCK})?",
    )
)
_COUNT = re.compile(r"[0-9]{9,16}(?:\.[0-9]{1,9})?")
_LONGEST = 80  # characters of a date


def iso(value: object) -> str | None:
    """`value` as "2025-12-01T18:30:09.250Z" (UTC) or without the "Z" (local); None: unreadable.

    Numbers, and texts of digits, count from 1970: below 1e11 seconds, from there milliseconds.
    Day/month orders that differ between countries ("3/4/2023") are unreadable.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _counted(value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    text = value.strip()
    if _COUNT.fullmatch(text):
        return _counted(float(text))
    for form in _FORMS:
        match = form.fullmatch(text)
        if match:
            return _written(match)
    return None


def is_absent(value: object) -> bool:
    """Whether a message simply has no date, which is no fault of it."""
    return value is None or (isinstance(value, str) and not value.strip())


def _counted(value: float) -> str | None:
    try:
        if value >= _MILLISECONDS_TO:
            return None
        seconds = float(value) / (1000 if value >= _MILLISECONDS_FROM else 1)
        if not math.isfinite(seconds) or seconds < _EARLIEST_COUNT:
            return None
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=round(seconds * 1000))
    except OverflowError:
        return None
    return _text(moment)


def _written(match: re.Match[str]) -> str | None:
    found = match.groupdict()
    month = _month(found)
    hour = _hour(found)
    if month is None or hour is None:
        return None
    try:
        moment = datetime(
            int(found["year"]),
            month,
            int(found["day"]),
            hour,
            int(found.get("minute") or 0),
            int(found.get("second") or 0),
            _microseconds(found),
            tzinfo=_zone(found.get("zone")),
        )
        return _text(moment)
    except (ValueError, OverflowError):  # 30 February; a zone that leaves year 1..9999
        return None


def _month(found: dict[str, str | None]) -> int | None:
    name = found.get("name")
    if name is None:
        return int(found["month"] or 0)
    numbers = (n for n, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()))
    return next(numbers, None)


def _hour(found: dict[str, str | None]) -> int | None:
    hour = int(found.get("hour") or 0)
    half = found.get("half")
    if half is None:
        return hour
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half.lower() == "p" else 0)


def _microseconds(found: dict[str, str | None]) -> int:
    if found.get("milli"):
        return int(found["milli"] or 0) * 1000
    return int((found.get("part") or "").ljust(6, "0")[:6])


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text[0] not in "+-":
        return UTC
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]))
    return timezone(-offset if text[0] == "-" else offset)


def _text(moment: datetime) -> str:
    plain = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    spec = "milliseconds" if plain.microsecond else "seconds"
    return plain.isoformat(timespec=spec) + ("Z" if moment.tzinfo else "")
