"""Which training sessions an adapter is made from, and which of them only say when to stop.

Both draws depend on the seed and the ids alone, so that a resumed training has the same data.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from palate.errors import InputError
from palate.simulators.examples import Counts, Example
from palate.simulators.trained import Learned
from palate.types import TrainingSession, digest

VALIDATION_SHARE = 0.1  # of the chats
MIN_CHATS = 5  # with fewer, none is held out: each is too much of what is known of the person

Encode = Callable[[TrainingSession], tuple[Sequence[Example], Counts]]


class Encoded(NamedTuple):
    """A session and its examples; none where the user said nothing in it."""

    item: TrainingSession
    examples: Sequence[Example]
    counts: Counts


class Chosen(NamedTuple):
    """The sessions that the weights learn from, and those held out of them to stop the training."""

    learned: tuple[Encoded, ...]
    validation: tuple[Encoded, ...]

    @property
    def training_examples(self) -> list[Example]:
        """All examples to learn from."""
        return [example for one in self.learned for example in one.examples]

    @property
    def validation_examples(self) -> list[Example]:
        """All examples to measure on."""
        return [example for one in self.validation for example in one.examples]

    @property
    def counts(self) -> Counts:
        """Of the sessions that the weights learn from."""
        return functools.reduce(Counts.plus, (one.counts for one in self.learned))

    def record(self) -> Learned:
        """What is stored of them; counts are of what the weights learned from."""
        both = (*self.learned, *self.validation)
        counts = self.counts
        return Learned(
            training_sessions={
                one.item.session.session_id: one.item.session.digest() for one in both
            },
            validation_sessions=tuple(one.item.session.session_id for one in self.validation),
            examples=counts.examples,
            supervised_messages=counts.supervised_messages,
            supervised_tokens=counts.supervised_tokens,
            tokens=counts.tokens,
            skipped=counts.skipped,
        )


def drawn(
    training: Sequence[TrainingSession], encode: Encode, *, budget: int | None, seed: int
) -> list[Encoded]:
    """Whole sessions, drawn by the seed until `budget` tokens are full; without one, all.

    A session that does not fit into what is left is passed over.

    Raises:
        InputError: not one session of those to learn from fits.
    """
    order = sorted(training, key=lambda item: digest([seed, "draw", item.session.session_id]))
    taken: dict[str, Encoded] = {}
    left = budget
    smallest = math.inf
    for item in order:
        examples, counts = encode(item)
        if counts.tokens:
            smallest = min(smallest, counts.tokens)
        if left is None or counts.tokens <= left:
            taken[item.session.session_id] = Encoded(item, examples, counts)
            left = None if left is None else left - counts.tokens
    if budget is not None and budget < smallest < math.inf:
        raise InputError(
            f"no training session fits into {budget} tokens: the smallest takes {smallest}; give "
            "at least as many with --max-training-tokens"
        )
    ids = (item.session.session_id for item in training)
    return [taken[session_id] for session_id in ids if session_id in taken]


def held_out(encoded: Sequence[Encoded], chats: Sequence[Collection[str]], *, seed: int) -> Chosen:
    """Hold out a tenth of the chats, at least one, where there are five or more.

    Args:
        chats: the ids of the sessions that are branches of one chat, for each chat: half a chat
            held out would be measured on what was learned from the other half.
    """
    speaking = {one.item.session.session_id for one in encoded if one.counts.supervised_tokens}
    eligible = [ids for chat in chats if (ids := speaking.intersection(chat))]
    out: set[str] = set()
    if len(eligible) >= MIN_CHATS:
        eligible.sort(key=lambda ids: digest([seed, "validation", sorted(ids)]))
        out = set().union(*eligible[: max(1, round(VALIDATION_SHARE * len(eligible)))])
    return Chosen(
        learned=tuple(one for one in encoded if one.item.session.session_id not in out),
        validation=tuple(one for one in encoded if one.item.session.session_id in out),
    )
