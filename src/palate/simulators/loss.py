"""The negative log-likelihood of what a person wrote, and of nothing else (docs: method, 2).

Only the tokens of the user's messages are supervised, a third of a session or less, so the
vocabulary is scored at those positions alone: with 50,000 to 250,000 entries it is the largest
matrix of a small model, and the largest tensor of a big one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from palate.simulators.batches import by_length
from palate.simulators.examples import Example
from palate.simulators.memory import is_out_of_memory
from palate.simulators.precision import Precision, computing

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

    # Hidden states (targets, width) of a model to logits (targets, vocabulary).
    Head = Callable[[Tensor], Tensor]

_TARGETS_AT_ONCE = 1024  # more are scored in parts, computed again for the gradient
_AGREEMENT = 1e-3  # nats, between the short way and the model's own


class Nll(NamedTuple):
    """Of one example: the sum over its supervised tokens, in nats, and how many they are."""

    total: float
    tokens: int


class Rows(NamedTuple):
    """Examples side by side, padded at the end; a target's position is that of the token before."""

    input_ids: Tensor  # (examples, tokens)
    attention_mask: Tensor  # the same
    row: Tensor  # (targets,)
    column: Tensor  # (targets,)
    target: Tensor  # (targets,) token ids


def rows(examples: Sequence[Example], *, pad: int, device: torch.device) -> Rows:
    """The examples as tensors; `pad` is any valid token id, it is never attended to."""
    import numpy
    import torch

    width = max(len(example.input_ids) for example in examples)
    ids = numpy.full((len(examples), width), pad, dtype=numpy.int64)
    mask = numpy.zeros((len(examples), width), dtype=numpy.int64)
    supervised = numpy.zeros((len(examples), width), dtype=bool)
    for number, example in enumerate(examples):
        length = len(example.input_ids)
        ids[number, :length] = example.input_ids
        mask[number, :length] = 1
        supervised[number, :length] = example.supervised
    # The first token has nothing before it that could predict it.
    row, column = numpy.nonzero(supervised[:, 1:])

    def tensor(values: object) -> Tensor:
        return torch.as_tensor(values, dtype=torch.int64).to(device)

    return Rows(
        tensor(ids), tensor(mask), tensor(row), tensor(column), tensor(ids[row, column + 1])
    )


class Scorer:
    """Scores examples with a causal language model, PEFT-wrapped or not.

    The model's inner transformer is run and its head applied to the supervised positions. Some
    architectures scale or cap their logits after the head, so the short way is held against the
    model's own logits once; where they differ, or there is no such way, the model's own are used.
    """

    def __init__(self, model: PreTrainedModel, *, precision: Precision = "float32") -> None:
        self.model = model
        self._precision = precision
        self.device: torch.device = model.get_input_embeddings().weight.device
        self._parts = _parts(model)
        if self._parts is not None and not self._agrees():
            self._parts = None

    @property
    def is_short(self) -> bool:
        """Whether the vocabulary is scored at the supervised positions alone."""
        return self._parts is not None

    def losses(self, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """NLL of every supervised token (float32, differentiable), and the example it is of."""
        batch = rows(examples, pad=0, device=self.device)
        with computing(self.device, self._precision):
            if self._parts is None:
                logits = self._whole(batch)
                return _nll(logits, batch.target.to(logits.device)), batch.row
            body, head = self._parts
            hidden = self._hidden(body, batch)
            target = batch.target.to(hidden.device)
            return _in_parts(head, hidden, target), batch.row

    def _hidden(self, body: torch.nn.Module, batch: Rows) -> Tensor:
        output = body(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, use_cache=False
        )
        states: Tensor = output.last_hidden_state
        return states[batch.row.to(states.device), batch.column.to(states.device)]

    def _whole(self, batch: Rows) -> Tensor:
        output = self.model(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, use_cache=False
        )
        logits: Tensor = output.logits
        return logits[batch.row.to(logits.device), batch.column.to(logits.device)]

    def _agrees(self) -> bool:
        import torch

        assert self._parts is not None
        ids = (1, 2, 3, 4, 5, 6, 7, 8)
        batch = rows([Example("", ids, (False,) + 7 * (True,), 1)], pad=0, device=self.device)
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                body, head = self._parts
                short = _nll(head(self._hidden(body, batch)), batch.target)
                whole = _nll(self._whole(batch), batch.target)
        finally:
            self.model.train(was_training)
        return bool(torch.allclose(short, whole.to(short.device), atol=_AGREEMENT, rtol=0))


def nll(
    model: PreTrainedModel | Scorer,
    examples: Sequence[Example],
    *,
    batch_tokens: int = 2048,
    precision: Precision = "float32",
) -> list[Nll]:
    """The NLL of each example, in their order, without gradient and without dropout.

    An example without a supervised token has (0.0, 0). Arguments as those of `token_nlls`.
    """
    values = token_nlls(model, examples, batch_tokens=batch_tokens, precision=precision)
    return [Nll(math.fsum(found), len(found)) for found in values]


def token_nlls(
    model: PreTrainedModel | Scorer,
    examples: Sequence[Example],
    *,
    batch_tokens: int = 2048,
    precision: Precision = "float32",
) -> list[tuple[float, ...]]:
    """The NLL of each example's supervised tokens, in their order.

    Args:
        batch_tokens: at once, padding counted; a batch that the memory does not hold is halved.
        precision: of the products, where `model` is not a `Scorer` that has its own.
    """
    import torch

    scorer = model if isinstance(model, Scorer) else Scorer(model, precision=precision)
    found: list[tuple[float, ...]] = [()] * len(examples)
    was_training = scorer.model.training
    scorer.model.eval()
    try:
        with torch.no_grad():
            for batch in by_length([len(e.input_ids) for e in examples], batch_tokens):
                for number, values in zip(batch, _halved(scorer, examples, batch), strict=True):
                    found[number] = values
    finally:
        scorer.model.train(was_training)
    return found


def pooled(found: Sequence[Nll]) -> float:
    """Mean NLL a token over all of them, in nats.

    Raises:
        ValueError: no token is supervised.
    """
    tokens = sum(one.tokens for one in found)
    if not tokens:
        raise ValueError("no token is supervised")
    return sum(one.total for one in found) / tokens


def _halved(
    scorer: Scorer, examples: Sequence[Example], batch: Sequence[int]
) -> list[tuple[float, ...]]:
    """As `_of_batch`, half at a time where the memory does not suffice for all."""
    try:
        return _of_batch(scorer, examples, batch)
    except (RuntimeError, MemoryError) as error:
        if len(batch) == 1 or not is_out_of_memory(error):
            raise
    # After the handler: until then the error keeps the tensors that were too many.
    half = len(batch) // 2
    first = _halved(scorer, examples, batch[:half])
    return first + _halved(scorer, examples, batch[half:])


def _of_batch(
    scorer: Scorer, examples: Sequence[Example], batch: Sequence[int]
) -> list[tuple[float, ...]]:
    losses, row = scorer.losses([examples[number] for number in batch])
    values, places = losses.double().cpu(), row.cpu()
    return [tuple(values[places == number].tolist()) for number in range(len(batch))]


def _parts(model: PreTrainedModel) -> tuple[torch.nn.Module, Head] | None:
    """The inner transformer and the head of a model; None where they cannot be told apart."""
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    body = getattr(causal, getattr(causal, "base_model_prefix", "") or "-", None)
    head = causal.get_output_embeddings()
    return None if body is None or head is None or body is causal else (body, head)


def _in_parts(head: Head, hidden: Tensor, target: Tensor) -> Tensor:
    import torch
    from torch.utils.checkpoint import checkpoint

    if len(target) <= _TARGETS_AT_ONCE:
        return _nll(head(hidden), target)

    def scored(some: Tensor, of: Tensor) -> Tensor:
        return _nll(head(some), of)

    parts = zip(hidden.split(_TARGETS_AT_ONCE), target.split(_TARGETS_AT_ONCE), strict=True)
    return torch.cat([checkpoint(scored, *part, use_reentrant=False) for part in parts])


def _nll(logits: Tensor, target: Tensor) -> Tensor:
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits.float(), target.to(logits.device), reduction="none")
