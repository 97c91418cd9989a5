"""`palate simulator train`: one adapter a person, from their training sessions (paper 3.1)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path

import click
from pydantic import ValidationError

from palate.config import Study, UserSection, read_study
from palate.errors import InputError
from palate.json_input import parsed
from palate.prepare import simulator_folder, user_section
from palate.report.safe import terminal_safe
from palate.simulators.precision import best_precision, is_gpu
from palate.simulators.trained import PEFT_WEIGHTS, RECORD, TrainedRecord
from palate.simulators.training_settings import TrainingSettings

DEFAULT_BASE = "local:smollm2-135m"
_NEEDED = ("torch", "transformers", "peft", "safetensors", "gguf")


@dataclass(frozen=True)
class TrainOptions:
    """The options of `palate simulator train`, as they were given.

    `settings` are those of `TrainingSettings` by name, None where the option was left out.
    """

    base: str
    device: str
    force: bool
    settings: dict[str, object]


def train_simulators(
    path: Path, *, users: Sequence[str], all_users: bool, options: TrainOptions
) -> None:
    """Train the adapters of these users of a study, one after another.

    Users whose adapter is finished, from the same sessions with the same settings, are passed over.

    Raises:
        InputError: the study, a history, the base or an option is wrong, or a finished adapter of
            other settings is there and `force` is not given.
        Stopped: interrupted, or the disk refuses; the same command takes it up again.
    """
    if bool(users) == all_users:
        raise InputError("say whose simulator is trained: --user ID, repeatable, or --all-users")
    study = read_study(path)
    sections = [user_section(study, user) for user in dict.fromkeys(users)] or study.content.users
    check_extra()
    # Threads that wait busily for one another stand still where other work shares the cores: on two
    # busy cores 10 tokens/s, and 34 this way. It is read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from palate.simulators.devices import check_device
    from palate.train_user import Trainer

    check_device(options.device)
    settings = training_settings(study, options)

    trainer = Trainer(
        study, base=options.base, device=options.device, settings=settings, force=options.force
    )
    for section in sections:
        trainer.train(section)
    for users_alike in twins(study):
        click.echo(
            f"warning: {terminal_safe(' and '.join(users_alike))} have the same adapter, byte for "
            "byte: their simulators are one person's; check their histories",
            err=True,
        )


def training_settings(study: Study, options: TrainOptions) -> TrainingSettings:
    """The settings with the options' values.

    Where nothing is said, the seed is the study's, products are computed in the format that suits
    the device, and a GPU, which is quick at much at once and short of memory, gets bigger batches
    and computes activations twice.

    Raises:
        InputError: a value is out of its range, or two options contradict each other.
    """
    on_gpu = is_gpu(options.device)
    suited = {
        "seed": study.content.protocol.seed,
        "precision": best_precision("cuda" if on_gpu else "cpu"),
        "gradient_checkpointing": on_gpu,
    }
    if on_gpu:
        suited |= {"batch_tokens": 4096, "step_tokens": 2048}
    given = {name: value for name, value in options.settings.items() if value is not None}
    if given.get("targets") and given.get("routed_experts"):
        raise InputError(
            "with --target nothing but the layers named is adapted; leave it or --routed-experts "
            "out"
        )
    try:
        return TrainingSettings.model_validate({**suited, **given})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        option = "--" + str(fault["loc"][0]).replace("_", "-")
        raise InputError(f"{option}: {fault['msg']}") from None


def check_extra() -> None:
    """Say what to install where training cannot work; raises `InputError`."""
    missing = [name for name in _NEEDED if util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"palate simulator train needs {', '.join(missing)}: pip install 'palate[train]'"
        )


def twins(study: Study) -> list[tuple[str, ...]]:
    """Users of the study whose finished adapters are the same file: nobody is two people."""
    by_weights: defaultdict[str, list[str]] = defaultdict(list)
    for user in study.content.users:
        weights = _weights_of(study, user)
        if weights is not None:
            by_weights[weights].append(user.id)
    return [tuple(users) for users in by_weights.values() if len(users) > 1]


def _weights_of(study: Study, user: UserSection) -> str | None:
    path = simulator_folder(study, user) / RECORD
    try:
        record = TrainedRecord.model_validate(parsed(path.read_bytes(), str(path)))
    except (OSError, InputError, ValidationError):  # not trained, or not readable: not a twin
        return None
    return record.files.get(PEFT_WEIGHTS)
