"""Near-duplicates made one: the model says which rules are the same, the code checks the groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from palate.language import Language
from palate.lenient_json import Pairs, Value
from palate.rubrics.asking import (
    Asker,
    Query,
    Schema,
    Unread,
    UnreadableError,
    a_list,
    closed,
    halves,
    plain,
    values,
)
from palate.rubrics.rules import KINDS, Rule, joined
from palate.rubrics.showing import rules_text

_SAME = {"same", "groups", "duplicates", "equal", "merged", "相同", "重复"}


async def merged(
    rules: Sequence[Rule], asker: Asker, goodness: Callable[[Rule], tuple[float, ...]]
) -> list[Rule]:
    """The rules with those that say the same made one; kinds are never mixed.

    Of each group the rule of the highest `goodness` stays, in its own words, with the evidence of
    all. An answer that cannot be read merges nothing.

    Raises:
        ModelError: a call did not come back.
    """
    kept: list[Rule] = []
    for kind in KINDS:
        same_kind = [rule for rule in rules if rule.kind == kind]
        kept += await _of_one_kind(same_kind, asker, goodness) if len(same_kind) > 1 else same_kind
    return kept


def merge_query(rules: Sequence[Rule], tongue: Language) -> Query:
    """Which of these rules are the same?"""
    sheet = halves("rubric_merge", tongue)
    user = sheet.user.fill(rules=rules_text(rules, tongue))
    return Query("merging", sheet.system.fill(), user, _schema())


def read_groups(text: str, count: int) -> list[list[int]]:
    """Groups of two or more rules by number from 1, none of them in two groups.

    A group that names an unknown rule, or one that is in a group already, loses that rule.

    Raises:
        UnreadableError: no list of groups.
    """
    lists = [found for value in values(text) for found in _lists(value)]
    if not lists:
        raise UnreadableError("no list of groups")
    taken: set[int] = set()
    groups: list[list[int]] = []
    for listed in lists:
        for entry in listed:
            numbers = [n for n in _numbers(entry) if 1 <= n <= count and n not in taken]
            if len(set(numbers)) > 1:
                groups.append(sorted(set(numbers)))
                taken.update(numbers)
    return groups


async def _of_one_kind(
    rules: Sequence[Rule], asker: Asker, goodness: Callable[[Rule], tuple[float, ...]]
) -> list[Rule]:
    query = merge_query(rules, asker.tongue)
    answer = await asker.ask(query, lambda text: read_groups(text, len(rules)))
    groups = [] if isinstance(answer, Unread) else answer
    replaced: dict[int, Rule | None] = {}
    for group in groups:
        alike = [(number, rules[number - 1]) for number in group]
        # A pleased and a displeased reading of the same behaviour are not the same rule.
        best, best_rule = max(alike, key=lambda item: goodness(item[1]))
        alike = [(n, rule) for n, rule in alike if rule.direction == best_rule.direction]
        others = [rule for number, rule in alike if number != best]
        replaced |= {number: None for number, _ in alike}
        replaced[best] = joined(best_rule, *others)
    outcome = (replaced.get(number, rule) for number, rule in enumerate(rules, 1))
    return [rule for rule in outcome if rule is not None]


def _lists(value: Value, depth: int = 3) -> Iterator[list[Value]]:
    if depth == 0 or not isinstance(value, Pairs):
        return
    for key, item in value:
        if plain(key) in _SAME and isinstance(item, list):
            yield item
        else:
            yield from _lists(item, depth - 1)


def _numbers(entry: Value) -> list[int]:
    items = entry if isinstance(entry, list) else []
    digits = [plain(item).removeprefix("rule").removeprefix("规则") for item in items]
    return [int(text) for text in digits if text.isascii() and text.isdigit() and len(text) < 4]


def _schema() -> Schema:
    return closed({"same": a_list(a_list({"type": "integer"}, 10), 10)})
