"""A simulated user: which person, which kind, which model, and what it is told (paper 3.1).

The four conditions of the paper's Table 1 differ in what the prompt holds: *raw* names the two
sides and how to leave; *prompted* asks for a human's next message; *profile* adds a description of
the person; *lora* holds none, because style, pace and leaving come from the weights, and needs an
adapter.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from palate.errors import InputError
from palate.models.client import Sampling
from palate.prompts import Prompt, fenced, load
from palate.simulators.profile import Profile
from palate.types import Record, Scene, SimulatorKind

_LANGUAGES = ("en", "zh")


class SimulatorRecord(Record):
    """What a run stores of a simulator; its digest tells whether two are the same."""

    user_id: str
    kind: SimulatorKind
    model: str
    decoding: dict[str, Any]
    prompts: dict[str, str]  # prompt file -> SHA-256
    profile: str | None  # SHA-256
    training_sessions: dict[str, str]  # session id -> SHA-256, of what it was made from


@dataclass(frozen=True, slots=True)
class Simulator:
    """One person's simulator; `model` is its specification as written in the study.

    Raises:
        InputError: a profile simulator without a profile or with another person's, another kind
            with one, or a kind that needs an adapter.
    """

    user_id: str
    kind: SimulatorKind
    model: str
    sampling: Sampling
    profile: Profile | None = None

    def __post_init__(self) -> None:
        if self.kind == "lora":
            raise InputError(
                f"the simulator of user {self.user_id} has no adapter; set its kind to raw, "
                "prompted or profile"
            )
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
        values = {"user": scene.user, "character": scene.character, "scenario": scene.scenario}
        if self.profile is not None:
            values["profile"] = fenced("profile", self.profile.shown())
        return _prompt(self.kind, scene.language).fill_present(**values)

    def record(self) -> SimulatorRecord:
        """What is stored with a run made with this simulator."""
        prompts = (_prompt(self.kind, language) for language in _LANGUAGES)
        profile = self.profile
        return SimulatorRecord(
            user_id=self.user_id,
            kind=self.kind,
            model=self.model,
            decoding=asdict(self.sampling),
            prompts={prompt.name: prompt.sha256 for prompt in prompts},
            profile=profile.sha256 if profile else None,
            training_sessions=profile.provenance.training_sessions if profile else {},
        )


def _prompt(kind: SimulatorKind, language: str) -> Prompt:
    return load(f"simulator_{kind}", language)
