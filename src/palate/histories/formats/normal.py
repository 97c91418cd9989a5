"""The one form that every format is read into, before it becomes a `Session`.

A message keeps its place in the file, so that whatever is left out can be named. Speakers are
"character", "user", "system" or "unknown:NAME": a role that a format does not define is reported,
never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from palate.errors import InputError
from palate.types import Session, SessionEnd

Thumb = Literal["up", "down"]
Kind = Literal[
    "absent",
    "attachment",
    "blank",
    "card",
    "character",
    "date",
    "end",
    "group",
    "hidden",
    "joined",
    "keys",
    "macro",
    "nul",
    "rating",
    "refused",
    "replaced",
    "silent",
    "scale",
    "speaker",
    "swipe",
    "system",
    "thumb",
    "torn",
    "turns",
    "user",
]

# What each kind of note says, after its count; the first place words are for a person's eyes.
MEANING: Mapping[Kind, str] = {
    "absent": "fields of the mapping that no row has a value for",
    "attachment": "parts of messages that are no text left out",
    "blank": "blank messages left out",
    "card": "card ids that the study has no card for",
    "character": "chats that name no character",
    "date": "dates that cannot be read, left out; the messages stay in the file's order",
    "end": "ways of ending that the mapping does not name, kept as unknown",
    "group": "chats with several characters",
    "hidden": "hidden messages left out of the turns, kept under extra.aside",
    "joined": "lines that held several records, read one by one",
    "keys": "chats under unusual key names",
    "macro": "messages with a macro that was never filled in, kept as they are",
    "nul": "messages with NUL characters, which were taken out",
    "rating": "ratings of messages that are no reply, kept under extra.turns",
    "refused": "sessions that are wrong, left out",
    "replaced": "ratings replaced by those of the ratings file",
    "scale": "ratings that are not on the scale, kept under extra.turns",
    "silent": "blank replies kept, since they were rated",
    "speaker": "messages of unknown speakers left out of the turns, kept under extra.aside",
    "swipe": "swipe ids that name no swipe",
    "system": "system messages left out of the turns, kept under extra.aside",
    "thumb": "thumbs without a satisfaction, kept under extra.turns; map them with --thumbs",
    "torn": "damaged lines left out",
    "turns": "chats in which no turns were found",
    "user": "things to know about users",
}


MOST_NOTES = 1_000_000
_LONGEST_DETAIL = 200  # characters: names and values are anyone's text


class Note(NamedTuple):
    """One thing that an import left out, changed or could not tell, and where."""

    kind: Kind
    place: str
    detail: str = ""


@dataclass
class Notes:
    """All notes on one file, in its order; `where` names the file."""

    where: str = "the file"
    listed: list[Note] = field(default_factory=list)

    def add(self, kind: Kind, place: str, detail: str = "") -> None:
        """Take down one note; of a long detail, the beginning.

        Raises:
            InputError: there are `MOST_NOTES` already. A small packed file can hold more damaged
                lines than a memory holds notes.
        """
        if len(self.listed) >= MOST_NOTES:
            raise InputError(
                f"{self.where} holds more than {MOST_NOTES:,} things to name, the last at {place}: "
                f"{MEANING[kind]}; check that it is the right file"
            )
        self.listed.append(Note(kind, place, detail[:_LONGEST_DETAIL]))

    def counts(self) -> Counter[Kind]:
        """How many notes there are of each kind."""
        return Counter(note.kind for note in self.listed)


class Record(NamedTuple):
    """A JSON value of a file (a line, an item of its list, a row) and where it stands."""

    value: object
    place: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message. `rating` is as the file has it; `alternates` were offered and not chosen."""

    speaker: str
    text: str
    place: str
    name: str = ""
    rating: object = None
    thumb: Thumb | None = None
    note: str | None = None
    date: str | None = None
    alternates: tuple[str, ...] = ()
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """One conversation. Empty texts: the file does not say.

    `scale` maps ratings, as text, to 1..5; None: they are 1..5 already.
    """

    spoken: tuple[Spoken, ...]
    place: str
    own_id: str = ""
    user: str = ""
    character: str = ""
    card_id: str = ""
    language: str = ""
    ended_by: SessionEnd = "unknown"
    scale: Mapping[str, int] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


# palate's own sessions need no translation.
Found = Chat | tuple[Session, str]
