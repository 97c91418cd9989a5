"""The profile of a person: a frozen record of who they are when they chat (paper 3.1, Table 1).

Frozen like a rubric: `sha256` is over all other fields, and a profile that was changed by hand is
refused, because results made with it would name something else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError

from palate.disk import write_atomically
from palate.errors import InputError
from palate.json_input import parsed
from palate.language import Language
from palate.simulators.facts import Facts
from palate.types import Record, digest


class ProfileProvenance(Record):
    """What the profile was made from, and by which model and prompts."""

    model: str  # as the study names it
    revision: str = ""  # as the endpoint named what it served
    prompts: dict[str, str]  # prompt file -> SHA-256
    training_sessions: dict[str, str]  # session id -> SHA-256
    calls: int
    cut: int = 0  # answers that reached the token limit and were cut back to a whole sentence


class Profile(Record):
    """One person: the model's prose and the measured facts, written in `language`."""

    schema_: Literal["palate.profile/1"] = Field(default="palate.profile/1", alias="schema")
    user_id: str
    language: Language
    text: str = Field(min_length=1)
    facts: Facts
    provenance: ProfileProvenance
    sha256: str = ""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def shown(self) -> str:
        """What a simulator is told of the person: prose, then facts."""
        return f"{self.text}\n\n{self.facts.shown(self.language)}"

    def content_sha256(self) -> str:
        """SHA-256 of everything but the stored hash."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude={"sha256"}))


def freeze(draft: Profile) -> Profile:
    """The profile with its hash."""
    return draft.model_copy(update={"sha256": draft.content_sha256()})


def save_profile(profile: Profile, path: Path) -> None:
    """Write a frozen profile whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    value = profile.model_dump(mode="json", by_alias=True)
    try:
        write_atomically(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def read_profile(path: Path) -> Profile:
    """A frozen profile.

    Raises:
        InputError: it is missing or malformed, or was changed after it was frozen.
    """
    try:
        profile = Profile.model_validate(parsed(path.read_bytes(), str(path)))
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist; write it with `palate simulator profile`"
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"{path} is not a profile: {place}: {fault['msg']}") from None
    if profile.sha256 != profile.content_sha256():
        raise InputError(
            f"{path} was changed after it was frozen; restore it, or write the profile anew"
        )
    return profile
