"""What an endpoint's answer amounts to: visible text, status, reasoning.

An HTTP 200 may carry empty content, a cut-off, a filter's stop, only reasoning, or reasoning
inside the text. Both APIs are read into one `Answer` by the same rules; an answer that is none
(`Malformed`) is asked for again by the transport.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import orjson

from palate.models.client import Status
from palate.models.thinking import strip_thinking
from palate.types import Usage

_ABSURD = 10**12  # tokens of one call; a sum of larger ones fits no journal


class Malformed(Exception):
    """An answer that cannot be one; its text completes "the answer …"."""


class Answer(NamedTuple):
    """A `Completion` but for what the transport knows."""

    text: str
    status: Status
    reasoning: str
    model: str
    usage: Usage
    digit_probabilities: tuple[dict[str, float], ...] = ()
    first_token: tuple[tuple[str, float], ...] = ()


class Spoken(NamedTuple):
    """The visible text, what became of the message, and the reasoning."""

    text: str
    status: Status
    reasoning: str


def spoken(raw: str, reasoning: str = "", *, refused: bool = False, cut: bool = False) -> Spoken:
    """Read a message: `reasoning` came beside it, `cut` is a stop by the token limit.

    A block wins over everything; text keeps its words when it was cut; no words at all are
    "empty", or "empty_after_reasoning" if the model thought and said nothing.
    """
    thinking = strip_thinking(raw)
    if thinking.reasoning:
        reasoning = f"{reasoning}\n{thinking.reasoning}" if reasoning else thinking.reasoning
    if refused:
        return Spoken(thinking.visible, "refused", reasoning)
    if not thinking.visible:
        return Spoken("", "empty_after_reasoning" if reasoning else "empty", reasoning)
    return Spoken(thinking.visible, "length" if cut else "ok", reasoning)


def encoded(body: object) -> bytes:
    """`body` as JSON; half an emoji, which no UTF-8 can carry, becomes "?"."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def decoded(content: bytes) -> object:
    """The JSON in `content`, also where a server sent half an emoji or other small faults.

    Raises:
        Malformed: it is empty or no JSON.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        if not content.strip():
            raise Malformed("is empty") from None
    try:
        value = json.loads(content.decode("utf-8-sig", "replace"))
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise Malformed("is not JSON") from None


def count(value: object) -> int:
    """A token count from outside, or 0 where there is none that could be one."""
    return value if type(value) is int and 0 < value < _ABSURD else 0


def text(value: object) -> str:
    """A text from outside, or "" where there is none."""
    return value if isinstance(value, str) else ""
