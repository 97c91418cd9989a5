"""The state of an unfinished training on disk: one file, replaced whole.

    .training/checkpoint.pt     weights, optimiser, random numbers, position, best weights
    .training/training.jsonl    the loss curve so far
    .training/finished/         what is about to take its place beside it

A new state is written under another name, brought to the disk, and takes the old one's place in
one step: whatever ends the process, and whatever the disk refuses, the last whole state is there.
"""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from filelock import FileLock, Timeout

from palate.disk import disk, replacing
from palate.errors import InputError, StoreError
from palate.simulators.loss_curve import LossCurve
from palate.simulators.trained import LOSS_CURVE

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = ".training"
_FORM = 1


@dataclass(slots=True)
class Progress:
    """How far a training is."""

    step: int = 0  # steps done
    seconds: float = 0.0
    tokens: int = 0  # processed, padding left out
    first: float = 0.0  # loss of the first step, once there is one
    last: float = 0.0
    validation_before: float | None = None  # of the base alone
    validation_best: float | None = None
    best_step: int = 0
    worse: int = 0  # evaluations since the best one
    stopped: Literal["", "finished", "early", "step_limit"] = ""  # "": it goes on


class State(NamedTuple):
    """Everything that the rest of a training depends on."""

    fingerprint: str  # of settings and data
    progress: Progress
    weights: Mapping[str, Tensor]
    best: Mapping[str, Tensor]  # empty where nothing is held out
    optimiser: Mapping[str, object]
    random: Mapping[str, Tensor]  # generator states by device


class Checkpoints:
    """The `.training` folder of one user's simulator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self.file = self.folder / "checkpoint.pt"
        self._lock = self.folder / "lock"
        self.curve = LossCurve(self.folder / LOSS_CURVE)
        self.finished = self.folder / "finished"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out; what ends before a first checkpoint leaves nothing behind.

        Raises:
            StoreError: another process trains this user's simulator, or the disk refuses.
        """
        with disk(self.folder):
            made = [self.folder, *(path for path in self.folder.parents if not path.exists())]
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._lock)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise StoreError(
                    f"{self.folder} is in use by another process; wait until it is done, or end it"
                ) from None
        try:
            for left in self.folder.glob(".*.part"):  # of a process that was killed
                left.unlink(missing_ok=True)
            yield
        except BaseException:
            if not self.file.exists():
                self._leave_nothing(made)
            raise
        finally:
            lock.release()

    def _leave_nothing(self, made: Sequence[Path]) -> None:
        """Remove the lock, a curve that leads nowhere, and of `made` what is empty then."""
        with contextlib.suppress(OSError):  # what ended the training is the thing to be told
            for path in (self.curve.file, self._lock):
                path.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()

    def save(self, state: State) -> None:
        """Replace the last state; raises `StoreError`, and then the last one is still there."""
        import torch

        # Through memory: torch writes to a file by itself and tells a full disk in its own way.
        content = io.BytesIO()
        plain = {**state._asdict(), "progress": asdict(state.progress), "form": _FORM}
        torch.save(plain, content)
        with disk(self.file), replacing(self.file) as file:
            file.write(content.getbuffer())

    def load(self) -> State | None:
        """The last state, None where there is none.

        Raises:
            InputError: it is damaged or of another version of palate.
        """
        import torch

        if not self.file.exists():
            return None
        try:
            value = torch.load(self.file, map_location="cpu", weights_only=True)
            if value.pop("form") == _FORM:
                return State(**{**value, "progress": Progress(**value["progress"])})
        except Exception:  # whatever the bytes of a damaged file lead torch to
            raise InputError(
                f"{self.file} is damaged; begin the training anew with --force"
            ) from None
        raise InputError(
            f"{self.file} was written by another version of palate; begin the training anew with "
            "--force"
        )

    def keep_only(self, fingerprint: str) -> None:
        """Remove a state that is damaged or of another training; raises `StoreError`."""
        try:
            state = self.load()
        except InputError:
            state = None
        if state is None or state.fingerprint != fingerprint:
            self.clear()

    def clear(self) -> None:
        """Remove the state, not the lock; raises `StoreError`."""
        with disk(self.folder):
            for path in (self.file, self.curve.file):
                path.unlink(missing_ok=True)
            if self.finished.exists():
                shutil.rmtree(self.finished)

    def remove(self) -> None:
        """Remove the folder, the lock with it: there is nothing left to do; raises `StoreError`."""
        with disk(self.folder):
            shutil.rmtree(self.folder)
