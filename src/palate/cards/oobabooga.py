"""Characters of oobabooga's text-generation-webui (YAML) and of Pygmalion (JSON).

They say `context`, `greeting` and `char_persona` where SillyTavern's V1 says `description` and
`first_mes`. YAML is read as data: no tags, no aliases (a few lines of which unpack to gigabytes),
no second document; and text stays text, so that a character called No is not a false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from palate.cards.bounds import MAX_BYTES, MAX_DEPTH
from palate.errors import InputError

try:  # libyaml is ten times as fast; a build without it reads the same
    from yaml import CSafeDumper as _Dumper
    from yaml import CSafeLoader as _Loader
except ImportError:
    from yaml import SafeDumper as _Dumper  # type: ignore[assignment]
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

# V1's name of a field, and what else it is called.
SPELLINGS = {
    "name": ("char_name", "bot"),
    "description": ("char_persona", "context"),
    "first_mes": ("char_greeting", "greeting"),
    "scenario": ("world_scenario",),
    "mes_example": ("example_dialogue",),
}

_MAX_BYTES = MAX_BYTES // 2  # the parser holds its text several times
_MAX_EVENTS = 20_000  # a character has a dozen fields
_KEY = re.compile(rb"[\"']?[\w-]{1,40}[\"']?[ \t]*:(?:[ \t\r]|$)")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+(?:[eE][-+]\d+)?)?")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_PARTS = {
    "en": {"personality": "Personality: ", "scenario": "Scenario: "},
    "zh": {"personality": "性格：", "scenario": "场景："},
}


def standard(flat: Mapping[str, object]) -> Mapping[str, object]:
    """A flat card with its fields under V1's names; V1's own spelling goes before another."""
    renamed = {
        old: new
        for new, others in SPELLINGS.items()
        for old in others
        if old in flat and flat.get(new) is None
    }
    if not renamed:
        return flat
    kept = {key: value for key, value in flat.items() if key not in renamed}
    # Of two other spellings the first in SPELLINGS wins, so it is put in last.
    return {**kept, **{new: flat[old] for old, new in reversed(renamed.items())}}


def is_yaml(text: bytes) -> bool:
    """Whether the first line that says anything is a YAML key."""
    for line in text[:65536].removeprefix(b"\xef\xbb\xbf").splitlines():
        if line.strip() and not line.lstrip().startswith((b"#", b"%", b"---")):
            return _KEY.match(line) is not None
    return False


def read(text: bytes, where: str) -> bytes:
    """The mapping in a YAML file, as JSON text.

    Raises:
        InputError: not YAML in UTF-8, or with aliases, tags, a second document or no mapping.
    """
    if len(text) > _MAX_BYTES:
        raise InputError(
            f"{where} is larger than {_MAX_BYTES // 1024**2} MB, which no YAML character needs; "
            "check that it is a character card"
        )
    try:
        value = _document(_bounded(text.decode("utf-8-sig"), where), where)
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not YAML in UTF-8: {error}") from None
    except yaml.YAMLError as error:
        told = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is damaged"
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise InputError(f"{where} is not YAML that can be read{line}: {told}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where} holds no character card: its YAML is not a mapping")
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def written(card: Mapping[str, object], language: str) -> bytes:
    """V1's fields as a YAML character; personality and scenario become parts of the context."""
    labels = _PARTS[language]
    parts = [str(card.get("description") or "")]
    parts += [f"{label}{card[key]}" for key, label in labels.items() if card.get(key)]
    fields = {
        "name": card.get("name") or "",
        "greeting": card.get("first_mes") or "",
        "context": "\n\n".join(part for part in parts if part),
        "example_dialogue": card.get("mes_example") or "",
    }
    return dumped({key: value for key, value in fields.items() if value or key == "name"})


def dumped(value: object) -> bytes:
    """A value of JSON's types as YAML."""
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)
    return str(text).encode()


def _bounded(text: str, where: str) -> Iterator[Event]:
    """The parser's events, refused as soon as one is not plain data."""
    documents = depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
        documents += isinstance(event, DocumentStartEvent)
        depth += isinstance(event, (MappingStartEvent, SequenceStartEvent))
        depth -= isinstance(event, (MappingEndEvent, SequenceEndEvent))
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            raise InputError(f"{where} has YAML anchors or aliases; write their text out")
        if documents > 1:
            raise InputError(f"{where} holds more than one YAML document; keep one card a file")
        if depth > MAX_DEPTH or number > _MAX_EVENTS:
            raise InputError(
                f"{where} is nested too deeply or has too many values for a card; "
                "check that it is the right file"
            )
        yield event


def _document(events: Iterator[Event], where: str) -> object:
    """Build the value; all containers are held in one stack, so that depth costs no recursion."""
    top: list[object] = []
    stack: list[list[object]] = [top]
    for event in events:
        if isinstance(event, ScalarEvent):
            stack[-1].append(_scalar(event, where))
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            _refuse_tag(event.tag, where)
            stack.append([])
        elif isinstance(event, SequenceEndEvent):
            done = stack.pop()
            stack[-1].append(done)
        elif isinstance(event, MappingEndEvent):
            flat = stack.pop()
            stack[-1].append(_mapping(flat, where))
    return top[0] if top else None


def _mapping(flat: list[object], where: str) -> dict[str, object]:
    """Keys and values in turn; a key twice is refused, as it has no one reading."""
    found: dict[str, object] = {}
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        if isinstance(key, (dict, list)):
            raise InputError(f"{where} has a YAML key that is no text; mend the card")
        name = key if isinstance(key, str) else json.dumps(key)
        if name in found:
            raise InputError(f"{where} has {name[:60]!r} twice; keep one of them")
        found[name] = value
    return found


def _scalar(event: ScalarEvent, where: str) -> object:
    """Text, or where it is plain and means the same in every YAML, a number, true, false, null."""
    _refuse_tag(event.tag, where)
    text = str(event.value)
    if event.style or event.tag:  # quoted, a block, or said to be text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 40 and _NUMBER.fullmatch(text):
        return json.loads(text)
    return text


def _refuse_tag(tag: str | None, where: str) -> None:
    if tag is not None and tag not in {"!", "tag:yaml.org,2002:str"}:
        raise InputError(f"{where} has the YAML tag {tag[:60]!r}; a card is plain text")
