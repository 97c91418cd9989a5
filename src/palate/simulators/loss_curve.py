"""The loss curve of a training: one line a step, and one before the first.

    {"step":1,"steps":90,"epoch":0.03,"loss":3.1,"validation":null,"tokens":1020,"seconds":4.1}

`loss` is the mean over the step's supervised tokens before it was taken, in nats; `validation` that
of the sessions held out, after it; `tokens` and `seconds` are sums since the start.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import orjson

from palate.disk import disk, replacing


class Seen(NamedTuple):
    """What is known after a step, or before the first."""

    step: int  # done
    steps: int
    epoch: float  # done
    loss: float | None
    validation: float | None  # where it was just measured
    tokens: int
    seconds: float


class LossCurve:
    """The file of a curve; its methods raise `StoreError` where the disk refuses."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, seen: Seen) -> None:
        """Append a line."""
        with disk(self.file), self.file.open("ab") as lines:
            lines.write(orjson.dumps(seen._asdict()) + b"\n")

    def cut(self, step: int) -> None:
        """Drop torn lines and those after `step`: a resumed training writes them again."""
        with disk(self.file):
            lines = self.file.read_bytes().splitlines(True) if self.file.exists() else []
            with replacing(self.file) as file:
                file.writelines(line for line in lines if _step_of(line) <= step)

    def losses(self) -> list[float]:
        """The loss of each step, in their order; a torn line is passed over.

        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        lines = self.file.read_bytes().splitlines()
        told = (orjson.loads(line)["loss"] for line in lines if _step_of(line) < math.inf)
        return [loss for loss in told if loss is not None]


def _step_of(line: bytes) -> float:
    try:
        return float(orjson.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
