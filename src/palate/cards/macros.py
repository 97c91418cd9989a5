"""Macros in card text, the specification's "curly braced syntaxes": names, comments, dice.

`{{char}}`, `{{user}}`, `{{original}}`; `{{// …}}`, `{{comment:…}}`, `{{hidden_key:…}}`;
`{{random:A,B}}`, `{{pick:A,B}}`, `{{roll:6}}`, `{{reverse:A}}`; `<user>`, `<char>`, `<bot>`.

One pass from left to right: what a name brings in is never read again, so a name that looks like a
macro stays a name, and a comma in it splits no list. A macro may stand inside another. Choices,
fixed here: case and white space do not matter, line breaks included; full-width braces are text;
`<user>`, `<char>` and `<bot>` are replaced wherever they stand, in code too, as the V3
specification has it; a list is split at `::` if it holds one, else at commas (`\\,` is a comma),
white space around an item dropped; `{{roll:…}}` also takes 2d6 and 2d6+1; `{{time}}` and every
macro that is not named here are left as they are and named by `unknown`. `{{original}}` means
something in a system prompt alone, where our instructions take its place; elsewhere it is taken
out like a comment.

Dice do not make a study unrepeatable: a value is a function of `Dice`, the place of the text in
the card and the macro itself.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_TOKEN = re.compile(r"\{{2,}|\}\}|<(?:char|bot|user)>", re.IGNORECASE)
_NAME = re.compile(r"\s*(char|user|original)\s*", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(?://|comment\s*:|(hidden_key)\s*:)", re.IGNORECASE)
_CALL = re.compile(r"\s*(random|pick|roll|reverse)\s*(?:::?|(?<=roll)\s+)", re.IGNORECASE)
_DICE = re.compile(r"(?:([0-9]{1,2})?d)?([0-9]{1,9})([+-][0-9]{1,9})?", re.IGNORECASE)
_DRAWS = re.compile(r"\{\{\s*(random|pick|roll)\s*[:\s]", re.IGNORECASE)
_NOTHING = re.compile(r"[\s\u200b\u200c\u200d\u2060\ufeff]*")
_ESCAPED_COMMA = "\\,"
_LONGEST_NAMED = 60  # characters of a macro in a warning
# Real cards nest two or three. Every level copies the text once, so hostile text needs a bound.
_DEEPEST = 20


class Dice(NamedTuple):
    """What {{random}}, {{pick}} and {{roll}} are drawn from.

    `chat` names the study's seed and the chat; `moment` counts the replies before this one, and
    matters to {{random}} and {{roll}} alone: a {{pick}} stays the same throughout a chat.
    """

    chat: str = ""
    moment: int = 0


NO_DICE = Dice()


def filled(
    text: str,
    *,
    char: str,
    user: str,
    original: str = "",
    dice: Dice = NO_DICE,
    place: str = "",
) -> str:
    """`text` with its macros replaced; `place` names the text within its card."""
    if "{{" not in text and "<" not in text:
        return text
    return _Pass(char, user, original, dice, place).over(text)


def scanned(text: str, *, char: str, user: str, dice: Dice = NO_DICE, place: str = "") -> str:
    """`filled`, with what {{hidden_key:…}} hides in its place: the text that keys are sought in
    where one lorebook entry brings in another."""
    return _Pass(char, user, "", dice, place, shows_hidden=True).over(text)


def unknown(text: str) -> tuple[str, ...]:
    """The macros that `filled` leaves as they are, each once, in order of appearance."""
    if "{{" not in text:
        return ()
    reading = _Pass("{{char}}", "{{user}}", "", NO_DICE, "")
    reading.over(text)
    return tuple(dict.fromkeys(map(_shortened, reading.left)))


def draws(text: str) -> bool:
    """Whether the text has a macro whose value depends on `Dice`."""
    return _DRAWS.search(text) is not None


def draws_anew(text: str) -> bool:
    """Whether the text has a macro whose value differs from one reply to the next."""
    return any(match[1].lower() != "pick" for match in _DRAWS.finditer(text))


def is_blank(text: str) -> bool:
    """Nothing to read: white space, invisible characters, comments."""
    nothing = _NOTHING.match(text)
    assert nothing is not None
    if text[nothing.end() : nothing.end() + 1] not in ("{", "<"):  # no macro comes before it
        return nothing.end() == len(text)
    return _NOTHING.fullmatch(filled(text, char="x", user="x")) is not None


class _Piece(NamedTuple):
    """A part of a macro's body: the author's text, or a value that must not be read again."""

    text: str
    is_value: bool


class _Pass:
    """One reading of one text; open macros wait on a stack, so that nesting costs no recursion."""

    def __init__(
        self,
        char: str,
        user: str,
        original: str,
        dice: Dice,
        place: str,
        *,
        shows_hidden: bool = False,
    ) -> None:
        self._names = {"char": char, "bot": char, "user": user, "original": original}
        self._dice = dice
        self._place = place
        self._shows_hidden = shows_hidden
        self._seen: Counter[str] = Counter()
        self.left: list[str] = []

    def over(self, text: str) -> str:
        """The text with its macros replaced; those left as they are collect in `left`."""
        stack: list[list[_Piece]] = [[]]
        end = 0
        for token in _TOKEN.finditer(text):
            stack[-1].append(_Piece(text[end : token.start()], False))
            end = token.end()
            self._take(token[0], stack)
        stack[-1].append(_Piece(text[end:], False))
        return "{{".join(_text(pieces) for pieces in stack)  # what was never closed is text

    def _take(self, mark: str, stack: list[list[_Piece]]) -> None:
        if mark[0] == "{":
            self._open(len(mark), stack)
        elif mark != "}}":
            stack[-1].append(_Piece(self._names[mark[1:-1].lower()], True))
        elif len(stack) == 1:
            stack[-1].append(_Piece(mark, False))
        else:
            body = _joined(stack.pop())
            value = self._value(body)
            if value is not None:
                stack[-1].append(_Piece(value, True))
                return
            whole = [_Piece("{{", False), *body, _Piece("}}", False)]
            if _text(body).strip():
                self.left.append(_text(whole))
            stack[-1].extend(whole)

    def _open(self, braces: int, stack: list[list[_Piece]]) -> None:
        """Begin a macro at every two braces, from the right: "{{{user}}}" is a name in braces."""
        macros = min(braces // 2, _DEEPEST)
        stack[-1].append(_Piece("{" * (braces - 2 * macros), False))
        for _ in range(macros):
            stack.append([])
            if len(stack) > _DEEPEST:  # the outermost that is still open becomes text
                stack[0] += [_Piece("{{", False), *stack.pop(1)]

    def _value(self, body: Sequence[_Piece]) -> str | None:
        """What the macro stands for; None: it is none that is known."""
        if not body or body[0].is_value:
            return None
        head = body[0].text
        if len(body) == 1 and (name := _NAME.fullmatch(head)):
            return self._names[name[1].lower()]
        if comment := _COMMENT.match(head):
            hides = comment[1] is not None and self._shows_hidden
            return _text(_after(body, comment.end())) if hides else ""
        if call := _CALL.match(head):
            return self._called(call[1].lower(), _after(body, call.end()))
        return None

    def _called(self, name: str, body: Sequence[_Piece]) -> str | None:
        whole = _text(body)
        if name == "reverse":
            return whole[::-1]
        if name == "roll":
            rolled = _DICE.fullmatch(whole.strip())
            return None if rolled is None or int(rolled[2]) < 1 else self._rolled(rolled)
        choices = _choices(body)
        return choices[self._drawn(name, whole, len(choices))]

    def _rolled(self, dice: re.Match[str]) -> str:
        count, sides, more = int(dice[1] or 1), int(dice[2]), int(dice[3] or 0)
        return str(sum(self._drawn("roll", dice[0], sides) + 1 for _ in range(count)) + more)

    def _drawn(self, name: str, body: str, sides: int) -> int:
        """In 0 .. sides - 1. Equal macros of one text are told apart by their number."""
        self._seen[name + body] += 1
        moment = "" if name == "pick" else str(self._dice.moment)
        parts = (self._dice.chat, moment, self._place, name, body, str(self._seen[name + body]))
        seed = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(seed[:8], "big") % sides


def _text(pieces: Sequence[_Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _joined(pieces: Sequence[_Piece]) -> list[_Piece]:
    """The pieces without empty ones, neighbours of the author's own text made one."""
    found: list[_Piece] = []
    for piece in pieces:
        if found and not piece.is_value and not found[-1].is_value:
            found[-1] = _Piece(found[-1].text + piece.text, False)
        elif piece.text:
            found.append(piece)
    return found


def _after(body: Sequence[_Piece], start: int) -> list[_Piece]:
    return [_Piece(body[0].text[start:], False), *body[1:]]


def _choices(body: Sequence[_Piece]) -> list[str]:
    """The items of a list; commas and colons inside a value split nothing."""
    doubled = any("::" in piece.text for piece in body if not piece.is_value)
    items = [""]
    for piece in body:
        if piece.is_value:
            items[-1] += piece.text
            continue
        first, *rest = _split(piece.text, doubled)
        items[-1] += first
        items += rest
    return items if doubled else [item.strip() for item in items]


def _split(text: str, doubled: bool) -> list[str]:
    if doubled:
        return text.split("::")
    kept = (part.split(",") for part in text.split(_ESCAPED_COMMA))
    items = [""]
    for number, (first, *rest) in enumerate(kept):
        items[-1] += ("," if number else "") + first
        items += rest
    return items


def _shortened(macro: str) -> str:
    return macro if len(macro) <= _LONGEST_NAMED else f"{macro[: _LONGEST_NAMED - 1]}…"
