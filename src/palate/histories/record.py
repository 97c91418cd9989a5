"""`splits/USER.json`: the split as it was made, so that nothing later can quietly move a session.

The record holds ids and digests, no text and no label. Reading it back checks every session
against its digest; a history that has changed since is refused, because rubrics, profiles and
adapters were made from the sessions as they were.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from palate.disk import write_atomically
from palate.errors import InputError
from palate.histories.split import Split, parts
from palate.json_input import parsed
from palate.types import Record, Session, digest


class SplitRecord(Record):
    """The content of splits/USER.json; `sha256` is over the other fields."""

    schema_: Literal["palate.split/1"] = Field(default="palate.split/1", alias="schema")
    user_id: str
    seed: int
    held_out_share: float
    panel_cards: tuple[str, ...]
    panel_in_training: tuple[str, ...]
    training: dict[str, str]  # session id -> SHA-256
    held_out: dict[str, str]
    sha256: str


def write_split(split: Split, path: Path) -> None:
    """Write the record of a split; writing the same split again changes nothing.

    Raises:
        InputError: the file holds another split, or cannot be written.
    """
    content = _content(split)
    text = json.dumps({**content, "sha256": digest(content)}, ensure_ascii=False, indent=1) + "\n"
    try:
        if path.exists():
            if path.read_text("utf-8") == text:
                return
            raise InputError(
                f"{path} holds another split; what was made from it would no longer verify: remove "
                "it together with the profile, rubric and adapter of this user to split anew"
            )
        write_atomically(path, text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None


def read_split(path: Path, sessions: Sequence[Session]) -> Split:
    """The recorded split of these sessions.

    Raises:
        InputError: the record is malformed or was changed, or the sessions are not those it was
            made from.
    """
    record = _record(path)
    recorded = record.training | record.held_out
    for session in sessions:
        expected = recorded.pop(session.session_id, None)
        if expected != session.digest():
            what = "was added" if expected is None else "has changed"
            raise _differs(path, session.session_id, what)
    if recorded:
        raise _differs(path, min(recorded), "is missing")
    made = parts(
        sessions,
        record.training.keys(),
        seed=record.seed,
        panel_cards=record.panel_cards,
        held_out_share=record.held_out_share,
    )
    if made.user_id != record.user_id:
        raise InputError(f"{path} is the split of user {record.user_id}, not of {made.user_id}")
    return made


def _content(split: Split) -> dict[str, object]:
    return {
        "schema": "palate.split/1",
        "user_id": split.user_id,
        "seed": split.seed,
        "held_out_share": split.held_out_share,
        "panel_cards": list(split.panel_cards),
        "panel_in_training": list(split.panel_in_training),
        "training": split.training_digests(),
        "held_out": {item.session.session_id: item.sha256 for item in split.held_out},
    }


def _record(path: Path) -> SplitRecord:
    try:
        value = parsed(path.read_bytes(), str(path))
        record = SplitRecord.model_validate(value)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; split the history first") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"{path} is not a split: {place}: {fault['msg']}") from None
    content = record.model_dump(mode="json", by_alias=True, exclude={"sha256"})
    if digest(content) != record.sha256:
        raise InputError(f"{path} was changed after it was written; restore it, or split anew")
    return record


def _differs(path: Path, session_id: str, what: str) -> InputError:
    return InputError(
        f"{path} was made from another history: session {session_id!r} {what} since; restore the "
        "history, or remove the split and what was made from it to begin anew"
    )
