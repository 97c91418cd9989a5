"""Running totals of calls and tokens by role and model, for the progress line and for cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from palate.errors import ModelError
from palate.models.client import Completion, Model, Request, Role
from palate.models.spec import Price
from palate.types import Usage


@dataclass(slots=True)
class Totals:
    """Of one role and model. `unmetered` calls were answered without a count of tokens."""

    calls: int = 0
    failures: int = 0
    retries: int = 0
    unmetered: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return Usage(self.prompt, self.completion, self.cached)

    def cost(self, price: Price | None) -> float | None:
        """USD so far, or None where the price, or a count of tokens, is unknown."""
        if price is None or price.input is None or price.output is None:
            return None
        if self.unmetered and (price.input or price.output):
            return None
        return price.cost(self.usage)


class Money(NamedTuple):
    """USD of the calls whose cost is known; `complete` if that is all of them."""

    known: float
    complete: bool


class Ledger:
    """Totals by (role, model as written in the study); one for all models of a run."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Role, str], Totals] = {}

    def of(self, role: Role, model: str) -> Totals:
        """The totals of `role` and `model`, which the caller may add to."""
        key = (role, model)
        totals = self._totals.get(key)
        if totals is None:
            totals = self._totals[key] = Totals()
        return totals

    def answered(self, role: Role, model: str, usage: Usage) -> None:
        """Count a call that brought a reply."""
        totals = self.of(role, model)
        totals.calls += 1
        totals.prompt += usage.prompt
        totals.completion += usage.completion
        totals.cached += usage.cached
        totals.unmetered += not (usage.prompt or usage.completion)

    def entries(self) -> Mapping[tuple[Role, str], Totals]:
        """All totals, in the order of their first call."""
        return self._totals

    @property
    def calls(self) -> int:
        """Calls answered so far."""
        return sum(totals.calls for totals in self._totals.values())

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return sum((totals.usage for totals in self._totals.values()), start=Usage())

    def money(self, prices: Mapping[str, Price]) -> Money:
        """What the calls cost at `prices` by model as written; an unknown price is not 0."""
        costs = [
            totals.cost(prices.get(model))
            for (_, model), totals in self._totals.items()
            if totals.calls
        ]
        known = [cost for cost in costs if cost is not None]
        return Money(sum(known), len(known) == len(costs))


class Counted:
    """Another model, with its calls in a ledger."""

    def __init__(self, model: Model, ledger: Ledger) -> None:
        self.name = model.name
        self.reads_digits = model.reads_digits
        self.enforces_schema = model.enforces_schema
        self._model = model
        self._ledger = ledger

    async def complete(self, request: Request) -> Completion:
        """See `palate.models.client.Model`."""
        role = request.purpose.role
        try:
            completion = await self._model.complete(request)
        except ModelError:
            self._ledger.of(role, self.name).failures += 1
            raise
        self._ledger.answered(role, self.name, completion.usage)
        return completion

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()
