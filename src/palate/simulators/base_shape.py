"""What a base model is made of, counted on a copy of it that has shapes and no values.

The model is built on torch's "meta" device by its own code and a LoRA adapter is put on it as
training does, so nothing is estimated from a table of architectures: parameters, targets, and the
bytes that a forward pass keeps for the backward pass are those of the code that will run. Needs
the extra train, some seconds, and no weights.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from palate.errors import InputError
from palate.simulators.lora_targets import Targets, lora_targets
from palate.simulators.paper_base import PAPER_BASE, SHAPE
from palate.simulators.quiet import quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel


class Kept(NamedTuple):
    """Bytes that one sequence's forward pass keeps for the backward pass."""

    everything: int
    inputs: int  # of the decoder layers alone: what checkpointing keeps
    largest_layer: int  # which checkpointing computes again, one at a time


class Shape(NamedTuple):
    """Counts of parameters, LoRA targets, and what a forward pass keeps."""

    architecture: str
    parameters: int
    active: int  # used by one token: all but the experts that are not chosen
    body: int  # of these, without the tables of the vocabulary: multiplied for every token
    head: int  # of the output layer: multiplied for supervised tokens
    vocabulary: int
    attention: int  # width of all heads, over the layers whose cost grows with the length
    in_linear_layers: int  # of decoder layers: what 4-bit loaders reach; stacked experts are not
    targets: Targets
    kept: Kept | None
    why_not: str  # where `kept` is None


def shape_of(base: str, *, rank: int, tokens: int, routed_experts: bool = False) -> Shape:
    """The shape of `base`: the paper's (known here), a folder or a hub name (config.json alone).

    Args:
        rank: of the adapter.
        tokens: of the sequence whose forward pass is counted.

    Raises:
        InputError: the config cannot be had, or is of no causal language model.
    """
    with quiet():
        model = _built(_config(base))
        targets = lora_targets(model, routed_experts=routed_experts)
        parameters = _parameters(model)
        why_not = ""
        kept = None
        try:
            kept = _kept(model, targets, rank, tokens)
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
            why_not = " ".join(str(error).split())[:200] or type(error).__name__
    return Shape(
        architecture=type(model).__name__,
        **parameters,
        targets=targets,
        kept=kept,
        why_not=why_not,
    )


def _config(base: str) -> PretrainedConfig:
    from transformers import AutoConfig

    if base == PAPER_BASE:
        return AutoConfig.for_model(**SHAPE)
    from palate.simulators.base_model import config_of

    return config_of(base)


def _built(config: PretrainedConfig) -> PreTrainedModel:
    import torch
    from transformers import AttentionInterface, AutoModelForCausalLM

    AttentionInterface.register("palate_counted", _counted_attention)
    text = config.get_text_config()
    if _experts(text):
        # The implementation without a loop over the data, which "meta" could not follow.
        text._experts_implementation = "grouped_mm"
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(
            text, dtype=torch.bfloat16, attn_implementation="palate_counted"
        )


def _parameters(model: PreTrainedModel) -> dict[str, Any]:
    found = lora_targets(model, routed_experts=True)
    routed = found.adapted.get("routed experts", ())
    in_experts = sum(layer.inputs * layer.outputs * layer.stacked for layer in routed)
    total = sum(parameter.numel() for parameter in model.parameters())  # tied ones come once
    config = model.config.get_text_config()
    active = total - round(in_experts * (1 - _share(config))) if routed else total
    head = model.get_output_embeddings().weight.numel()
    tables = {id(t.weight): t.weight.numel() for t in _tables(model)}
    full = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    linear = (found.adapted | found.left_out).items()
    return {
        "parameters": total,
        "active": active,
        "body": active - sum(tables.values()),
        "head": head,
        "vocabulary": config.vocab_size,
        "attention": sum(kind != "linear_attention" for kind in full)
        * config.num_attention_heads
        * width,
        "in_linear_layers": sum(
            layer.inputs * layer.outputs
            for place, layers in linear
            if place != "outside the decoder layers"
            for layer in layers
            if layer.stacked == 1
        ),
    }


def _tables(model: PreTrainedModel) -> tuple[nn.Module, nn.Module]:
    return model.get_input_embeddings(), model.get_output_embeddings()


def _experts(config: PretrainedConfig) -> int | None:
    """Routed experts in a layer; None where the model is no mixture."""
    named = ("num_experts", "num_local_experts", "n_routed_experts")
    return next((n for name in named if (n := getattr(config, name, None))), None)


def _share(config: PretrainedConfig) -> float:
    """Of the routed experts that a token uses."""
    named = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_k")
    chosen = next((n for name in named if (n := getattr(config, name, None))), None)
    experts = _experts(config)
    if not chosen or not experts:
        raise InputError(
            f"{type(config).__name__} does not say how many experts there are and how many a token "
            "uses, so its recipe cannot be computed"
        )
    return float(chosen / experts)


def _kept(model: PreTrainedModel, targets: Targets, rank: int, tokens: int) -> Kept:
    import torch
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules=list(targets.modules),
        target_parameters=list(targets.parameters) or None,
        task_type="CAUSAL_LM",
    )
    wrapped = get_peft_model(model, config, low_cpu_mem_usage=True).train()
    wrapped.enable_input_require_grads()
    ids = torch.ones(1, tokens, dtype=torch.long, device="meta")
    counting = _Counting(wrapped)
    with torch.autograd.graph.saved_tensors_hooks(counting.keep, lambda tensor: tensor):
        model.get_decoder()(input_ids=ids, use_cache=False)
    return counting.result(layers=counting.layers, inputs=tokens * _hidden_bytes(model))


def _hidden_bytes(model: PreTrainedModel) -> int:
    return int(model.config.get_text_config().hidden_size) * 2  # bfloat16


class _Counting:
    """The storages that autograd keeps, each once, by the decoder layer that runs."""

    def __init__(self, model: nn.Module) -> None:
        self._of_model = {p.untyped_storage()._cdata for p in model.parameters()}
        self._seen: dict[int, Tensor] = {}  # held, so that no address is used twice
        self._bytes: Counter[int] = Counter()
        self._now = -1
        self.layers = 0
        for layer in _decoder_layers(model):
            layer.register_forward_pre_hook(self._enter(self.layers))
            layer.register_forward_hook(self._leave)
            self.layers += 1

    def keep(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._of_model and storage._cdata not in self._seen:
            self._seen[storage._cdata] = tensor
            self._bytes[self._now] += storage.nbytes()
        return tensor

    def result(self, *, layers: int, inputs: int) -> Kept:
        largest = max(size for layer, size in self._bytes.items() if layer >= 0)
        return Kept(sum(self._bytes.values()), layers * inputs, largest)

    def _enter(self, number: int) -> Any:  # noqa: ANN401 - a hook, as torch calls it
        def enter(module: nn.Module, given: object) -> None:
            self._now = number

        return enter

    def _leave(self, module: nn.Module, given: object, made: object) -> None:
        self._now = -1


def _decoder_layers(model: nn.Module) -> Iterator[nn.Module]:
    from transformers.modeling_layers import GradientCheckpointingLayer

    return (module for module in model.modules() if isinstance(module, GradientCheckpointingLayer))


def _counted_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *given: object, **named: object
) -> tuple[Tensor, None]:
    """Attention as a fused kernel keeps it: queries, keys, values and the result, no scores."""
    import torch

    class Fused(torch.autograd.Function):  # type: ignore[misc] # torch is untyped here
        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> Tensor:  # noqa: ANN401 - torch's own
            made = torch.empty_like(tensors[0][..., : tensors[2].shape[-1]])
            ctx.save_for_backward(*tensors, made)
            return made

    made: Tensor = Fused.apply(query, key, value)
    return made.transpose(1, 2).contiguous(), None
