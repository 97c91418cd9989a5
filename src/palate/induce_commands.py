"""`palate rubric induce`: a user's rubric out of their training sessions (paper 3.3)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from palate.config import Study, load_study
from palate.disk import disk, write_atomically
from palate.errors import InputError, LeftToBatch, RubricError, Stopped, TransportError
from palate.histories import Split
from palate.histories.branches import branches
from palate.models.batch import BatchFolder
from palate.models.client import Sampling
from palate.models.pool import Models
from palate.models.spec import ModelSpec
from palate.prepare import FREE, prices, sampling, split_of, user_section
from palate.report.plain import say
from palate.report.safe import terminal_safe
from palate.rubrics.freeze import as_json, read
from palate.rubrics.induce import Induced, induce
from palate.rubrics.induction_forecast import InductionForecast, induction_forecast
from palate.rubrics.rules import Induction, InductionSettings, Said
from palate.simulators.validation.answers import Answers

# The embedded model has a slot of 2,048 tokens and minutes, not hours: less is read and tested.
_EMBEDDED = InductionSettings(
    context_tokens=2048, contrasts=8, trials=6, candidates=4, rules_a_call=4, revisions=2
)
_ANY = InductionSettings()
_MOST_ANSWER = 4  # of the context, an answer takes a quarter at most


@dataclass(frozen=True)
class _Plan:
    """All that an induction is made with; nothing has been asked yet."""

    study: Study
    user: str
    parts: Split
    branches: tuple[tuple[str, ...], ...]
    model: str
    sampling: Sampling
    settings: InductionSettings
    target: Path
    batch: Path | None

    @property
    def record(self) -> Path:
        """The file beside the rubric."""
        return self.target.with_name(f"{self.target.stem}.induction.json")

    @property
    def journal(self) -> Path:
        """The answers of an induction that is not finished."""
        return self.target.parent / ".induction" / self.user / "answers.jsonl"


def induce_rubric(
    path: Path,
    *,
    user: str,
    model: str | None,
    seed: int | None,
    force: bool,
    batch: Path | None = None,
) -> None:
    """Induce and freeze the rubric that the study names for `user`.

    `batch`: a folder of batch files that the model is asked through, in rounds.

    Raises:
        InputError: no such user or history, a rubric that is there, or a refusal: too little was
            rated, or no set of rules held.
        Stopped: calls did not come back, or are left to a batch; the same command takes it up.
        ModelError: the model refused or gave nothing readable.
    """
    plan = _planned(path, user, model, seed, batch)
    if plan.target.exists() and not force:
        raise InputError(f"{plan.target} is there already; --force replaces it")
    console = Console(stderr=True)
    forecast = induction_forecast(
        plan.parts.training,
        plan.settings,
        branches=plan.branches,
        answer_tokens=plan.sampling.max_tokens,
    )
    _print_forecast(forecast, plan, console)
    with disk(plan.journal), Answers(plan.journal, Said) as journal:
        induced = _induced(plan, journal, forecast, console)
    _write(plan, induced)
    print_induction(induced.record, Console())
    target = terminal_safe(str(plan.target))
    click.echo(f"{target}: frozen as {induced.rubric.sha256[:12]}; read it with")
    click.echo(f"  palate rubric show {target}")


def _planned(
    path: Path, user: str, model: str | None, seed: int | None, batch: Path | None
) -> _Plan:
    study = load_study(path, keys=() if model or batch else ("judge",))
    section, judge = user_section(study, user), study.content.judge
    _, parts = split_of(study, section)
    spec = model or judge.model
    settings = _EMBEDDED if ModelSpec.parse(spec).provider == "local" else _ANY
    seed = study.content.protocol.seed if seed is None else seed
    decoding = sampling("judge", judge) if model is None else Sampling(0.0, max_tokens=2000)
    most = min(decoding.max_tokens, settings.context_tokens // _MOST_ANSWER)
    chats = branches([item.session for item in parts.training])
    return _Plan(
        study=study,
        user=user,
        parts=parts,
        branches=tuple(tuple(session.session_id for session in chat) for chat in chats),
        model=spec,
        sampling=replace(decoding, max_tokens=most),
        settings=settings.model_copy(update={"seed": seed}),
        target=study.path(section.rubric),
        batch=batch,
    )


def _induced(
    plan: _Plan, journal: Answers[Said], forecast: InductionForecast, console: Console
) -> Induced:
    try:
        with _progress(forecast.calls, console) as observe:
            return asyncio.run(_ask(plan, journal, observe))
    except TransportError as error:
        raise Stopped(f"{error}; the same command takes the induction up again") from None


async def _ask(plan: _Plan, journal: Answers[Said], observe: Callable[[str], None]) -> Induced:
    content = plan.study.content
    headers = content.judge.headers if plan.model == content.judge.model else None
    models: Models | BatchFolder = Models(content.endpoints, study_dir=plan.study.folder)
    if plan.batch is not None:
        models = BatchFolder(plan.batch, content.endpoints, scope=f"rubric/{plan.user}")
    try:
        async with models:
            return await induce(
                plan.parts.training,
                models.open(plan.model, headers=headers),
                sampling=plan.sampling,
                settings=plan.settings,
                branches=plan.branches,
                journal=journal,
                observe=observe,
            )
    except LeftToBatch:
        if isinstance(models, BatchFolder):
            say_remarks(models)
            models.raise_if_left()
        raise


def say_remarks(models: BatchFolder) -> None:
    """What a person must know of the responses in the batch folder."""
    for remark in models.remarks():
        click.echo(terminal_safe(remark), err=True)


def _write(plan: _Plan, induced: Induced) -> None:
    """The record first and the rubric last; then the journal has done its work."""
    for kept in _kept_aside(plan.target):
        place = terminal_safe(str(kept))
        click.echo(f"The rubric that was there was not made by a model; it is kept as {place}")
    with disk(plan.target):
        write_atomically(plan.record, induced.record.model_dump_json(indent=1) + "\n")
        write_atomically(plan.target, as_json(induced.rubric))
        # Under another name: the next induction begins anew.
        plan.journal.replace(plan.journal.with_name(f"{induced.rubric.sha256[:12]}.jsonl"))


def _kept_aside(target: Path) -> Iterator[Path]:
    """A rubric that somebody wrote or edited is never lost, only moved out of the way."""
    if not target.exists():
        return
    try:
        if read(target).provenance.author == "model":
            return
    except RubricError:  # a draft, or something else that is not ours to throw away
        pass
    content = target.read_bytes()
    aside = target.with_name(f"{target.stem}.{hashlib.sha256(content).hexdigest()[:12]}.json")
    with disk(aside):
        aside.write_bytes(content)
    yield aside


@contextmanager
def _progress(calls: int, console: Console) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; elsewhere a line for each stage."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    seen: dict[str, None] = {}
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Asking", total=calls)

        def observe(stage: str) -> None:
            bar.update(task, advance=1, description=stage.capitalize())
            if stage not in seen and not console.is_terminal:
                console.print(f"{stage.capitalize()} …", highlight=False)
            seen[stage] = None

        yield observe


def _print_forecast(forecast: InductionForecast, plan: _Plan, console: Console) -> None:
    price = prices(plan.study).get(plan.model)
    if ModelSpec.parse(plan.model).provider in ("local", "scripted"):
        price = FREE
    money = (
        f'no price for it: add [prices."{plan.model}"] to the study'
        if price is None
        else f"{price.cost(forecast.usage):,.2f} USD"
    )
    usage = forecast.usage
    say(
        f"At most {forecast.calls:,} calls to {plan.model}, {usage.prompt:,} + "
        f"{usage.completion:,} tokens, {money}; what was answered before is not asked again.",
        console,
    )


def print_induction(record: Induction, console: Console) -> None:
    """What was proposed, what was dropped and why, and how the tested rules did."""
    say(
        f"{record.proposed} rules proposed from {record.contrasts} contrasts; "
        f"{len(record.rules)} tested on {record.trials} pairs of {len(record.validation_sessions)} "
        f"training sessions that they were not proposed from.",
        console,
    )
    for what, counts in (
        ("rules dropped", record.dropped),
        ("citations dropped", record.citations_dropped),
        ("answers that could not be read", record.unread),
    ):
        if counts:
            told = "; ".join(f"{n} {reason}" for reason, n in sorted(counts.items()))
            say(f"{sum(counts.values())} {what}: {told}.", console)
    console.print(_table(record))


def _table(record: Induction) -> Grid:
    grid = Grid()
    for name in ("kind", "rule"):
        grid.add_column(name, overflow="fold")
    for name in ("right", "wrong", "asked", "separation", "p"):
        grid.add_column(name, justify="right")
    grid.add_column("outcome", overflow="fold")
    for one in record.rules:
        counts = (str(n) for n in (one.right, one.wrong, one.asked))
        figures = (f"{one.separation:+.2f}", f"{one.p:.3f}")
        grid.add_row(one.kind, Text(terminal_safe(one.rule)), *counts, *figures, one.outcome)
    return grid
