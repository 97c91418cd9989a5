"""Reading a judge's verdict (paper 3.3): scores that were given, or the reason why there are none.

Only the judge's completion is read, never the prompt. A score is a whole number 1..5 (4, 4.0 and
"4" are the same); "n/a" or null is one only for a sparse dimension. Whatever else stands there, a
missing dimension, or two verdicts that differ leave the verdict unscored. The overall is the mean
of the answered dimensions; an overall of the judge's own is kept beside it and never used.

The rules, with the alternatives that were rejected, are in `docs/adr/0004-verdicts.md`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from palate.judging import vocabulary as words
from palate.judging.scale import UnreadableError, as_number, as_score, as_text, score_in
from palate.lenient_json import BrokenJSONError, Pairs, Value, answers
from palate.types import MAX_SCORE, MIN_SCORE, Dimension


class Asked(NamedTuple):
    """A dimension that the judge was asked for, and the names by which it may answer."""

    id: str
    names: tuple[str, ...] = ()
    sparse: bool = False


def asked(dimensions: Iterable[Dimension]) -> tuple[Asked, ...]:
    """Dimensions of a shared rubric, answered by id, name or label in either language."""
    return tuple(Asked(d.id, (d.name or d.id, *d.label.values()), d.sparse) for d in dimensions)


class Verdict(NamedTuple):
    """What a judge said. `overall` is None exactly when `unscored` says why.

    `scores` holds what could be read: 1..5, or None for a declared n/a; a dimension without a
    readable score is absent. `ignored` lists scored dimensions that nobody asked for.
    """

    scores: dict[str, float | None]
    overall: float | None
    unscored: str | None
    judge_overall: float | None = None
    reason: str = ""
    flags: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def read_verdict(completion: str, dimensions: Sequence[Asked]) -> Verdict:
    """The verdict in a judge's completion on the dimensions it was asked for."""
    try:
        answer = _Answer(tuple(dimensions))
        for value in _values(completion):
            answer.add(value)
        return answer.verdict()
    except UnreadableError as problem:
        return Verdict({}, None, _storable(str(problem)))


def mean(scores: Iterable[float | None]) -> float | None:
    """The overall: mean of the answered dimensions, None where there is none."""
    answered = [score for score in scores if score is not None]
    return sum(answered) / len(answered) if answered else None


def _values(completion: str) -> list[Value]:
    """The JSON values that speak about the dimensions."""
    if not completion.strip().lstrip("\ufeff").strip():
        raise UnreadableError("empty reply")
    try:
        return answers(completion)
    except BrokenJSONError as error:
        raise UnreadableError(f"broken JSON: {error}") from error


@functools.lru_cache(maxsize=64)
def names(dimensions: tuple[Asked, ...]) -> dict[str, str]:
    """Every name by which a dimension may be answered, in plain form, with its id."""
    names: dict[str, str] = {}
    for dimension in dimensions:
        numbered = (dimension.id + label for label in dimension.names)  # "G1 Fluency"
        for name in (dimension.id, *dimension.names, *numbered):
            names[words.plain(name)] = dimension.id
    return names


class _Answer:
    """Gathers what the values say, and notices when they contradict each other."""

    def __init__(self, dimensions: tuple[Asked, ...]) -> None:
        self.dimensions = dimensions
        self.names = names(dimensions)
        self.given: dict[str, float | str | None] = {}
        self.reasons: dict[str, str] = {}
        self.overall: float | None = None
        self.flags: set[str] = set()
        self.ignored: dict[str, None] = {}

    def add(self, value: Value) -> None:
        """Take in one JSON value: an object, or a list of them."""
        if isinstance(value, list):
            for item in value:
                self.add(item)
        elif isinstance(value, Pairs) and not _is_template(value):
            self._add_object(value)

    def _add_object(self, pairs: Pairs) -> None:
        if (name := self._name_in(pairs)) is not None:
            self._add_entry(name, pairs)
            return
        before = len(self.given)
        for key, value in pairs:
            self._add_entry(key, value)
        # {"anything": {...}}: a wrapper under a name we do not know.
        if len(self.given) == before and len(pairs) == 1 and isinstance(pairs[0][1], Pairs):
            self._add_object(pairs[0][1])

    def _name_in(self, pairs: Pairs) -> str | None:
        """The dimension that {"dimension": "warmth", "score": 4, …} speaks about."""
        names = [v for k, v in pairs if words.plain(k) in words.NAME_KEYS and isinstance(v, str)]
        scored = [words.plain(k) for k, _ in pairs if words.plain(k) in words.SCORE_KEYS]
        # Where "score" itself names the dimension (personal track), another name is a remark.
        if len(names) != 1 or not scored or any(key in self.names for key in scored):
            return None
        return names[0]

    def _dimension(self, key: str) -> str | None:
        return next((self.names[name] for name in words.readings(key) if name in self.names), None)

    def _add_entry(self, key: str, value: Value) -> None:
        plain = words.plain(key)
        if (dimension := self._dimension(key)) is not None:
            self._add_score(dimension, value)
        elif plain in words.CONTAINERS and isinstance(value, Pairs | list):
            self.add(value)
        elif plain in words.REASON_KEYS:
            self._add_reason("", value)
        elif plain in words.OVERALL_KEYS:
            self.overall = as_number(score_in(value)) if self.overall is None else self.overall
        elif plain in words.FLAG_KEYS:
            self.flags.update(_flags(value))
        elif plain in words.FLAGS_BY_NAME:
            self.flags.update(_flags(Pairs([(key, value)])))
        elif as_number(score_in(value)) is not None:
            self.ignored[key.strip()] = None

    def _add_score(self, dimension: str, value: Value) -> None:
        score = as_score(score_in(value))
        if dimension in self.given and self.given[dimension] != score:
            raise UnreadableError(
                f"contradiction: {dimension} is both {as_text(self.given[dimension])} and"
                f" {as_text(score)}"
            )
        self.given[dimension] = score
        if isinstance(value, Pairs):
            for key, text in value:
                if words.plain(key) in words.REASON_KEYS:
                    self._add_reason(dimension, text)

    def _add_reason(self, dimension: str, value: Value) -> None:
        if isinstance(value, Pairs):
            for key, text in value:
                self._add_reason(self._dimension(key) or key, text)
        elif isinstance(value, list):
            for text in value:
                self._add_reason(dimension, text)
        elif isinstance(value, str) and value:
            self.reasons.setdefault(dimension, value)

    def verdict(self) -> Verdict:
        """What was gathered, scored only if every dimension is answered on its scale."""
        if not self.given:
            raise UnreadableError("no verdict: the reply scores none of the dimensions")
        faults = [fault for d in self.dimensions if (fault := self._fault(d)) is not None]
        scores = {
            d.id: score
            for d in self.dimensions
            if d.id in self.given
            and not isinstance(score := self.given[d.id], str)
            and (score is not None or d.sparse)
        }
        overall = None if faults else mean(scores.values())
        if overall is None and not faults:
            faults = ["no dimension applies"]
        return Verdict(
            scores=scores,
            overall=overall,
            unscored=_storable("; ".join(faults)) or None,
            judge_overall=self.overall,
            reason=_storable(self._reason()),
            flags=tuple(flag for flag in words.FLAGS if flag in self.flags),
            ignored=tuple(_storable(key) for key in self.ignored),
        )

    def _fault(self, dimension: Asked) -> str | None:
        if dimension.id not in self.given:
            return f"{dimension.id} is missing"
        score = self.given[dimension.id]
        if isinstance(score, str):
            return f"{dimension.id}: {score} is not a whole number {MIN_SCORE} to {MAX_SCORE}"
        if score is None and not dimension.sparse:
            return f"{dimension.id} was declared not applicable, which it cannot be"
        return None

    def _reason(self) -> str:
        """The reason given for the whole, else those of the dimensions, one a line."""
        if "" in self.reasons:
            return self.reasons[""]
        return "\n".join(f"{dimension}: {text}" for dimension, text in self.reasons.items())


def _storable(text: str) -> str:
    """Surrogate pairs joined, lone halves replaced: JSON can escape them, no file can hold them."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_template(pairs: Pairs) -> bool:
    """The prompt's own form, sent back unfilled ("<1-5>")."""
    return any(words.PLACEHOLDER.fullmatch(text) for text in _texts(pairs))


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Pairs):
        for _, item in value:
            yield from _texts(item)


def _flags(value: Value) -> Iterator[str]:
    """The known flags raised in a list of names, or in an object of truth values."""
    if isinstance(value, str) and words.plain(value) in words.FLAGS_BY_NAME:
        yield words.FLAGS_BY_NAME[words.plain(value)]
    elif isinstance(value, list):
        for item in value:
            yield from _flags(item)
    elif isinstance(value, Pairs):
        for key, raised in value:
            if raised is True and words.plain(key) in words.FLAGS_BY_NAME:
                yield words.FLAGS_BY_NAME[words.plain(key)]
