"""Which card of the study a chat is with: as somebody says, or by its character's name."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping

from palate.errors import InputError
from palate.histories.formats.normal import Kind, Notes
from palate.histories.sessions import safe_id
from palate.study_rules import fault_of_id

NO_CARD = "unknown"  # the card id of a chat that names no character


def folded(name: str) -> str:
    """Equal for spellings of one name: case, Unicode form and white space do not matter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _card_id(name: str) -> str:
    """An id made of a character's name; "" where there is none.

    Names that differ in more than white space stay different: what had to be changed is told
    apart by a digest.
    """
    plain = "-".join(unicodedata.normalize("NFC", name).split())
    safe = safe_id(plain)
    if safe == plain:
        return safe
    told_apart = hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{safe[:80] or 'card'}-{told_apart}"


class CardChoice:
    """Which card a chat is with; each doubt is noted once a file.

    `card` is what the person who imports says; `cards` are the study's card ids by `folded` name.
    """

    def __init__(
        self, card: str | None, cards: Mapping[str, tuple[str, ...]], notes: Notes
    ) -> None:
        self._card = card
        self._cards = cards
        self._notes = notes
        self._known = {card for ids in cards.values() for card in ids}
        self._said: set[str] = set()

    def stated(self, card: str, place: str) -> str:
        """The card that a file names by its id."""
        card = self._card or card
        if self._known and card not in self._known:
            self._say("card", place, card)
        return card

    def of(self, card: str, character: str, place: str) -> str:
        """The card of a chat: by --card, its own card id, or the name of its character."""
        if self._card is not None or card:
            return self.stated(_card_id(card) if fault_of_id(card) else card, place)
        ids = self._cards.get(folded(character), ())
        if len(ids) > 1:
            raise InputError(
                f"{len(ids)} cards are called {character[:60]!r}: {', '.join(ids)}; choose one "
                "with --card"
            )
        made = ids[0] if ids else _card_id(character)
        if not made:
            self._say("character", place, f'the card id is "{NO_CARD}"; name one with --card')
        elif not ids:
            self._say("card", place, f"{made}, after the name {character!r}")
        return made or NO_CARD

    def _say(self, kind: Kind, place: str, detail: str) -> None:
        if detail not in self._said:
            self._said.add(detail)
            self._notes.add(kind, place, detail)
