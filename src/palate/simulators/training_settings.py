"""How a simulator is trained: one record, whose values are stored with what comes out of it.

The defaults serve one person's some ten thousand to some hundred thousand tokens [choice].
"""

from __future__ import annotations

import math

from pydantic import Field

from palate.simulators.precision import Precision
from palate.types import Record

SMALL_MODEL = 1_000_000_000  # parameters
_SMALL_RATE, _RATE = 5e-4, 2e-4


class TrainingSettings(Record):
    """Tokens are those of the base's tokenizer; `learning_rate` None: by the size of the base.

    A small model takes, and needs, a higher rate to move in the few dozen steps that one person's
    history is.
    """

    epochs: int = Field(default=3, ge=1, le=1000)
    max_steps: int | None = Field(default=None, ge=1)
    max_tokens: int = Field(default=2048, ge=16)  # of an example; longer sessions become several
    max_training_tokens: int | None = Field(default=None, ge=1)  # whole sessions; None: all
    rank: int = Field(default=8, ge=1, le=1024)
    targets: tuple[str, ...] = ()  # layers by the ends of their names; (): chosen by their kind
    routed_experts: bool = False  # of a mixture of experts, beside the layers chosen
    dropout: float = Field(default=0.05, ge=0, lt=1)  # of inputs to A; a fifth of a CPU's speed
    learning_rate: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    warm_up: float = Field(default=0.05, ge=0, lt=1)  # share of the steps
    weight_decay: float = Field(default=0.0, ge=0)
    clip: float = Field(default=1.0, gt=0)  # the gradient's norm
    batch_tokens: int = Field(default=2048, ge=1)  # at once in memory, padding counted
    step_tokens: int = Field(default=1024, ge=1)  # that one step learns from, in whole batches
    evaluations: int = Field(default=2, ge=1)  # on the sessions held out, an epoch
    patience: int = Field(default=3, ge=1)  # evaluations without a better one before it stops
    gradient_checkpointing: bool = False  # a third more time for much less memory
    precision: Precision = "float32"  # of the products; weights and adapter keep theirs
    seed: int = Field(default=0, ge=0)

    @property
    def alpha(self) -> float:
        """Twice the rank, so that a rank can be changed without seeking a new learning rate."""
        return 2.0 * self.rank

    def rate(self, parameters: int) -> float:
        """The highest learning rate, for a base of so many parameters."""
        if self.learning_rate is not None:
            return self.learning_rate
        return _SMALL_RATE if parameters < SMALL_MODEL else _RATE


def evaluation_steps(steps_an_epoch: int, evaluations: int) -> int:
    """Steps from one evaluation to the next, at least 1."""
    return max(1, round(steps_an_epoch / evaluations))


def rate_at(step: int, *, steps: int, warm_up: float, highest: float) -> float:
    """The learning rate of a step (from 0): rising in a line, then falling as a half cosine.

    It never reaches zero, so that the last step learns something too.
    """
    rising = max(1, round(warm_up * steps))
    if step < rising:
        return highest * (step + 1) / rising
    progress = (step - rising) / max(1, steps - rising)
    return highest * (0.05 + 0.95 * (1 + math.cos(math.pi * progress)) / 2)
