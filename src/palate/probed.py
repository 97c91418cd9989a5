"""What was found about the adapters of a run at each of its starts, as it is kept with the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from palate.store import RunFolder
from palate.types import Record

FILE = "adapters.json"  # in a run folder

Compared = Literal["log_probabilities", "texts", "nothing"]
Form = Literal["text", "tokens", "unknown"]


class Probed(Record):
    """What was found about one user's adapter at one start.

    `prompts` were asked until one told adapter and base apart; `difference` is the largest of the
    first token's log-probabilities there, in nats (None: texts were compared). `form` is what of
    the server's prompt was held against training's. `warnings` say what could not be looked at.
    """

    user_id: str
    model: str
    base: str | None
    adapter: str  # SHA-256, as in the simulator's record
    compared: Compared
    prompts: int
    difference: float | None
    form: Form
    warnings: tuple[str, ...]
    at: str


def keep(folder: RunFolder, probed: Sequence[Probed]) -> None:
    """Add the checks of this start to those that the run folder has.

    Raises:
        StoreError: the folder cannot be written.
    """
    if probed:
        whole = [one.model_dump(mode="json") for one in (*kept(folder.path), *probed)]
        folder.write_text(FILE, json.dumps(whole, ensure_ascii=False, indent=1) + "\n")


def kept(run: Path) -> tuple[Probed, ...]:
    """The checks in a run folder, the oldest first; none where there are none that can be read."""
    try:
        return TypeAdapter(tuple[Probed, ...]).validate_json((run / FILE).read_bytes())
    except (OSError, ValidationError):
        return ()


def warnings_of(probed: Sequence[Probed]) -> tuple[str, ...]:
    """What a reader of scores must know of the checks, each sentence once."""
    return tuple(dict.fromkeys(warning for one in probed for warning in one.warnings))
