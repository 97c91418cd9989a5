"""What is odd in the chats themselves: gaps in rating, copies, blanks, runs, very long turns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from palate import language
from palate.chat import read_user
from palate.habits import words
from palate.histories.branches import Group, bare_words, branches, is_telling
from palate.histories.figures import labels, reply_turns
from palate.histories.findings import Finding, counted, listed, of_all, turn_place
from palate.types import Session, Turn

UNRATED_STRETCH = 5  # replies in a row without a rating
LONG_TOKENS = 2000
SHORT_SHARE = 0.5  # of one-word messages
QUOTED = 60  # characters of a repeated reply

_SEEN = re.compile(
    r"[^\s\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u2800\u3164\ufe0f\ufeff]"
)


def turn_findings(sessions: Sequence[Session]) -> Iterator[Finding]:
    """The findings on the turns of one user's sessions."""
    groups = branches(sessions)
    yield from _stretches(sessions)
    yield from _copies(groups, len(sessions))
    yield from _repeated_replies(groups, sum(len(reply_turns(s)) for s in sessions))
    yield from _short(sessions)
    yield from _openings(sessions)
    yield from _at_turns(sessions)


def _stretches(sessions: Sequence[Session]) -> Iterator[Finding]:
    places = [place for session in sessions for place in _unrated(session)]
    if places:
        text = (
            f"In sessions that are rated elsewhere, {UNRATED_STRETCH} or more replies in a row "
            f"have no rating {counted(len(places), 'time')} (from {listed(places)}); what is rated "
            "may be chosen, not typical."
        )
        yield Finding(level="note", kind="unrated-stretch", text=text, places=tuple(places))


def _unrated(session: Session) -> Iterator[str]:
    """Where a stretch begins; a session without any rating is told elsewhere."""
    if not any(labels(session)):
        return
    stretch: list[int] = []
    for turn in (*reply_turns(session), None):
        if turn is not None and session.turns[turn].satisfaction is None:
            stretch.append(turn)
            continue
        if len(stretch) >= UNRATED_STRETCH:
            yield turn_place(session, stretch[0])
        stretch = []


def _copies(groups: Sequence[Group], sessions: int) -> Iterator[Finding]:
    copied = [[session.session_id for session in group] for group in groups if len(group) > 1]
    if not copied:
        return
    members = tuple(name for group in copied for name in group)
    told = listed([" = ".join(group[:4]) + (" = …" if len(group) > 4 else "") for group in copied])
    are = of_all(
        len(members), sessions, "session", ("is a branch or copy", "are branches or copies")
    )
    text = f"{are} of one another ({told}); the split counts each such chat once."
    yield Finding(level="weak", kind="near-duplicates", text=text, places=members)


class _Repeated(NamedTuple):
    text: str
    places: tuple[str, ...]


def _repeated_replies(groups: Sequence[Group], replies: int) -> Iterator[Finding]:
    repeated = sorted(_repeated(groups), key=lambda item: (-len(item.places), item.places))
    if not repeated:
        return
    most = repeated[0]
    extra = sum(len(item.places) - 1 for item in repeated)
    quoted = most.text if len(most.text) <= QUOTED else most.text[:QUOTED].rstrip() + "…"
    text = (
        f"{counted(extra, 'reply repeats', 'replies repeat')} an earlier one of {replies:,}; most "
        f"often, {len(most.places)} times, “{' '.join(quoted.split())}” ({listed(most.places)})."
    )
    places = tuple(place for item in repeated for place in item.places[1:])
    yield Finding(level="weak", kind="repeated-replies", text=text, places=places)


def _repeated(groups: Sequence[Group]) -> Iterator[_Repeated]:
    """Replies said more than once; that branches share them is no news."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    first: dict[str, str] = {}
    for group in groups:
        by_other_branch: set[str] = set()
        for session in group:
            own: set[str] = set()
            for turn in reply_turns(session):
                text = session.turns[turn].text
                plain = bare_words(text)
                if is_telling(plain) and plain not in by_other_branch:
                    first.setdefault(plain, text)
                    places[plain].append(turn_place(session, turn))
                    own.add(plain)
            by_other_branch |= own
    for plain, held in places.items():
        if len(held) > 1:
            yield _Repeated(first[plain], tuple(held))


def _short(sessions: Sequence[Session]) -> Iterator[Finding]:
    texts = [turn.text for s in sessions for turn in s.turns if turn.speaker == "user"]
    if not texts:
        return
    seen = [text for text in texts if _SEEN.search(text)]
    short = sum(1 for text in seen if words(text) <= 1)
    if not seen:
        text = "All of the user's messages are blank to the eye, so no simulator can be made."
        yield Finding(level="stop", kind="blank-history", text=text)
    elif short >= SHORT_SHARE * len(seen):
        are = of_all(short, len(seen), "message", ("of the user is", "of the user are"))
        text = f"{are} a single word; there is little of their voice to learn."
        yield Finding(level="weak", kind="one-word-messages", text=text)


def _openings(sessions: Sequence[Session]) -> Iterator[Finding]:
    places = tuple(s.session_id for s in sessions if s.turns[0].speaker == "user")
    if places:
        begin = of_all(len(places), len(sessions), "session", ("begins", "begin"))
        text = (
            f"{begin} with the user ({listed(places)}): no opening is kept, while simulated chats "
            "begin with the card's."
        )
        yield Finding(level="note", kind="no-opening", text=text, places=places)


def _at_turns(sessions: Sequence[Session]) -> Iterator[Finding]:
    """What a single turn shows."""
    # A blank reply that was rated is a measurement.
    blank = _where(
        sessions, lambda turn, _: turn.satisfaction is None and not _SEEN.search(turn.text)
    )
    if blank:
        are = counted(len(blank), "turn is", "turns are")
        text = f"{are} blank to the eye ({listed(blank)}); leave them out."
        yield Finding(level="weak", kind="blank-turn", text=text, places=blank)
    runs = _where(sessions, lambda turn, before: before is not None and _is_run(turn, before))
    if runs:
        follow = counted(len(runs), "turn follows", "turns follow")
        text = (
            f"{follow} another of the same speaker ({listed(runs)}); simulated chats alternate, so "
            "a simulator learns them joined."
        )
        yield Finding(level="note", kind="speaker-run", text=text, places=runs)
    long = _where(sessions, lambda turn, _: language.tokens(turn.text) > LONG_TOKENS)
    if long:
        are = counted(len(long), "turn is", "turns are")
        text = f"{are} longer than about {LONG_TOKENS:,} tokens ({listed(long)}); a paste?"
        yield Finding(level="weak", kind="long-turn", text=text, places=long)
    tokens = _where(sessions, lambda turn, _: _says_quit(turn))
    if tokens:
        hold = counted(len(tokens), "message of the user ends", "messages of the user end")
        text = (
            f"{hold} with the token [QUIT] ({listed(tokens)}); take it out and set ended_by to "
            '"quit".'
        )
        yield Finding(level="weak", kind="quit-token", text=text, places=tokens)


def _where(
    sessions: Sequence[Session], holds: Callable[[Turn, Turn | None], bool]
) -> tuple[str, ...]:
    """The turns of which `holds` is true, given the turn and the one before it in its session."""
    return tuple(
        turn_place(session, number)
        for session in sessions
        for number, turn in enumerate(session.turns)
        if holds(turn, session.turns[number - 1] if number else None)
    )


def _is_run(turn: Turn, before: Turn) -> bool:
    return turn.speaker == before.speaker


def _says_quit(turn: Turn) -> bool:
    may = turn.speaker == "user" and any(bracket in turn.text for bracket in "[［【")
    return may and read_user(turn.text).quit
