"""A fresh LoRA adapter on a base, and its files, the same for the same training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from palate.simulators.base_model import Base
from palate.simulators.lora_targets import check_targets, lora_targets
from palate.simulators.quiet import quiet
from palate.simulators.training_settings import TrainingSettings

if TYPE_CHECKING:
    from peft import PeftModel


class NewAdapter(NamedTuple):
    """A base with an untrained adapter on it, which changes nothing yet."""

    model: PeftModel
    target_modules: tuple[str, ...]  # endings of the names of layers (or of stacked weights)
    layers: int
    parameters: int


def new_adapter(base: Base, settings: TrainingSettings) -> NewAdapter:
    """Put an adapter on `base`, its random half drawn by the seed; in place.

    Raises:
        InputError: a target of the settings matches no layer, or no layer qualifies.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    modules, parameters = _targets(base, settings)
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


def _targets(base: Base, settings: TrainingSettings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Endings of names of layers, and of stacked weights."""
    if settings.targets:
        check_targets(base.model, settings.targets)
        return settings.targets, ()
    found = lora_targets(base.model, routed_experts=settings.routed_experts)
    return found.modules, found.parameters


def save_adapter(model: PeftModel, folder: Path, *, base: Base) -> None:
    """Write PEFT's two files into `folder`; raises `OSError`.

    The config names the base as the user does, never a folder of this machine's cache.
    """
    # Nothing of the embeddings is adapted; left to itself, PEFT asks the hub whether it might be.
    with quiet():
        model.save_pretrained(str(folder), save_embedding_layers=False)
    (folder / "README.md").unlink(missing_ok=True)  # a model card full of blanks
    path = folder / "adapter_config.json"
    config = json.loads(path.read_bytes())
    config["base_model_name_or_path"] = base.record.name
    config["revision"] = base.record.revision
    # PEFT keeps the targets in a set, whose order differs from one process to the next.
    for name in ("target_modules", "target_parameters"):
        if isinstance(config.get(name), list):
            config[name] = sorted(config[name])
    path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", "utf-8")
