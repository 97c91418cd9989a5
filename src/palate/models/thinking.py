"""Taking a model's private reasoning out of its text.

Reasoning arrives inside the text as <think>…</think> (or <thinking>, <thought>, <reasoning>, in
any case, in the brackets that some model families use). It must reach neither the other side of
the chat nor a judge. Rules, in the order in which they decide:

- A tag inside back-ticks or a fenced code block is text.
- A block runs from its opening to the closing that balances it; without one, to the first
  closing; without any, to the end of the text (the answer was cut while it was thinking).
- A closing without an opening ends a block that the chat template had opened: all text before
  it is reasoning. So is text between a block and a later closing, unless nothing follows it:
  losing words is noticed, leaking thoughts is not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = r"(?:[a-z]+:)?(?:think|thinking|thought|thoughts|reasoning)"
_TAG = re.compile(
    rf"<\s*(?:(?P<a>/)\s*)?{_NAME}(?:\s[^<>]*)?(?P<self>/?)>"
    r"|\[(?P<b>/?)THINK\]"
    r"|◁(?P<c>/?)think▷",
    re.IGNORECASE,
)
# Back-ticks that hug their content, as in prose: a stray one in a thought must not hide its end.
_CODE = re.compile(r"```.*?```|(?<![A-Za-z0-9`])`(?!\s)[^`\n]+(?<!\s)`(?![A-Za-z0-9`])", re.DOTALL)

# White space of all kinds, zero-width and direction marks, fillers: text of these alone is empty.
_BLANK = (
    "".join(map(chr, [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0xAD, 0x1680]))
    + "".join(map(chr, [*range(0x2000, 0x2010), *range(0x2028, 0x2030), 0x205F, 0x3000]))
    + "".join(map(chr, [*range(0x2060, 0x2065), 0x2800, 0x3164, 0xFEFF]))
)


class Thinking(NamedTuple):
    """A text in two parts; both are without outer white space."""

    visible: str
    reasoning: str


class _Tag(NamedTuple):
    start: int
    end: int
    closes: bool


def is_blank(text: str) -> bool:
    """Nothing in `text` can be seen."""
    return not text.strip(_BLANK)


def strip_thinking(text: str) -> Thinking:
    """`text` without its reasoning, and the reasoning."""
    if not _may_hold_tags(text) or _TAG.search(text) is None:
        return Thinking(text.strip(_BLANK), "")
    visible: list[str] = []
    reasoning: list[str] = []
    tags = _tags(text)
    closings = _closings(tags)
    last = len(text.rstrip(_BLANK))
    position = index = 0
    while index < len(tags):
        tag = tags[index]
        before = text[position : tag.start]
        if tag.closes:
            _close_unopened(before, visible, reasoning, is_last=tag.end >= last)
            position, index = tag.end, index + 1
            continue
        visible.append(before)
        closing = closings[index]
        end = len(text) if closing is None else tags[closing].start
        reasoning.append(text[tag.end : end])
        position = len(text) if closing is None else tags[closing].end
        index = len(tags) if closing is None else closing + 1
    visible.append(text[position:])
    return Thinking(
        "".join(visible).strip(_BLANK),
        "\n".join(part.strip(_BLANK) for part in reasoning if part.strip(_BLANK)),
    )


def _may_hold_tags(text: str) -> bool:
    """Every tag has one of these; most messages have none, and every message comes by here."""
    return "<" in text or "[" in text or "◁" in text


def _tags(text: str) -> list[_Tag]:
    """The tags that are not inside code; a self-closed one is an empty block."""
    code = [match.span() for match in _CODE.finditer(text)]
    tags: list[_Tag] = []
    passed = 0  # spans of code that end before the tag: both come in order, so one pass will do
    for match in _TAG.finditer(text):
        while passed < len(code) and code[passed][1] <= match.end():
            passed += 1
        if passed < len(code) and code[passed][0] < match.start():
            continue
        closes = bool(match["a"] or match["b"] or match["c"])
        tags.append(_Tag(match.start(), match.end(), closes))
        if match["self"] and not closes:
            tags.append(_Tag(match.end(), match.end(), True))
    return tags


def _closings(tags: list[_Tag]) -> list[int | None]:
    """Of each opening, the closing that balances it, else the first after it, else None."""
    balancing: dict[int, int] = {}
    opened: list[int] = []
    for index, tag in enumerate(tags):
        if not tag.closes:
            opened.append(index)
        elif opened:
            balancing[opened.pop()] = index
    found: list[int | None] = [None] * len(tags)
    following: int | None = None
    for index in range(len(tags) - 1, -1, -1):
        if tags[index].closes:
            following = index
        else:
            found[index] = balancing.get(index, following)
    return found


def _close_unopened(
    before: str, visible: list[str], reasoning: list[str], *, is_last: bool
) -> None:
    """Decide about a closing tag without an opening; see the module's rules.

    `is_last`: nothing that can be seen follows it.
    """
    if visible and is_last:
        visible.append(before)
        return
    reasoning.extend([*visible, before])
    visible[:] = []
