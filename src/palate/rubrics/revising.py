"""One round of revision: a rule that failed is rewritten with its failures in view, or withdrawn.

What is shown are pairs of the validation slice of the *training* sessions. A rewritten rule is not
tested on the pairs that its reviser saw: there it would only prove that it was fitted to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from palate.language import Language
from palate.lenient_json import Pairs, Value
from palate.rubrics.asking import (
    Asker,
    Query,
    Schema,
    Unread,
    UnreadableError,
    all_of,
    closed,
    halves,
    one_line,
    plain,
    values,
)
from palate.rubrics.contrasts import Contrast
from palate.rubrics.proposing import fault_of_text
from palate.rubrics.rules import Rule
from palate.rubrics.showing import Room, missed_text, rule_text
from palate.rubrics.testing_rules import Result

MOST_SHOWN = 4  # failed pairs; a third of the trials at most, so that enough are left to test on

_ACTION = {"action", "decision", "动作", "决定"}
_RULE = {"rule", "text", "newrule", "pattern", "规则", "新规则"}
_WITHDRAW = {"withdraw", "withdrawn", "drop", "撤回", "放弃"}
_KINDS: dict[Language, dict[str, str]] = {
    "en": {
        "reward": "The rule says what pleases this person in a reply: it should fit the "
        "higher-rated replies.",
        "penalty": "The rule says what displeases this person in a reply: it should fit the "
        "lower-rated replies.",
        "pleased": "The rule describes how this person answers when pleased: it should fit what "
        "they wrote after the higher-rated replies.",
        "displeased": "The rule describes how this person answers when displeased: it should fit "
        "what they wrote after the lower-rated replies.",
    },
    "zh": {
        "reward": "这条规则说的是回复里什么让这个人满意：它应当符合评分较高的回复。",
        "penalty": "这条规则说的是回复里什么让这个人不满：它应当符合评分较低的回复。",
        "pleased": "这条规则描述这个人满意时怎样回答：它应当符合评分较高的回复之后的消息。",
        "displeased": "这条规则描述这个人不满时怎样回答：它应当符合评分较低的回复之后的消息。",
    },
}


class Failed(NamedTuple):
    """A rule that did not hold, with its results."""

    rule: Rule
    results: Sequence[Result]


class Revised(NamedTuple):
    """What became of a failed rule: `new` None where it was withdrawn; `seen` were shown."""

    old: Rule
    new: Rule | None
    seen: tuple[Contrast, ...]


async def revised(failed: Sequence[Failed], asker: Asker, room: Room) -> list[Revised]:
    """Every failed rule rewritten or withdrawn; one without a readable answer is withdrawn.

    Raises:
        ModelError: a call did not come back.
    """
    return await all_of([_one(item, asker, room) for item in failed])


def can_be_revised(rule: Rule) -> bool:
    """A neutral reaction says nothing that pairs could correct."""
    return rule.kind != "reaction" or rule.direction != 0


def revising_query(rule: Rule, seen: Sequence[Contrast], tongue: Language, room: Room) -> Query:
    """The rule with the pairs that it failed on."""
    sheet = halves("rubric_revise", tongue)
    system = sheet.system.fill(kind=_KINDS[tongue][_kind(rule)])
    pairs = missed_text(seen, rule.kind, room, tongue)
    user = sheet.user.fill(rule=rule_text(rule, tongue), pairs=pairs)
    return Query("revising", system, user, _schema())


def read_revision(text: str, tongue: Language) -> str:
    """The new wording, or "" where the rule is withdrawn.

    Raises:
        UnreadableError: neither, or both at once.
    """
    objects = [found for value in values(text) if (found := _object(value)) is not None]
    if not objects:
        raise UnreadableError("no decision")
    said = {_decision(found) for found in objects}
    if len(said) > 1:
        raise UnreadableError("contradiction")
    rule = said.pop()
    if rule and (fault := fault_of_text(rule, tongue)):
        raise UnreadableError(f"the rule {fault}")
    return rule


def failures(results: Sequence[Result]) -> tuple[Contrast, ...]:
    """The pairs to show: those it got wrong, then those where it said nothing."""
    most = min(MOST_SHOWN, len(results) // 3)
    order = sorted((r for r in results if r.outcome in (-1, 0)), key=lambda r: r.outcome == 0)
    return tuple(result.pair for result in order[:most])


async def _one(item: Failed, asker: Asker, room: Room) -> Revised:
    seen = failures(item.results)
    if not seen:
        return Revised(item.rule, None, ())
    query = revising_query(item.rule, seen, asker.tongue, room)
    answer = await asker.ask(query, lambda text: read_revision(text, asker.tongue))
    text = "" if isinstance(answer, Unread) else answer
    new = item.rule._replace(text=text)
    return Revised(item.rule, new if text and new.key != item.rule.key else None, seen)


def _kind(rule: Rule) -> str:
    if rule.kind != "reaction":
        return rule.kind
    return "pleased" if rule.direction > 0 else "displeased"


def _object(value: Value, depth: int = 3) -> Pairs | None:
    """The object that decides, in whatever it is wrapped."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if depth == 0 or not isinstance(value, Pairs):
        return None
    if any(plain(key) in _ACTION | _RULE for key, _ in value):
        return value
    inner = [found for _, item in value if (found := _object(item, depth - 1)) is not None]
    return inner[0] if len(inner) == 1 else None


def _decision(found: Pairs) -> str:
    actions = {plain(item) for key, item in found if plain(key) in _ACTION}
    rules = {one_line(v) for k, v in found if plain(k) in _RULE and isinstance(v, str)} - {""}
    if len(actions) > 1 or len(rules) > 1:
        raise UnreadableError("contradiction")
    if actions & _WITHDRAW:
        return ""
    if not rules:
        raise UnreadableError("no rule")
    return rules.pop()


def _schema() -> Schema:
    action: Schema = {"type": "string", "enum": ["rewrite", "withdraw"]}
    return closed({"action": action, "rule": {"type": "string"}})
