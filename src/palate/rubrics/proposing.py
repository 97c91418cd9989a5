"""Candidate rules out of contrasts: what is asked, and how the answer is read (paper 3.3).

Lenient about how the JSON is wrapped, strict about what it says: a rule needs a text of its own in
the user's language and evidence; what lacks them is dropped and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palate import language
from palate.language import Language
from palate.lenient_json import Pairs, Value
from palate.rubrics.asking import (
    Query,
    Schema,
    UnreadableError,
    a_list,
    closed,
    halves,
    is_template,
    one_line,
    plain,
    values,
)
from palate.rubrics.citations import Citations
from palate.rubrics.rules import MOST_RULES, Direction, Kind, Rule

MAX_CHARACTERS = 300  # of a rule, a pattern or a meaning

_LISTS: dict[str, Kind] = {
    **dict.fromkeys(("rewards", "reward", "likes", "奖励", "欣赏", "喜欢"), "reward"),
    **dict.fromkeys(("penalties", "penalty", "dislikes", "惩罚", "不满", "不喜欢"), "penalty"),
    **dict.fromkeys(("reactions", "reaction", "reactionmeanings", "反应", "反应含义"), "reaction"),
}
_TEXT = {"rule", "text", "description", "规则", "描述"}
_PATTERN = {"pattern", "reaction", "rule", "how", "模式", "反应", "回答方式"}
_MEANING = {"meaning", "means", "meaningofit", "含义", "意味", "意思"}
_DIRECTION = {"direction", "sign", "valence", "方向"}
_EVIDENCE = {"evidence", "turns", "turn", "citations", "cites", "support", "证据", "依据", "编号"}
_KIND = {"kind", "type", "category", "种类", "类型", "类别"}
_DIRECTIONS: dict[str, Direction] = {
    **dict.fromkeys(("1", "1.0", "+1", "pleased", "positive", "满意"), 1),
    **dict.fromkeys(("0", "0.0", "neutral", "中性"), 0),
    **dict.fromkeys(("-1", "-1.0", "−1", "displeased", "negative", "不满", "不满意"), -1),
}
_DEPTH = 4  # of wrappers around the lists


class Proposal(NamedTuple):
    """The rules of one answer, and those that were dropped, by reason."""

    rules: list[Rule]
    dropped: Counter[str]


def proposing_query(contrasts: Sequence[str], tongue: Language) -> Query:
    """What these contrasts, as text, are shown with."""
    sheet = halves("rubric_propose", tongue)
    user = sheet.user.fill(contrasts="\n\n".join(contrasts))
    return Query("proposing", sheet.system.fill(), user, _schema())


def read_proposal(text: str, names: Citations, tongue: Language) -> Proposal:
    """The rules in an answer, with evidence as rubrics cite it.

    Raises:
        UnreadableError: no JSON, or none with a list of rules.
    """
    entries = [entry for value in values(text) for entry in _entries(value)]
    if not entries:
        raise UnreadableError("no list of rules")
    proposal = Proposal([], Counter())
    for kind, entry in entries:
        rule = _rule(kind, entry, names, tongue)
        if isinstance(rule, str):
            proposal.dropped[rule] += 1
        else:
            proposal.rules.append(rule)
    return proposal


def fault_of_text(text: str, tongue: Language) -> str:
    """What keeps a text from being a rule in `tongue`, or ""."""
    if not any(c.isalnum() for c in text) or is_template(text):
        return "says nothing"
    if len(text) > MAX_CHARACTERS:
        return "is too long"
    return "" if language.of_text(text) == tongue else "is in another language"


def _entries(value: Value, depth: int = _DEPTH) -> Iterator[tuple[Kind, Value]]:
    """Every entry of a list of rules, and entries that name their kind themselves."""
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from _entries(item, depth - 1)
    elif isinstance(value, Pairs):
        named = [_LISTS.get(plain(item)) for key, item in value if plain(key) in _KIND]
        if len(set(named)) == 1 and named[0] is not None:
            yield named[0], value
            return
        for key, item in value:
            kind = _LISTS.get(plain(key))
            if kind is not None and isinstance(item, list | Pairs):
                entries = item if isinstance(item, list) else [item]
                yield from ((kind, entry) for entry in entries)
            else:
                yield from _entries(item, depth - 1)


def _rule(kind: Kind, entry: Value, names: Citations, tongue: Language) -> Rule | str:
    """The rule in an entry, or why there is none."""
    if not isinstance(entry, Pairs):
        return "has no evidence"
    text, meaning = _text(entry, _PATTERN if kind == "reaction" else _TEXT), ""
    direction: Direction | None = 0
    if kind == "reaction":
        meaning, direction = _text(entry, _MEANING) or "", _direction(entry)
    if text is None or direction is None:
        return "contradicts itself" if text is None else "has no direction"
    for said in (text, meaning) if kind == "reaction" else (text,):
        if fault := fault_of_text(said, tongue):
            return fault
    evidence = tuple(dict.fromkeys(_evidence(entry, names)))
    if not evidence:
        return "has no evidence"
    return Rule(kind, text, evidence, meaning, direction)


def _text(entry: Pairs, keys: set[str]) -> str | None:
    """The text under one of `keys`, "" where there is none, None where there are two."""
    found = {one_line(v) for k, v in entry if plain(k) in keys and isinstance(v, str)}
    return None if len(found) > 1 else next(iter(found), "")


def _direction(entry: Pairs) -> Direction | None:
    found = {
        _DIRECTIONS.get(str(value).strip().casefold())
        for key, value in entry
        if plain(key) in _DIRECTION and not isinstance(value, bool)
    }
    return next(iter(found)) if len(found) == 1 else None


def _evidence(entry: Pairs, names: Citations) -> Iterator[str]:
    for key, value in entry:
        if plain(key) in _EVIDENCE:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    yield from names.read(item)


def _schema() -> Schema:
    text: Schema = {"type": "string"}
    evidence = a_list(text, 6)
    rule = closed({"rule": text, "evidence": evidence})
    direction: Schema = {"type": "integer", "enum": [-1, 0, 1]}
    reaction = closed(
        {"pattern": text, "meaning": text, "direction": direction, "evidence": evidence}
    )
    return closed(
        {
            "rewards": a_list(rule, MOST_RULES["reward"]),
            "penalties": a_list(rule, MOST_RULES["penalty"]),
            "reactions": a_list(reaction, MOST_RULES["reaction"]),
        }
    )
