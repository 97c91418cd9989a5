"""Does the evidence of a rule exist, and does it say so? (paper 3.3)

A reward cites replies that this person rated high, a penalty replies rated low, a reaction the
messages that followed rated replies, with a direction that agrees with those ratings. What does
not hold is dropped and counted; a rule that loses all its evidence goes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from palate.rubrics.rated import Rated, Standing
from palate.rubrics.rules import Direction, Rule

NOT_SHOWN = "names a turn that was not shown"
NOT_RATED = "is no rated reply"
NOT_A_REACTION = "is no message after a rated reply"
NOT_HIGH = "was not rated high"
NOT_LOW = "was not rated low"
OTHER_DIRECTION = "was rated the other way"


class Evidence:
    """What every turn can be evidence of."""

    def __init__(self, replies: Sequence[Rated]) -> None:
        self._standing = Standing(replies)
        self._replies = {reply.citation: reply for reply in replies}
        self._reactions = {reply.reaction: reply for reply in replies if reply.reaction}

    def supporting(self, rule: Rule, shown: Collection[str], dropped: Counter[str]) -> Rule | None:
        """The rule with the evidence that holds; None where none does."""
        kept = []
        signs = self._signs(rule.evidence)
        for turn in dict.fromkeys(rule.evidence):
            fault = NOT_SHOWN if turn not in shown else self._fault(rule, turn, signs)
            if fault:
                dropped[fault] += 1
            else:
                kept.append(turn)
        return rule._replace(evidence=tuple(kept)) if kept else None

    def _fault(self, rule: Rule, turn: str, signs: Collection[int]) -> str:
        if rule.kind == "reaction":
            reply = self._reactions.get(turn)
            if reply is None:
                return NOT_A_REACTION
            return "" if self._agrees(reply, rule.direction, signs) else OTHER_DIRECTION
        reply = self._replies.get(turn)
        if reply is None:
            return NOT_RATED
        if rule.kind == "reward":
            return "" if self._standing.is_high(reply) else NOT_HIGH
        return "" if self._standing.is_low(reply) else NOT_LOW

    def _agrees(self, reply: Rated, direction: Direction, signs: Collection[int]) -> bool:
        """A neutral reaction follows replies in the middle, or both high and low ones."""
        high, low = self._standing.is_high(reply), self._standing.is_low(reply)
        if direction == 0:
            return high == low or {1, -1} <= set(signs)
        return high if direction == 1 else low

    def _signs(self, turns: Iterable[str]) -> set[int]:
        followed = [self._reactions[turn] for turn in turns if turn in self._reactions]
        high = {1 for reply in followed if self._standing.is_high(reply)}
        low = {-1 for reply in followed if self._standing.is_low(reply)}
        return high | low
