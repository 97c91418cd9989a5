"""A simulated user: which person, which kind, which model, and what it is told (paper 3.1).

The four conditions of the paper's Table 1 differ in what the prompt holds: *raw* names the two
sides and how to leave; *prompted* asks for a human's next message; *profile* adds a description of
the person; *lora* holds none, because style, pace and leaving come from the weights of an adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from palate.errors import InputError
from palate.models.client import Sampling
from palate.prompts import Prompt, fenced, load
from palate.simulators.lora_prompt import lora_prompts, lora_system
from palate.simulators.profile import Profile
from palate.simulators.trained import LOSS_CURVE, PEFT_WEIGHTS, RECORD, Trained
from palate.types import Record, Scene, SimulatorKind, digest

_LANGUAGES = ("en", "zh")
_TEMPLATE_FIELD = "chat_template_kwargs"  # of a request's body, in llama.cpp, vLLM and SGLang


class SimulatorRecord(Record):
    """What a run stores of a simulator; its digest tells whether two are the same."""

    user_id: str
    kind: SimulatorKind
    model: str
    decoding: dict[str, Any]
    prompts: dict[str, str]  # prompt file -> SHA-256
    profile: str | None  # SHA-256
    adapter: str | None = None  # SHA-256 over the adapter, its base and its prompt form
    training_sessions: dict[str, str]  # session id -> SHA-256, of what it was made from


@dataclass(frozen=True, slots=True)
class Simulator:
    """One person's simulator; `model` is its specification as written in the study.

    `profile` belongs to kind "profile" alone, `trained` to kind "lora" alone.

    Raises:
        InputError: what the kind needs is missing, or what is given is another kind's or another
            person's; the prompt files changed since the adapter was trained; the sampling's body
            asks for another prompt form than training had.
    """

    user_id: str
    kind: SimulatorKind
    model: str
    sampling: Sampling
    profile: Profile | None = None
    trained: Trained | None = None

    def __post_init__(self) -> None:
        if (self.trained is not None) != (self.kind == "lora"):
            raise InputError(
                f"the simulator of user {self.user_id} is of kind {self.kind}; kind lora, and it "
                "alone, takes an adapter"
            )
        if self.trained is not None:
            self._check_prompts(self.trained)
            # Sent with each request: without it a template may write another prompt than trained.
            body = _with_arguments(self.user_id, self.sampling.body, self.trained)
            object.__setattr__(self, "sampling", replace(self.sampling, body=body))
        if (self.profile is not None) != (self.kind == "profile"):
            raise InputError(
                f"the simulator of user {self.user_id} is of kind {self.kind}; kind profile, and "
                "it alone, takes a profile"
            )
        if self.profile is not None and self.profile.user_id != self.user_id:
            raise InputError(
                f"the simulator of user {self.user_id} was given the profile of "
                f"{self.profile.user_id}; a profile serves the person it was written from"
            )

    def system(self, scene: Scene) -> str:
        """The system prompt, in the card's language; the part that differs by card comes last."""
        if self.kind == "lora":
            return lora_system(scene)
        values = {"user": scene.user, "character": scene.character, "scenario": scene.scenario}
        if self.profile is not None:
            values["profile"] = fenced("profile", self.profile.shown())
        return _prompt(self.kind, scene.language).fill_present(**values)

    def record(self) -> SimulatorRecord:
        """What is stored with a run made with this simulator."""
        prompts = (_prompt(self.kind, language) for language in _LANGUAGES)
        profile, trained = self.profile, self.trained
        learned_from = profile.provenance.training_sessions if profile else {}
        return SimulatorRecord(
            user_id=self.user_id,
            kind=self.kind,
            model=self.model,
            decoding=asdict(self.sampling),
            prompts={prompt.name: prompt.sha256 for prompt in prompts},
            profile=profile.sha256 if profile else None,
            adapter=adapter_sha256(trained) if trained else None,
            training_sessions=(
                trained.record.learned.training_sessions if trained else learned_from
            ),
        )

    def _check_prompts(self, trained: Trained) -> None:
        """What is served must be what was trained; raises `InputError`."""
        now = lora_prompts()
        for name, sha256 in trained.record.prompts.items():
            if now.get(name) != sha256:
                raise InputError(
                    f"the simulator of user {self.user_id} was trained with another text of the "
                    f"prompt file {name} ({trained.folder / RECORD}); train it again, or use the "
                    f"version of palate that trained it "
                    f"({trained.record.versions.get('palate', 'unknown')})"
                )


def adapter_sha256(trained: Trained) -> str:
    """What makes the adapter this adapter: its files, its base, the form that it was trained in.

    Not its loss curve, which holds times of day.
    """
    record = trained.record
    files = {name: sha256 for name, sha256 in record.files.items() if name != LOSS_CURVE}
    about = (record.base, record.prompt_form)
    return digest([files, *(part.model_dump(mode="json") for part in about)])


def same_adapters(simulators: Mapping[str, Simulator]) -> str | None:
    """A sentence about two users with one adapter, of weights or of name; None where all differ."""
    owners: dict[str, str] = {}
    names: dict[str, str] = {}
    for user, simulator in simulators.items():
        if simulator.trained is None:
            continue
        weights = simulator.trained.record.files[PEFT_WEIGHTS]
        other = owners.setdefault(weights, user)
        if other != user:
            return (
                f"users {other} and {user} have the same adapter ({PEFT_WEIGHTS}, SHA-256 "
                f"{weights[:12]}…): two people cannot be one simulator; train each from their own "
                "history"
            )
        other = names.setdefault(simulator.model, user)
        if other != user and simulator.model.startswith("openai:"):
            return (
                f"users {other} and {user} name the same served adapter, {simulator.model}; name "
                "each user's own"
            )
    return None


def _with_arguments(user: str, body: Mapping[str, Any], trained: Trained) -> dict[str, Any]:
    """The body of a request with the arguments that the chat template was trained with."""
    arguments = trained.record.prompt_form.template_arguments
    given = body.get(_TEMPLATE_FIELD, {})
    if not isinstance(given, dict) or any(
        name in given and given[name] != value for name, value in arguments.items()
    ):
        raise InputError(
            f"the simulator of user {user} was trained with {_TEMPLATE_FIELD} = {arguments}, but "
            f"the study's body has {given}; remove it from the study"
        )
    return {**body, _TEMPLATE_FIELD: {**given, **arguments}} if arguments else dict(body)


def _prompt(kind: SimulatorKind, language: str) -> Prompt:
    return load(f"simulator_{kind}", language)
