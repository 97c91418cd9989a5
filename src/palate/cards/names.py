"""File names from card names, which are anyone's text: paths, device names, names without end.

A name keeps what every disk can hold, Chinese and emoji included. What is changed is changed for a
known reason: separators and characters that Windows forbids, control and invisible characters,
leading dots, dashes and tildes (hidden files, options, home folders), trailing dots and spaces,
reserved device names. Two names that a disk might take for one (case, Unicode form) get numbers.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection

MAX_STEM_BYTES = 200  # of 255: an ending, and what a half-written file is called, must fit
MAX_STEM_CHARACTERS = 100  # the stem is the card's id, and a study takes no longer one
FALLBACK = "card"

_FORBIDDEN = re.compile(r'[<>:"/\\|?*]+')
_SPACES = re.compile(r"\s+")
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)", re.IGNORECASE
)
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}


def file_stem(name: str, taken: Collection[str] = ()) -> str:
    """A file name without its ending, like `name` and like none of `taken` on any disk.

    At most `MAX_STEM_BYTES` of UTF-8 and `MAX_STEM_CHARACTERS`. The same name and the same `taken`
    give the same stem.
    """
    stem = _safe(name)
    used = {_on_disk(other) for other in taken}
    number, tried = 1, stem
    while _on_disk(tried) in used:
        number += 1
        ending = f" ({number})"
        tried = (_cut(stem, len(ending)) or FALLBACK) + ending
    return tried


def _safe(name: str) -> str:
    text = unicodedata.normalize("NFC", _SPACES.sub(" ", name))
    text = "".join(c for c in text if unicodedata.category(c) not in _INVISIBLE)
    text = _FORBIDDEN.sub("_", text).lstrip(" .-~").rstrip(" .")
    text = _cut(text, 1)
    if not text.strip("_ "):
        return FALLBACK
    return f"_{text}" if _DEVICE.match(text) else text


def _cut(text: str, spare: int) -> str:
    """The beginning of `text` that leaves `spare` bytes, whole characters with their marks."""
    fitting = text.encode()[: MAX_STEM_BYTES - spare].decode(errors="ignore")
    at = min(len(fitting), MAX_STEM_CHARACTERS - spare)
    if at == len(text):
        return text
    while at > 0 and unicodedata.combining(text[at]):
        at -= 1
    return text[:at].rstrip(" .")


@functools.lru_cache(maxsize=65536)
def _on_disk(stem: str) -> str:
    """Equal for names that some disk takes for the same file."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFD", stem).casefold())
