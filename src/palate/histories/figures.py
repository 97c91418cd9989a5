"""A history in numbers: how much, how rated, how long, how written, how ended.

Sessions are taken in the order of the history, which is the order of time where an importer knew
the dates. Replies are counted from 1 after the opening; a rating of an opening is counted apart,
because nothing scores openings.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from palate.habits import Habits, characters, habits, quantile, words
from palate.types import MAX_SCORE, Record, Session, SessionEnd, Speaker

MAX_ENTROPY = math.log2(MAX_SCORE)  # bits, of five labels used alike


class Ratings(Record):
    """Ratings of 1..5: `counts` from 1 to 5; `entropy` in bits, 0 (one label) to 2.32 (all alike).

    `mean` and `entropy` are None where nothing is rated.
    """

    counts: tuple[int, int, int, int, int]
    mean: float | None
    entropy: float | None

    @property
    def number(self) -> int:
        """How many there are."""
        return sum(self.counts)


class Spread(Record):
    """Lengths of messages: the value that a tenth, half, nine tenths and all do not exceed."""

    p10: int
    median: int
    p90: int
    longest: int


class Lengths(Record):
    """How long the messages of one side are; a Han character or kana counts as one word."""

    messages: int
    characters: Spread | None
    words: Spread | None


class AtReply(Record):
    """The ratings of one place in a session: the `reply`-th after the opening, from 1."""

    reply: int
    ratings: Ratings


class OfSession(Record):
    """The ratings of one session; `number` counts sessions from 1 in the order of the history."""

    number: int
    session_id: str
    ratings: Ratings


class OfCard(Record):
    """A user's sessions on one card."""

    card_id: str
    sessions: int
    quits: int
    ratings: Ratings


class Figures(Record):
    """One user's history in numbers.

    `pairs` are pairs of rated replies of one session with different labels, of `rated_pairs` in
    all: what a rubric contrasts and what agreement is measured on. `left_after` gives, for sessions
    that ended by choice, how many have how many messages of the user.
    """

    user_id: str
    sessions: int
    turns: int
    replies: int
    ratings: Ratings
    opening_ratings: int
    pairs: int
    rated_pairs: int
    languages: dict[str, int]
    endings: dict[SessionEnd, int]
    left_after: dict[int, int]
    messages_before_leaving: int | None
    user: Lengths
    character: Lengths
    habits: Habits | None
    course: tuple[AtReply, ...]
    time: tuple[OfSession, ...]
    cards: tuple[OfCard, ...]


def figures(sessions: Sequence[Session]) -> Figures:
    """The numbers of one user's sessions, of which there must be one at least."""
    own = list(_texts(sessions, "user"))
    left = [len(list(_texts([s], "user"))) for s in sessions if s.ended_by == "quit"]
    return Figures(
        user_id=sessions[0].user_id,
        sessions=len(sessions),
        turns=sum(len(session.turns) for session in sessions),
        replies=sum(len(reply_turns(session)) for session in sessions),
        ratings=ratings(label for session in sessions for label in labels(session)),
        opening_ratings=sum(_opening_ratings(session) for session in sessions),
        pairs=sum(differing_pairs(session) for session in sessions),
        rated_pairs=sum(math.comb(len(list(labels(session))), 2) for session in sessions),
        languages=_counted(session.language for session in sessions),
        endings=_endings(sessions),
        left_after=dict(sorted(Counter(left).items())),
        messages_before_leaving=quantile(sorted(left), 0.5) if left else None,
        user=_lengths(own),
        character=_lengths(list(_texts(sessions, "character"))),
        habits=habits(own) if own else None,
        course=tuple(_course(sessions)),
        time=tuple(_time(sessions)),
        cards=tuple(_cards(sessions)),
    )


def reply_turns(session: Session) -> list[int]:
    """Positions of the character's turns after the opening, which ends where the user speaks."""
    first = next((n for n, turn in enumerate(session.turns) if turn.speaker == "user"), None)
    if first is None:
        return []
    return [n for n in range(first, len(session.turns)) if session.turns[n].speaker == "character"]


def labels(session: Session) -> Iterator[int]:
    """The ratings of a session's replies, in order, the opening's left out."""
    for number in reply_turns(session):
        label = session.turns[number].satisfaction
        if label is not None:
            yield label


def differing_pairs(session: Session) -> int:
    """Pairs of rated replies of this session whose labels differ."""
    counts = Counter(labels(session))
    alike = sum(math.comb(number, 2) for number in counts.values())
    return math.comb(counts.total(), 2) - alike


def ratings(given: Iterable[int]) -> Ratings:
    """Counts, mean and entropy of labels 1..5."""
    counts = Counter(given)
    number = counts.total()
    return Ratings(
        counts=(counts[1], counts[2], counts[3], counts[4], counts[5]),
        mean=sum(label * times for label, times in counts.items()) / number if number else None,
        entropy=_entropy(counts) if number else None,
    )


def _entropy(counts: Mapping[int, int]) -> float:
    total = sum(counts.values())
    shares = [number / total for number in counts.values() if number]
    return sum(share * math.log2(1 / share) for share in shares)


def _texts(sessions: Iterable[Session], speaker: Speaker) -> Iterator[str]:
    for session in sessions:
        for turn in session.turns:
            if turn.speaker == speaker:
                yield turn.text


def _opening_ratings(session: Session) -> int:
    given = sum(1 for turn in session.turns if turn.satisfaction is not None)
    return given - len(list(labels(session)))


def _endings(sessions: Sequence[Session]) -> dict[SessionEnd, int]:
    counts = Counter(session.ended_by for session in sessions)
    ends: tuple[SessionEnd, ...] = ("quit", "limit", "unknown")
    return {end: counts[end] for end in ends}


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _lengths(texts: Sequence[str]) -> Lengths:
    return Lengths(
        messages=len(texts),
        characters=_spread([characters(text) for text in texts]),
        words=_spread([words(text) for text in texts]),
    )


def _spread(lengths: Sequence[int]) -> Spread | None:
    if not lengths:
        return None
    ordered = sorted(lengths)
    return Spread(
        p10=quantile(ordered, 0.1),
        median=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        longest=ordered[-1],
    )


def _course(sessions: Sequence[Session]) -> Iterator[AtReply]:
    at: defaultdict[int, list[int]] = defaultdict(list)
    for session in sessions:
        for number, turn in enumerate(reply_turns(session), 1):
            label = session.turns[turn].satisfaction
            if label is not None:
                at[number].append(label)
    for number in sorted(at):
        yield AtReply(reply=number, ratings=ratings(at[number]))


def _time(sessions: Sequence[Session]) -> Iterator[OfSession]:
    for number, session in enumerate(sessions, 1):
        yield OfSession(
            number=number, session_id=session.session_id, ratings=ratings(labels(session))
        )


def _cards(sessions: Sequence[Session]) -> Iterator[OfCard]:
    of: defaultdict[str, list[Session]] = defaultdict(list)
    for session in sessions:
        of[session.card_id].append(session)
    for card_id, held in sorted(of.items(), key=lambda item: (-len(item[1]), item[0])):
        yield OfCard(
            card_id=card_id,
            sessions=len(held),
            quits=sum(1 for session in held if session.ended_by == "quit"),
            ratings=ratings(label for session in held for label in labels(session)),
        )
