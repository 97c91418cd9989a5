"""A fresh LoRA adapter on a base, and its files, the same for the same training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from palate.errors import InputError
from palate.simulators.adapter_file import CONFIG
from palate.simulators.base_model import Base
from palate.simulators.file_modes import make_readable
from palate.simulators.lora_targets import check_targets, lora_targets
from palate.simulators.quiet import quiet
from palate.simulators.training_settings import TrainingSettings

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel


class NewAdapter(NamedTuple):
    """A base with an untrained adapter on it, which changes nothing yet."""

    model: PeftModel
    target_modules: tuple[str, ...]  # endings of the names of layers (or of stacked weights)
    layers: int
    parameters: int


def new_adapter(base: Base, settings: TrainingSettings) -> NewAdapter:
    """Put an adapter on `base`, its random half drawn by the seed; in place.

    Raises:
        InputError: as `chosen_layers`.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    modules, parameters = chosen_layers(base.model, settings)
    torch.manual_seed(settings.seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        # PEFT has no dropout for stacked weights.
        lora_dropout=0.0 if parameters else settings.dropout,
        target_modules=list(modules),
        target_parameters=list(parameters) or None,
        task_type="CAUSAL_LM",
    )
    with quiet():
        model = get_peft_model(base.model, config)
        if settings.gradient_checkpointing:
            model.enable_input_require_grads()  # else none comes through the frozen embeddings
            model.gradient_checkpointing_enable({"use_reentrant": False})
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return NewAdapter(
        model=model,
        target_modules=(*modules, *parameters),
        layers=len(trained) // 2,  # an A and a B each
        parameters=sum(parameter.numel() for parameter in trained),
    )


class ChosenLayers(NamedTuple):
    """What gets LoRA, by the endings of names."""

    modules: tuple[str, ...]
    parameters: tuple[str, ...]  # stacked weights


def chosen_layers(model: PreTrainedModel, settings: TrainingSettings) -> ChosenLayers:
    """What of `model` (on any device, "meta" too) the settings ask to adapt.

    Raises:
        InputError: a target of the settings matches no layer, no layer qualifies, or routed experts
            are asked for where there are none.
    """
    if settings.targets:
        check_targets(model, settings.targets)
        return ChosenLayers(settings.targets, ())
    found = lora_targets(model, routed_experts=settings.routed_experts)
    if settings.routed_experts and "routed experts" not in found.adapted:
        raise InputError(
            f"{type(model).__name__} has no routed experts to adapt; leave --routed-experts out"
        )
    return ChosenLayers(found.modules, found.parameters)


def save_adapter(model: PeftModel, folder: Path, *, base: Base) -> None:
    """Write PEFT's two files into `folder`; raises `OSError`.

    The config names the base as the user does, never a folder of this machine's cache.
    """
    # Nothing of the embeddings is adapted; left to itself, PEFT asks the hub whether it might be.
    with quiet():
        model.save_pretrained(str(folder), save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)  # a model card full of blanks
    make_readable(folder, like=CONFIG)
    path = folder / CONFIG
    config = json.loads(path.read_bytes())
    config["base_model_name_or_path"] = base.record.name
    config["revision"] = base.record.revision
    # PEFT keeps the targets in a set, whose order differs from one process to the next.
    for name in ("target_modules", "target_parameters"):
        if isinstance(config.get(name), list):
            config[name] = sorted(config[name])
    path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", "utf-8")
