"""A trained simulator's folder, as it lies on disk: read and checked without any of torch.

    simulator.json        what it was trained from, with what, to which losses; written last
    adapter/              the PEFT adapter (adapter_config.json, adapter_model.safetensors)
    adapter.gguf          the same for llama.cpp, where the architecture allows
    chat_template.jinja   the template that it was trained with
    training.jsonl        the loss curve

simulator.json names every file by its hash, so that a folder without it, or with a file that
changed since, is not taken for a finished one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from palate.errors import InputError
from palate.json_input import parsed
from palate.types import Record, digest

RECORD = "simulator.json"
PEFT_FOLDER = "adapter"
PEFT_CONFIG = f"{PEFT_FOLDER}/adapter_config.json"
PEFT_WEIGHTS = f"{PEFT_FOLDER}/adapter_model.safetensors"
GGUF_ADAPTER = "adapter.gguf"
CHAT_TEMPLATE = "chat_template.jinja"
LOSS_CURVE = "training.jsonl"


class BaseModelRecord(Record):
    """The model that the adapter belongs to; on another one it means nothing."""

    name: str  # as the user gave it: "local:smollm2-135m", a hub name, a folder
    revision: str  # of the weights: a hub commit, or a hash of the files
    architecture: str  # "LlamaForCausalLM"


class PromptForm(Record):
    """How a conversation becomes the text that the model sees; serving must do the same.

    `probe` is a fixed conversation's text up to where the user's message begins, and
    `probe_tokens` its tokens: what a server says to the same conversation is held against them.
    """

    template_sha256: str
    template_arguments: dict[str, bool | str] = Field(
        default_factory=dict
    )  # {"enable_thinking": False}
    first_role: Literal["any", "user"] = "any"
    end_of_turn: str
    probe: str
    probe_tokens: tuple[int, ...]
    one_pass: bool  # a session is encoded once, with a mask over all of the user's messages
    why: str = ""  # where it is not


class Learned(Record):
    """What the examples were made of."""

    training_sessions: dict[str, str]  # session id -> SHA-256; all that any choice was made from
    validation_sessions: tuple[str, ...]  # those of them that only stopped the training
    examples: int
    supervised_messages: int
    supervised_tokens: int
    tokens: int  # of all examples, once
    skipped: dict[str, int]  # reason -> messages of the user that were not learned from


class Losses(Record):
    """Mean negative log-likelihood a supervised token, in nats."""

    first: float  # of the first step
    last: float
    validation_before: float | None  # None: too few sessions to hold any out
    validation_best: float | None
    best_step: int
    steps: int
    epochs: float
    tokens_processed: int
    stopped: Literal["finished", "early", "step_limit"]


class TrainedRecord(Record):
    """simulator.json (paper 3.1): an adapter of one person, and everything that it came from."""

    schema_: Literal["palate.simulator/1"] = Field(default="palate.simulator/1", alias="schema")
    user_id: str
    language: Literal["en", "zh"]  # of the prompt files
    base: BaseModelRecord
    rank: int
    alpha: float
    target_modules: tuple[str, ...]
    adapted_layers: int
    parameters: int
    prompt_form: PromptForm
    prompts: dict[str, str]  # prompt file -> SHA-256
    learned: Learned
    settings: dict[str, int | float | str | bool | None]
    losses: Losses
    seconds: float
    device: str  # "cpu, bfloat16"
    versions: dict[str, str]  # package -> version
    files: dict[str, str]  # relative path -> SHA-256
    gguf: str | None = None  # why there is no llama.cpp adapter; None where there is one
    sha256: str = ""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def content_sha256(self) -> str:
        """SHA-256 of everything but the stored hash."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude={"sha256"}))


class Trained(NamedTuple):
    """A finished, unchanged folder."""

    folder: Path
    record: TrainedRecord

    @property
    def peft(self) -> Path:
        """The folder of the PEFT adapter."""
        return self.folder / PEFT_FOLDER

    @property
    def gguf(self) -> Path | None:
        """The adapter for llama.cpp, where there is one."""
        return None if self.record.gguf else self.folder / GGUF_ADAPTER


def read_trained(folder: Path, *, user_id: str | None = None) -> Trained:
    """The trained simulator in `folder`, checked file by file.

    Raises:
        InputError: none is there or it is unfinished, a file is missing or changed, or it is
            another user's.
    """
    path = folder / RECORD
    try:
        record = TrainedRecord.model_validate(parsed(path.read_bytes(), str(path)))
    except OSError as error:
        raise _unread(folder, error) from None
    except InputError as error:
        raise InputError(f"{error}; train it again") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {place}: {first['msg']}; train it again") from None
    _check(folder, record, user_id)
    return Trained(folder, record)


def _unread(folder: Path, error: OSError) -> InputError:
    """Why there is no record to be had, and what to do."""
    if isinstance(error, NotADirectoryError):
        return InputError(
            f"{folder} is no folder, or stands in none; give the simulator another path, or move "
            "away the file that is there"
        )
    if not isinstance(error, FileNotFoundError):
        return InputError(
            f"{folder / RECORD} cannot be read ({error.strerror}); mend its permissions, or train "
            "it again"
        )
    if not folder.exists():
        return InputError(
            f"{folder} does not exist, so it holds no finished training; train one with `palate "
            "simulator train`"
        )
    return InputError(
        f"{folder} holds no finished training ({RECORD} is missing); train it with `palate "
        "simulator train`, which takes up what is there"
    )


def _check(folder: Path, record: TrainedRecord, user_id: str | None) -> None:
    if record.content_sha256() != record.sha256:
        raise InputError(f"{folder / RECORD} was changed after training; train it again")
    if user_id is not None and record.user_id != user_id:
        raise InputError(
            f"{folder} is the simulator of {record.user_id!r}, but the study gives it to "
            f"{user_id!r}; a simulator serves the person it was trained from"
        )
    needed = {PEFT_CONFIG, PEFT_WEIGHTS, CHAT_TEMPLATE} | (set() if record.gguf else {GGUF_ADAPTER})
    absent = sorted(needed - set(record.files))
    if absent:
        raise InputError(f"{folder / RECORD} does not name {', '.join(absent)}; train it again")
    for name, sha256 in record.files.items():
        _check_file(folder, name, sha256)


def _check_file(folder: Path, name: str, sha256: str) -> None:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InputError(f"{folder / RECORD} names a file outside its folder: {name!r}")
    try:
        found = file_sha256(folder / name)
    except (OSError, ValueError) as error:  # the latter for a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{folder / name} cannot be read ({why}); train it again") from None
    if found != sha256:
        raise InputError(f"{folder / name} was changed after training; train it again")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content; raises `OSError`."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
