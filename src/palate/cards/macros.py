"""Placeholders in card text: {{char}}, {{user}}, their other spellings, and comments.

One pass: what a name brings in is never read again, so a name that looks like a placeholder stays
a name. Choices, fixed here: white space inside the braces is allowed, line breaks included;
full-width braces are text; `<user>`, `<char>` and `<bot>` are replaced wherever they stand, in
code too, as the V3 specification has it; `{{random:…}}`, `{{time}}` and every other macro are left
as they are and named by `unknown`, because a chat that is to be repeated cannot roll dice.
`{{original}}` means something in a system prompt alone, where `palate.cards.prompts` puts our
instructions in its place; elsewhere it is taken out like a comment.
"""

from __future__ import annotations

import re

# A comment may quote other placeholders: "{{// ask {{user}} later}}" is one comment.
_COMMENT = (
    r"\{\{\s*(?://|comment\s*:|hidden_key\s*:)(?:[^{}]|\{\{[^{}]*\}\}|\{(?!\{)|\}(?!\}))*\}\}"
)
_KNOWN = re.compile(
    rf"{_COMMENT}|\{{\{{\s*(?P<curly>char|user|original)\s*\}}\}}|<(?P<angle>char|bot|user)>",
    re.IGNORECASE,
)
_ANY = re.compile(r"\{\{[^{}]+\}\}")
_NOTHING = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]*")


def filled(text: str, *, char: str, user: str) -> str:
    """`text` with the names put in and the comments taken out."""

    def value(match: re.Match[str]) -> str:
        name = (match["curly"] or match["angle"] or "").lower()
        if name == "user":
            return user
        return char if name in {"char", "bot"} else ""

    return _KNOWN.sub(value, text)


def unknown(text: str) -> tuple[str, ...]:
    """The macros that `filled` leaves as they are, each once, in order of appearance."""
    return tuple(dict.fromkeys(_ANY.findall(_KNOWN.sub("", text))))


def is_blank(text: str) -> bool:
    """Nothing to read: white space, invisible characters, comments."""
    return _NOTHING.fullmatch(filled(text, char="x", user="x")) is not None
