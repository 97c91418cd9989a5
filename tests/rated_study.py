"""A study whose users rated replies by a hidden taste for words, and a judge that reads words.

The judge works from the text of its prompt alone: from a rubric it takes the words named by rewards
and penalties, from examples those that stand in high and in low replies. It never sees the tastes.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from pathlib import Path

from palate.models.client import Completion, Request
from palate.rubrics.freeze import as_json, freeze
from palate.types import Usage
from worlds import write_study

WORDS = {
    "kind": ("gentle", "warm", "dear", "softly"),
    "danger": ("knife", "blood", "shadow", "scream"),
    "jokes": ("pun", "banana", "giggle", "clown"),
}
TASTES = {"u1": ("kind", "danger"), "u2": ("danger", "jokes"), "u3": ("jokes", "kind")}
FILLER = ("the door", "a lamp", "the rain", "an old coat")


def write_rated_study(folder: Path, *, users=("u1", "u2", "u3"), sessions=15, judge=None) -> Path:
    """The users' histories, and rubrics by hand that name the words of their tastes."""
    write_study(folder, users=users, cards=("k9",), model="scripted:none.json", judge=judge)
    (folder / "none.json").write_text("[]", "utf-8")
    toml = (folder / "study.toml").read_text("utf-8")
    for user in users:
        lines = "".join(json.dumps(one) + "\n" for one in history(user, sessions))
        (folder / f"{user}.jsonl").write_text(lines, "utf-8")
        toml = toml.replace(f'id = "{user}"', f'id = "{user}"\nhistory = "{user}.jsonl"')
        (folder / "rubrics" / f"{user}.json").write_text(rubric(user), "utf-8")
    (folder / "study.toml").write_text(toml, "utf-8")
    return folder


def history(user: str, sessions: int):
    """Sessions on a card that is not here: opening, then four rated replies, each answered."""
    likes, dislikes = TASTES[user]
    draw = random.Random(f"world {user}")
    for number in range(sessions):
        turns = [{"speaker": "character", "text": "The gate is shut."}]
        for turn in range(4):
            turns.append({"speaker": "user", "text": f"And then, {turn}?"})
            rating, text = reply(draw, likes, dislikes)
            turns.append({"speaker": "character", "text": text, "satisfaction": rating})
        yield {
            "session_id": f"{user}-s{number}",
            "user_id": user,
            "card_id": "k1",
            "language": "en",
            "ended_by": "quit" if number % 3 == 0 else "limit",
            "turns": [*turns, {"speaker": "user", "text": "Hm."}],
        }


def reply(draw: random.Random, likes: str, dislikes: str):
    """A reply of some words of two pools, and its rating: more of the liked, a higher one."""
    pools = draw.sample(sorted(WORDS), 2)
    words = [draw.choice(WORDS[pool]) for pool in pools for _ in range(draw.randint(0, 3))]
    liked = sum(word in WORDS[likes] for word in words)
    disliked = sum(word in WORDS[dislikes] for word in words)
    rating = min(5, max(1, 3 + liked - disliked))
    return rating, " ".join([draw.choice(FILLER), *words])


def rubric(user: str) -> str:
    likes, dislikes = TASTES[user]
    draft = {
        "schema": "palate.rubric/1",
        "track": "personal",
        "user_id": user,
        "language": "en",
        "summary": "Goes by words.",
        "rewards": [{"id": "r1", "rule": " ".join(WORDS[likes]), "weight": "major"}],
        "penalties": [{"id": "p1", "rule": " ".join(WORDS[dislikes]), "weight": "major"}],
        "reactions": [],
        "anchors": {"1": "out", "2": "low", "3": "fine", "4": "good", "5": "more"},
        "provenance": {"author": "hand"},
    }
    return as_json(freeze(draft))


class LexicalJudge:
    """Counts words for and against in the last reply, going by what the prompt says of them."""

    reads_digits = False
    enforces_schema = False

    def __init__(self, name="test:lexical", broken=lambda request: None):
        self.name = name
        self.requests: list[Request] = []
        self.broken = broken

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        text = self.broken(request)
        if isinstance(text, Exception):
            raise text
        if isinstance(text, Completion):
            return text
        return Completion(text or self.verdict(request), "ok", model="r1", usage=Usage(50, 5, 0))

    async def close(self):
        pass

    def verdict(self, request: Request) -> str:
        system, user = request.messages[0].text, request.messages[1].text
        if '"satisfaction"' not in system:
            names = re.findall(r'"([GB]\d+)": "<', system)
            return json.dumps({"scores": dict.fromkeys(names, 3)})
        worth = weights(system)
        words = re.findall(r"Character:\n⟦quoted⟧\n(.*?)\n⟦/quoted⟧", user, re.DOTALL)[-1].split()
        score = round(3 + sum(worth.get(word, 0) for word in words))
        return json.dumps({"scores": {"satisfaction": min(5, max(1, score))}, "confidence": 4})


def weights(system: str) -> dict[str, float]:
    """What a word adds to a score, as far as the prompt tells: rules say it, examples show it."""
    shown = defaultdict(list)
    for text, rating in re.findall(
        r"Character:\n⟦quoted⟧\n(.*?)\n⟦/quoted⟧.*?satisfaction with the character's message: (\d)",
        system,
        re.DOTALL,
    ):
        for word in set(text.split()):
            shown[word].append(int(rating) - 3)
    found = {word: sum(ratings) / len(ratings) for word, ratings in shown.items()}
    ruled = re.search(
        r"pleases this person:\n- (.*?) \(.*?displeases this person:\n- (.*?) \(", system, re.DOTALL
    )
    if ruled:
        found |= dict.fromkeys(ruled[1].split(), 1.0) | dict.fromkeys(ruled[2].split(), -1.0)
    return found
