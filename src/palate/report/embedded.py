"""A cell as the page's script reads it: the full record in a data block, a line in the index."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from palate.report.data import CellRecord
from palate.types import Judgement, Track


def cell_block(record: CellRecord) -> dict[str, Any]:
    """Everything the transcript view shows; texts exactly as they were said."""
    trajectory = record.trajectory
    return {
        "opening": record.opening if trajectory is None else trajectory.opening,
        "messages": [m.model_dump(mode="json", exclude_defaults=True) for m in record.messages],
        "end": "open" if trajectory is None else trajectory.ended_by,
        "judgements": [_verdict(judgement) for judgement in record.judgements],
        "failures": [f.model_dump(mode="json", exclude_defaults=True) for f in record.failures],
        "usage": list(record.usage),
    }


def index_line(record: CellRecord) -> dict[str, Any]:
    """What the list of conversations shows and sorts by."""
    trajectory = record.trajectory
    flags = sorted({flag for message in record.messages for flag in message.flags})
    return {
        "key": record.cell.key,
        "user": record.cell.user_id,
        "card": record.cell.card_id,
        "candidate": record.cell.candidate,
        "repetition": record.cell.repetition,
        "end": "open" if trajectory is None else trajectory.ended_by,
        "replies": sum(message.speaker == "character" for message in record.messages),
        "personal": _mean(record.judgements, "personal"),
        "generic": _mean(record.judgements, "generic"),
        "session": _mean(record.judgements, "session"),
        "unscored": sum(judgement.unscored is not None for judgement in record.judgements),
        "flags": flags,
        "failures": len(record.failures),
    }


def _verdict(judgement: Judgement) -> dict[str, Any]:
    # The cell, the trajectory's digest and the defaults would triple the size of the page.
    return judgement.model_dump(mode="json", exclude_defaults=True, exclude={"cell", "trajectory"})


def _mean(judgements: Sequence[Judgement], track: Track) -> float | None:
    """Mean of the scored verdicts, 1..5; None without any."""
    scores = [j.overall for j in judgements if j.track == track and j.overall is not None]
    return round(fmean(scores), 4) if scores else None
