"""Several workers over one queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def work_through(
    wanted: Sequence[T], width: int, work: Callable[[Iterator[T]], Coroutine[None, None, None]]
) -> None:
    """Let `width` workers take from one iterator of `wanted` until it is empty.

    Raises:
        BaseException: the first that a worker raised; the others are cancelled.
    """
    queue = iter(wanted)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(wanted))):
                group.create_task(work(queue))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
