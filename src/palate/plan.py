"""What a study will take, before anything is spent: cells, calls, tokens, money.

The forecast plays and judges every pair of user and candidate on every card once, with the real
prompts and a model that only counts: it says nothing new, but every prompt that it is shown has
the size it will have. Assumed are the lengths of messages and that every chat reaches the depth
limit; tokens are estimated from characters. Both assumptions are printed with the figures.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from palate import cards
from palate.judging.tracks import judge, wanted
from palate.language import CHARACTERS_A_TOKEN, tokens
from palate.models.client import Completion, Model, Request, Role
from palate.models.spec import Price
from palate.prepare import Prepared, prepare, prices
from palate.report.safe import terminal_safe
from palate.roleplay import play
from palate.seats import Seats
from palate.types import MIN_SCORE, Cell, Record, Usage

# Without a history: a message of a user, in tokens. A reply fills half of its limit, at most this.
USER_TOKENS = 40
REPLY_TOKENS = 150
# A verdict in JSON with a short reason a dimension; digits take one token each.
VERDICT_TOKENS = {"personal": 80, "generic": 350, "session": 400}
_ABOUT_LORE = (
    "of lorebooks, entries that wait for a word in the chat are not counted; they make it dearer",
)

_ABOUT_ADAPTERS = (
    "before the first cell every adapter is held against its base by a few calls of some words, "
    "at most a dozen an adapter; they are not counted",
)


class ModelForecast(Record):
    """What one model in one role will be asked; `cost` None: its price is not in the study."""

    role: Role
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Resampling(Record):
    """The most that drawing simulators' messages anew can add; `cost` None: a price is missing."""

    times: int  # a message
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Forecast(Record):
    """The size of a study; `cost` None: a price is missing, of a model in `unpriced`.

    `resampling` is not in the sums.
    """

    cells: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    models: tuple[ModelForecast, ...]
    unpriced: tuple[str, ...]
    resampling: Resampling
    assumptions: tuple[str, ...]


def estimate(study: Path, *, limit: int | None = None) -> Forecast:
    """Forecast a study (its first `limit` cells, if given); makes no call.

    Raises:
        InputError: the study could not be run.
    """
    prepared = prepare(study, keys=())
    cells = list(prepared.cells())[:limit]
    times: dict[Cell, int] = defaultdict(int)  # repetitions cost the same
    for cell in cells:
        times[cell._replace(repetition=1)] += 1
    counter = _Counter(prepared)
    asyncio.run(_rehearse(prepared, counter, times))
    return counter.forecast(len(cells), prices(prepared.study))


async def _rehearse(prepared: Prepared, counter: _Counter, times: Mapping[Cell, int]) -> None:
    seats = Seats(prepared, counter, run_id="plan")
    protocol = prepared.study.content.protocol
    for cell, repetitions in times.items():
        counter.weight, counter.user = repetitions, cell.user_id
        # The counting simulator says the same again and again: of the rehearsal nothing is anew.
        trajectory = await play(replace(seats.table(cell), resample=0), lambda step: None)
        for item in wanted(trajectory, count=protocol.sampled_replies, seed=protocol.seed):
            await judge(item, seats.subject(trajectory), seats.judge)


class _Counter:
    """Opens models that count what they are asked, in place of the study's own."""

    def __init__(self, prepared: Prepared) -> None:
        self.weight = 1
        self.user = ""
        self.calls: dict[tuple[Role, str], int] = defaultdict(int)
        self.usage: dict[tuple[Role, str], Usage] = defaultdict(Usage)
        self.anew_calls: dict[str, int] = defaultdict(int)  # by simulator, each message once more
        self.anew: dict[str, Usage] = defaultdict(Usage)
        self.resample = prepared.study.content.protocol.resample
        self.has_adapters = any(s.kind == "lora" for s in prepared.simulators.values())
        self.has_lore = any(map(cards.known_lore, prepared.cards.values()))
        self.user_tokens = {user: _mean_message(prepared, user) for user in prepared.rubrics}

    def open(
        self,
        spec: str,
        *,
        headers: Mapping[str, str] | None = None,
        session_header: str | None = None,
        session_field: str | None = None,
        adapter: Path | None = None,
    ) -> Model:
        """A counting model under the name `spec`; nothing else changes a size."""
        return _Counting(spec, self)

    def width(self) -> int:
        """A rehearsal plays one cell after another."""
        return 1

    def count(self, model: str, request: Request) -> str:
        """Count a request and its assumed answer; returns a text of the answer's size."""
        role = request.purpose.role
        answer = self._answer_tokens(request)
        prompt = sum(tokens(message.text) + 4 for message in request.messages)
        self.calls[role, model] += self.weight
        asked = Usage(prompt * self.weight, answer * self.weight)
        self.usage[role, model] += asked
        if role == "simulator" and request.sampling.temperature != 0:
            self.anew_calls[model] += self.weight
            self.anew[model] += asked
        return "word " * max(round(answer * CHARACTERS_A_TOKEN / 5), 1)

    def _answer_tokens(self, request: Request) -> int:
        most = request.sampling.max_tokens
        match request.purpose.role:
            case "simulator":
                return min(self.user_tokens[self.user], most)
            case "candidate":
                return min(REPLY_TOKENS, most)
        if request.digits:
            return request.digits
        return min(VERDICT_TOKENS[request.purpose.track or "session"], most)

    def forecast(self, cells: int, known: Mapping[str, Price]) -> Forecast:
        """The counts, with money where the study has a price."""
        models = tuple(
            ModelForecast(
                role=role,
                model=model,
                calls=self.calls[role, model],
                prompt_tokens=usage.prompt,
                completion_tokens=usage.completion,
                cost=known[model].cost(usage) if model in known else None,
            )
            for (role, model), usage in sorted(self.usage.items())
        )
        costs = [m.cost for m in models]
        return Forecast(
            cells=cells,
            calls=sum(m.calls for m in models),
            prompt_tokens=sum(m.prompt_tokens for m in models),
            completion_tokens=sum(m.completion_tokens for m in models),
            cost=None if None in costs else sum(cost for cost in costs if cost is not None),
            models=models,
            unpriced=tuple(sorted({m.model for m in models if m.cost is None})),
            resampling=self._resampling(known),
            assumptions=(
                *(_ABOUT_LORE if self.has_lore else ()),
                *(_ABOUT_ADAPTERS if self.has_adapters else ()),
                "every chat runs to the depth limit; quitting makes it cheaper",
                f"a user's message has their history's mean length, or {USER_TOKENS} tokens; a "
                f"reply has {REPLY_TOKENS} tokens or its limit",
                "tokens are counted from characters, and may be off by a third",
                "no prompt token is read from a provider's cache",
            ),
        )

    def _resampling(self, known: Mapping[str, Price]) -> Resampling:
        """Every message of every simulator that is not greedy, drawn anew as often as it may be."""
        times = self.resample
        costs = [known[m].cost(u) if m in known else None for m, u in self.anew.items()]
        usage = sum(self.anew.values(), start=Usage())
        return Resampling(
            times=times,
            calls=times * sum(self.anew_calls.values()),
            prompt_tokens=times * usage.prompt,
            completion_tokens=times * usage.completion,
            cost=None if None in costs else times * sum(c for c in costs if c is not None),
        )


class _Counting:
    """A model of the forecast: counts, and answers a text of the assumed size."""

    reads_digits = True
    enforces_schema = False

    def __init__(self, name: str, counter: _Counter) -> None:
        self.name = name
        self._counter = counter

    async def complete(self, request: Request) -> Completion:
        text = self._counter.count(self.name, request)
        # Verdicts must be readable: others are asked for again, and end a session judged in parts.
        if request.json_schema is not None:
            asked = request.json_schema["properties"]["scores"]["properties"]
            text = json.dumps({"reason": text, "scores": dict.fromkeys(asked, MIN_SCORE)})
        return Completion(text, "ok", digit_probabilities=({"1": 1.0},) * request.digits)

    async def close(self) -> None:
        """Nothing is open."""


def _mean_message(prepared: Prepared, user: str) -> int:
    """Mean tokens of this user's real messages."""
    said = [
        tokens(turn.text)
        for session in prepared.sessions.get(user, ())
        for turn in session.turns
        if turn.speaker == "user"
    ]
    return max(round(fmean(said)), 1) if said else USER_TOKENS


def print_estimate(forecast: Forecast, console: Console | None = None) -> None:
    """Print the forecast for a person."""
    console = console or Console()
    grid = Grid(title=f"{forecast.cells:,} cells, {forecast.calls:,} calls", title_justify="left")
    for name in ("role", "model"):
        grid.add_column(name, overflow="fold")
    for name in ("calls", "prompt tokens", "completion tokens", "USD"):
        grid.add_column(name, justify="right")
    for m in forecast.models:
        numbers = (f"{n:,}" for n in (m.calls, m.prompt_tokens, m.completion_tokens))
        grid.add_row(m.role, Text(terminal_safe(m.model)), *numbers, _usd(m.cost))
    totals = (forecast.calls, forecast.prompt_tokens, forecast.completion_tokens)
    grid.add_section()
    grid.add_row("all", "", *(f"{n:,}" for n in totals), _usd(forecast.cost))
    console.print(grid)
    for model in forecast.unpriced:
        name = terminal_safe(model)
        line = f'No price for {name}: add [prices."{name}"] to the study.'
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for assumption in (*_resampling_line(forecast.resampling), *forecast.assumptions):
        console.print(f"- {assumption}", markup=False, highlight=False, soft_wrap=True)


def _resampling_line(most: Resampling) -> Iterator[str]:
    if most.calls:
        cost = "" if most.cost is None else f", {_usd(most.cost)} USD"
        tokens = f"{most.prompt_tokens:,} + {most.completion_tokens:,} tokens"
        yield (
            f"not counted above: a simulator's message with a flag is asked for again, {most.times}"
            f" times at most; if every one were, {most.calls:,} more calls, {tokens}{cost}"
        )


def _usd(cost: float | None) -> str:
    return "n/a" if cost is None else f"{cost:,.2f}"
