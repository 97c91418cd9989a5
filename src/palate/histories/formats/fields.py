"""Fields of messages as programs write them: texts in parts, role names, dates, ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palate.histories import dates
from palate.histories.formats.normal import Notes

# Names that chat programs and data sets give the two sides. A name that is not here is reported.
_SPEAKERS = {
    **dict.fromkeys(
        ("assistant", "gpt", "chatgpt", "gpt4", "gpt-4", "bot", "chatbot"), "character"
    ),
    **dict.fromkeys(("char", "character", "model", "ai", "bing", "bard", "claude"), "character"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("system", "developer"), "system"),
}


def objects(value: object) -> Sequence[Mapping[str, object]]:
    """The objects of a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def speaker(role: object) -> str:
    """The speaker that a role name means, or "unknown:NAME"."""
    name = role.strip() if isinstance(role, str) else ""
    return _SPEAKERS.get(name.lower()) or unknown(name)


def unknown(name: object) -> str:
    """What a speaker is called whose side nothing tells."""
    text = name.strip() if isinstance(name, str) else ""
    return f"unknown:{text[:100]}"


def text(value: object, place: str, notes: Notes) -> str:
    """The text of a message: a text, or the text parts of a list joined; other parts are noted."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return ""
    return "".join(_part(part, place, notes) for part in value)


def _part(part: object, place: str, notes: Notes) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        # SillyTavern's relatives wrap a swipe in {"message": …}, OpenAI's threads a text in
        # {"text": {"value": …}}; a refusal in words is a text too.
        for key in ("text", "message", "refusal"):
            found = part.get(key)
            found = found.get("value") if isinstance(found, dict) else found
            if isinstance(found, str):
                return found
        notes.add("attachment", place, str(part.get("type") or "without a type")[:40])
    return ""


def label(value: object) -> str:
    """A name or an id as text; "" for what is neither text nor number."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return ""


def date(value: object, place: str, notes: Notes) -> str | None:
    """A date in ISO form; one that cannot be read is noted, never replaced."""
    if dates.is_absent(value):
        return None
    found = dates.iso(value)
    if found is None:
        notes.add("date", place, repr(value)[:60])
    return found


def comment(value: object) -> str | None:
    """A note on a reply; None where there is none."""
    return value if isinstance(value, str) and value.strip() else None
