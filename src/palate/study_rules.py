"""What a study file may say beyond the types of its settings, and how its faults are told."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

# Ids become parts of a cell's key and of file names, so they hold no separators and stay short.
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f/\\|\ud800-\udfff]{1,100}")
_ID_BYTES = 200  # in UTF-8: a file name takes 255, and ours add an ending

# What a request says of itself: another value in `body` would change who is asked and what is read.
OWN_FIELDS = {
    "model": "it is named by the setting model",
    "messages": "they are the conversation",
    "stream": "answers are read whole",
    "n": "one answer a request is read",
    "temperature": "set temperature itself",
    "top_p": "set top_p itself",
    "max_tokens": "set max_tokens itself",
    "stop": "set stop itself",
}

# Pydantic speaks of Python; the reader wrote TOML.
_PLAIN_WORDS = (
    (r"valid tuple", "list"),
    (r"Tuple should have at least 1 item.*", "the list needs an entry"),
    (r"valid dictionary( or instance of \w+)?", "table"),
)


def check_ids(kind: str, ids: Sequence[str]) -> None:
    """Refuse ids that cannot be used or that two share.

    Raises:
        ValueError: with the id and what is wrong with it.
    """
    for name in ids:
        fault = fault_of_id(name)
        if fault:
            raise ValueError(f"the {kind} id {name!r} cannot be used: {fault}")
    doubled = [name for name, times in Counter(ids).items() if times > 1]
    if doubled:
        raise ValueError(f"two {kind}s are called {min(doubled)!r}; ids must differ")


def fault_of_id(name: str) -> str:
    """What keeps `name` from being an id, or ""."""
    if _ID.fullmatch(name) and name not in {".", ".."} and name == name.strip():
        if len(name.encode()) <= _ID_BYTES:
            return ""
        return f"it takes {len(name.encode())} bytes of UTF-8, and {_ID_BYTES} are the most"
    return "1 to 100 characters, no slash, backslash, bar or control character, no space at an end"


def check_body(body: Mapping[str, object]) -> None:
    """Refuse request fields that are ours to set, or that JSON has no word for.

    Raises:
        ValueError: with the field.
    """
    for name, value in body.items():
        if name in OWN_FIELDS:
            raise ValueError(f"{name} is not for the body of a request: {OWN_FIELDS[name]}")
        if not _is_json(value):
            raise ValueError(f"{name} holds a date, a time, nan or inf, which JSON lacks")


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_json(inner) for inner in value.values())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def sentence(place: str, kind: str, message: str) -> str:
    """A fault that pydantic found at `place`, of its `kind` and in its words, for the reader."""
    if kind == "extra_forbidden":
        return f"{place} is not a setting of a study; remove it or mend its spelling"
    if kind == "missing":
        return f"{place} is missing; add it"
    said = message.removeprefix("Value error, ")
    for pattern, words in _PLAIN_WORDS:
        said = re.sub(pattern, words, said)
    return f"{place} is wrong: {said}"
