"""JSON as people bring it: cards, sessions, records. Its faults are told in one sentence."""

from __future__ import annotations

import json

from palate.errors import InputError


def parsed(raw: bytes, where: str) -> object:
    """The JSON value in `raw`; half of an emoji, as a careless cut leaves it, becomes "?".

    Half an emoji (a lone surrogate) can be stored in no UTF-8 file and sent to no endpoint.

    Raises:
        InputError: not JSON, not UTF-8 or nested without end; `where` begins the sentence.
    """
    try:
        value: object = json.loads(raw)
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply; check that it is the right file") from None
    except ValueError as error:  # wrong JSON, wrong encoding, a number without end
        raise InputError(f"{where} is not JSON in UTF-8: {error}") from None
    if text.isascii():
        return value
    try:
        text.encode()
    except UnicodeEncodeError:
        value = json.loads(text.encode(errors="replace"))
    return value
