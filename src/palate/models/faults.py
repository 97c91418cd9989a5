"""What went wrong with a call, whether asking again can help, and how it is told.

Endpoint texts are data: escape codes and control characters are taken out, keys are blotted out,
and what is left is one short line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from palate.models.answers import Malformed, decoded

_RETRIED = frozenset({408, 409, 425, 429})
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_LIKE_A_KEY = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|hf)[-_][\w*.-]{6,}|\bAIza[\w-]{20,}|(?<=bearer )\S+", re.IGNORECASE
)
_HTML_TAG = re.compile(r"<[^<>]*>")
_OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size|limit)|maximum context|prompt is too long|"
    r"(?:too many|exceeds?\b.*)\btokens",
    re.IGNORECASE,
)
# Not "billing" or "quota" alone: rate limits that pass mention them too.
_NO_MONEY = re.compile(r"insufficient[_ ](?:quota|balance|funds|credits?)", re.IGNORECASE)


class Fault(NamedTuple):
    """A failed attempt; `final` where no retry will change it, `wait_s` as the endpoint asked.

    `too_long`: the request exceeds the model's context.
    """

    what: str
    wait_s: float | None = None
    final: bool = False
    too_long: bool = False


def of_status(
    status: int, headers: Mapping[str, str], content: bytes, *, now: float, key_env: str | None
) -> Fault:
    """The fault in an answer other than HTTP 2xx; `now` is the Unix time."""
    said = said_in(content)
    what = f"HTTP {status}" + (f": {said}" if said else "")
    if 300 <= status < 400:
        place = headers.get("Location", "another address")
        return Fault(f"{what} (it redirects to {place}; name that address)", final=True)
    if status == 429 and _NO_MONEY.search(said):
        return Fault(what, final=True)
    if status in _RETRIED or status >= 500:
        return Fault(what, wait_s(headers, now=now))
    if status in (400, 413, 422) and _OVERFLOW.search(said):
        told = f"{what} (the conversation is longer than the model's context)"
        return Fault(told, final=True, too_long=True)
    return Fault(what + _hint(status, key_env), final=True)


def _hint(status: int, key_env: str | None) -> str:
    if status in (401, 403):
        if key_env is None:
            return " (check the key: key_env of this endpoint, or the model's headers)"
        return f" (check the key in {key_env})"
    if status == 404:
        return " (check the model's name and the base URL)"
    return ""


def said_in(content: bytes) -> str:
    """The endpoint's own words in an error answer, JSON or not."""
    try:
        value = decoded(content)
    except Malformed:
        return _HTML_TAG.sub(" ", content[:8000].decode("utf-8", "replace")).strip()
    for _ in range(3):
        if not isinstance(value, dict):
            break
        code = value.get("code")
        for name in ("error", "message", "detail", "msg"):
            if value.get(name):
                value = value[name]
                break
        if isinstance(value, str) and isinstance(code, str) and code not in value:
            return f"{value} [{code}]"
    try:
        return value if isinstance(value, str) else str(value)
    except RecursionError:  # nested about a thousand deep
        return ""


def wait_s(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds that the endpoint asks to wait (Retry-After in seconds or as a date), if it does."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("Retry-After")
    if asked is None:
        return None
    seconds = _number(asked)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(asked)
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(date.timestamp() - now, 0.0)


def _number(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"\s*\d{1,9}(\.\d*)?\s*", value):
        return None
    return float(value)


def one_line(text: str, secrets: Sequence[str] = (), limit: int = 300) -> str:
    """`text` as one printable line without any of `secrets`, of at most `limit` characters.

    Shortened last: half a key would not be recognised.
    """
    line = _CONTROL.sub(" ", _ESCAPE.sub("", text))
    for secret in sorted(secrets, key=len, reverse=True):
        line = line.replace(secret, "[key]")
    line = " ".join(_LIKE_A_KEY.sub("[key]", line).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
