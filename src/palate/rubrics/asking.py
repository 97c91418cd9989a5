"""The calls of one induction: asked a bounded number of times, journalled, counted.

An answer that cannot be read is asked for again with a note; what stays unreadable is no answer,
and never something made up in its place.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from palate.language import Language
from palate.lenient_json import BrokenJSONError, Value, answers
from palate.models.client import ChatMessage, Completion, Model, Purpose, Request, Sampling
from palate.prompts import Sheet, fenced, sheet
from palate.rubrics.rules import Journal, Said
from palate.types import Usage, digest

ATTEMPTS = 3  # at one answer
MARK = "quoted"
AROUND_TOKENS = 64  # what a chat template and the note below add
AGAIN: dict[Language, str] = {
    "en": "Answer with the JSON object alone: short, complete, no other text.",
    "zh": "只输出该 JSON 对象：简短、完整，不要任何其他文字。",
}
PROMPTS = (
    "rubric_propose",
    "rubric_merge",
    "rubric_test_replies",
    "rubric_test_reactions",
    "rubric_revise",
    "rubric_summary",
)
_FAULTS = {
    "refused": "refused by the provider",
    "length": "cut off",
    "empty": "empty",
    "empty_after_reasoning": "empty after reasoning",
}
_NO_LETTER = re.compile(r"[\W_]+")
_TEMPLATE = re.compile(r"\s*<[^<>]*>\s*")

T = TypeVar("T")
Schema = dict[str, Any]


class UnreadableError(ValueError):
    """An answer does not hold what was asked for; the text says why."""


class Unread(NamedTuple):
    """No readable answer after all attempts, and why."""

    reason: str


class Query(NamedTuple):
    """One prompt: `stage` is a word for a person who watches."""

    stage: str
    system: str
    user: str
    schema: Schema


def prompt_files(tongue: Language) -> dict[str, str]:
    """Every prompt file of an induction in this language, with its SHA-256."""
    return {f"{name}.{tongue}.md": sheet(name, tongue).sha256 for name in PROMPTS}


def halves(name: str, tongue: Language) -> Sheet:
    """A prompt file of induction: what instructs, and what is shown."""
    return sheet(name, tongue)


def quoted(text: str) -> str:
    """Text that is not ours, as data."""
    return fenced(MARK, text)


@dataclass(slots=True)
class Asker:
    """Asks the model for one user; `observe` is called with the stage after every answer."""

    user_id: str
    tongue: Language
    model: Model
    sampling: Sampling
    journal: Journal | None = None
    observe: Callable[[str], None] = lambda stage: None
    calls: int = 0
    usage: Usage = Usage()
    revision: str = ""
    unread: Counter[str] = field(default_factory=Counter)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def ask(self, query: Query, read: Callable[[str], T]) -> T | Unread:
        """What `read` makes of the answer; it raises `UnreadableError` where it makes nothing.

        Raises:
            ModelError: a call did not come back.
        """
        number, reason = next(self._numbers), ""
        for attempt in range(ATTEMPTS):
            said = await self._said(query, number, attempt)
            reason = _FAULTS.get(said.status, "")
            try:
                if not reason:
                    return read(said.text)
            except UnreadableError as error:
                reason = str(error)
            if said.status == "refused":  # a block would only repeat itself
                break
        self.unread[f"{query.stage}: {reason.partition(':')[0]}"] += 1
        return Unread(reason)

    async def _said(self, query: Query, number: int, attempt: int) -> Said:
        note = f"\n\n{AGAIN[self.tongue]}" if attempt else ""
        request = Request(
            messages=(ChatMessage("system", query.system), ChatMessage("user", query.user + note)),
            sampling=self.sampling,
            purpose=Purpose("judge", f"rubric/{self.user_id}", number, attempt=attempt),
            json_schema=query.schema,
            cache_prefix=1,
        )
        key = _key(self.model.name, request, attempt)
        kept = self.journal.get(key) if self.journal is not None else None
        said = kept or _as_said(key, await self.model.complete(request))
        if kept is None and self.journal is not None:
            self.journal.append(said)
        self.calls += 1
        self.usage += said.usage
        self.revision = said.revision or self.revision
        self.observe(query.stage)
        return said


async def all_of(calls: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """All answers, in order; an error waits until every call has come back, so none is left."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    found: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        found.append(outcome)
    return found


def values(text: str) -> list[Value]:
    """The JSON values of an answer, however they are wrapped.

    Raises:
        UnreadableError: none, or one that breaks off.
    """
    if not text.strip():
        raise UnreadableError("empty")
    try:
        found = answers(text)
    except BrokenJSONError as error:
        raise UnreadableError(f"broken JSON: {error}") from None
    if not found:
        raise UnreadableError("no JSON")
    return found


def plain(word: object) -> str:
    """A key or a choice reduced to what identifies it: width, case, spaces, marks do not."""
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", str(word))).casefold()


def one_line(text: str) -> str:
    """Text of a model on one line, without what no terminal or file takes."""
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "".join(c for c in " ".join(whole.split()) if c.isprintable())


def is_template(text: str) -> bool:
    """Our own form, sent back unfilled ("<rule>")."""
    return _TEMPLATE.fullmatch(text) is not None


def closed(properties: dict[str, Any]) -> Schema:
    """The JSON schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def a_list(items: Schema, most: int) -> Schema:
    """The JSON schema of a list."""
    return {"type": "array", "items": items, "maxItems": most}


def _as_said(key: str, completion: Completion) -> Said:
    return Said(
        key=key,
        text=completion.text.encode("utf-8", "replace").decode(),
        status=completion.status,
        revision=completion.model,
        usage=completion.usage,
    )


def _key(model: str, request: Request, attempt: int) -> str:
    """What an answer depends on: the model, its decoding, and every word that it is shown."""
    sampling = request.sampling
    return digest(
        [
            [model, attempt],
            [sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed],
            [list(sampling.stop), sampling.body],
            [[message.role, message.text] for message in request.messages],
        ]
    )
