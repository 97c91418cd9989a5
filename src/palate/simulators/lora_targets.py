"""Which linear layers of a model get LoRA: decided by what they are in the module tree.

Adapted are, in every decoder layer, the projections of attention (full and linear), of the
feed-forward network, and of a mixture's shared expert. Left out are

- the router of a mixture of experts and other gates: moving them changes who answers, not how;
- routed experts, which see only their share of a person's few tokens, and would multiply the
  adapter by their number (they can be asked for: PEFT adapts stacked weights as parameters);
- everything outside the decoder layers: embeddings, output layer, vision and audio towers.

No list of names decides, because names differ between families: `gate_proj` is a projection in one
place and `gate` a router in another. What decides is structure: experts are stacked weights or a
list of equal blocks; beside experts, a single linear layer is a router or a gate and a block of
several is a shared expert; in attention, a layer with fewer outputs than one head is a gate.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from palate.errors import InputError

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

Place = Literal[
    "attention",
    "linear attention",
    "feed-forward",
    "shared expert",
    "routed experts",
    "router or gate",
    "outside the decoder layers",
]


class Layer(NamedTuple):
    """One linear map in the model, or one stack of them."""

    name: str  # from the model's root
    inputs: int
    outputs: int
    stacked: int = 1  # experts in one stack

    def lora_parameters(self, rank: int) -> int:
        """Of A (rank x inputs) and B (outputs x rank)."""
        return rank * (self.inputs + self.outputs) * self.stacked


class Targets(NamedTuple):
    """What gets LoRA: `modules` and `parameters` are PEFT's `target_modules`, `target_parameters`.

    `modules` are the shortest endings of names that select these layers and no others.
    """

    modules: tuple[str, ...]
    parameters: tuple[str, ...]
    adapted: dict[Place, tuple[Layer, ...]]
    left_out: dict[Place, tuple[Layer, ...]]

    def lora_parameters(self, rank: int) -> int:
        """Trainable numbers of an adapter of this rank."""
        return sum(
            layer.lora_parameters(rank) for layers in self.adapted.values() for layer in layers
        )


def lora_targets(model: PreTrainedModel, *, routed_experts: bool = False) -> Targets:
    """What of `model` (on any device, "meta" too) gets LoRA.

    Raises:
        InputError: no layer qualifies.
    """
    found: dict[Place, list[Layer]] = defaultdict(list)
    for layer, place in _layers(model):
        found[place].append(layer)
    outside: set[Place] = {"router or gate", "outside the decoder layers"}
    if not routed_experts:
        outside.add("routed experts")
    adapted = {place: tuple(layers) for place, layers in found.items() if place not in outside}
    chosen = {layer.name for layers in adapted.values() for layer in layers}
    if not chosen:
        raise InputError(
            f"{type(model).__name__} has no decoder layers with projections that LoRA could adapt; "
            "name them with --target"
        )
    linear = {name for name, module in model.named_modules() if _is_linear(module)}
    return Targets(
        modules=_endings(chosen & linear, {name for name, _ in model.named_modules()}),
        parameters=_endings(chosen - linear, {name for name, _ in model.named_parameters()}),
        adapted=adapted,
        left_out={place: tuple(found[place]) for place in found if place in outside},
    )


def check_targets(model: PreTrainedModel, modules: Sequence[str]) -> None:
    """Every one of `modules` (endings of names) selects a linear layer.

    Raises:
        InputError: names those that select nothing, and what there is to select.
    """
    linear = [name for name, module in model.named_modules() if _is_linear(module)]
    unmatched = [ending for ending in modules if not any(_ends(name, ending) for name in linear)]
    if unmatched:
        there = sorted({name.rpartition(".")[2] for name in linear})
        raise InputError(
            f"the adapter's target modules {', '.join(unmatched)} match no linear layer of "
            f"{type(model).__name__}, whose layers are {', '.join(there)}; give some of these, or "
            "the base that the adapter was made for"
        )


def check_parameters(model: PreTrainedModel, parameters: Sequence[str]) -> None:
    """Every one of `parameters` (endings of names) selects weights of the model.

    Raises:
        InputError: names those that select nothing.
    """
    names = [name for name, _ in model.named_parameters()]
    unmatched = [ending for ending in parameters if not any(_ends(n, ending) for n in names)]
    if unmatched:
        raise InputError(
            f"the adapter's target parameters {', '.join(unmatched)} match no weights of "
            f"{type(model).__name__}; give the base that the adapter was made for"
        )


def _layers(model: PreTrainedModel) -> Iterator[tuple[Layer, Place]]:
    """Every linear map but the embeddings, and where it stands."""
    decoder = _decoder_layers(model)
    head = model.get_output_embeddings()
    narrow = _head_width(model)
    for name, module in model.named_modules():
        if _is_linear(module):
            if module is head or (path := _inside(model, name, decoder)) is None:
                yield _linear(name, module), "outside the decoder layers"
            else:
                yield _linear(name, module), _place(path, module, narrow)
        elif _is_stack(module) and _inside(model, name, decoder) is not None:
            for parameter, weight in module.named_parameters(recurse=False):
                if weight.ndim == 3:
                    experts, outputs, inputs = weight.shape
                    yield Layer(f"{name}.{parameter}", inputs, outputs, experts), "routed experts"


def _decoder_layers(model: PreTrainedModel) -> set[int]:
    """The modules (by identity) that are a decoder layer of the text model."""
    from torch import nn

    decoder = model.get_decoder()
    depth = model.config.get_text_config().num_hidden_layers
    return {
        id(layer)
        for module in decoder.modules()
        if isinstance(module, nn.ModuleList) and len(module) == depth
        for layer in module
    }


def _inside(
    model: PreTrainedModel, name: str, decoder: set[int]
) -> list[tuple[str, nn.Module]] | None:
    """From the decoder layer that holds `name` down to it, (name, module); None: in none."""
    path: list[tuple[str, nn.Module]] = [("", model)]
    for part in name.split("."):
        path.append((part, path[-1][1].get_submodule(part)))
    for start, (_, module) in enumerate(path):
        if id(module) in decoder:
            return path[start:]
    return None


def _place(path: list[tuple[str, nn.Module]], linear: nn.Module, head_width: int) -> Place:
    modules = [module for _, module in path]
    if any(_is_stack(module) or _is_expert_list(module) for module in modules):
        return "routed experts"
    shared = False
    for outer, inner in itertools.pairwise(modules):
        if any(_is_stack(child) or _is_expert_list(child) for child in outer.children()):
            if _linears(inner) < 2:
                return "router or gate"
            shared = outer is not modules[0]  # beside the attention stands a mixture, not an expert
    if shared:
        return "shared expert"
    if not _is_mixer(path):
        return "feed-forward"
    if _linear("", linear).outputs < head_width:
        return "router or gate"
    convolves = any(_is_convolution(child) for child in path[1][1].children())
    return "linear attention" if convolves else "attention"


def _is_mixer(path: list[tuple[str, nn.Module]]) -> bool:
    """The block mixes tokens: it is called attention, or it convolves along the text."""
    if len(path) < 3:
        return False
    name, block = path[1]
    words = f"{name} {type(block).__name__}".lower()
    return "attn" in words or "attention" in words or any(map(_is_convolution, block.children()))


def _is_linear(module: nn.Module) -> bool:
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    return isinstance(module, nn.Linear | Conv1D)


def _is_convolution(module: nn.Module) -> bool:
    from torch import nn

    return isinstance(module, nn.Conv1d)


def _is_stack(module: nn.Module) -> bool:
    """Its own weights are stacks of matrices, one for each expert."""
    return not _is_convolution(module) and any(
        weight.ndim == 3 for weight in module.parameters(recurse=False)
    )


def _is_expert_list(module: nn.Module) -> bool:
    from torch import nn

    return isinstance(module, nn.ModuleList) and len(module) > 1 and _linears(module) > 1


def _linears(module: nn.Module) -> int:
    return sum(_is_linear(inner) for inner in module.modules())


def _linear(name: str, module: nn.Module) -> Layer:
    from torch import nn

    if isinstance(module, nn.Linear):
        return Layer(name, module.in_features, module.out_features)
    inputs, outputs = module.weight.shape  # the Conv1D of GPT-2 keeps its weight transposed
    return Layer(name, inputs, outputs)


def _head_width(model: PreTrainedModel) -> int:
    """Of the narrowest head in any kind of attention of this model."""
    config = model.config.get_text_config()
    named = ("head_dim", "linear_key_head_dim", "linear_value_head_dim")
    widths = [getattr(config, name, None) for name in named]
    given = [width for width in widths if width]
    return min(given) if given else int(config.hidden_size // config.num_attention_heads)


def _endings(chosen: set[str], names: set[str]) -> tuple[str, ...]:
    """The shortest endings, by whole parts, that select the chosen of all `names` and no others."""
    found = set()
    for name in chosen:
        parts = name.split(".")
        for start in range(len(parts) - 1, -1, -1):
            ending = ".".join(parts[start:])
            if all(other in chosen for other in names if _ends(other, ending)):
                break
        found.add(ending)
    return tuple(sorted(found))


def _ends(name: str, ending: str) -> bool:
    return name == ending or name.endswith(f".{ending}")
