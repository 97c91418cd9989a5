"""Which examples go into which step: by length, to a token budget, in a seeded order.

Examples of like length share a batch, so that little of it is padding. Nothing is packed: two
sessions in one row would read each other unless every model's attention were told, and a model
that is not says nothing about it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from palate.types import digest

Batch = tuple[int, ...]  # positions of examples
_NEIGHBOURS = 8  # batches that are filled from one sorted stretch of the shuffled examples


class Step(NamedTuple):
    """One update of the weights: the batches whose gradients it sums, and its epoch from 0."""

    epoch: int
    batches: tuple[Batch, ...]


def plan(
    lengths: Sequence[int], *, epochs: int, batch_tokens: int, step_tokens: int, seed: int
) -> list[Step]:
    """All steps of a training: every example once an epoch, in another order each time.

    A pure function, so that a resumed training finds its place by the number of the step alone.

    Args:
        lengths: tokens of each example.
        batch_tokens: the most tokens of a batch, padding counted; a longer example stands alone.
        step_tokens: a step is full when its examples have this many tokens.
    """
    steps: list[Step] = []
    for epoch in range(epochs):
        dice = random.Random(digest([seed, "epoch", epoch]))  # noqa: S311 - order, not secrets
        batches = _batches(lengths, batch_tokens, dice)
        steps += [Step(epoch, group) for group in _groups(batches, lengths, step_tokens)]
    return steps


def by_length(lengths: Sequence[int], batch_tokens: int) -> list[Batch]:
    """Every example once, longest first, for measuring: where memory is short, it shows at once."""
    order = sorted(range(len(lengths)), key=lambda number: (-lengths[number], number))
    return _filled(order, lengths, batch_tokens)


def _batches(lengths: Sequence[int], batch_tokens: int, dice: random.Random) -> list[Batch]:
    order = list(range(len(lengths)))
    dice.shuffle(order)
    batches: list[Batch] = []
    for stretch in _stretches(order, lengths, batch_tokens * _NEIGHBOURS):
        sorted_stretch = sorted(stretch, key=lambda number: -lengths[number])
        batches += _filled(sorted_stretch, lengths, batch_tokens)
    dice.shuffle(batches)
    return batches


def _stretches(order: Sequence[int], lengths: Sequence[int], most: int) -> list[list[int]]:
    """The order in stretches of about `most` tokens."""
    stretches: list[list[int]] = [[]]
    tokens = 0
    for number in order:
        if stretches[-1] and tokens + lengths[number] > most:
            stretches.append([])
            tokens = 0
        stretches[-1].append(number)
        tokens += lengths[number]
    return stretches


def _filled(order: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> list[Batch]:
    """Batches of neighbours; `order` has the longest first, which all of a batch are padded to."""
    batches: list[list[int]] = []
    for number in order:
        width = lengths[batches[-1][0]] if batches else 0
        if batches and width * (len(batches[-1]) + 1) <= batch_tokens:
            batches[-1].append(number)
        else:
            batches.append([number])
    return [tuple(batch) for batch in batches]


def _groups(
    batches: Sequence[Batch], lengths: Sequence[int], step_tokens: int
) -> list[tuple[Batch, ...]]:
    """Batches joined into steps; what is left at the end is a step of its own if it is half one."""
    groups: list[list[Batch]] = [[]]
    tokens = 0
    for batch in batches:
        if tokens >= step_tokens:
            groups.append([])
            tokens = 0
        groups[-1].append(batch)
        tokens += sum(lengths[number] for number in batch)
    if len(groups) > 1 and tokens < step_tokens / 2:
        rest = groups.pop()
        groups[-1] += rest
    return [tuple(group) for group in groups if group]
