"""Where a run stands: which cells are done, and what is there of the others (paper 3.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from palate import journal
from palate.store import RunReader
from palate.types import Message, Track, TrajectoryEnd


@dataclass(slots=True)
class CellState:
    """What the run folder knows of an unfinished cell."""

    messages: list[Message] = field(default_factory=list)
    steps: int = 0
    ended_by: TrajectoryEnd | None = None
    judged: set[tuple[Track, int | None, str]] = field(default_factory=set)  # with what it is about


def load_state(reader: RunReader, planned: set[str]) -> tuple[set[str], dict[str, CellState]]:
    """The planned cells that are done, and the state of those begun.

    A cell is done if all that its line in cells.jsonl counts is still there; one that lost a
    message or a verdict is taken up again.
    """
    done = _whole_cells(reader) & planned
    states: dict[str, CellState] = {}
    for line in journal.steps(reader):
        if line.cell in planned and line.cell not in done:
            state = states.setdefault(line.cell, CellState())
            state.steps += 1
            state.ended_by = line.ended_by
            if line.message is not None:
                state.messages.append(line.message)
    for verdict in journal.judgements(reader):
        if verdict.cell in planned and verdict.cell not in done:
            state = states.setdefault(verdict.cell, CellState())
            state.judged.add((verdict.track, verdict.reply, verdict.trajectory))
    return done, states


def _whole_cells(reader: RunReader) -> set[str]:
    lines = {line.cell: line for line in journal.cells(reader)}  # of a reopened cell, the last
    if not lines:
        return set()
    seals = journal.seals(reader)
    verdicts = Counter((verdict.cell, verdict.trajectory) for verdict in journal.judgements(reader))
    whole = {
        cell
        for cell, line in lines.items()
        if seals.get(cell, "") == line.conversation
        and verdicts[cell, line.trajectory] >= line.verdicts
    }
    for cell in sorted(set(lines) - whole):
        reader.warn(f"cell {cell} was done, but part of it is gone; it is taken up again")
    return whole
