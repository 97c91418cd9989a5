"""How a model names turns: "SESSION#TURN", with session names that cannot be mistaken for text.

A session's id is its file's or its importer's, so it may hold anything, an instruction included. It
stands outside the marks of quoted text, therefore only plain ids are shown as they are; others get
a name of ours, and answers are read back into ids.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from palate.rubrics.rated import cited

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)\s*#\s*([0-9]{1,6})")


class Citations:
    """The names of these sessions in prompts and answers."""

    def __init__(self, session_ids: Iterable[str]) -> None:
        ids = list(session_ids)
        taken = {name for name in ids if _PLAIN.fullmatch(name)}
        free = (f"chat-{n}" for n in range(1, 10**9) if f"chat-{n}" not in taken)
        self._name = {one: one if one in taken else next(free) for one in ids}
        self._id = {name: one for one, name in self._name.items()}

    def shown(self, session_id: str, turn: int) -> str:
        """The turn as a prompt names it."""
        return cited(self._name[session_id], turn)

    def read(self, text: str) -> tuple[str, ...]:
        """The turns of known sessions named in `text`, as a rubric cites them; () where none is."""
        named = _NAMED.findall(unicodedata.normalize("NFKC", text))
        return tuple(cited(self._id[name], int(turn)) for name, turn in named if name in self._id)
