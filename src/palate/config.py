"""`study.toml` -> one validated `Study`: the record of what is evaluated, with whom, by whom.

Unknown keys are refused with their line. Paths are relative to the study folder. Secrets are named
by environment variable only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError, field_validator, model_validator

from palate import toml_input
from palate.cards import library
from palate.errors import InputError
from palate.models.credentials import check_written
from palate.models.spec import EndpointSettings, ModelSpec, Price, missing_key, settings_for
from palate.study_rules import OWN_FIELDS, check_body, check_ids, fault_of_id, sentence
from palate.types import Record, SimulatorKind

EVERY_MODEL = ("judge", "users", "candidates")  # parts of a study that name models

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


class StudySection(Record):
    """[study]: its name and the panel of cards, as paths, globs or `library:PATTERN`."""

    name: str
    panel: tuple[str, ...] = Field(min_length=1)


class Protocol(Record):
    """[protocol]: how much is played and judged (paper 3.2, 3.3).

    `depth_limit` counts user turns; `sampled_replies` are judged by the personal and the generic
    track of each trajectory. `resample`: so many times at most a simulator's message that carries
    a flag is asked for again [choice].
    """

    repetitions: int = Field(default=2, ge=1, le=1000, strict=True)
    depth_limit: int = Field(default=20, ge=0, le=1000, strict=True)
    sampled_replies: int = Field(default=4, ge=1, le=1000, strict=True)
    resample: int = Field(default=2, ge=0, le=5, strict=True)
    seed: int = Field(default=0, ge=0, strict=True)


class Decoding(Record):
    """What any role may set about its model's decoding and its requests.

    `headers` values may be "env:NAME"; `body` is merged into the request as it stands.
    """

    temperature: float | None = Field(default=None, ge=0, le=5, strict=True)
    top_p: float | None = Field(default=None, gt=0, le=1, strict=True)
    max_tokens: int | None = Field(default=None, ge=1, strict=True)
    stop: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)

    @field_validator("headers")
    @classmethod
    def _secrets_are_named(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            check_written(name, value)
            if _SECRET_HEADER.search(name) and not value.startswith("env:"):
                raise ValueError(
                    f"the header {name} looks like a secret: put it into an environment variable "
                    f'and write {name} = "env:NAME"'
                )
        return headers

    @field_validator("body")
    @classmethod
    def _body_is_additions(cls, body: dict[str, Any]) -> dict[str, Any]:
        check_body(body)
        return body


class JudgeSection(Decoding):
    """[judge]: `form` "json" reads a verdict in words, "digits" reads token probabilities.

    "auto" is digits for `local:`, json elsewhere.
    """

    model: str
    form: Literal["auto", "json", "digits"] = "auto"


class SimulatorSection(Decoding):
    """A user's simulator (paper 3.1); `path` is the folder that training or profiling wrote.

    Of kind "lora" `model` is the served adapter, and may be left out where the embedded model is
    the base; `base` is the name under which the adapter's server has the base alone, where its
    list of models does not tell.
    """

    kind: SimulatorKind
    model: str | None = None
    path: str | None = None
    base: str | None = None

    @model_validator(mode="after")
    def _base_is_of_an_adapter(self) -> SimulatorSection:
        if self.base is not None and self.kind != "lora":
            raise ValueError('base belongs to kind = "lora"; remove it')
        return self


class UserSection(Record):
    """[[users]]: one real, named person; `name` is what a character may call them."""

    id: str
    name: str | None = None
    history: str | None = None
    simulator: SimulatorSection
    rubric: str

    def simulated_by(self, kind: SimulatorKind, model: str | None) -> UserSection:
        """The user with another simulator; headers and body are for their own endpoint alone."""
        own = self.simulator.model
        if model is None or own is None:
            same = model == own
        else:
            same = ModelSpec.parse(model).endpoint == ModelSpec.parse(own).endpoint
        kept: dict[str, Any] = {} if same else {"headers": {}, "body": {}}
        changes = {"kind": kind, "model": model, **kept}
        return self.model_copy(update={"simulator": self.simulator.model_copy(update=changes)})


class CandidateSection(Decoding):
    """[[candidates]]: the model under evaluation.

    `prompt`: "card" (the whole card as the system prompt), "none" (a service with a prompt and a
    memory of its own, which gets a session id per cell), or a file with `<<card>>`, `<<name>>`,
    `<<scenario>>`. `history` "last" sends only the newest user message; it is the default with
    "none".
    """

    name: str
    model: str
    prompt: str = "card"
    history: Literal["full", "last"] | None = None
    session_header: str | None = Field(default=None, min_length=1)
    session_field: str | None = Field(default=None, min_length=1)

    @field_validator("session_header")
    @classmethod
    def _can_be_sent(cls, name: str | None) -> str | None:
        if name is not None:
            check_written(name, "")
        return name

    @field_validator("session_field")
    @classmethod
    def _is_free(cls, name: str | None) -> str | None:
        if name in OWN_FIELDS:
            raise ValueError(f"{name} is taken in a request; name another field")
        return name

    @property
    def sends(self) -> Literal["full", "last"]:
        """How much of the conversation goes into each request."""
        return self.history or ("last" if self.prompt == "none" else "full")


class _Named(NamedTuple):
    """A model as the study has it, and the place that names it."""

    place: str
    model: str
    headers: dict[str, str]


class StudyFile(Record):
    """The whole of study.toml."""

    study: StudySection
    protocol: Protocol = Protocol()
    judge: JudgeSection
    users: tuple[UserSection, ...] = Field(min_length=1)
    candidates: tuple[CandidateSection, ...] = Field(min_length=1)
    endpoints: dict[str, EndpointSettings] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)

    @field_validator("users")
    @classmethod
    def _users_differ(cls, users: tuple[UserSection, ...]) -> tuple[UserSection, ...]:
        check_ids("user", [user.id for user in users])
        return users

    @field_validator("candidates")
    @classmethod
    def _candidates_differ(
        cls, candidates: tuple[CandidateSection, ...]
    ) -> tuple[CandidateSection, ...]:
        check_ids("candidate", [candidate.name for candidate in candidates])
        return candidates

    def models(self) -> Iterator[_Named]:
        """Every model of the study."""
        yield _Named("judge.model", self.judge.model, self.judge.headers)
        for user in self.users:
            if user.simulator.model is not None:
                place = f"{simulator_part(user.id)}.model"
                yield _Named(place, user.simulator.model, user.simulator.headers)
        for candidate in self.candidates:
            place = f"candidates.{candidate.name}.model"
            yield _Named(place, candidate.model, candidate.headers)


class Study(Record):
    """A study file and the folder that its paths are relative to."""

    folder: Path
    file: Path
    content: StudyFile

    def path(self, relative: str) -> Path:
        """A path of the study file, made absolute."""
        return (self.folder / relative).absolute()

    def panel_files(self) -> tuple[Path, ...]:
        """The card files of the panel, in a stable order.

        Raises:
            InputError: a pattern matches nothing, or two cards would share an id.
        """
        found: dict[str, Path] = {}
        for pattern in self.content.study.panel:
            for path in self._matches(pattern):
                other = found.setdefault(path.stem, path)
                if other != path and other.resolve() != path.resolve():
                    raise InputError(
                        f"{self.file}: the panel has two cards with the id {path.stem!r} "
                        f"({other} and {path}); rename one of the files"
                    )
        for stem, path in found.items():
            fault = fault_of_id(stem)
            if fault:
                raise InputError(f"{self.file}: the card {path} needs another file name: {fault}")
        return tuple(found.values())

    def _matches(self, pattern: str) -> Sequence[Path]:
        if pattern.startswith(library.PREFIX):
            return library.matching(pattern.removeprefix(library.PREFIX))
        relative = Path(pattern)
        base = Path(relative.anchor) if relative.is_absolute() else self.folder
        try:
            if self.path(pattern).is_file():  # a name may itself hold * or [
                return [self.path(pattern)]
            # A link that leads nowhere stays in: reading it says so, leaving it out would not.
            matches = sorted(
                path
                for path in base.glob(str(relative.relative_to(relative.anchor)))
                if not path.is_dir() and not path.name.startswith(".")
            )
        except (OSError, ValueError, IndexError) as error:  # what glob refuses, too long a name
            raise InputError(
                f"{self.file}: study.panel has {pattern[:200]!r}, which is no pattern of files "
                f'({error}); write for example "cards/*.json"'
            ) from None
        if not matches:
            raise InputError(
                f"{self.file}: study.panel has {pattern!r}, but no card file is there; put cards "
                f"into {(base / relative).parent} or mend the pattern"
            )
        return matches


def load_study(path: Path, *, keys: Collection[str] = EVERY_MODEL) -> Study:
    """Read a study folder or its study.toml.

    Args:
        keys: the parts of the study whose models will be called and so need their keys, as
            "judge", "users" or "users.ADA.simulator".

    Raises:
        InputError: it is missing, not TOML, or a key is unknown or wrong; one sentence with the
            line.
    """
    study, text = _read(path)
    for named in study.content.models():
        called = any(named.place.startswith(f"{part}.") for part in keys)
        _check_model(study, named, text, called=called)
    return study


def simulator_part(user_id: str) -> str:
    """A user's simulator, as `load_study` takes it."""
    return f"users.{user_id}.simulator"


def read_study(path: Path) -> Study:
    """A study without a look at its models: what calls none of them needs no key.

    Raises:
        InputError: as `load_study`, but for what is wrong with a model.
    """
    return _read(path)[0]


def panel_of(path: Path) -> tuple[Path, ...]:
    """The panel's card files alone: looking at cards needs no model and no key.

    Raises:
        InputError: as `load_study` and `Study.panel_files` do.
    """
    return _read(path)[0].panel_files()


def users_of(path: Path) -> tuple[UserSection, ...]:
    """The users of a study alone; raises `InputError` as `load_study` does."""
    return _read(path)[0].content.users


def _read(path: Path) -> tuple[Study, str]:
    """The study and the text of its file."""
    try:
        file = path / "study.toml" if path.is_dir() else path
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); mend its path") from None
    text = toml_input.read_text(file, f"`palate init {path}` writes a study to begin with")
    content = _validated(file, text)
    return Study(folder=file.parent.absolute(), file=file, content=content), text


def _validated(file: Path, text: str) -> StudyFile:
    try:
        return StudyFile.model_validate(toml_input.parsed(text, file))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        # A misspelt key is also a missing one: the spelling is what the user can see.
        first = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
        place = ".".join(str(part) for part in first["loc"])
        line = toml_input.line_of(text, first["loc"])
        raise InputError(f"{file}{line}: {sentence(place, first['type'], first['msg'])}") from None


def _check_model(study: Study, named: _Named, text: str, *, called: bool) -> None:
    """Everything about a model that can be wrong before a call is made.

    `called`: it needs its key, and what else it is to be sent from the environment.
    """
    place, model, headers = named
    try:
        spec = ModelSpec.parse(model)
        settings = settings_for(spec, study.content.endpoints)
        unset = missing_key(spec, settings)
        if unset and called:
            raise InputError(
                f"{model} needs the environment variable {unset}, which is not set; export the "
                "key under that name"
            )
        wants_digits = place == "judge.model" and study.content.judge.form == "digits"
        if wants_digits and settings.digits == "none":
            raise InputError(
                f'{model} returns no token probabilities, which form = "digits" needs; set form = '
                '"json", or digits = "logprobs" for an endpoint that returns them'
            )
        if spec.provider == "scripted" and not _is_file(study.path(spec.model)):
            raise InputError(f"the script {study.path(spec.model)} does not exist; write it")
    except InputError as error:
        raise InputError(f"{study.file}{_line(text, model)}: {place}: {error}") from None
    for name, value in headers.items() if called else ():
        variable = value.removeprefix("env:").strip()
        if value.startswith("env:") and not os.environ.get(variable, "").strip():
            raise InputError(
                f"{study.file}{_line(text, value)}: {place}: the header {name} needs the "
                f"environment variable {variable}, which is not set; export its value under that "
                "name"
            )


def _line(text: str, written: str) -> str:
    """Where `written` first stands in the study file, as " line 12"; "" where it does not."""
    rows = enumerate(text.splitlines(), 1)
    line = next((n for n, row in rows if written and written in row), None)
    return f" line {line}" if line else ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long to be a file's
        return False
