"""New sessions into a history file: each once, none over another, the file never half written."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from palate.disk import disk, replacing
from palate.errors import StoreError
from palate.histories.card_choice import NO_CARD
from palate.histories.files import read
from palate.histories.importing import Item
from palate.histories.sessions import content
from palate.types import Session, digest

PATIENCE = 60.0  # seconds that an import waits for another one to finish


class Added(NamedTuple):
    """A history with new sessions, and what became of each that was found.

    `already`, `rated` (known sessions that got ratings they had not), `completed` (those that got
    their card or ending alone) and `grown` (those that went on) are ids; `renamed` are pairs of the
    id that was taken and the one given instead.
    """

    sessions: tuple[Session, ...]
    new: tuple[Session, ...]
    already: tuple[str, ...] = ()
    rated: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether the history is another than before."""
        return bool(self.new or self.rated or self.completed or self.grown)


@contextlib.contextmanager
def alone(folder: Path, patience: float = PATIENCE) -> Iterator[None]:
    """While it lasts, no other import reads a history of this folder to write it back.

    Raises:
        StoreError: another import takes longer than `patience`, or the disk refuses.
    """
    lock = FileLock(folder / ".lock", timeout=patience)
    with disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"another import has been writing to {folder} for {patience:.0f} s; wait for it, "
                "then give the same command again"
            ) from None
    try:
        yield
    finally:
        lock.release()


def existing(history: Path, user: str) -> tuple[Session, ...]:
    """The sessions of a history that is there, none where there is none.

    Raises:
        InputError: it is there and cannot be read; nothing is added to what is damaged.
    """
    return read(history, user_id=user) if history.exists() else ()


def added(known: Sequence[Session], found: Sequence[Item]) -> Added:
    """`known` and what of `found` is not in it.

    A session is known if one of the same id, or for those without an id of their own any, has the
    same words, and no rating, note, card or ending that contradicts. What the known one had not
    goes into it, and what only it had stays. A session of a known id that begins with all of its
    words is that session gone on, and takes its place with the ratings of both. Any other session
    of a known id gets an id of its own.
    """
    return _Adding(known).all(found)


def write(history: Path, sessions: Sequence[Session]) -> None:
    """Write a history whole.

    Raises:
        StoreError: the disk refuses.
    """
    with disk(history), replacing(history) as file:
        for session in sessions:
            file.write(line(session).encode() + b"\n")


def line(session: Session) -> str:
    """A session as a line of palate's JSON Lines; reading it gives the same session."""
    value = session.model_dump(mode="json")
    if not session.extra:
        del value["extra"]
    for turn in value["turns"]:
        for key in ("satisfaction", "note"):
            if turn[key] is None:
                del turn[key]
    return json.dumps(value, ensure_ascii=False)


class _Adding:
    """A history while sessions are added to it."""

    def __init__(self, known: Sequence[Session]) -> None:
        self._sessions: dict[str, Session] = {}
        self._of_words: defaultdict[str, list[str]] = defaultdict(list)
        for session in known:
            self._put(session)
        self._new: list[str] = []
        self._already: list[str] = []
        self._rated: list[str] = []
        self._completed: list[str] = []
        self._grown: list[str] = []
        self._renamed: list[tuple[str, str]] = []

    def all(self, found: Sequence[Item]) -> Added:
        """The history with all of `found`."""
        for item in found:
            self._add(item)
        return Added(
            tuple(self._sessions.values()),
            tuple(self._sessions[name] for name in self._new),
            tuple(self._already),
            tuple(self._rated),
            tuple(self._completed),
            tuple(self._grown),
            tuple(self._renamed),
        )

    def _put(self, session: Session) -> None:
        self._sessions[session.session_id] = session
        self._of_words[_words(session)].append(session.session_id)

    def _add(self, item: Item) -> None:
        session, name = item.session, item.session.session_id
        other = f"{name}-{content(session)[:8]}"
        for one in self._of_words[_words(session)]:
            # An id of its own tells sessions of the same words apart.
            if item.has_own_id and one not in (name, other) and not one.startswith(f"{name}-"):
                continue
            both = _both(self._sessions[one], session)
            if both is not None:
                self._join(both, name)
                return
        if item.has_own_id and name in self._sessions:
            longer = _gone_on(self._sessions[name], session)
            if longer is not None:
                self._grown.append(name)
                self._put(longer)
                return
        if name in self._sessions:
            self._renamed.append((name, other))
            session = session.model_copy(update={"session_id": other})
        self._new.append(session.session_id)
        self._put(session)

    def _join(self, both: Session, name: str) -> None:
        there = self._sessions[both.session_id]
        if both.turns != there.turns:
            self._rated.append(both.session_id)
        elif (both.card_id, both.ended_by) != (there.card_id, there.ended_by):
            self._completed.append(both.session_id)
        else:
            self._already.append(name)
            return
        self._sessions[both.session_id] = both


def _words(session: Session) -> str:
    """Equal for sessions in which the same was said, however rated."""
    return digest([session.user_id, [(turn.speaker, turn.text) for turn in session.turns]])


def _gone_on(old: Session, new: Session) -> Session | None:
    """`new` with what only `old` has, if it begins with all that was said in `old`; else None."""
    shared = len(old.turns)
    begun = new.model_copy(update={"turns": new.turns[:shared]})
    if len(new.turns) <= shared or _words(begun) != _words(old):
        return None
    both = _both(old, begun)
    return both and both.model_copy(update={"turns": (*both.turns, *new.turns[shared:])})


def _both(old: Session, new: Session) -> Session | None:
    """`old` with the ratings, notes, card and ending that only `new` has; None: they disagree."""
    turns = []
    for one, other in zip(old.turns, new.turns, strict=True):
        satisfaction, note = one.satisfaction or other.satisfaction, one.note or other.note
        if other.satisfaction not in (None, satisfaction) or other.note not in (None, note):
            return None
        turns.append(one.model_copy(update={"satisfaction": satisfaction, "note": note}))
    cards = {old.card_id, new.card_id} - {NO_CARD}
    ends = {old.ended_by, new.ended_by} - {"unknown"}
    if len(cards) > 1 or len(ends) > 1:
        return None
    return old.model_copy(
        update={
            "turns": tuple(turns),
            "card_id": next(iter(cards), NO_CARD),
            "ended_by": next(iter(ends), "unknown"),
            "extra": {**old.extra, **new.extra},
        }
    )
