"""What a validation leaves out and what it reads, in sentences below the forecast of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import util

from rich.console import Console

from palate.report.plain import say
from palate.types import SimulatorKind
from palate.validation_likelihood import NO_EXTRA, to_read, why_none
from palate.validation_setup import Options, Person

_EXTRA = ("torch", "transformers", "peft")


def print_plan(
    everyone: Sequence[Person], options: Options, console: Console, *, seed: int
) -> None:
    """Print a sentence for each reason why a condition is not asked, and one about likelihoods."""
    for sentence in not_asked(everyone):
        say(sentence, console)
    say(reading(everyone, options, seed=seed), console)


def not_asked(everyone: Sequence[Person]) -> Iterator[str]:
    """One sentence a reason, with the conditions and users that it keeps out."""
    kept_out: dict[str, dict[SimulatorKind, list[str]]] = {}
    for person in everyone:
        for condition in person.conditions:
            if condition.asked is None:
                users = kept_out.setdefault(condition.shared or condition.reason, {})
                users.setdefault(condition.kind, []).append(person.user_id)
    for reason, kinds in kept_out.items():
        whom = ", ".join(f"{kind} ({', '.join(users)})" for kind, users in kinds.items())
        yield f"Not asked: {whom}: {reason.rstrip('.')}."


def reading(everyone: Sequence[Person], options: Options, *, seed: int) -> str:
    """What is read for likelihoods, counted by an estimate from characters; or why nothing is."""
    reason = why_none(everyone, options) or _no_extra()
    if reason:
        return f"No likelihoods: {reason.rstrip('.')}."
    found = to_read(everyone, options, seed=seed)
    sessions = sum(len(one.sessions) for one in found)
    tokens = sum(one.tokens for one in found)
    total = sum(one.tokens * one.times for one in found)
    under = [
        _between(numbers, what)
        for what, numbers in (
            ("text", [one.texts for one in found if one.texts]),
            ("adapter", [one.adapters for one in found if one.adapters]),
        )
        if numbers
    ]
    return (
        f"Likelihoods: {_number(sessions, 'held-out session')} of about {tokens:,} tokens "
        f"(--likelihood-tokens {options.likelihood_tokens} a person), read under "
        f"{' and '.join(under)} each: about {total:,} tokens, besides what each text says first."
    )


def _no_extra() -> str:
    """Looked up, not imported: loading torch takes seconds."""
    return "" if all(util.find_spec(name) for name in _EXTRA) else NO_EXTRA


def _between(numbers: Sequence[int], what: str) -> str:
    """ "4 texts", or "2 to 4 texts" where people differ."""
    low, high = min(numbers), max(numbers)
    return _number(high, what) if low == high else f"{low} to {_number(high, what)}"


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
