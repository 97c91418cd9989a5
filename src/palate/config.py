"""`study.toml` -> one validated `Study`: the record of what is evaluated, with whom, by whom.

Unknown keys are refused with their line. Paths are relative to the study folder. Secrets are named
by environment variable only.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from palate.errors import InputError
from palate.models.spec import EndpointSettings, ModelSpec, Price, missing_key, settings_for
from palate.types import Record, SimulatorKind

# Ids become parts of a cell's key and of file names, so they hold no separators and stay short.
_ID = re.compile(r"[^\x00-\x1f/\\|]{1,100}")

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


class StudySection(Record):
    """[study]: its name and the panel of cards, as paths or globs."""

    name: str
    panel: tuple[str, ...] = Field(min_length=1)


class Protocol(Record):
    """[protocol]: how much is played and judged (paper 3.2, 3.3).

    `depth_limit` counts user turns; `sampled_replies` are judged by the personal and the generic
    track of each trajectory.
    """

    repetitions: int = Field(default=2, ge=1, le=1000)
    depth_limit: int = Field(default=20, ge=0, le=1000)
    sampled_replies: int = Field(default=4, ge=1, le=1000)
    seed: int = Field(default=0, ge=0)


class Decoding(Record):
    """What any role may set about its model's decoding and its requests.

    `headers` values may be "env:NAME"; `body` is merged into the request as it stands.
    """

    temperature: float | None = Field(default=None, ge=0, le=5)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: tuple[str, ...] = ()
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)

    @field_validator("headers")
    @classmethod
    def _secrets_are_named(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if _SECRET_HEADER.search(name) and not value.startswith("env:"):
                raise ValueError(
                    f"the header {name} looks like a secret: put it into an environment variable "
                    f'and write {name} = "env:NAME"'
                )
        return headers


class JudgeSection(Decoding):
    """[judge]: `form` "json" reads a verdict in words, "digits" reads token probabilities.

    "auto" is digits for `local:`, json elsewhere.
    """

    model: str
    form: Literal["auto", "json", "digits"] = "auto"


class SimulatorSection(Decoding):
    """A user's simulator (paper 3.1); `path` is the folder that training or profiling wrote."""

    kind: SimulatorKind
    model: str | None = None
    path: str | None = None


class UserSection(Record):
    """[[users]]: one real, named person; `name` is what a character may call them."""

    id: str
    name: str | None = None
    history: str | None = None
    simulator: SimulatorSection
    rubric: str


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
    session_header: str | None = None
    session_field: str | None = None

    @property
    def sends(self) -> Literal["full", "last"]:
        """How much of the conversation goes into each request."""
        return self.history or ("last" if self.prompt == "none" else "full")


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
        _check_ids("user", [user.id for user in users])
        return users

    @field_validator("candidates")
    @classmethod
    def _candidates_differ(
        cls, candidates: tuple[CandidateSection, ...]
    ) -> tuple[CandidateSection, ...]:
        _check_ids("candidate", [candidate.name for candidate in candidates])
        return candidates

    def models(self) -> tuple[tuple[str, str], ...]:
        """Every model of the study, with the place that names it."""
        named = [("judge.model", self.judge.model)]
        named += [
            (f"users.{user.id}.simulator.model", user.simulator.model)
            for user in self.users
            if user.simulator.model is not None
        ]
        named += [(f"candidates.{c.name}.model", c.model) for c in self.candidates]
        return tuple(named)


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
                if other != path:
                    raise InputError(
                        f"{self.file}: the panel has two cards with the id {path.stem!r} "
                        f"({other.name} and {path.name}); rename one of the files"
                    )
        for stem in found:
            _check_ids("card", [stem])
        return tuple(found.values())

    def _matches(self, pattern: str) -> Sequence[Path]:
        if self.path(pattern).is_file():  # a name may itself hold * or [
            return [self.path(pattern)]
        relative = Path(pattern)
        base = Path(relative.anchor) if relative.is_absolute() else self.folder
        matches = sorted(
            path
            for path in base.glob(str(relative.relative_to(relative.anchor)))
            if path.is_file() and not path.name.startswith(".")
        )
        if not matches:
            raise InputError(
                f"{self.file}: study.panel has {pattern!r}, but no card file is there; put cards "
                f"into {(base / relative).parent} or mend the pattern"
            )
        return matches


def load_study(path: Path) -> Study:
    """Read a study folder or its study.toml.

    Raises:
        InputError: it is missing, not TOML, or a key is unknown or wrong; one sentence with the
            line.
    """
    file = path / "study.toml" if path.is_dir() else path
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"{file} does not exist; `palate init {path}` writes a study to begin with"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as UTF-8 text: {error}") from None
    content = _validated(file, text)
    study = Study(folder=file.parent.absolute(), file=file, content=content)
    for place, model in content.models():
        _check_model(study, place, model, text)
    return study


def _validated(file: Path, text: str) -> StudyFile:
    try:
        return StudyFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is not valid TOML: {error}") from None
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        # A misspelt key is also a missing one: the spelling is what the user can see.
        first = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
        place = ".".join(str(part) for part in first["loc"])
        line = _line_of(text, first["loc"])
        raise InputError(f"{file}{line}: {_sentence(place, first['type'], first['msg'])}") from None


def _sentence(place: str, kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return f"{place} is not a setting of a study; remove it or mend its spelling"
    if kind == "missing":
        return f"{place} is missing; add it"
    return f"{place} is wrong: {message.removeprefix('Value error, ')}"


def _check_model(study: Study, place: str, model: str, text: str) -> None:
    """Everything about a model that can be wrong before a call is made."""
    try:
        spec = ModelSpec.parse(model)
        settings = settings_for(spec, study.content.endpoints)
        unset = missing_key(spec, settings)
        if unset:
            raise InputError(
                f"{model} needs the environment variable {unset}, which is not set; export the "
                "key under that name"
            )
        if spec.provider == "scripted" and not study.path(spec.model).is_file():
            raise InputError(f"the script {study.path(spec.model)} does not exist; write it")
    except InputError as error:
        line = next((n for n, row in enumerate(text.splitlines(), 1) if model in row), None)
        where = f" line {line}" if line else ""
        raise InputError(f"{study.file}{where}: {place}: {error}") from None


def _check_ids(kind: str, ids: Sequence[str]) -> None:
    for name in ids:
        if not _ID.fullmatch(name) or name in {".", ".."} or name != name.strip():
            raise ValueError(
                f"the {kind} id {name!r} cannot be used: 1 to 100 characters, no slash, "
                "backslash, bar or control character, no space at an end"
            )
    doubled = sorted({name for name in ids if ids.count(name) > 1})
    if doubled:
        raise ValueError(f"two {kind}s are called {doubled[0]!r}; ids must differ")


def _line_of(text: str, location: Sequence[int | str]) -> str:
    """ " line N" of the nearest header or key on the way to `location`, or "" if there is none."""
    wanted = tuple(location)
    best, found = 0, ""
    for number, path in _paths(text):
        if path == wanted[: len(path)] and len(path) > best:
            best, found = len(path), f" line {number}"
    return found


def _paths(text: str) -> Iterator[tuple[int, tuple[int | str, ...]]]:
    """Each line of a TOML text that names a table or a key, with the full path of what it names."""
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    for number, row in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)(.+?)\]", row)
        key = re.match(r"\s*((?:\"[^\"]*\"|'[^']*'|[\w.-])+)\s*=", row)
        if header:
            table = ()
            for part in _parts(header[2]):
                table += (part, counts[(*table, part)]) if (*table, part) in counts else (part,)
            if header[1] == "[[":
                name = table[:-1] if isinstance(table[-1], int) else table
                counts[name] = counts.get(name, -1) + 1
                table = (*name, counts[name])
            yield number, table
        elif key:
            yield number, (*table, *_parts(key[1]))


def _parts(dotted: str) -> list[str]:
    found: list[tuple[str, str, str]] = re.findall(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)", dotted)
    return ["".join(part) for part in found]
