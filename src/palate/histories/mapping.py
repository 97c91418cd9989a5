"""Mapping files: which fields of somebody's table or JSON Lines hold what (TOML).

[fields]
session = "session_id"     # rows of one value belong together; without it the file is one chat
user = "user_id"
character = "character.name"   # a dot goes into an object
turns = "turns"            # a list of turns inside each row; then the next ones are of a turn
speaker = "role"
text = "text"
rating = "rating"

[speakers]
character = ["bot"]
user = ["visitor"]

[scale]
1 = 1
2 = 3
3 = 5
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from palate.errors import InputError
from palate.toml_input import parsed, read_text
from palate.types import MAX_SCORE, MIN_SCORE, Record

Name = Annotated[str, Field(min_length=1)]
Satisfaction = Annotated[int, Field(ge=MIN_SCORE, le=MAX_SCORE)]
Value = str | int | float | bool


class FieldNames(Record):
    """[fields]: names of fields, or paths with dots into objects.

    With `turns` a row is a session, and speaker, text, rating, thumb, note, date and swipes are
    fields of its turns; without it a row is a message. `card` is a card's id, `character` a name.
    """

    session: Name | None = None
    user: Name | None = None
    card: Name | None = None
    character: Name | None = None
    language: Name | None = None
    end: Name | None = None
    session_rating: Name | None = None
    turns: Name | None = None
    speaker: Name
    text: Name
    name: Name | None = None
    rating: Name | None = None
    thumb: Name | None = None
    note: Name | None = None
    date: Name | None = None
    swipes: Name | None = None


class Speakers(Record):
    """[speakers]: which values of the speaker field mean whom; by default the usual names."""

    character: tuple[Value, ...] = ()
    user: tuple[Value, ...] = ()
    system: tuple[Value, ...] = ()


class ThumbValues(Record):
    """[thumbs]: which values of the thumb field mean what."""

    up: tuple[Value, ...] = ("up", "like", "thumbs_up", "👍")
    down: tuple[Value, ...] = ("down", "dislike", "thumbs_down", "👎")


class Ends(Record):
    """[ends]: which values of the end field mean that the user left by choice, or at a limit."""

    quit: tuple[Value, ...] = ("quit",)
    limit: tuple[Value, ...] = ("limit",)


class TableForm(Record):
    """[table]: of a CSV alone; by default the delimiter is told from the heading."""

    delimiter: Literal[",", ";", "\t", "|"] | None = None


class HistoryMap(Record):
    """The whole of a mapping file."""

    fields: FieldNames
    speakers: Speakers = Speakers()
    scale: dict[str, Satisfaction] = Field(default_factory=dict)
    thumbs: ThumbValues = ThumbValues()
    ends: Ends = Ends()
    table: TableForm = TableForm()

    @model_validator(mode="after")
    def _one_meaning(self) -> HistoryMap:
        for table, meanings, what in (
            ("speakers", self.speakers, "two speakers"),
            ("thumbs", self.thumbs, "up and down"),
            ("ends", self.ends, "two ways of ending"),
        ):
            told = Counter(
                value for _, values in meanings for value in {plain(value) for value in values}
            )
            value, times = next(iter(told.most_common(1)), ("", 0))
            if times > 1:
                raise ValueError(f"{table}: {value!r} stands for {what}")
        return self

    @field_validator("scale")
    @classmethod
    def _plain_values(cls, scale: dict[str, int]) -> dict[str, int]:
        """Keys as ratings are compared: "3.0" is 3."""
        return {plain(value): satisfaction for value, satisfaction in scale.items()}


def read_map(path: Path) -> HistoryMap:
    """The mapping in a TOML file.

    Raises:
        InputError: it cannot be read, or a setting is unknown, missing or wrong.
    """
    value = parsed(read_text(path, "name a mapping file (docs/histories.md shows one)"), path)
    try:
        return HistoryMap.model_validate(value)
    except ValidationError as error:
        raise InputError(f"{path}: {_sentence(error)}") from None


def plain(value: object) -> str:
    """A value as text, so that 3, 3.0, "3" and " 3 " are one; booleans are "true" and "false"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip() if isinstance(value, (str, int, float)) else ""
    whole, dot, rest = text.partition(".")
    return whole if dot and whole.lstrip("-").isdecimal() and not rest.strip("0") else text


def at(row: Mapping[str, object], path: str | None) -> object:
    """The value under a field name, or under a path with dots; None where there is none."""
    if path is None:
        return None
    if path in row:
        return row[path]
    value: object = row
    for key in path.split("."):
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def _sentence(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{place} is not a setting of a mapping; remove it or mend its spelling"
    if fault["type"] == "missing":
        return f"{place} is missing; name the field that holds it"
    if fault["loc"][:1] == ("scale",) and fault["type"] == "int_type":
        return f'{place} is no whole number from 1 to 5; a value with a dot stands in quotes: "0.5"'
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place} is wrong: {message}" if place else message
