"""Rules put to the test: which of two replies fits them more, and is it the right one? (paper 3.3)

For pairs of a high- and a low-rated reply of one session the model says of every rule which of the
two fits it more. A reward should fit the higher-rated one, a penalty the lower-rated one, and a
reaction the message after the one that its direction says. The model sees no rating, and the order
of the two is drawn by the seed, so that a habit of answering "A" separates nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

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
    is_template,
    plain,
    values,
)
from palate.rubrics.contrasts import Contrast, pairs_within, spread
from palate.rubrics.rated import Rated
from palate.rubrics.rules import Key, Outcome, Rule, Separation
from palate.rubrics.showing import Room, message_text, rules_text
from palate.types import digest

MIN_SEPARATION = 0.15  # (right − wrong) / asked [choice]
MIN_FIRED = 3  # answers that picked one of the two [choice]
USES = 2  # a reply stands in so many trials at most

Choice = Literal["A", "B", "neither", "both"]

_CHOICES: dict[str, Choice] = {
    **dict.fromkeys(("a", "replya", "messagea", "回复a", "消息a"), "A"),
    **dict.fromkeys(("b", "replyb", "messageb", "回复b", "消息b"), "B"),
    **dict.fromkeys(("neither", "none", "noneofthem", "都不", "都不是", "都不符合"), "neither"),
    **dict.fromkeys(("both", "equal", "same", "ab", "aandb", "都", "都是", "都符合"), "both"),
}
_NUMBERED = re.compile(r"(?:rule|r|规则|第)?([1-9][0-9]?)(?:条)?")
_NUMBER = {"rule", "number", "id", "编号", "规则"}
_CHOICE = {"choice", "answer", "fits", "reply", "message", "选择", "回答", "答案"}


class Trial(NamedTuple):
    """One pair, and whether its higher-rated reply is shown as A."""

    pair: Contrast
    high_first: bool

    @property
    def shown(self) -> tuple[Rated, Rated]:
        """Replies A and B."""
        return (
            (self.pair.high, self.pair.low) if self.high_first else (self.pair.low, self.pair.high)
        )


class Result(NamedTuple):
    """One rule on one trial: 1 for the right reply, −1 for the other, 0 for neither or both.

    `outcome` None: the answer held no choice.
    """

    pair: Contrast
    outcome: int | None


Results = Mapping[Key, Sequence[Result]]


def trials(replies: Sequence[Rated], *, most: int, seed: int) -> tuple[Trial, ...]:
    """At most `most` pairs of replies of one session, in an order of their sides by the seed."""
    chosen = spread(pairs_within(replies, uses=USES), most)
    return tuple(Trial(pair, _high_first(pair, seed)) for pair in chosen)


def _high_first(pair: Contrast, seed: int) -> bool:
    return int(digest(["order", seed, pair.high.citation, pair.low.citation])[:8], 16) % 2 == 0


async def tested(
    rules: Sequence[Rule], given: Sequence[Trial], asker: Asker, room: Room, *, rules_a_call: int
) -> Results:
    """What the model chose for every rule on every trial.

    Raises:
        ModelError: a call did not come back.
    """
    calls = [
        _one(batch, trial, asker, room)
        for about_reactions in (False, True)
        for batch in _batches(rules, about_reactions, rules_a_call)
        for trial in _fit_for(given, about_reactions)
    ]
    found: defaultdict[Key, list[Result]] = defaultdict(list)
    for answers in await all_of(calls):
        for rule, result in answers:
            found[rule.key].append(result)
    return {rule.key: found[rule.key] for rule in rules}


def separation(results: Iterable[Result]) -> Separation:
    """The counts of a rule's results."""
    outcomes = [result.outcome for result in results]
    unread = outcomes.count(None)
    return Separation(
        asked=len(outcomes) - unread,
        right=outcomes.count(1),
        wrong=outcomes.count(-1),
        unread=unread,
    )


def outcome_of(rule: Rule, found: Separation) -> Outcome:
    """Whether a rule holds: it separates; a neutral reaction is seen often and does not."""
    if found.fired < MIN_FIRED:
        return "fired too seldom"
    if rule.kind == "reaction" and rule.direction == 0:
        return "kept" if abs(found.value) < MIN_SEPARATION else "does not separate"
    return "kept" if found.value >= MIN_SEPARATION else "does not separate"


def trial_query(rules: Sequence[Rule], trial: Trial, tongue: Language, room: Room) -> Query:
    """The rules, all of replies or all of reactions, with the two texts of a trial."""
    a, b = trial.shown
    reactions = rules[0].kind == "reaction"
    sheet = halves("rubric_test_reactions" if reactions else "rubric_test_replies", tongue)
    system = sheet.system.fill(rules=rules_text(rules, tongue), form=_form(len(rules), tongue))
    if reactions:
        shown = {"a": message_text(a.after, room.user, tongue)}
        shown["b"] = message_text(b.after, room.user, tongue)
    else:
        shown = {"a": message_text(a.text, room.reply, tongue)}
        shown["b"] = message_text(b.text, room.reply, tongue)
        shown["before_a"] = message_text(a.before, room.user, tongue)
        shown["before_b"] = message_text(b.before, room.user, tongue)
    return Query("testing", system, sheet.user.fill(**shown), _schema(len(rules)))


def read_choices(text: str, count: int) -> dict[int, Choice]:
    """The choice for each rule, by its number from 1; a rule with two different ones has none.

    Raises:
        UnreadableError: no choice at all.
    """
    found: defaultdict[int, set[Choice]] = defaultdict(set)
    for value in values(text):
        for number, choice in _choices(value):
            if 1 <= number <= count:
                found[number].add(choice)
    clear = {number: next(iter(said)) for number, said in found.items() if len(said) == 1}
    if not clear:
        raise UnreadableError("no choice")
    return clear


async def _one(
    batch: Sequence[Rule], trial: Trial, asker: Asker, room: Room
) -> list[tuple[Rule, Result]]:
    query = trial_query(batch, trial, asker.tongue, room)
    answer = await asker.ask(query, lambda text: read_choices(text, len(batch)))
    choices: Mapping[int, Choice] = {} if isinstance(answer, Unread) else answer
    return [
        (rule, Result(trial.pair, _outcome(rule, choices.get(number), trial)))
        for number, rule in enumerate(batch, 1)
    ]


def _outcome(rule: Rule, choice: Choice | None, trial: Trial) -> int | None:
    if choice is None:
        return None
    if choice in ("neither", "both"):
        return 0
    picked_high = (choice == "A") == trial.high_first
    wants_high = rule.kind == "reward" or (rule.kind == "reaction" and rule.direction >= 0)
    return 1 if picked_high == wants_high else -1


def _batches(rules: Sequence[Rule], about_reactions: bool, size: int) -> Iterator[list[Rule]]:
    chosen = [rule for rule in rules if (rule.kind == "reaction") == about_reactions]
    for start in range(0, len(chosen), size):
        yield chosen[start : start + size]


def _fit_for(given: Sequence[Trial], about_reactions: bool) -> list[Trial]:
    """Of reactions, only pairs where the user answered both replies."""
    if not about_reactions:
        return list(given)
    return [trial for trial in given if trial.pair.high.after and trial.pair.low.after]


def _choices(value: Value, depth: int = 3) -> Iterator[tuple[int, Choice]]:
    """Numbers with their choices: {"1": "A"}, {"1": {"choice": "A"}}, [{"rule": 1, …}]."""
    if depth == 0:
        return
    if isinstance(value, list):
        for item in value:
            yield from _choices(item, depth - 1)
    if not isinstance(value, Pairs):
        return
    numbers = [_number(item) for key, item in value if plain(key) in _NUMBER]
    if len(numbers) == 1 and numbers[0] is not None:
        yield from ((numbers[0], choice) for choice in _choice_in(value))
        return
    for key, item in value:
        number = _number(key)
        if number is None:
            yield from _choices(item, depth - 1)
        else:
            said = _choice_in(item) if isinstance(item, Pairs) else [_choice(item)]
            yield from ((number, choice) for choice in said if choice is not None)


def _choice_in(entry: Pairs) -> list[Choice]:
    found = [_choice(item) for key, item in entry if plain(key) in _CHOICE]
    return [choice for choice in found if choice is not None]


def _choice(value: Value) -> Choice | None:
    if not isinstance(value, str) or is_template(value):
        return None
    return _CHOICES.get(plain(value))


def _number(value: Value) -> int | None:
    match = _NUMBERED.fullmatch(plain(value))
    return int(match[1]) if match else None


def _form(count: int, tongue: Language) -> str:
    """The JSON to fill in; its placeholders are no choices."""
    hint = {"en": "<A, B, neither or both>", "zh": "<A、B、neither 或 both>"}[tongue]
    return "{" + ", ".join(f'"{number}": "{hint}"' for number in range(1, count + 1)) + "}"


def _schema(count: int) -> Schema:
    choice: Schema = {"type": "string", "enum": ["A", "B", "neither", "both"]}
    return closed({str(number): choice for number in range(1, count + 1)})
