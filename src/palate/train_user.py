"""The training of one user's simulator, from the study to the finished folder (paper 3.1).

Imports torch: itself imported only by `palate.train_commands`, inside a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from palate.config import Study, UserSection
from palate.errors import InputError
from palate.histories.branches import branches
from palate.interrupts import asked_to_stop
from palate.prepare import simulator_folder, split_of
from palate.report.safe import terminal_safe
from palate.scenes import Scenes, scenes_of
from palate.simulators.base_model import Base, load_base, outline_of, tokenizer_of
from palate.simulators.chat_form import ChatForm
from palate.simulators.checkpoints import Checkpoints
from palate.simulators.examples import examples
from palate.simulators.facts import language_of
from palate.simulators.finishing import finish
from palate.simulators.foreign import foreign
from palate.simulators.lora_prompt import lora_prompts, lora_system
from palate.simulators.memory import memory_told
from palate.simulators.new_adapter import NewAdapter, chosen_layers, new_adapter
from palate.simulators.trained import RECORD, Losses, TrainedRecord, read_trained
from palate.simulators.training import Data, Training
from palate.simulators.training_data import Chosen, drawn, held_out
from palate.simulators.training_settings import TrainingSettings
from palate.train_summary import counted, result
from palate.train_view import TrainView
from palate.types import Session, TrainingSession, digest

_PACKAGES = ("palate", "torch", "transformers", "peft")
INPUTS = "inputs"  # among a record's settings: the hash that tells whether it is trained already
_STOPPING = "palate: stopping after this step; once more to stop at once"
_LESS_MEMORY = (
    "give a smaller --batch-tokens or --max-tokens, --gradient-checkpointing, or a smaller base"
)


class _Case(NamedTuple):
    """One user's training: what from, and where to; `inputs` is a hash of the former."""

    user_id: str
    folder: Path
    chosen: Chosen
    inputs: str
    checkpoints: Checkpoints


class Trainer:
    """Trains users of one study on one base, which is loaded once and only where it is needed."""

    def __init__(
        self, study: Study, *, base: str, device: str, settings: TrainingSettings, force: bool
    ) -> None:
        self._study, self._settings, self._force = study, settings, force
        self._base_name, self._device = base, device
        self._form = ChatForm.of(tokenizer_of(base), source=base)
        self._base: Base | None = None
        if settings.targets or settings.routed_experts:
            # What no layer answers to is told before the weights are read, which may take minutes.
            chosen_layers(outline_of(base), settings)

    def train(self, user: UserSection) -> None:
        """Train one user, or say that it was done before.

        Raises:
            InputError: the history holds nothing to learn, the settings differ from those of an
                unfinished or finished training, or the training came to nothing.
            Stopped: interrupted, or the disk refuses.
        """
        folder = simulator_folder(self._study, user)
        _, parts = split_of(self._study, user)
        scenes = scenes_of(self._study, user)
        chosen = self._chosen(parts.training, scenes)
        inputs = self._inputs(user, chosen)
        if _is_trained(folder, user, inputs, force=self._force):
            return
        click.echo(counted(user.id, chosen, scenes, self._form), err=True)
        self._warn(chosen)
        if not chosen.training_examples:
            raise InputError(
                f"the training sessions of {user.id} hold no message of the user to learn from; "
                "nothing was trained"
            )
        case = _Case(user.id, folder, chosen, inputs, Checkpoints(folder))
        self._alone(user, case)

    def _alone(self, user: UserSection, case: _Case) -> None:
        """Train while no other process does, unless one was done just before."""
        with case.checkpoints.alone(), memory_told(_LESS_MEMORY):
            if _is_trained(case.folder, user, case.inputs, force=self._force):
                case.checkpoints.remove()
                return
            record = self._made(case)
        click.echo(result(case.user_id, case.folder, record))

    def _warn(self, chosen: Chosen) -> None:
        sessions = [one.item.session for one in (*chosen.learned, *chosen.validation)]
        why = foreign(self._base_name, self._form.plain, sessions)
        if why:
            click.echo(f"warning: {terminal_safe(why)}", err=True)

    def _chosen(self, training: Sequence[TrainingSession], scenes: Scenes) -> Chosen:
        settings = self._settings

        def system(session: Session) -> str:
            return lora_system(scenes(session))

        encoded = drawn(
            training,
            lambda item: examples(
                [item], self._form, system=system, max_tokens=settings.max_tokens
            ),
            budget=settings.max_training_tokens,
            seed=settings.seed,
        )
        chats = branches([one.item.session for one in encoded])
        ids = [[session.session_id for session in chat] for chat in chats]
        return held_out(encoded, ids, seed=settings.seed)

    def _inputs(self, user: UserSection, chosen: Chosen) -> str:
        """Hash of everything that the adapter is a function of, but for the base's weights."""
        parts = (chosen.training_examples, chosen.validation_examples)
        return digest(
            {
                "user": user.id,
                "base": self._base_name,
                "settings": self._settings.model_dump(mode="json"),
                "form": self._form.record().digest(),
                "prompts": lora_prompts(),
                "examples": [
                    [digest([list(e.input_ids), [int(s) for s in e.supervised]]) for e in part]
                    for part in parts
                ],
            }
        )

    def _made(self, case: _Case) -> TrainedRecord:
        base = self._loaded()
        fingerprint = digest([case.inputs, base.record.revision])
        if self._force:
            case.checkpoints.keep_only(fingerprint)
        adapter = new_adapter(base, self._settings)
        chosen = case.chosen
        data = Data(chosen.training_examples, chosen.validation_examples, fingerprint)
        try:
            with (
                TrainView(Console(stderr=True), case.user_id) as view,
                asked_to_stop(_STOPPING) as asked,
            ):
                training = Training(
                    adapter.model,
                    data,
                    self._settings,
                    case.checkpoints,
                    observe=view.show,
                    should_stop=asked,
                )
                losses = training.run()
            draft = self._draft(case, base, adapter, training, losses)
            return finish(adapter.model, base, draft, case.checkpoints, case.folder)
        finally:
            adapter.model.unload()

    def _loaded(self) -> Base:
        if self._base is None:
            click.echo(f"Loading {terminal_safe(self._base_name)} …", err=True)
            self._base = load_base(self._base_name, device=self._device)
        return self._base

    def _draft(
        self, case: _Case, base: Base, adapter: NewAdapter, training: Training, losses: Losses
    ) -> TrainedRecord:
        settings, chosen = self._settings, case.chosen
        plain = settings.model_dump(mode="json", exclude={"targets"})
        plain |= {"targets": " ".join(settings.targets), "learning_rate": training.rate}
        everything = (*chosen.learned, *chosen.validation)
        return TrainedRecord(
            user_id=case.user_id,
            language=language_of([one.item for one in everything]),
            base=base.record,
            rank=settings.rank,
            alpha=settings.alpha,
            target_modules=adapter.target_modules,
            adapted_layers=adapter.layers,
            parameters=adapter.parameters,
            prompt_form=self._form.record(),
            prompts=lora_prompts(),
            learned=chosen.record(),
            settings={**plain, INPUTS: case.inputs},
            losses=losses,
            seconds=round(training.seconds, 1),
            device=f"{base.device.type}, {settings.precision}",
            versions={name: metadata.version(name) for name in _PACKAGES},
            files={},
        )


def _is_trained(folder: Path, user: UserSection, inputs: str, *, force: bool) -> bool:
    """Whether the finished adapter in `folder` is this one and stays; refuses one that is not.

    With `force` one of this user is replaced, whole or damaged; another user's never is.
    """
    if not (folder / RECORD).exists():
        return False
    try:
        finished = read_trained(folder).record
    except InputError as error:
        if force:
            return False
        raise InputError(f"{error} (--force replaces what is there)") from None
    if finished.user_id != user.id:
        raise InputError(
            f"{folder} holds the simulator of {finished.user_id!r}, which training {user.id!r} "
            "would replace; give each user a path of their own, or remove that folder"
        )
    if force:
        return False
    if finished.settings.get(INPUTS) != inputs:
        raise InputError(
            f"{folder} holds an adapter that was trained with other settings, sessions or prompts; "
            "--force replaces it once the new one is complete"
        )
    click.echo(
        f"{terminal_safe(user.id)}: {terminal_safe(str(folder))} is trained already, from these "
        "sessions with these settings; --force trains it anew"
    )
    return True
