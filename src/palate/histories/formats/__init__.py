"""Formats that people's chats come in: one file a format, each into the same normal form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from palate.histories.formats import (
    agnai,
    cai_tools,
    lines,
    mapped,
    oobabooga,
    openai,
    sharegpt,
    sillytavern,
)
from palate.histories.formats.normal import Chat, Notes, Record


class Format(NamedTuple):
    """A format of chats: whether a file's first values are of it, and how its records are read."""

    matches: Callable[[Sequence[object]], bool]
    chats: Callable[[Iterable[Record], Notes], Iterator[Chat]]


# In the order they are tried: the more particular first.
FORMATS: Mapping[str, Format] = {
    sillytavern.NAME: Format(sillytavern.matches, sillytavern.chats),
    cai_tools.NAME: Format(cai_tools.matches, cai_tools.chats),
    oobabooga.NAME: Format(oobabooga.matches, oobabooga.chats),
    agnai.NAME: Format(agnai.matches, agnai.chats),
    openai.NAME: Format(openai.matches, openai.chats),
    sharegpt.NAME: Format(sharegpt.matches, sharegpt.chats),
}
PALATE = lines.NAME
MAPPED = mapped.NAME
NAMES = (PALATE, *FORMATS)
