"""Own against others: each person's held-out messages under every person's adapter (paper 3.1).

An adapter that learned the person, and not only how people chat, tells that person's messages
better than any other's adapter does: the lowest value of each row lies on the diagonal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palate.simulators.validation.estimates import missing
from palate.simulators.validation.likelihood import SessionNll, paired
from palate.simulators.validation.measures import Estimate, OwnAgainstOthers, Row

ONE_PERSON = "only one person has an adapter: there is no other to compare with"

# Person -> adapter's person -> the person's held-out sessions under it, in one order.
Measured = Mapping[str, Mapping[str, Sequence[SessionNll]]]


def own_against_others(measured: Measured, *, seed: int) -> OwnAgainstOthers:
    """The matrix; columns are the persons that have an adapter, in the order of `measured`."""
    adapters = {adapter for columns in measured.values() for adapter in columns}
    persons = tuple(person for person in measured if person in adapters)
    rows = tuple(_row(person, measured[person], persons, seed) for person in persons)
    decided = [row.own_is_lowest for row in rows if row.own_is_lowest is not None]
    return OwnAgainstOthers(
        persons=persons,
        rows=rows,
        diagonal_wins=all(decided) if decided and len(decided) == len(rows) else None,
        reason=ONE_PERSON if len(persons) < 2 else None if decided else _nothing(rows),
    )


def _row(
    person: str, columns: Mapping[str, Sequence[SessionNll]], persons: Sequence[str], seed: int
) -> Row:
    values = {adapter: _mean(columns.get(adapter, ())) for adapter in persons}
    others = {a: value for a, value in values.items() if a != person and value is not None}
    own = values.get(person)
    nearest = min(others, key=lambda adapter: others[adapter]) if others else None
    margin: Estimate = missing(ONE_PERSON)
    if own is None:
        margin = missing("the own adapter was not measured")
    elif nearest is not None:
        margin = paired(columns[nearest], columns[person], seed=seed)
    return Row(
        user_id=person,
        nll=tuple(values[adapter] for adapter in persons),
        tokens=sum(nll.messages.tokens for nll in columns.get(person, ())),
        own_is_lowest=None if own is None or not others else own < min(others.values()),
        nearest=nearest,
        margin=margin,
    )


def _mean(nlls: Sequence[SessionNll]) -> float | None:
    """Nats a token, pooled over tokens."""
    tokens = sum(nll.messages.tokens for nll in nlls)
    return sum(nll.messages.total for nll in nlls) / tokens if tokens else None


def _nothing(rows: Sequence[Row]) -> str:
    return "no held-out message was measured" if rows else "nobody has an adapter"
