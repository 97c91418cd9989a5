"""Pairs of a high- and a low-rated reply in similar context: what induction reads (paper 3.3).

Of the same session first: there the same person talked to the same character, and what differs is
the reply. Pairs that are two points apart come before pairs that are one apart, then the nearest
ones, because what stood before them is most alike. Replies that find no partner in their session
are paired across sessions with the same card.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palate.rubrics.rated import Rated

MIN_GAP = 1  # of the ratings
CLEAR_GAP = 2
WINDOW = 30  # replies; further apart, a session is hardly one context


class Contrast(NamedTuple):
    """Two replies of one person; `high` has the higher rating."""

    high: Rated
    low: Rated

    @property
    def gap(self) -> int:
        """Difference of the ratings, 1..4."""
        return self.high.rating - self.low.rating

    @property
    def in_one_session(self) -> bool:
        """Both replies stand in the same session."""
        return self.high.session_id == self.low.session_id


def contrasts(replies: Sequence[Rated], *, most: int) -> tuple[Contrast, ...]:
    """At most `most` contrasts, each reply in one of them.

    Where there are more, every session gives its best ones in turn.
    """
    within = pairs_within(replies, uses=1)
    used = {reply.citation for pair in within for reply in pair}
    rest = [reply for reply in replies if reply.citation not in used]
    return spread([*within, *_across(rest)], most)


def pairs_within(replies: Sequence[Rated], *, uses: int) -> list[Contrast]:
    """Contrasts within sessions, the best of each session first; a reply in `uses` at most."""
    sessions: defaultdict[str, list[Rated]] = defaultdict(list)
    for reply in replies:
        sessions[reply.session_id].append(reply)
    return [pair for session in sessions.values() for pair in _matched(session, uses)]


def spread(pairs: Sequence[Contrast], most: int) -> tuple[Contrast, ...]:
    """The first of every session, then the second of every session …, in their order at last."""
    rank: Counter[str] = Counter()
    places: list[tuple[int, int]] = []
    for number, pair in enumerate(pairs):
        places.append((rank[pair.high.session_id], number))
        rank[pair.high.session_id] += 1
    chosen = sorted(number for _, number in sorted(places)[:most])
    return tuple(pairs[number] for number in chosen)


def _matched(session: Sequence[Rated], uses: int) -> Iterator[Contrast]:
    used: Counter[int] = Counter()
    for pair in sorted(_possible(session), key=_goodness):
        if used[pair.high.turn] < uses and used[pair.low.turn] < uses:
            used.update((pair.high.turn, pair.low.turn))
            yield pair


def _possible(session: Sequence[Rated]) -> Iterator[Contrast]:
    for at, one in enumerate(session):
        for other in session[at + 1 :]:
            if other.number - one.number > WINDOW:
                break
            high, low = (one, other) if one.rating > other.rating else (other, one)
            if high.rating - low.rating >= MIN_GAP:
                yield Contrast(high, low)


def _goodness(pair: Contrast) -> tuple[bool, int, int, int]:
    distance = abs(pair.high.number - pair.low.number)
    return pair.gap < CLEAR_GAP, distance, -pair.gap, min(pair.high.turn, pair.low.turn)


def _across(replies: Sequence[Rated]) -> Iterator[Contrast]:
    """The highest with the lowest of each card, as far as they differ and stand in two sessions."""
    cards: defaultdict[str, list[Rated]] = defaultdict(list)
    for reply in replies:
        cards[reply.card_id].append(reply)
    for same_card in cards.values():
        order = sorted(same_card, key=lambda r: (-r.rating, r.number, r.session_id))
        half = len(order) // 2
        for high, low in zip(order[:half], reversed(order), strict=False):
            pair = Contrast(high, low)
            if pair.gap >= MIN_GAP and not pair.in_one_session:
                yield pair
