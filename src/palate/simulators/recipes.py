"""What training an adapter on a base takes: layers, memory, time; computed from the base's shape.

Memory is that of one process that trains as `palate.simulators.training` does: weights in bfloat16,
frozen; the adapter, its gradient and both moments of AdamW in single precision; what the forward
pass keeps; the scores of the vocabulary at supervised positions. Time is what the
GPU's products and its memory allow, times a share that is stated, not measured: mixtures of experts
on small batches reach little. Loading the weights comes on top.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from palate.simulators.base_shape import Shape

# One of each: the adapter, its best state so far, its gradient, AdamW's two moments; 4 bytes each.
_STATE_BYTES = 5 * 4
TARGETS_AT_ONCE = 1024  # supervised positions whose vocabulary is scored together (loss.py)
_SCORE_BYTES = 3 * 4  # logits, their softmax and its gradient, in single precision
_RUNTIME_BYTES = 1_500_000_000  # of the driver, its libraries and the allocator's gaps: assumed

# Bits of a weight in a 4-bit linear layer: 4, and a scale of 32 bits for each 64 weights.
_FOUR_BIT_BYTES = (4 + 32 / 64) / 8


class Gpu(NamedTuple):
    """Public figures of the data sheets: memory, its speed, and dense products in bfloat16."""

    name: str
    gigabytes: float
    terabytes_s: float
    teraflops: float  # without sparsity


GPUS = (
    Gpu("A100 80 GB", 80, 2.04, 312),
    Gpu("H100 SXM 80 GB", 80, 3.35, 989),
    Gpu("H200 141 GB", 141, 4.8, 989),
)


class Plan(NamedTuple):
    """What is to be learned from, and how.

    `tokens` are read in an epoch, of which `supervised` (0..1) are the person's: a quarter, unless
    they write more than the character does. `utilisation` (0..1) is the share of the bound that is
    reached: of a GPU's peak, or of its memory's speed where that is the tighter one.
    """

    rank: int
    max_tokens: int
    batch_tokens: int
    tokens: int
    epochs: int
    utilisation: float
    supervised: float = 0.25


class Memory(NamedTuple):
    """Bytes on the GPUs, all together; activations None: not countable for this architecture."""

    weights: int
    weights_four_bit: int  # with the linear layers alone in four bits, as loaders do it
    states: int  # adapter, gradient, optimiser
    scores: int
    kept: int | None  # by the forward pass, without checkpointing
    kept_checkpointed: int | None
    runtime: int

    def total(self, *, checkpointing: bool) -> int | None:
        """Of everything, weights in bfloat16."""
        kept = self.kept_checkpointed if checkpointing else self.kept
        if kept is None:
            return None
        return self.weights + self.states + self.scores + kept + self.runtime


class Recipe(NamedTuple):
    """A base's shape, and what the plan takes on it."""

    base: str
    shape: Shape
    plan: Plan
    memory: Memory
    operations: int  # floating-point, of the whole training, with checkpointing
    traffic: int  # bytes of weights read in the whole training

    def hours(self, gpu: Gpu) -> float:
        """Of the whole training on one such GPU, or spread over several, which work in turn."""
        products = self.operations / (gpu.teraflops * 1e12)
        reading = self.traffic / (gpu.terabytes_s * 1e12)
        return max(products, reading) / self.plan.utilisation / 3600


def recipe(base: str, shape: Shape, plan: Plan) -> Recipe:
    """What `plan` takes on a base of this shape, counted for sequences of `plan.max_tokens`."""
    bytes_ = memory(shape, plan)
    # Forward, forward again, backward: a batch of some thousand tokens reaches every expert.
    batches = -(-plan.tokens * plan.epochs // plan.batch_tokens)
    traffic = 3 * bytes_.weights * batches
    return Recipe(base, shape, plan, bytes_, operations(shape, plan), traffic)


def memory(shape: Shape, plan: Plan) -> Memory:
    """Bytes by what they are for."""
    kept = shape.kept
    sequences = plan.batch_tokens / plan.max_tokens
    rest = shape.parameters - shape.in_linear_layers
    return Memory(
        weights=2 * shape.parameters,
        weights_four_bit=round(2 * rest + _FOUR_BIT_BYTES * shape.in_linear_layers),
        states=_STATE_BYTES * shape.targets.lora_parameters(plan.rank),
        scores=_SCORE_BYTES * shape.vocabulary * min(TARGETS_AT_ONCE, plan.batch_tokens),
        kept=kept and round(sequences * kept.everything),
        kept_checkpointed=kept and round(sequences * (kept.inputs + kept.largest_layer)),
        runtime=_RUNTIME_BYTES,
    )


def operations(shape: Shape, plan: Plan) -> int:
    """Of all epochs: forward, forward again (checkpointing), and backward to the activations.

    A frozen weight costs 2 operations a token forward and 2 backward: its own gradient, the third
    part of full training, is not taken. The adapter costs all three. Scores of attention grow with
    the length, half of them behind the causal mask.
    """
    adapter = shape.targets.lora_parameters(plan.rank)
    scores = shape.attention * plan.max_tokens  # 2 products, 2 operations, half of the positions
    forward = 2 * (shape.body + adapter) + 2 * scores
    backward = 2 * (shape.body + 2 * adapter) + 4 * scores
    head = plan.supervised * 3 * 2 * shape.head  # forward, again, backward
    return round(plan.tokens * plan.epochs * (2 * forward + backward + head))


def told(made: Recipe) -> str:
    """The recipe as a page for the terminal."""
    shape, plan = made.shape, made.plan
    lines = [
        f"{made.base} ({shape.architecture})",
        f"  parameters      {_many(shape.parameters)}, {_many(shape.active)} of them at work on a "
        "token",
        "",
        f"LoRA of rank {plan.rank}: {_many(shape.targets.lora_parameters(plan.rank))} parameters",
        *(
            f"  {place:<20}{len(layers):>5} layers, "
            f"{_many(sum(layer.lora_parameters(plan.rank) for layer in layers))} parameters"
            for place, layers in shape.targets.adapted.items()
        ),
        *(f"  not: {place} ({len(layers)})" for place, layers in shape.targets.left_out.items()),
        f"  target modules: {', '.join((*shape.targets.modules, *shape.targets.parameters))}",
        "",
        *_memory_told(made),
        "",
        *_time_told(made),
        "",
        command(made),
    ]
    return "\n".join(lines) + "\n"


def command(made: Recipe) -> str:
    """The command line that trains as the recipe says; STUDY is to be filled in."""
    plan = made.plan
    words = ["palate", "simulator", "train", "STUDY", "--all-users", "--base", made.base]
    words += ["--rank", str(plan.rank), "--epochs", str(plan.epochs)]
    words += ["--max-tokens", str(plan.max_tokens), "--batch-tokens", str(plan.batch_tokens)]
    words += ["--gradient-checkpointing"]
    if made.shape.targets.parameters:
        words += ["--routed-experts"]
    return shlex.join(words)


def _memory_told(made: Recipe) -> list[str]:
    memory, plan = made.memory, made.plan
    rows = [
        ("weights, bfloat16", memory.weights),
        ("adapter, gradient, AdamW", memory.states),
        ("scores of the vocabulary", memory.scores),
        ("kept by the forward pass", memory.kept_checkpointed),
        ("driver and libraries (assumed)", memory.runtime),
        ("together", memory.total(checkpointing=True)),
    ]
    whole = memory.total(checkpointing=False)
    without = "" if whole is None else f"; without checkpointing {_gigabytes(whole)}"
    unknown = f"  (not countable: {made.shape.why_not})" if memory.kept is None else ""
    return [
        f"Memory for batches of {plan.batch_tokens} tokens in sequences of {plan.max_tokens}, "
        f"with gradient checkpointing{without}",
        *(f"  {name:<32}{_gigabytes(size):>10}" for name, size in rows),
        *([unknown] if unknown else []),
        f"  A 4-bit loader would bring the weights to {_gigabytes(memory.weights_four_bit)}: it "
        "reaches linear layers, not stacked experts; palate trains on unquantised weights.",
    ]


def _time_told(made: Recipe) -> list[str]:
    plan = made.plan
    return [
        f"Time for {plan.tokens:,} tokens x {plan.epochs} epochs, {made.operations:.2e} "
        f"operations, at {plan.utilisation:.0%} of what products or memory allow (stated, not "
        "measured)",
        *(f"  {gpu.name:<16}{_fits(made, gpu):<24}{_duration(made.hours(gpu))}" for gpu in GPUS),
    ]


def _fits(made: Recipe, gpu: Gpu) -> str:
    """GPUs that the weights and all else need; a model spread over several is worked in turn."""
    total = made.memory.total(checkpointing=True)
    if total is None:
        return "memory unknown"
    number = -(-total // round(gpu.gigabytes * 1e9))
    return f"{number} GPU" if number == 1 else f"{number} GPUs, in turn"


def _gigabytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e9:.2f} GB"


def _many(number: int) -> str:
    for unit, name in ((10**9, " billion"), (10**6, " million")):
        if number >= unit:
            return f"{number / unit:.2f}{name}"
    return f"{number:,}"


def _duration(hours: float) -> str:
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{hours * 60:.0f} min" if hours * 60 >= 1 else f"{hours * 3600:.0f} s"
