"""Run a study: plan the cells, skip what is done, play, judge (paper 3.2, 3.3).

Resuming is the normal case. A cell's state is what its run folder says: messages accepted so far,
verdicts read so far. A call that does not come back leaves its cell open, is written to
failures.jsonl and is made again by the next `palate run`; it never becomes a score.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from palate import journal
from palate.errors import LeftToBatch, ModelError
from palate.judging.tracks import Item, Subject, judge, wanted
from palate.models.client import Role
from palate.prepare import Prepared
from palate.resume import CellState, load_state
from palate.roleplay import Step, Table, end_of, play
from palate.seats import OpensModels, Seats
from palate.store import Json, RunFolder
from palate.types import Cell, Trajectory, TrajectoryEnd
from palate.workers import work_through

# An endpoint that is down fails every cell alike: stop and say so instead of trying them all.
STOP_AFTER_FAILURES_IN_A_ROW = 10


# What is done with a cell: all of it, its conversation alone, or its verdicts alone.
Parts = Literal["all", "play", "judge"]


class Outcome(NamedTuple):
    """How a call of `run` went; cells left over are taken up by the next one.

    `unjudged`: cells whose conversation is over and whose verdicts were left to a batch.
    """

    done: int
    planned: int
    failures: int
    stopped_early: bool
    last_failure: str = ""
    unjudged: int = 0


@dataclass(slots=True)
class Progress:
    """Counts of this call of `run`, read by whatever shows them."""

    planned: int
    done: int = 0  # with those found done
    found_done: int = 0
    failures: int = 0
    unjudged: int = 0
    started: float = field(default_factory=time.monotonic)
    last_failure: str = ""


Observe = Callable[[Progress], None]
BeforeCalls = Callable[[], Awaitable[None]]


async def run(
    prepared: Prepared,
    folder: RunFolder,
    models: OpensModels,
    *,
    limit: int | None = None,
    parts: Parts = "all",
    observe: Observe = lambda progress: None,
    before_calls: BeforeCalls | None = None,
) -> Outcome:
    """Play and judge every cell that is not done (the first `limit` cells, if given).

    With `parts` "judge" cells whose conversation is not over are passed by; with "play" no verdict
    is asked for. `before_calls` is awaited where any cell is left; what it raises ends the run
    before it began.

    Raises:
        StoreError: the folder cannot be written; everything accepted so far is kept.
    """
    cells = list(itertools.islice(prepared.cells(), limit))
    done, open_cells = load_state(folder, {cell.key for cell in cells})
    progress = Progress(planned=len(cells), done=len(done), found_done=len(done))
    seats = Seats(prepared, models, run_id=journal.manifest(folder)["run_id"])
    if parts != "play":
        seats.open_judge()
    runner = _Runner(
        prepared,
        folder,
        seats,
        open_cells,
        progress,
        observe,
        parts,
    )
    observe(progress)
    if before_calls is not None and len(done) < len(cells):
        await before_calls()
    with _start_up_frozen():
        await runner.work([cell for cell in cells if cell.key not in done], models.width())
    return Outcome(
        done=progress.done,
        planned=progress.planned,
        failures=progress.failures,
        stopped_early=runner.stopping,
        last_failure=progress.last_failure,
        unjudged=progress.unjudged,
    )


@contextlib.contextmanager
def _start_up_frozen() -> Iterator[None]:
    """Keep full garbage collections from walking what lives as long as the run anyway.

    Modules, rubrics and prompts are most of the objects: a tenth of the engine's processor time
    went into visiting them.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Runner:
    """One call of `run`: workers that share an iterator of cells."""

    def __init__(
        self,
        prepared: Prepared,
        folder: RunFolder,
        seats: Seats,
        open_cells: dict[str, CellState],
        progress: Progress,
        observe: Observe,
        parts: Parts = "all",
    ) -> None:
        self.prepared = prepared
        self.folder = folder
        self.seats = seats
        self.open_cells = open_cells
        self.progress = progress
        self.observe = observe
        self.parts = parts
        self.failures_in_a_row = 0
        self.stopping = False

    async def work(self, cells: Sequence[Cell], width: int) -> None:
        """Keep `width` cells under way: one call each while they play, several while judged."""
        await work_through(cells, width, self._worker)

    async def _worker(self, queue: Iterator[Cell]) -> None:
        for cell in queue:
            if self.stopping:
                return
            await self._cell(cell)

    async def _cell(self, cell: Cell) -> None:
        state = self.open_cells.pop(cell.key, CellState())
        if self.parts == "judge" and self._end_of(state) is None:
            return
        try:
            trajectory = await self._trajectory(cell, state)
        except ModelError as error:
            self._failed(cell, "candidate" if state.steps % 2 else "simulator", [error])
            return
        if self.parts == "play":
            self._left_to_batch()
            return
        subject = self.seats.subject(trajectory)
        errors = await self._judge(subject, state)
        failed = [error for error in errors if not isinstance(error, LeftToBatch)]
        if failed:
            self._failed(cell, "judge", failed)
            return
        if errors:
            self._left_to_batch()
            return
        self.folder.append("cells", _cell_record(subject, state))
        self.failures_in_a_row = 0
        self.progress.done += 1
        self.observe(self.progress)

    async def _trajectory(self, cell: Cell, state: CellState) -> Trajectory:
        table = self.seats.table(cell)
        ended_by = self._end_of(state)
        if ended_by is not None:
            return Trajectory(
                cell=cell,
                opening=table.opening,
                messages=tuple(state.messages),
                ended_by=ended_by,
            )
        return await play(table, self._journal(table, state), state.messages)

    def _end_of(self, state: CellState) -> TrajectoryEnd | None:
        depth_limit = self.prepared.study.content.protocol.depth_limit
        return state.ended_by or end_of(state.messages, depth_limit)

    def _left_to_batch(self) -> None:
        self.progress.unjudged += 1
        self.failures_in_a_row = 0
        self.observe(self.progress)

    def _journal(self, table: Table, state: CellState) -> Callable[[Step], None]:
        key = table.cell.key

        def accept(step: Step) -> None:
            self.folder.append("messages", _step_record(key, state.steps, step))
            state.steps += 1
            self.failures_in_a_row = 0
            self.observe(self.progress)

        return accept

    async def _judge(self, subject: Subject, state: CellState) -> list[ModelError]:
        protocol = self.prepared.study.content.protocol
        verdicts = [
            self._verdict(item, subject, state)
            for item in wanted(
                subject.trajectory, count=protocol.sampled_replies, seed=protocol.seed
            )
            if (item.track, item.reply, subject.digest) not in state.judged
        ]
        return [error for error in await asyncio.gather(*verdicts) if error is not None]

    async def _verdict(self, item: Item, subject: Subject, state: CellState) -> ModelError | None:
        """Read one verdict and journal it; an error is returned, so that calls under way finish."""
        try:
            judgement = await judge(item, subject, self.seats.judge)
        except ModelError as error:
            return error
        self.folder.append("judgements", judgement.model_dump(mode="json"))
        state.judged.add((item.track, item.reply, subject.digest))
        self.failures_in_a_row = 0
        self.observe(self.progress)
        return None

    def _failed(self, cell: Cell, role: Role, errors: Sequence[ModelError]) -> None:
        for error in errors:
            record = {
                "cell": cell.key,
                "role": role,
                "kind": type(error).__name__,
                "error": str(error),
                "at": _now(),
            }
            self.folder.append("failures", record)
        self.progress.failures += len(errors)
        self.progress.last_failure = f"{cell.key}: {errors[0]}"
        self.failures_in_a_row += 1
        if self.failures_in_a_row >= STOP_AFTER_FAILURES_IN_A_ROW:
            self.stopping = True
        self.observe(self.progress)


def _cell_record(subject: Subject, state: CellState) -> Json:
    trajectory = subject.trajectory
    sealed = journal.seal(trajectory.messages, trajectory.ended_by) if state.steps else ""
    return {
        "cell": trajectory.cell.key,
        "conversation": sealed,
        "trajectory": subject.digest,
        "verdicts": sum(about == subject.digest for _, _, about in state.judged),
        "at": _now(),
    }


def _step_record(key: str, number: int, step: Step) -> Json:
    message = step.message
    return {
        "cell": key,
        "n": number,
        # Sides alternate from the user on, so this is who was asked even where nothing came.
        "speaker": "character" if number % 2 else "user",
        "text": message.text if message else None,
        "finish": message.finish if message else None,
        "flags": message.flags if message else (),
        "ended_by": step.ended_by,
        "usage": tuple(step.usage),
        "attempts": step.attempts,
        "rejected": step.rejected,
        "model": step.model,
        "latency_s": round(step.latency_s, 4),
        "at": _now(),
    }


def _now() -> str:
    """Now, to the second."""
    return _utc(int(time.time()))


@functools.lru_cache(maxsize=1)
def _utc(second: int) -> str:
    # Written once a second, not once a record.
    return datetime.fromtimestamp(second, UTC).isoformat()
