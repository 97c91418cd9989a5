"""A stand-in for a model that knows words only: it counts them in what it is shown.

It works from the prompt's text alone. Shown rated replies, it states the words that stand in the
higher-rated ones and not in the lower-rated ones; shown rules and texts, it says which text holds
more of a rule's words; shown a rubric and a reply, it scores by the words of the rubric. Nobody
tells it a taste. `asked` keeps what it was asked, to be searched for leaks.
"""

from __future__ import annotations

import json
import re
from collections import Counter

from palate.models.client import Completion, Request
from palate.types import Usage

WORDS = "Uses words such as: "  # how its rules begin; the words follow
_QUOTED = re.compile(r"⟦quoted⟧\n(.*?)\n⟦/quoted⟧", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{3,}")
_REPLY = re.compile(r"Reply \[(?P<name>[^\]]+)\], rated (?P<rating>\d) of 5\.")
_REACTION = re.compile(r"After it, the user wrote \[(?P<name>[^\]]+)\]:")
_RULE = re.compile(r"(?:Rule|规则) (\d+)[:：]\n⟦quoted⟧\n(.*?)\n⟦/quoted⟧", re.DOTALL)


class Lexical:
    """Answers by the words of the prompt; a pure function of it."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, name: str = "openai:lexical") -> None:
        self.name = name
        self.asked: list[str] = []

    async def complete(self, request: Request) -> Completion:
        system, user = request.messages[0].text, request.messages[-1].text
        self.asked.append("\n".join(message.text for message in request.messages))
        return Completion(answer(system, user), "ok", model="lexical-1", usage=Usage(10, 5))

    async def close(self) -> None:
        pass


def answer(system: str, user: str) -> str:
    """What a model of words says to this prompt."""
    if '"same"' in system:
        return _merge(user)
    if '"action"' in system:
        return json.dumps({"action": "withdraw", "rule": ""})
    if '"anchors"' in system:
        return _sum_up(user)
    if '"rewards"' in system:
        return _propose(user)
    if '"1": "<A' in system:
        return _choose(system, user)
    if '"satisfaction"' in system:
        return _score(system, user)
    # Any other verdict in our form: the middle of every scale that it asks for.
    asked = re.findall(r'"(\w+)": "<1', system)
    return json.dumps({"reason": "no words to go by", "scores": dict.fromkeys(asked, 3)})


def words(text: str) -> set[str]:
    """The words of a text, each once."""
    return set(_WORD.findall(text.casefold()))


def _propose(user: str) -> str:
    replies, reactions = _sides(user)
    liked, disliked = _telling(replies)
    pleased, displeased = _telling(reactions)
    reaction = {"meaning": "Says how pleased this person is"}
    return json.dumps(
        {
            "rewards": [_rule("rule", word, replies["high"]) for word in liked],
            "penalties": [_rule("rule", word, replies["low"]) for word in disliked],
            "reactions": [
                *({**_rule("pattern", w, reactions["high"]), **reaction, "direction": 1}
                  for w in pleased[:2]),
                *({**_rule("pattern", w, reactions["low"]), **reaction, "direction": -1}
                  for w in displeased[:2]),
            ],
        }
    )  # fmt: skip


Texts = dict[str, dict[str, str]]  # side -> turn -> text


def _sides(user: str) -> tuple[Texts, Texts]:
    """Replies and reactions of the higher- and of the lower-rated side of every contrast."""
    replies: Texts = {"high": {}, "low": {}}
    reactions: Texts = {"high": {}, "low": {}}
    for contrast in re.split(r"\n*Contrast \d+", user)[1:]:
        found = list(_REPLY.finditer(contrast))
        ends = [match.start() for match in found[1:]] + [len(contrast)]
        for side, match, end in zip(("high", "low"), found, ends, strict=True):
            part = contrast[match.start() : end]
            text = re.search(r"The reply:\n⟦quoted⟧\n(.*?)\n⟦/quoted⟧", part, re.DOTALL)
            replies[side][match["name"]] = text[1]
            after = _REACTION.search(part)
            if after:
                reactions[side][after["name"]] = _QUOTED.search(part, after.end())[1]
    return replies, reactions


def _telling(texts: Texts) -> tuple[list[str], list[str]]:
    """Words that stand in one side much more often than in the other, the most telling first."""
    counts = {
        side: Counter(word for text in texts[side].values() for word in words(text))
        for side in ("high", "low")
    }
    everything = sorted(set(counts["high"]) | set(counts["low"]))
    lean = {word: counts["high"][word] - counts["low"][word] for word in everything}
    order = sorted(everything, key=lambda word: (-abs(lean[word]), word))
    return [w for w in order if lean[w] > 1][:5], [w for w in order if lean[w] < -1][:5]


def _rule(key: str, word: str, texts: dict[str, str]) -> dict[str, object]:
    evidence = [name for name, text in texts.items() if word in words(text)]
    return {key: f"{WORDS}{word}", "evidence": evidence[:6]}


def _merge(user: str) -> str:
    same: dict[frozenset[str], list[int]] = {}
    for number, text in _RULE.findall(user):
        same.setdefault(frozenset(_words_of(text)), []).append(int(number))
    return json.dumps({"same": [group for group in same.values() if len(group) > 1]})


def _choose(system: str, user: str) -> str:
    a, b = (
        words(_QUOTED.search(user, re.search(rf"(?:Reply|Message) {side}:\n", user).end())[1])
        for side in "AB"
    )
    chosen = {}
    for number, text in _RULE.findall(system):
        in_a, in_b = len(_words_of(text) & a), len(_words_of(text) & b)
        equal = "both" if in_a else "neither"
        chosen[number] = equal if in_a == in_b else "A" if in_a > in_b else "B"
    return json.dumps(chosen)


def _sum_up(user: str) -> str:
    found = sorted(word for line in user.splitlines() if WORDS in line for word in _words_of(line))
    degrees = ("none", "few", "some", "many", "all")
    anchors = {str(n): f"has {word} of the words" for n, word in enumerate(degrees, 1)}
    return json.dumps({"summary": f"Minds these words: {' '.join(found)}", "anchors": anchors})


def _score(system: str, user: str) -> str:
    """3, one up for each word that pleases and one down for each that displeases."""
    rubric = _QUOTED.search(system)[1]
    liked, disliked, side = set(), set(), None
    for line in rubric.splitlines():
        if line.startswith("What "):
            side = {"pleases": liked, "displeases": disliked}.get(line.split()[1], set())
        elif line.startswith("- ") and side is not None:
            side |= _words_of(line)
    reply = user[: user.find("The reaction to it")] if "The reaction to it" in user else user
    said = words(_QUOTED.findall(reply)[-1])
    score = min(5, max(1, 3 + len(liked & said) - len(disliked & said)))
    return json.dumps({"reason": "words", "scores": {"satisfaction": score}, "flags": []})


def _words_of(rule: str) -> set[str]:
    """The words that a rule of ours names; of another's, all its words."""
    _, found, rest = rule.partition(WORDS)
    return words(re.sub(r"\((?:major|minor)\)", "", rest if found else rule))
