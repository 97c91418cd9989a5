"""JSON as people bring it: cards, sessions, records. Its faults are told in one sentence."""

from __future__ import annotations

import json
import re

from palate.errors import InputError

# Where half of a surrogate pair may stand in UTF-8; a whole pair of escapes is found too.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


def parsed(raw: bytes, where: str) -> object:
    """The JSON value in `raw`; half of an emoji, as a careless cut leaves it, becomes "?".

    Half an emoji (a lone surrogate) can be stored in no UTF-8 file and sent to no endpoint.

    Raises:
        InputError: not JSON, not UTF-8 or nested without end; `where` begins the sentence.
    """
    try:
        value: object = json.loads(raw)
        if json.detect_encoding(raw).startswith("utf-8") and not _HALF.search(raw):
            return value
        return _mended(value)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply; check that it is the right file") from None
    except ValueError as error:  # wrong JSON, wrong encoding, a number without end
        raise InputError(f"{where} is not JSON in UTF-8: {error}") from None


def _mended(value: object) -> object:
    """`value` with each half of a pair replaced; text is copied only where one is found."""
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode(errors="replace").decode()
    return value
