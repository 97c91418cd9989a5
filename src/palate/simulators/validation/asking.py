"""Asking a judge about one message (paper 3.1): what it is shown, and what its words are worth.

Two forms, never mixed. "json" reads a choice or a score out of a verdict in words; "digits" reads
it as an expectation over the probabilities of one token, for models that read slowly and write
badly. An answer that cannot be read is asked for once more and is then unscored, with its reason:
it is never a number.

All that is not ours stands between fixed marks, escaped (`palate.prompts.fenced`), so that a
message cannot pose as the other one, as an instruction or as an answer.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from palate.errors import InputError
from palate.language import Language
from palate.lenient_json import BrokenJSONError, Pairs, Value, answers
from palate.models.client import ChatMessage, Completion, Model, Purpose, Request, Sampling
from palate.prompts import Prompt, placeholders, sheet
from palate.simulators.validation.showing import Form, scene_text
from palate.types import Record, Scene, Usage, digest

Task = Literal["human", "identity"]

MAX_REPARSE = 1  # so often is a question asked again whose answer cannot be read
AGAIN: dict[Language, str] = {
    "en": "Answer with the JSON object alone, no other text.",
    "zh": "只输出该 JSON 对象，不要任何其他文字。",
}

_IGNORED = re.compile(r"[\W_]+")
_PLACEHOLDER = re.compile(r"\s*<[^<>]*>\s*\Z")
_FAULTS = {
    "refused": "refused by the judge's provider",
    "length": "truncated",
    "empty": "empty reply",
    "empty_after_reasoning": "empty reply after reasoning",
}


class UnreadableAnswerError(ValueError):
    """An answer holds no readable choice or score; the text is the reason."""


@dataclass(frozen=True)
class Judge:
    """A model in the judge's seat.

    Raises:
        InputError: the digits form with a model that returns no probabilities.
    """

    model: Model
    form: Form = "json"
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0, max_tokens=400))

    def __post_init__(self) -> None:
        if self.form == "digits" and not self.model.reads_digits:
            raise InputError(
                f'judge {self.model.name} returns no token probabilities, which form = "digits" '
                'needs; set form = "json" under [judge]'
            )


class Question(NamedTuple):
    """One prompt; `prompt` is the SHA-256 of its file."""

    system: str
    user: str
    prompt: str
    language: Language


class Reading(NamedTuple):
    """How an answer becomes a number: from words, or from the probabilities of these digits.

    `from_words` raises `UnreadableAnswerError`; `schema` is of the answer in words, for endpoints
    that enforce one.
    """

    from_words: Callable[[str], float]
    digits: Mapping[str, float]
    schema: dict[str, Any]


class Heard(Record):
    """A judge's answer as it is journalled: a number, or the reason why there is none.

    `value` is the simulator's share of "human" in 0..1, or a score in 0..100, by the question.
    """

    key: str
    value: float | None
    unscored: str | None = None
    raw: str = ""
    attempts: int = 1
    usage: Usage = Usage()
    revision: str = ""


def question(task: Task, form: Form, scene: Scene, **shown: str) -> Question:
    """The prompt of `task` filled: the scene, and what else its file has a place for."""
    language = scene.language
    halves = sheet(file_of(task, form), language)
    values = {"scene": scene_text(scene, form), **shown}
    return Question(
        system=_filled(halves.system, values),
        user=_filled(halves.user, values),
        prompt=halves.sha256,
        language=language,
    )


def file_of(task: Task, form: Form) -> str:
    """The name of the prompt file of a task, without its language."""
    return f"judge_{task}" if form == "json" else f"judge_{task}_digits"


def prompt_files(task: Task, form: Form) -> dict[str, str]:
    """Prompt file -> SHA-256, in both languages."""
    name = file_of(task, form)
    return {f"{name}.{language}.md": sheet(name, language).sha256 for language in ("en", "zh")}


def _filled(half: Prompt, values: Mapping[str, str]) -> str:
    places = placeholders(half)
    return half.fill(**{name: text for name, text in values.items() if name in places})


def answer_schema(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an answer with a reason and `name`."""
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, name: value},
        "required": ["reason", name],
        "additionalProperties": False,
    }


def key_of(judge: Judge, asked: Question, about: str) -> str:
    """What an answer depends on: the judge, how it answers, and every word it was shown.

    `about` says which question this is, for a reader of the journal.
    """
    shown = digest(
        [
            judge.model.name,
            judge.form,
            judge.sampling.temperature,
            judge.sampling.top_p,
            judge.sampling.max_tokens,
            judge.sampling.seed,
            list(judge.sampling.stop),
            judge.sampling.body,
            asked.system,
            asked.user,
        ]
    )
    return f"{about}|{shown[:24]}"


async def ask(asked: Question, judge: Judge, reading: Reading, purpose: Purpose, key: str) -> Heard:
    """The judge's answer as a number, or why there is none.

    Raises:
        ModelError: a call did not come back.
    """
    heard = Heard(key=key, value=None, unscored="not asked", attempts=0)
    digits = judge.form == "digits"
    for again in range(1 if digits else MAX_REPARSE + 1):
        note = f"\n\n{AGAIN[asked.language]}" if again else ""
        completion = await judge.model.complete(
            Request(
                messages=(
                    ChatMessage("system", asked.system),
                    ChatMessage("user", asked.user + note),
                ),
                sampling=judge.sampling,
                purpose=purpose._replace(attempt=purpose.attempt + again),
                digits=1 if digits else 0,
                digit_choices="".join(reading.digits) if digits else "12345",
                json_schema=None if digits else reading.schema,
                cache_prefix=1,
            )
        )
        heard = _read(completion, reading, heard, digits=digits)
        # A block or a cut would only repeat itself.
        if heard.unscored is None or completion.status in ("refused", "length"):
            break
    return heard


def _read(completion: Completion, reading: Reading, before: Heard, *, digits: bool) -> Heard:
    """The answer in `completion`, with what earlier calls for it took."""
    value, unscored = None, _FAULTS.get(completion.status)
    if digits and unscored != _FAULTS["refused"]:
        value = expectation(completion.digit_probabilities, reading.digits)
        unscored = "no probabilities" if value is None else None
    elif unscored is None:
        try:
            value = reading.from_words(completion.text)
        except UnreadableAnswerError as error:
            unscored = str(error).encode("utf-8", "backslashreplace").decode()
    raws = [text for text in (before.raw, _shown(completion, reading, digits=digits)) if text]
    return Heard(
        key=before.key,
        value=value,
        unscored=unscored,
        raw="\n\n=== asked again ===\n\n".join(raws),
        attempts=before.attempts + 1,
        usage=before.usage + completion.usage,
        revision=completion.model or before.revision,
    )


def _shown(completion: Completion, reading: Reading, *, digits: bool) -> str:
    if not digits:
        return completion.text
    found = completion.digit_probabilities[:1]
    weights = (f"{digit} {p.get(digit, 0.0):.4f}" for p in found for digit in reading.digits)
    return "\n".join([completion.text, *weights])


def expectation(
    probabilities: Sequence[Mapping[str, float]], values: Mapping[str, float]
) -> float | None:
    """Σ p·value over the one digit that was asked for; None where it has no weight."""
    if len(probabilities) != 1:
        return None
    weights = {digit: probabilities[0].get(digit, 0.0) for digit in values}
    total = math.fsum(weights.values())
    if not (math.isfinite(total) and total > 0):
        return None
    return math.fsum(values[digit] * weight for digit, weight in weights.items()) / total


def plain(word: object) -> str:
    """A key or a choice reduced to what identifies it: width, case, spaces, marks do not."""
    return _IGNORED.sub("", unicodedata.normalize("NFKC", str(word))).casefold()


def answered(completion: str, keys: frozenset[str]) -> list[Value]:
    """What stands under one of `keys` in the objects of an answer, wherever they are wrapped.

    Our own form, sent back unfilled ("<0-100>"), is no answer.

    Raises:
        UnreadableAnswerError: an empty or broken answer, or nothing under these keys.
    """
    if not completion.strip():
        raise UnreadableAnswerError("empty reply")
    try:
        values = answers(completion)
    except BrokenJSONError as error:
        raise UnreadableAnswerError(f"broken JSON: {error}") from None
    found = [
        value
        for each in values
        for value in _under(each, keys)
        if not _PLACEHOLDER.match(str(value))
    ]
    if not found:
        raise UnreadableAnswerError("no answer in the form that was asked for")
    return found


def _under(value: Value, keys: frozenset[str], depth: int = 3) -> list[Value]:
    """The values of `keys` in an object, a list of objects, or an object wrapped in another."""
    if depth == 0:
        return []
    if isinstance(value, list):
        return [found for item in value for found in _under(item, keys, depth - 1)]
    if not isinstance(value, Pairs):
        return []
    own = [item for key, item in value if plain(key) in keys]
    if own:
        return own
    return [found for _, item in value for found in _under(item, keys, depth - 1)]
