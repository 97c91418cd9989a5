"""What a trained simulator is told: the names and the scene, nothing of the person (paper 3.1).

One function for training and for serving: an adapter that was trained on another text than it is
served with has learned to answer something that nobody asks.
"""

from __future__ import annotations

from palate.prompts import Prompt, load
from palate.types import Scene

_LANGUAGES = ("en", "zh")


def lora_system(scene: Scene) -> str:
    """The system prompt of a simulator of kind "lora", in the scene's language."""
    return _prompt(scene.language).fill_present(
        user=scene.user, character=scene.character, scenario=scene.scenario
    )


def lora_prompts() -> dict[str, str]:
    """Prompt file -> SHA-256, of the files that `lora_system` fills."""
    return {prompt.name: prompt.sha256 for prompt in map(_prompt, _LANGUAGES)}


def _prompt(language: str) -> Prompt:
    return load("simulator_lora", language)
