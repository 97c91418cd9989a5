"""Digits with their probabilities: asked for, and read back from token log-probabilities.

A judge that answers one digit a dimension is cheap, and the probabilities make its score an
expectation. Two ways to ask: "logprobs" (hosted endpoints: the prompt alone asks for digits) and
"grammar" (llama.cpp: nothing but the choices can be sampled). Under a grammar the probabilities
that the server returns are still those without it, so both are renormalised over the choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

TOP_LOGPROBS = 20  # the most that hosted endpoints take
# Where a grammar overrules the model, the choices may be far down its list: with 20 the embedded
# model's list lacked up to two of five digits, with 100 none. llama.cpp takes as long for either.
GRAMMAR_TOP_LOGPROBS = 200
_BETWEEN = " \t\r\n,;.|/"


def digit_fields(mode: str, digits: int, choices: str) -> dict[str, object]:
    """Fields of a chat completion that asks for `digits` characters out of `choices`."""
    if mode == "grammar":
        return {
            "logprobs": True,
            "top_logprobs": GRAMMAR_TOP_LOGPROBS,
            "grammar": _grammar(digits, choices),
            "max_tokens": digits,
        }
    # Room for a separator after each.
    return {"logprobs": True, "top_logprobs": TOP_LOGPROBS, "max_tokens": 2 * digits + 2}


def read_first_token(logprobs: object) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens with their log-probabilities; empty where there are none.

    `logprobs` is the `logprobs` of a choice.
    """
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = tokens[0] if isinstance(tokens, list) and tokens else None
    top = first.get("top_logprobs") if isinstance(first, dict) else None
    found: dict[str, float] = {}
    for item in top if isinstance(top, list) else ():
        token = item.get("token") if isinstance(item, dict) else None
        logprob = item.get("logprob") if isinstance(item, dict) else None
        if isinstance(token, str) and isinstance(logprob, int | float) and logprob <= 0:
            found.setdefault(token, float(logprob))  # tokens of broken letters look alike
    return tuple(found.items())


def _grammar(digits: int, choices: str) -> str:
    escaped = (choice.replace("\\", "\\\\").replace('"', '\\"') for choice in choices)
    options = " | ".join(f'"{choice}"' for choice in escaped)
    return f"root ::= {' '.join(['digit'] * digits)}\ndigit ::= {options}"


def read_digits(logprobs: object, digits: int, choices: str) -> tuple[dict[str, float], ...]:
    """One {choice: probability} a digit, summing to 1; empty unless exactly `digits` were found.

    `logprobs` is the `logprobs` of a choice. White space and separators between digits are passed
    over. A token of several digits gives one distribution each, the later ones given the earlier.
    """
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list):
        return ()
    found: list[dict[str, float]] = []
    for token in tokens:
        written = _written(token)
        if not written:
            continue
        if not set(written) <= set(choices):
            return ()
        found += (_distribution(token, written[:i], choices) for i in range(len(written)))
    if len(found) != digits or not all(found):
        return ()
    return tuple(found)


def _written(token: object) -> str:
    value = token.get("token") if isinstance(token, dict) else None
    # Some tokenizers show a leading space as "▁" or "Ġ".
    return value.strip(_BETWEEN + "▁ĠĊ") if isinstance(value, str) else ""


def _distribution(token: Mapping[str, object], before: str, choices: str) -> dict[str, float]:
    """Probabilities of the character after `before`, over the alternatives to `token`."""
    weights: dict[str, float] = {}
    for alternative, probability in _alternatives(token):
        rest = alternative[len(before) :]
        if alternative.startswith(before) and rest and rest[0] in choices:
            weights[rest[0]] = weights.get(rest[0], 0.0) + probability
    total = math.fsum(weights.values())
    return {choice: weight / total for choice, weight in weights.items()} if total > 0 else {}


def _alternatives(token: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """The tokens considered at this place, the written one among them, each once."""
    top = token.get("top_logprobs")
    listed = [item for item in top if isinstance(item, dict)] if isinstance(top, list) else []
    if all(item.get("token") != token.get("token") for item in listed):
        listed.append(dict(token))
    for item in listed:
        logprob = item.get("logprob")
        if isinstance(logprob, int | float) and not math.isnan(logprob) and _written(item):
            yield _written(item), math.exp(min(float(logprob), 0.0))
