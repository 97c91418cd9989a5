"""The summary and the five anchors of a rubric, written by the model from the rules that held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palate import language
from palate.errors import ModelError
from palate.language import Language
from palate.lenient_json import Pairs, Value
from palate.prompts.rubric_text import rules_as_text
from palate.rubrics.asking import (
    Asker,
    Query,
    Schema,
    Unread,
    UnreadableError,
    closed,
    halves,
    is_template,
    one_line,
    plain,
    quoted,
    values,
)
from palate.types import Evidence, Reaction

SCORES = ("1", "2", "3", "4", "5")
MAX_CHARACTERS = 600  # of the summary, and of each anchor

_SUMMARY = {"summary", "overview", "概述", "总结", "摘要"}
_ANCHORS = {"anchors", "scale", "anchor", "scores", "尺度", "评分尺度"}


class Wording(NamedTuple):
    """What a rubric says besides its rules."""

    summary: str
    anchors: dict[str, str]


async def worded(
    rewards: Sequence[Evidence],
    penalties: Sequence[Evidence],
    reactions: Sequence[Reaction],
    asker: Asker,
) -> Wording:
    """Summary and anchors in the user's language.

    Raises:
        ModelError: the model refused, or gave no readable answer in all attempts.
    """
    query = wording_query(rewards, penalties, reactions, asker.tongue)
    answer = await asker.ask(query, lambda text: read_wording(text, asker.tongue))
    if isinstance(answer, Unread):
        raise ModelError(
            f"{asker.model.name} wrote no summary and scale for the rubric of {asker.user_id} "
            f"({answer.reason}); try another model with --model"
        )
    return answer


def wording_query(
    rewards: Sequence[Evidence],
    penalties: Sequence[Evidence],
    reactions: Sequence[Reaction],
    tongue: Language,
) -> Query:
    """The rules as a judge reads them."""
    sheet = halves("rubric_summary", tongue)
    rules = rules_as_text(rewards, penalties, reactions, tongue)
    return Query("summing up", sheet.system.fill(), sheet.user.fill(rules=quoted(rules)), _schema())


def read_wording(text: str, tongue: Language) -> Wording:
    """The summary and exactly five anchors.

    Raises:
        UnreadableError: one of them is missing, blank, contradicted, our own form, too long, or in
            another language.
    """
    found = [wording for value in values(text) for wording in _wordings(value)]
    if not found:
        raise UnreadableError("no summary")
    if any(other != found[0] for other in found):
        raise UnreadableError("contradiction")
    texts = (found[0].summary, *found[0].anchors.values())
    if any(is_template(one) or not any(c.isalnum() for c in one) for one in texts):
        raise UnreadableError("an empty text")
    if any(len(one) > MAX_CHARACTERS for one in texts):
        raise UnreadableError("too long a text")
    if language.of_text(" ".join(texts)) != tongue:
        raise UnreadableError("another language")
    return found[0]


def _wordings(value: Value, depth: int = 3) -> Iterator[Wording]:
    if isinstance(value, list):
        for item in value:
            yield from _wordings(item, depth - 1)
    if depth == 0 or not isinstance(value, Pairs):
        return
    summaries = [v for k, v in value if plain(k) in _SUMMARY and isinstance(v, str)]
    anchors = [v for k, v in value if plain(k) in _ANCHORS and isinstance(v, Pairs)]
    if not summaries and not anchors:
        for _, item in value:
            yield from _wordings(item, depth - 1)
        return
    if len(set(summaries)) != 1 or len(anchors) != 1:
        raise UnreadableError("not one summary and one scale")
    yield Wording(one_line(summaries[0]), _anchors(anchors[0]))


def _anchors(found: Pairs) -> dict[str, str]:
    said: dict[str, str] = {}
    for key, item in found:
        score = plain(key).removesuffix("分")
        text = one_line(item) if isinstance(item, str) else ""
        if score not in SCORES or said.setdefault(score, text) != text:
            raise UnreadableError("anchors that are not 1 to 5, each once")
    if set(said) != set(SCORES):
        raise UnreadableError("an anchor is missing")
    return {score: said[score] for score in SCORES}


def _schema() -> Schema:
    text: Schema = {"type": "string"}
    return closed({"summary": text, "anchors": closed(dict.fromkeys(SCORES, text))})
