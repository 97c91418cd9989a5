"""The database as the server's event loop uses it: in threads, a bounded number at a time."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import anyio
from anyio import to_thread

from palate.annotate.database import Database

P = ParamSpec("P")
T = TypeVar("T")

_READERS = 8


class Desk:
    """Runs the functions of this package that take a database; `clock` gives seconds since 1970."""

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._writers = anyio.CapacityLimiter(database.width)
        self._readers = anyio.CapacityLimiter(_READERS)

    def now(self) -> int:
        """The time as it is stored."""
        return int(self._clock())

    async def write(self, function: Callable[..., T], *args: object) -> T:
        """Call `function` with the database and the time as `now`; what it changed is on disk."""
        call = functools.partial(function, self._database, *args, now=self.now())
        # Not given up when the browser goes away: half of an action is none, the whole is wanted.
        return await to_thread.run_sync(call, limiter=self._writers)

    async def read(
        self,
        function: Callable[Concatenate[Database, P], T],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call `function`, which changes nothing, with the database."""
        call = functools.partial(function, self._database, *args, **options)
        return await to_thread.run_sync(call, limiter=self._readers)
