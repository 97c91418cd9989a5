"""The training of one person's adapter: a loop that can be killed at any moment (paper 3.1).

Written out, not `transformers.Trainer`: that scores the whole vocabulary at every position, starts
the data over when it resumes, and writes a checkpoint in many files that a full disk leaves half
done. Here a resumed training ends with the same bytes as an undisturbed one (same device, same
number of threads, float32).

One process. Where several GPUs are there, a base that fits into one uses one, and another user's
training can use the next; a bigger base is spread over all of them layer by layer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from palate.errors import InputError, Stopped
from palate.simulators.batches import Step, plan
from palate.simulators.checkpoints import Checkpoints, Progress, State
from palate.simulators.examples import Example
from palate.simulators.loss import Scorer, nll, pooled
from palate.simulators.loss_curve import Seen
from palate.simulators.random_states import random_states, restore_random
from palate.simulators.trained import Losses
from palate.simulators.training_settings import TrainingSettings, evaluation_steps, rate_at

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor

CHECKPOINT_EVERY_S = 60.0
_FIRST_STEPS = 10  # in which a loss of exactly 0 means that nothing is supervised


class Data(NamedTuple):
    """What is learned from, what stops the training, and a hash of both and of all settings."""

    training: Sequence[Example]
    validation: Sequence[Example]
    fingerprint: str


Observe = Callable[[Seen], None]


class Training:
    """One training, from its last checkpoint or from the start."""

    def __init__(
        self,
        model: PeftModel,
        data: Data,
        settings: TrainingSettings,
        checkpoints: Checkpoints,
        *,
        observe: Observe = lambda seen: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        import torch

        self._model, self._data, self._settings = model, data, settings
        self._checkpoints, self._observe, self._should_stop = checkpoints, observe, should_stop
        self._scorer = Scorer(model, precision=settings.precision)
        self._weights = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._steps = _steps(data.training, settings)
        epoch = sum(step.epoch == 0 for step in self._steps)
        self._evaluate_every = evaluation_steps(epoch, settings.evaluations)
        self._optimiser = torch.optim.AdamW(
            self._weights.values(), lr=0.0, weight_decay=settings.weight_decay
        )
        self._epoch_tokens = sum(len(example.input_ids) for example in data.training)
        everything = sum(parameter.numel() for parameter in model.parameters())
        self.rate = settings.rate(everything)  # the highest
        self._best: dict[str, Tensor] = {}
        self._progress = Progress()
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Spent on it so far, before interruptions too."""
        return self._progress.seconds

    def run(self) -> Losses:
        """Train to the end; the model is left with the best weights.

        Raises:
            Stopped: it was asked to stop; the checkpoint is on disk.
            StoreError: the disk refuses; the last checkpoint is still there.
            InputError: the loss is no number or exactly 0, or the checkpoint is of other data.
        """
        self._resume()
        self._model.train()
        if self._progress.step == 0 and self._data.validation:
            self._evaluate()
        saved = time.monotonic()
        while not self._progress.stopped:
            self._one_step()
            if self._should_stop():
                self._save()
                raise Stopped(
                    f"training was stopped after step {self._progress.step} of "
                    f"{len(self._steps)}; the same command takes it up there"
                )
            if time.monotonic() - saved > CHECKPOINT_EVERY_S or self._progress.stopped:
                self._save()
                saved = time.monotonic()
        self._take(self._best)
        self._model.eval()
        return self._losses()

    def _one_step(self) -> None:
        done = self._progress.step
        loss = self._learn(self._steps[done], done)
        self._progress.step, self._progress.last = done + 1, loss
        if done == 0:
            self._progress.first = loss
        is_last = done + 1 == len(self._steps)
        validation = None
        if self._data.validation and (is_last or (done + 1) % self._evaluate_every == 0):
            validation = self._evaluate()
        self._tell(loss, validation)
        if is_last:
            self._progress.stopped = "step_limit" if self._is_cut() else "finished"
        elif self._progress.worse >= self._settings.patience:
            self._progress.stopped = "early"

    def _learn(self, step: Step, number: int) -> float:
        """One update; the loss before it. The mean is over the step's tokens, not its batches'."""
        from torch.nn.utils import clip_grad_norm_

        batches = [[self._data.training[n] for n in batch] for batch in step.batches]
        supervised = sum(sum(e.supervised[1:]) for batch in batches for e in batch)
        total = 0.0
        for batch in batches:
            losses, _ = self._scorer.losses(batch)
            loss = losses.sum() / supervised
            loss.backward()
            total += float(loss.detach())
            self._progress.tokens += sum(len(e.input_ids) for e in batch)
        norm = float(clip_grad_norm_(self._weights.values(), self._settings.clip))
        self._check(total, norm, number)
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate_at(number)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        return total

    def _check(self, loss: float, norm: float, number: int) -> None:
        """An adapter full of NaN, or one that learned from nothing, must not look finished."""
        is_empty = loss == 0.0 and number < _FIRST_STEPS
        if math.isfinite(loss) and math.isfinite(norm) and not is_empty:
            return
        self._checkpoints.clear()  # they lead here again
        if is_empty:
            raise InputError(
                f"the loss of step {number + 1} is exactly 0, so nothing is left to learn from: "
                "look into the training sessions, and at their user messages first"
            )
        what = "loss" if not math.isfinite(loss) else "gradient"
        raise self._no_number(f"{what} of step {number + 1}")

    def _no_number(self, what: str) -> InputError:
        return InputError(
            f"the {what} is not a number: train again with a lower --learning-rate (it was "
            f"{self.rate:g}) or with --precision float32; no adapter was saved"
        )

    def _rate_at(self, step: int) -> float:
        return rate_at(
            step, steps=len(self._steps), warm_up=self._settings.warm_up, highest=self.rate
        )

    def _evaluate(self) -> float:
        found = nll(self._scorer, self._data.validation, batch_tokens=self._settings.batch_tokens)
        value = pooled(found)
        if not math.isfinite(value):  # as the first value it would be the best to the end
            self._checkpoints.clear()
            raise self._no_number(f"held-out loss after step {self._progress.step}")
        best = self._progress.validation_best
        if self._progress.step == 0:
            # Not a choice for the best: an adapter that does nothing is no one's simulator.
            self._progress.validation_before = value
            self._tell(None, value)
        elif best is None or value < best:
            self._progress.validation_best = value
            self._progress.best_step, self._progress.worse = self._progress.step, 0
            self._best = {name: p.detach().clone() for name, p in self._weights.items()}
        else:
            self._progress.worse += 1
        return value

    def _tell(self, loss: float | None, validation: float | None) -> None:
        self._progress.seconds += time.monotonic() - self._since
        self._since = time.monotonic()
        step, tokens = self._progress.step, self._progress.tokens
        seen = Seen(
            step=step,
            steps=len(self._steps),
            epoch=tokens / self._epoch_tokens,
            loss=loss,
            validation=validation,
            tokens=tokens,
            seconds=self._progress.seconds,
        )
        self._checkpoints.curve.add(seen)
        self._observe(seen)

    def _is_cut(self) -> bool:
        return self._settings.max_steps == len(self._steps)

    def _save(self) -> None:
        self._checkpoints.save(
            State(
                fingerprint=self._data.fingerprint,
                progress=self._progress,
                weights={name: p.detach() for name, p in self._weights.items()},
                best=self._best,
                optimiser=self._optimiser.state_dict(),
                random=random_states(),
            )
        )

    def _resume(self) -> None:
        import torch

        state = self._checkpoints.load()
        if state is None:
            self._checkpoints.clear()
            torch.manual_seed(self._settings.seed)
            return
        if state.fingerprint != self._data.fingerprint:
            raise InputError(
                f"{self._checkpoints.file} was begun with other settings, sessions or weights; "
                "give the settings that it was begun with, or --force to begin anew"
            )
        self._take(state.weights)
        self._best = dict(state.best)
        self._optimiser.load_state_dict(dict(state.optimiser))
        self._progress = state.progress
        restore_random(state.random)
        self._checkpoints.curve.cut(self._progress.step)

    def _take(self, weights: Mapping[str, Tensor]) -> None:
        import torch

        with torch.no_grad():
            for name, values in weights.items():
                self._weights[name].copy_(values)

    def _losses(self) -> Losses:
        done = self._progress
        assert done.stopped
        return Losses(
            first=done.first,
            last=done.last,
            validation_before=done.validation_before,
            validation_best=done.validation_best,
            best_step=done.best_step if self._best else done.step,
            steps=done.step,
            epochs=done.tokens / self._epoch_tokens,
            tokens_processed=done.tokens,
            stopped=done.stopped,
        )


def _steps(examples: Sequence[Example], settings: TrainingSettings) -> list[Step]:
    lengths = [len(example.input_ids) for example in examples]
    steps = plan(
        lengths,
        epochs=settings.epochs,
        batch_tokens=settings.batch_tokens,
        step_tokens=settings.step_tokens,
        seed=settings.seed,
    )
    return steps[: settings.max_steps]
