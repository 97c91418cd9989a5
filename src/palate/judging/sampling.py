"""Which replies of a trajectory are judged (paper 3.3, `docs/method.md` section 5).

The draw is a function of the cell, the trajectory's shape and the seed alone: a resumed run judges
the replies that it would have judged, and both turn tracks judge the same ones.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from palate.types import Track, Trajectory

STRATA = 3  # early, middle, late


class Item(NamedTuple):
    """One wanted verdict: of a reply (from 0 over the candidate's replies), or of the session."""

    track: Track
    reply: int | None


def wanted(trajectory: Trajectory, *, count: int, seed: int) -> tuple[Item, ...]:
    """The verdicts to ask for: two for each sampled reply, and one for the session.

    The session is wanted even where no reply was written: its verdict then says so.
    """
    replies = sample_replies(trajectory, count=count, seed=seed)
    turns = (Item(track, k) for k in replies for track in ("personal", "generic"))
    return (*turns, Item("session", None))


def sample_replies(trajectory: Trajectory, *, count: int, seed: int) -> tuple[int, ...]:
    """At most `count` replies that have a reaction, in order.

    Spread over the early, middle and late third of those replies; where the user quit, the last
    reply before it is always among them. Fewer than `count` such replies: all of them.
    """
    eligible = [k for k in range(len(trajectory.replies())) if has_reaction(trajectory, k)]
    if len(eligible) <= count:
        return tuple(eligible)
    strata: list[list[int]] = [[] for _ in range(STRATA)]
    for at, reply in enumerate(eligible):
        strata[at * STRATA // len(eligible)].append(reply)

    def rank(stratum_or_reply: str) -> bytes:
        # A digest, not a generator: the same on every version of Python.
        return hashlib.sha256(f"{seed}|{trajectory.cell.key}|{stratum_or_reply}".encode()).digest()

    drawn = {eligible[-1]} if trajectory.ended_by == "quit" and count > 0 else set()
    while len(drawn) < count:
        left = [(i, set(stratum) - drawn) for i, stratum in enumerate(strata)]
        # The stratum with the fewest drawn so far; between equals the digest decides.
        stratum = min(
            ((len(strata[i]) - len(rest), rank(f"stratum {i}"), i) for i, rest in left if rest)
        )[2]
        drawn.add(min(left[stratum][1], key=lambda k: rank(f"reply {k}")))
    return tuple(sorted(drawn))


def has_reaction(trajectory: Trajectory, reply: int) -> bool:
    """Whether the user answered the reply, or left after it; a reply without text has none."""
    position = trajectory.replies()[reply]
    message = trajectory.messages[position]
    if not message.text.strip() or message.finish == "refused":
        return False
    is_last = position == len(trajectory.messages) - 1
    return trajectory.ended_by == "quit" if is_last else True
