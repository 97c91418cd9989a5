"""From a chat in normal form to a `Session`: what becomes a turn, and what is kept beside them.

Runs of one speaker stay separate turns, since a rating belongs to its own message; they are merged
only in a request to an endpoint that wants alternation (`palate.models.shapes`). What is no turn
is kept under `extra`, by its place among them:

    extra["turns"]["4"]   of turn 4: "date", "name" (of several characters), "alternates" (offered
                          and not chosen), "rating" and "thumb" as the file had them
    extra["aside"]        messages that are no turns: "before_turn", "speaker", "text"
    extra["source"]       "file", "format", "place", and the file's own "id" of the session
    extra["branch_of"]    the chat that a SillyTavern branch was made from
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from palate import language
from palate.histories.formats.normal import Chat, Notes, Spoken
from palate.histories.mapping import plain
from palate.types import Session, Turn

_NOTHING = " \t\r\n\f\v\u3000\u200b\u200c\u200d\u2060\ufeff"
_MACRO = re.compile(r"\{\{\s*(?:user|char)\s*\}\}", re.IGNORECASE)
# An id stands in "SESSION#TURN", in file names and on one line.
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\x9f/\\|#<>:\"?*\ud800-\udfff]+")
_LONGEST_ID = 100


class Thumbs(NamedTuple):
    """What a thumb up and a thumb down count as, 1..5; only the user can say."""

    up: int
    down: int


class Reading(NamedTuple):
    """How chats become sessions."""

    thumbs: Thumbs | None = None
    keep_hidden: bool = False


class Turns(NamedTuple):
    """The turns of a chat and what is kept beside them."""

    turns: tuple[Turn, ...]
    of_turns: Mapping[str, Mapping[str, object]]
    aside: tuple[Mapping[str, object], ...]
    character: str  # the one that the session is about; "" where no name is given


def turns_of(chat: Chat, reading: Reading, notes: Notes) -> Turns:
    """The turns of a chat in the file's order; notes say what was left out."""
    character, several = _characters(chat, notes)
    made = _Making(chat, reading, notes, several)
    for spoken in chat.spoken:
        made.take(spoken)
    return Turns(tuple(made.turns), made.of_turns, tuple(made.aside), character)


def language_of(chat: Chat, turns: tuple[Turn, ...]) -> str:
    """The language that the file states, else that of the words."""
    if chat.language:
        return language.named(chat.language) or chat.language
    return language.of_text("\n".join(turn.text for turn in turns))


def safe_id(text: str) -> str:
    """`text` as an id: short, without separators and white space; the same for the same text."""
    name = unicodedata.normalize("NFC", text)
    safe = _UNSAFE.sub("-", name).strip("-.")
    if len(safe) <= _LONGEST_ID and len(safe.encode()) <= 2 * _LONGEST_ID:
        return safe
    ending = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    # A character takes up to four bytes.
    return f"{safe[: _LONGEST_ID // 2 - 10]}-{ending}"


def content(session: Session) -> str:
    """Equal for two copies of one session, whatever they are called and came from."""
    return session.model_copy(update={"session_id": "", "extra": {}}).digest()


class Preference(NamedTuple):
    """A reply that the user kept over others that were offered in its place."""

    turn: int
    chosen: str
    rejected: tuple[str, ...]


def preferences(session: Session) -> tuple[Preference, ...]:
    """The pairs that swipes give: chosen over rejected replies. They are no scores."""
    of_turns = session.extra.get("turns")
    found = []
    for number, turn in enumerate(session.turns):
        beside = of_turns.get(str(number)) if isinstance(of_turns, dict) else None
        listed = beside.get("alternates") if isinstance(beside, dict) else None
        if turn.speaker == "character" and isinstance(listed, (list, tuple)) and listed:
            found.append(Preference(number, turn.text, tuple(map(str, listed))))
    return tuple(found)


def _characters(chat: Chat, notes: Notes) -> tuple[str, bool]:
    """The name of the chat's character, and whether several speak.

    In a group chat it is the one that the file names, else who speaks most; the others' messages
    stay turns of the character's side, or the user's answers to them would answer nothing.
    """
    counted = Counter(one.name for one in chat.spoken if one.speaker == "character" and one.name)
    names = sorted(counted, key=lambda name: -counted[name])  # stable: who speaks first
    if len(names) < 2:
        return chat.character or (names[0] if names else ""), False
    main = chat.character if chat.character in counted else names[0]
    listed = ", ".join(f"{name} {counted[name]}" for name in names)
    notes.add("group", chat.place, f"{listed}; the card is that of {main}")
    return main, True


class _Making:
    """The turns of one chat while they are collected."""

    def __init__(self, chat: Chat, reading: Reading, notes: Notes, several: bool) -> None:
        self._chat = chat
        self._reading = reading
        self._notes = notes
        self._several = several
        self.turns: list[Turn] = []
        self.of_turns: dict[str, dict[str, object]] = {}
        self.aside: list[dict[str, object]] = []

    def take(self, spoken: Spoken) -> None:
        """Add one message where it belongs."""
        text = self._text(spoken)
        blank = not text.strip(_NOTHING)
        if blank and not self._is_rated(spoken):
            self._notes.add("blank", spoken.place, spoken.speaker)
        elif spoken.hidden and not self._reading.keep_hidden:
            self._put_aside(spoken, text, "hidden")
        elif spoken.speaker == "system":
            self._put_aside(spoken, text, "system")
        elif spoken.speaker not in ("character", "user"):
            self._put_aside(spoken, text, "speaker")
        else:
            if blank:
                self._notes.add("silent", spoken.place)
            self._add(spoken, text)

    def _is_rated(self, spoken: Spoken) -> bool:
        rated = on_scale(spoken.rating, self._chat.scale) is not None
        return rated and spoken.speaker == "character"

    def _text(self, spoken: Spoken) -> str:
        if "\0" in spoken.text:  # no database and no terminal takes them
            self._notes.add("nul", spoken.place)
        return spoken.text.replace("\0", "")

    def _put_aside(self, spoken: Spoken, text: str, kind: str) -> None:
        if kind == "hidden":
            self._notes.add("hidden", spoken.place, spoken.speaker)
        elif kind == "system":
            self._notes.add("system", spoken.place)
        else:
            self._notes.add("speaker", spoken.place, spoken.speaker.removeprefix("unknown:"))
        kept: dict[str, object] = {"before_turn": len(self.turns), "speaker": spoken.speaker}
        self.aside.append(kept | {"text": text} | ({"hidden": True} if kind == "hidden" else {}))

    def _add(self, spoken: Spoken, text: str) -> None:
        if _MACRO.search(text):
            self._notes.add("macro", spoken.place)
        kept: dict[str, object] = {}
        satisfaction = self._satisfaction(spoken, kept)
        if spoken.date:
            kept["date"] = spoken.date
        if self._several and spoken.name and spoken.speaker == "character":
            kept["name"] = spoken.name
        if spoken.alternates:
            kept["alternates"] = [one.replace("\0", "") for one in spoken.alternates]
        if kept:
            self.of_turns[str(len(self.turns))] = kept
        self.turns.append(
            Turn(
                speaker="user" if spoken.speaker == "user" else "character",
                text=text,
                satisfaction=satisfaction,
                note=spoken.note,
            )
        )

    def _satisfaction(self, spoken: Spoken, kept: dict[str, object]) -> int | None:
        """The rating 1..5 of a reply; one that is none is kept beside it as it was."""
        rating, thumbs = spoken.rating, self._reading.thumbs
        if spoken.thumb is not None:
            kept["thumb"] = spoken.thumb
        if plain(rating) == "" and (rating is None or isinstance(rating, str)):
            if spoken.thumb is None:
                return None
            if thumbs is None or spoken.speaker == "user":
                self._notes.add("thumb" if thumbs is None else "rating", spoken.place)
                return None
            return thumbs.up if spoken.thumb == "up" else thumbs.down
        if spoken.speaker == "user":
            self._notes.add("rating", spoken.place, repr(rating)[:60])
            kept["rating"] = rating
            return None
        found = on_scale(rating, self._chat.scale)
        if found is None:
            self._notes.add("scale", spoken.place, repr(rating)[:60])
        if found is None or self._chat.scale is not None:
            kept["rating"] = rating
        return found


def on_scale(rating: object, scale: Mapping[str, int] | None) -> int | None:
    """The satisfaction 1..5 that a rating means; None where it means none."""
    text = plain(rating)
    if isinstance(rating, bool) and scale is None:
        return None
    if scale is not None:
        return scale.get(text)
    return int(text) if text in ("1", "2", "3", "4", "5") else None
