"""The split of a history by whole session (paper 3.1): what may be learned from, and what may not.

Training sessions come out as `TrainingSession`, the one type that induction, training and profile
writing accept. Held-out sessions come out without their ratings and notes; those are in one
object, `HeldOutLabels`, for the human-agreement study alone.

Choices: 80/20, drawn at even steps through the sessions ordered by card and ending, so that each
card and ending has its share within one session. Branches of one chat count as one session
(`palate.histories.branches` says what makes a branch). Sessions on panel cards are held out on top
of the 20 %; where fewer than three others are left, they join the draw, and `panel_in_training`
names those that every score must mention.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from palate.errors import InputError
from palate.histories.branches import Group, branches
from palate.types import Session, TrainingSession, digest

MIN_SESSIONS = 3  # two to learn from, one to hold out
HELD_OUT_SHARE = 0.2


class HeldOutSession(NamedTuple):
    """A session to evaluate on: no ratings, no notes; `sha256` is that of the full session."""

    session: Session
    sha256: str


@dataclass(frozen=True, slots=True)
class HeldOutLabels:
    """The ratings of held-out turns: read by the human-agreement study and by nothing else."""

    _by_turn: Mapping[tuple[str, int], int] = field(repr=False)

    def __len__(self) -> int:
        return len(self._by_turn)

    def satisfaction(self, session_id: str, turn: int) -> int | None:
        """The user's rating 1..5 of a held-out turn, or None where they gave none."""
        return self._by_turn.get((session_id, turn))


@dataclass(frozen=True, slots=True)
class Split:
    """One user's history in two parts."""

    user_id: str
    seed: int
    held_out_share: float
    panel_cards: tuple[str, ...]
    training: tuple[TrainingSession, ...]
    held_out: tuple[HeldOutSession, ...]
    labels: HeldOutLabels

    @property
    def panel_in_training(self) -> tuple[str, ...]:
        """Ids of sessions on panel cards that had to be learned from.

        They flatter the scores, so every score says so.
        """
        return self.training_on(self.panel_cards)

    def training_on(self, cards: Collection[str]) -> tuple[str, ...]:
        """Ids of the training sessions on `cards` (a study's panel may be newer than the split)."""
        return tuple(t.session.session_id for t in self.training if t.session.card_id in cards)

    def training_digests(self) -> dict[str, str]:
        """Session id -> SHA-256, recorded in everything made from the training part."""
        return {item.session.session_id: item.session.digest() for item in self.training}


def split(
    sessions: Sequence[Session],
    *,
    seed: int,
    panel_cards: Collection[str] = (),
    held_out_share: float = HELD_OUT_SHARE,
) -> Split:
    """Split one user's sessions; a function of their content and the seed, not of their order.

    Args:
        held_out_share: of the sessions that are not on panel cards, in 0..1 without the ends.

    Raises:
        InputError: sessions of several users, or too few to learn from and to hold out.
    """
    if not 0 < held_out_share < 1:
        raise ValueError(f"held_out_share is {held_out_share}, but must lie between 0 and 1")
    user_id = _one_user(sessions)
    groups = branches(sessions)
    if len(groups) < MIN_SESSIONS:
        raise InputError(
            f"user {user_id} has too few sessions to split: {len(groups)}, branches of one chat "
            f"counted once; at least {MIN_SESSIONS} are needed, two to learn from and one to "
            "hold out"
        )
    pool = tuple(group for group in groups if not _is_on_panel(group, panel_cards))
    if len(pool) < MIN_SESSIONS:
        pool = groups
    drawn = _drawn(pool, seed, held_out_share)
    training_ids = {
        session.session_id
        for number, group in enumerate(pool)
        if number not in drawn
        for session in group
    }
    return parts(
        sessions,
        training_ids,
        seed=seed,
        panel_cards=panel_cards,
        held_out_share=held_out_share,
    )


def parts(
    sessions: Sequence[Session],
    training_ids: Collection[str],
    *,
    seed: int,
    panel_cards: Collection[str],
    held_out_share: float,
) -> Split:
    """The split in which exactly `training_ids` are learned from."""
    chosen = [session for session in sessions if session.session_id in training_ids]
    kept_away = [session for session in sessions if session.session_id not in training_ids]
    return Split(
        user_id=_one_user(sessions),
        seed=seed,
        held_out_share=held_out_share,
        panel_cards=tuple(sorted(panel_cards)),
        training=tuple(TrainingSession(session) for session in chosen),
        held_out=tuple(
            HeldOutSession(_without_labels(session), session.digest()) for session in kept_away
        ),
        labels=HeldOutLabels(_labels(kept_away)),
    )


def _one_user(sessions: Sequence[Session]) -> str:
    users = sorted({session.user_id for session in sessions})
    if len(users) != 1:
        found = ", ".join(users) or "none"
        raise InputError(f"a split is made of one user's sessions, but these are of: {found}")
    return users[0]


def _is_on_panel(group: Group, panel_cards: Collection[str]) -> bool:
    return any(session.card_id in panel_cards for session in group)


def _drawn(pool: Sequence[Group], seed: int, share: float) -> set[int]:
    """Positions in `pool` to hold out: at even steps through the strata, from a seeded start."""
    count = min(max(1, round(share * len(pool))), len(pool) - 1)
    order = sorted(range(len(pool)), key=lambda number: _place(pool[number], seed))
    start = int(digest(["start", seed, pool[0][0].user_id])[:8], 16) / 2**32
    step = len(pool) / count
    return {order[int((start + number) * step)] for number in range(count)}


def _place(group: Group, seed: int) -> tuple[str, str, str]:
    """Card, ending, and within them an order that depends on nothing but the seed and the ids."""
    ids = [session.session_id for session in group]
    return group[0].card_id, group[0].ended_by, digest([seed, ids])


def _without_labels(session: Session) -> Session:
    turns = tuple(
        turn.model_copy(update={"satisfaction": None, "note": None}) for turn in session.turns
    )
    # `extra` goes too: an importer may have kept the original ratings there.
    return session.model_copy(update={"turns": turns, "extra": {}})


def _labels(sessions: Sequence[Session]) -> dict[tuple[str, int], int]:
    return {
        (session.session_id, number): turn.satisfaction
        for session in sessions
        for number, turn in enumerate(session.turns)
        if turn.satisfaction is not None
    }
