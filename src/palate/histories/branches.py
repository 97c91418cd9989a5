"""Which sessions are branches of one chat, and so one session to the split (paper 3.1).

Chats are copied to try another reply, to take back a message, to go on from the middle; what was
learned from one branch is no test on another. Words are compared by their letters and digits
alone: an edited copy differs in white space, case or a comma.

Choice. Two sessions are branches of one chat when one of these holds, where a telling text has some
ten English words or twelve Han characters, too many to be said twice by chance:
  - they begin alike: the opening is the same, and what follows it is the same for a telling length,
    whoever says it (or to the end of both); or
  - they share most of their text wherever it stands: two or more telling messages, a reply of the
    character among them, that make up half of the shorter session; or
  - an importer found written that one was made from the other.
What chats of a card share anyway makes no branch: the opening, a "hi" and its "hello", a stock
reply.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from palate import language
from palate.types import Session, Speaker, digest

Group = tuple[Session, ...]  # branches of one chat, by session id

TELLING_TOKENS = 12  # about 48 Latin letters, 12 Han characters, marks and spaces left out
SHARED_TEXT = 0.5  # of the shorter session
HABIT_SESSIONS = 100  # a message in more sessions than this is a habit, not a copy

_NO_WORD = re.compile(r"[\W_]+")

Said = tuple[Speaker, str]


def branches(sessions: Sequence[Session]) -> tuple[Group, ...]:
    """The sessions in groups of branches, most of one session each; independent of their order."""
    ordered = sorted(sessions, key=lambda session: session.session_id)
    joined = _Joined(len(ordered))
    for found in (_alike_at_first, _alike_for_the_most_part, _made_from_another):
        for pair in found(ordered):
            joined.join(*pair)
    groups: defaultdict[int, list[Session]] = defaultdict(list)
    for number, session in enumerate(ordered):
        groups[joined.first(number)].append(session)
    return tuple(tuple(group) for group in groups.values())


def bare_words(text: str) -> str:
    """The letters and digits of `text` in one case; of a text without any, the text itself."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _NO_WORD.sub("", plain) or "".join(plain.split())


def is_telling(plain: str) -> bool:
    """Whether bare words are so many that two chats do not share them by chance."""
    return language.tokens(plain) >= TELLING_TOKENS


class _Joined:
    """Numbers joined into groups, each known by its smallest member."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def first(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.first(one), self.first(other)))
        self._parent[high] = low


def _alike_at_first(sessions: Sequence[Session]) -> Iterator[tuple[int, int]]:
    holder: dict[str, int] = {}
    for number, session in enumerate(sessions):
        yield holder.setdefault(_beginning(session), number), number


def _beginning(session: Session) -> str:
    """Digest of the opening and of what follows it until that is telling, or to the end.

    Without an opening the first words say little about which character they were said to, so there
    the card must be the same too; with one, a renamed copy of the card still gives the chat away.
    """
    card = session.card_id if session.turns[0].speaker == "user" else None
    spoken, opening = [], _opening(session)
    said = 0
    for number, turn in enumerate(session.turns):
        plain = bare_words(turn.text)
        spoken.append((turn.speaker, plain))
        said += language.tokens(plain) if number >= opening else 0
        if said >= TELLING_TOKENS:
            break
    return digest([card, spoken])


def _opening(session: Session) -> int:
    """How many turns the character has before the user speaks."""
    spoken = (number for number, turn in enumerate(session.turns) if turn.speaker == "user")
    return next(spoken, len(session.turns))


def _made_from_another(sessions: Sequence[Session]) -> Iterator[tuple[int, int]]:
    """Sessions whose importer named the chat that they were made from (`extra.branch_of`).

    Chat programs name it by its file, whose name the session id may have been made of.
    """
    holder: dict[str, int] = {}
    for number, session in enumerate(sessions):
        for name in (session.session_id, _file_name(session)):
            holder.setdefault(name, number)
    for number, session in enumerate(sessions):
        parent = session.extra.get("branch_of")
        if isinstance(parent, str) and parent:
            # The chat itself may not have been imported: its branches still belong together.
            yield holder.setdefault(parent, number), number


def _file_name(session: Session) -> str:
    """The file that a session was imported from, without its ending; "" where it is unknown."""
    source = session.extra.get("source")
    file = source.get("file") if isinstance(source, dict) else None
    return file.removesuffix(".gz").removesuffix(".jsonl") if isinstance(file, str) else ""


class _Overlap(NamedTuple):
    """The telling messages that two sessions share: their number, replies, and tokens in all."""

    messages: int = 0
    replies: int = 0
    tokens: int = 0


def _alike_for_the_most_part(sessions: Sequence[Session]) -> Iterator[tuple[int, int]]:
    said = [_said(session) for session in sessions]
    whole = [sum(messages.values()) for messages in said]
    for (one, other), overlap in _overlaps(said).items():
        enough = overlap.tokens >= SHARED_TEXT * min(whole[one], whole[other])
        if enough and overlap.messages > 1 and overlap.replies:
            yield one, other


def _said(session: Session) -> dict[Said, int]:
    """The different messages after the opening, each with its tokens (1 at the least)."""
    after = session.turns[_opening(session) :]
    plain = ((turn.speaker, bare_words(turn.text)) for turn in after)
    return {said: max(1, language.tokens(said[1])) for said in plain}


def _overlaps(said: Sequence[dict[Said, int]]) -> dict[tuple[int, int], _Overlap]:
    holders: defaultdict[Said, list[int]] = defaultdict(list)
    for number, messages in enumerate(said):
        for message, tokens in messages.items():
            if tokens >= TELLING_TOKENS:
                holders[message].append(number)
    found: defaultdict[tuple[int, int], _Overlap] = defaultdict(_Overlap)
    for message, numbers in holders.items():
        if len(numbers) > HABIT_SESSIONS:
            continue
        for pair in combinations(numbers, 2):
            tokens = min(said[pair[0]][message], said[pair[1]][message])
            number, replies, before = found[pair]
            found[pair] = _Overlap(
                number + 1, replies + (message[0] == "character"), before + tokens
            )
    return found
