"""A split told to a person: which session went where and why, and how even the parts are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from palate.histories.branches import Group, branches
from palate.histories.split import Split
from palate.types import Record, Session, SessionEnd

Part = Literal["training", "held_out"]


class Placed(Record):
    """Where a session went. `why` is a few words: "drawn", "panel card", "branch of ID", …"""

    session_id: str
    card_id: str
    ended_by: SessionEnd
    part: Part
    why: str


class Stratum(Record):
    """The sessions of one card and ending, by part."""

    card_id: str
    ended_by: SessionEnd
    training: int
    held_out: int


class Explained(Record):
    """A split, session by session.

    `torn` are chats whose branches lie on both sides: a split recorded under an older rule, or a
    history whose split was written by hand. What is held out of them has been learned from.
    """

    user_id: str
    seed: int
    held_out_share: float
    panel_cards: tuple[str, ...]
    sessions: tuple[Placed, ...]
    strata: tuple[Stratum, ...]
    torn: tuple[tuple[str, ...], ...]


def explained(sessions: Sequence[Session], split: Split) -> Explained:
    """Why each session of the split, in the order of `sessions`, is where it is."""
    training = set(split.training_digests())
    why = {
        session.session_id: reason
        for group in branches(sessions)
        for session, reason in _reasons(group, split, training)
    }
    placed = tuple(
        Placed(
            session_id=session.session_id,
            card_id=session.card_id,
            ended_by=session.ended_by,
            part="training" if session.session_id in training else "held_out",
            why=why[session.session_id],
        )
        for session in sessions
    )
    return Explained(
        user_id=split.user_id,
        seed=split.seed,
        held_out_share=split.held_out_share,
        panel_cards=split.panel_cards,
        sessions=placed,
        strata=tuple(_strata(placed)),
        torn=tuple(_torn(sessions, training)),
    )


def _reasons(group: Group, split: Split, training: set[str]) -> Iterator[tuple[Session, str]]:
    on_panel = [session for session in group if session.card_id in split.panel_cards]
    first = on_panel[0] if on_panel else group[0]
    for session in group:
        learned = session.session_id in training
        if session in on_panel:
            yield session, "panel card, too few others" if learned else "panel card"
        elif session != first:
            of_panel = " (panel card)" if on_panel else ""
            yield session, f"branch of {first.session_id}{of_panel}"
        else:
            yield session, "not drawn" if learned else "drawn"


def _strata(placed: Sequence[Placed]) -> Iterator[Stratum]:
    numbers = Counter((one.card_id, one.ended_by, one.part) for one in placed)
    for card_id, ended_by in sorted({(card, end) for card, end, _ in numbers}):
        yield Stratum(
            card_id=card_id,
            ended_by=ended_by,
            training=numbers[card_id, ended_by, "training"],
            held_out=numbers[card_id, ended_by, "held_out"],
        )


def _torn(sessions: Sequence[Session], training: set[str]) -> Iterator[tuple[str, ...]]:
    for group in branches(sessions):
        ids = tuple(session.session_id for session in group)
        if 0 < sum(1 for name in ids if name in training) < len(ids):
            yield ids
