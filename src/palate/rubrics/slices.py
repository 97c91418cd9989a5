"""The training sessions in two parts: one that rules are proposed from, one they are tested on.

The validation slice is a part of the *training* sessions; held-out sessions are not read at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from palate.errors import InputError
from palate.rubrics.contrasts import pairs_within
from palate.rubrics.rated import rated_replies
from palate.types import TrainingSession, digest

VALIDATION_SHARE = 0.25  # of the chats in which replies were rated differently [choice]
MIN_CHATS = 3  # with such ratings: two to propose from, one to test on
MIN_PAIRS = 4  # in either part: fewer tell nothing


class Slices(NamedTuple):
    """Both parts; together they are all training sessions."""

    proposing: tuple[TrainingSession, ...]
    validation: tuple[TrainingSession, ...]


def sliced(
    training: Sequence[TrainingSession], branches: Collection[Collection[str]], *, seed: int
) -> Slices:
    """Split the training sessions; a function of their content, `branches` and the seed.

    Args:
        branches: ids of sessions that are branches of one chat and stay together; a session that
            none of them names is a chat of its own.

    Raises:
        InputError: too few sessions, or too few replies that were rated differently.
    """
    chats = _chats(training, branches)
    order = sorted(chats, key=lambda chat: digest(["slice", seed, _ids(chat)]))
    telling = [chat for chat in order if _pairs(chat)]
    user_id = training[0].session.user_id
    if len(telling) < MIN_CHATS:
        raise InputError(
            f"no rubric can be induced for {user_id}: {len(telling)} of {len(chats)} training "
            "chats (branches counted once) have replies that were rated differently, and "
            f"{MIN_CHATS} are needed; rate more sessions, or write the rubric by hand"
        )
    validation = list(_drawn(telling))
    ids = {name for chat in validation for name in _ids(chat)}
    parts = Slices(
        tuple(item for item in training if item.session.session_id not in ids),
        tuple(item for item in training if item.session.session_id in ids),
    )
    for part, what in ((parts.proposing, "to find rules in"), (parts.validation, "to test on")):
        if (found := _pairs(part)) < MIN_PAIRS:
            raise InputError(
                f"no rubric can be induced for {user_id}: there are {found} pairs of replies "
                f"rated differently {what}, and {MIN_PAIRS} are needed; rate more replies, or "
                "write the rubric by hand"
            )
    return parts


def _chats(
    training: Sequence[TrainingSession], branches: Collection[Collection[str]]
) -> list[list[TrainingSession]]:
    chat_of = {name: number for number, ids in enumerate(branches) for name in ids}
    chats: dict[int | str, list[TrainingSession]] = {}
    for item in training:
        name = item.session.session_id
        chats.setdefault(chat_of.get(name, name), []).append(item)
    return list(chats.values())


def _drawn(telling: Sequence[list[TrainingSession]]) -> Sequence[list[TrainingSession]]:
    """A quarter of the chats, more while they hold too few pairs, half of them at the most."""
    wanted = max(1, round(VALIDATION_SHARE * len(telling)))
    while 2 * (wanted + 1) <= len(telling) and sum(map(_pairs, telling[:wanted])) < MIN_PAIRS:
        wanted += 1
    return telling[:wanted]


def _pairs(sessions: Sequence[TrainingSession]) -> int:
    return len(pairs_within(rated_replies(sessions), uses=1))


def _ids(chat: Sequence[TrainingSession]) -> list[str]:
    return sorted(item.session.session_id for item in chat)
