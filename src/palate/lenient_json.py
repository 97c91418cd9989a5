"""JSON objects out of untidy text: what judges really send (`docs/adr/0004-verdicts.md`).

Valid JSON is read as it stands; only where that fails are objects looked for in the text, and
only there are the usual slips forgiven: fences and prose around, comments, trailing or missing
commas, single, curly and full-width quotes, full-width braces, colons and commas, bare keys.
Slips are forgiven in the structure alone: what stands inside a string stays as it was written.

An object that was begun and breaks off spoils the whole text: what can still be read inside it
may be a draft, so nothing is picked out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from palate.models.thinking import strip_thinking

# A value is None, bool, int, float, str, list or Pairs.
Value = object


class Pairs(tuple[tuple[str, Value], ...]):
    """A JSON object as it was written: in order, with repeated keys kept."""

    __slots__ = ()


class Found(NamedTuple):
    """An object or list in a text, and the text before it up to the one before."""

    value: Value
    before: str


class BrokenJSONError(ValueError):
    """No JSON can be read here; the text says why."""


MAX_DEPTH = 20
MAX_FALSE_STARTS = 50  # a judge that loops on "{" must not hold up the others

_BRACE = re.compile(r"[{｛]")
_SKIPPED = re.compile(r"(?:[\s\ufeff\u200b]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BARE_KEY = re.compile(r"[^\W\d][\w .-]*")
_BARE_VALUE = re.compile(
    r"[^\s,，;；:：{}｛｝\[\]［］\"“”]+?(?:[ \t]+[^\s,，;；:：{}｛｝\[\]［］\"“”]+?)*"
    r"(?=\s*(?://|\#|/\*|[\n,，;；}｝\]］\"“]))"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CLOSERS = {
    '"': '"',
    "'": "'",
    "“": '”“"',
    "”": '”"',
    "‘": "’‘'",
    "＂": "＂",
    "「": "」",
}
_LITERALS = {"true": True, "false": False, "null": None, "none": None}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# What follows a closing quote: the end of the entry, the colon after a key, or the next entry.
_AFTER_STRING = re.compile(
    r"[\s\ufeff]*(?:\Z|[:：}｝\]］]|//|/\*"
    r"|[,，][\s\ufeff]*(?:\Z|[\"'“”‘＂「{｛\[［}｝\]］]|//|/\*|[-\d]|[^\W\d][\w .-]*[:：]"
    r"|(?:true|false|null)\b))"
    r"|[ \t\r]*\n\s*[\"“＂「]"
)


# A line that announces a format, or repeats our request for one, and says nothing else: what
# follows it is the prompt's, not a verdict. "My verdict in the requested format:" is no such line.
_ANNOUNCES_EXAMPLE = re.compile(
    r"(?:^|\n)[\s#>*_-]*(?:"
    r"(?:(?:the|an|required|expected|json)\s+)*"
    r"(?:(?:output|answer|response|reply|verdict)\s+)?(?:json\s+)?"
    r"(?:format|template|schema|example|sample)(?:\s+(?:output|answer|response|reply|verdict))?"
    r"(?:\s+(?:is|should\s+be|must\s+be)\b[^\n]*)?"
    r"|(?:please\s+)?(?:respond|reply|return|answer)\s+(?:only\s+)?(?:with|in|using|as)\b[^\n]*"
    r"|(?:输出|回答|回复|答案|评分)?(?:格式|模板|样例|示例|例子|范例|例如)(?:示例|如下|为)?"
    r"|请(?:只|仅|用|以|按|输出|返回|回答)[^\n]*"
    r")[\s*_]*[:：]?[\s*_]*(?:```\s*\w*\s*)?\Z",
    re.IGNORECASE,
)


def answers(completion: str) -> list[Value]:
    """The values in a judge's completion that are its answer; valid JSON is taken as it stands.

    Thinking is passed over, and so is an object that repeats the form of our request. None where
    nothing was said.

    Raises:
        BrokenJSONError: an object was begun and cannot be read.
    """
    text = completion.strip().lstrip("\ufeff").strip()
    visible = strip_thinking(text).visible
    for candidate in (text, visible):
        try:
            value = whole(candidate)
            return [whole(value) if isinstance(value, str) else value]
        except BrokenJSONError:
            continue
    return [each.value for each in objects(visible) if not _ANNOUNCES_EXAMPLE.search(each.before)]


def whole(text: str) -> Value:
    """The text as one valid JSON value (raw line breaks in strings allowed).

    Raises:
        BrokenJSONError: it is not.
    """
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise BrokenJSONError(str(error)) from error


_DECODER = json.JSONDecoder(object_pairs_hook=Pairs, strict=False)


def objects(text: str) -> list[Found]:
    """The objects in the text that stand in no other, in order, slips in them forgiven.

    A brace that opens no object ("{smile}") is text.

    Raises:
        BrokenJSONError: an object was begun (it has a key and a colon) and has no readable end.
    """
    found: list[Found] = []
    after = at = false_starts = 0
    while match := _BRACE.search(text, at):
        taken = _object(text, match.start())
        if taken is None:
            at, false_starts = match.end(), false_starts + 1
            if false_starts > MAX_FALSE_STARTS:
                raise BrokenJSONError(f"more than {MAX_FALSE_STARTS} braces that open no object")
            continue
        value, end = taken
        found.append(Found(value, text[after : match.start()]))
        after = at = end
    return found


def _object(text: str, start: int) -> tuple[Value, int] | None:
    """The object at `start` and where it ends, or None where the brace opens no object."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _untidy_object(text, start)
    return value, end


def _untidy_object(text: str, start: int) -> tuple[Value, int] | None:
    reader = _Reader(text, start)
    try:
        return reader.container(0), reader.at
    except BrokenJSONError:
        if reader.keys:
            raise
        return None


@dataclass
class _Reader:
    """A recursive reader of one object; `keys` counts the keys it has seen with their colon."""

    text: str
    at: int
    keys: int = 0

    def container(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            self.fail("nested too deeply")
        opening = self.text[self.at]
        self.at += 1
        return self.object(depth) if opening in "{｛" else self.list(depth)

    def object(self, depth: int) -> Pairs:
        pairs: list[tuple[str, Value]] = []
        while True:
            self.skip(",，;；")
            if self.take("}｝"):
                return Pairs(pairs)
            key = self.key()
            if not self.take(":："):
                self.fail("a key without a colon")
            self.keys += 1
            pairs.append((key, self.value(depth)))

    def list(self, depth: int) -> list[Value]:
        values: list[Value] = []
        while True:
            self.skip(",，;；、")
            if self.take("]］"):
                return values
            values.append(self.value(depth))

    def key(self) -> str:
        if self.peeks_at(_CLOSERS):
            return self.string()
        match = _BARE_KEY.match(self.text, self.at)
        if match is None:
            self.fail("no key where one is due")
        self.at = match.end()
        return match.group().strip()

    def value(self, depth: int) -> Value:
        self.skip()
        if self.peeks_at("{｛[［"):
            return self.container(depth + 1)
        if self.peeks_at(_CLOSERS):
            return self.string()
        match = _BARE_VALUE.match(self.text, self.at)
        if match is None:
            self.fail("no value where one is due")
        self.at = match.end()
        return _bare(match.group().strip())

    def string(self) -> str:
        """A quoted text. A quote inside it that nothing structural follows belongs to it."""
        closers = _CLOSERS[self.text[self.at]]
        start = self.at = self.at + 1
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "\\":
                self.at += 1
            elif char in closers and _AFTER_STRING.match(self.text, self.at):
                return _ESCAPE.sub(_unescaped, self.text[start : self.at - 1])
        self.fail("a text that is never closed")

    def skip(self, also: str = "") -> None:
        """Pass white space and comments, and any of the characters in `also`."""
        while True:
            match = _SKIPPED.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if not self.peeks_at(also):
                return
            self.at += 1

    def take(self, wanted: str) -> bool:
        self.skip()
        taken = self.peeks_at(wanted)
        self.at += taken
        return taken

    def peeks_at(self, wanted: Container[str]) -> bool:
        return self.at < len(self.text) and self.text[self.at] in wanted

    def fail(self, why: str) -> NoReturn:
        raise BrokenJSONError(f"{why}, at character {self.at}")


def _bare(word: str) -> Value:
    if word.lower() in _LITERALS:
        return _LITERALS[word.lower()]
    if _NUMBER.fullmatch(word) and len(word) < 100:  # longer ones are no measurement
        return float(word) if not word.isdecimal() else int(word)
    return word


def _unescaped(match: re.Match[str]) -> str:
    code, char = match.groups()
    if code is not None:
        return chr(int(code, 16))
    return {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}.get(char, char)
