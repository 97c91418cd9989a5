"""`palate simulator validate`: how near each simulator comes to its person (paper 3.1, Table 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from palate.adapter_probe import probe_adapters
from palate.config import Study, load_study, simulator_part
from palate.disk import disk, refuse_other_folder, write_atomically
from palate.errors import InputError
from palate.models.pool import Models
from palate.prepare import folder_name, prices, simulator_folder
from palate.probed import Probed, warnings_of
from palate.report.plain import say
from palate.report.safe import terminal_safe
from palate.simulators.trained import LOSS_CURVE
from palate.simulators.validation.asking import Judge
from palate.simulators.validation.records import Validation
from palate.simulators.validation.speaking import Voice
from palate.validation_asking import SPOKEN, Asked, Journals, ask_all, journals_in
from palate.validation_forecast import Asks, forecast, print_forecast
from palate.validation_likelihood import likelihoods_of
from palate.validation_measuring import validation
from palate.validation_places import without_machine_folders
from palate.validation_plan import print_plan
from palate.validation_setup import Options, Person, open_judge, persons, voices
from palate.validation_view import AskView

RESULT = "validation.json"
PAGE = "report.html"


def validate_simulators(path: Path, options: Options, *, plan: bool) -> int:
    """Compare each person's simulators with the person; the exit code: 0 done, 3 work left.

    Raises:
        InputError: the study cannot be validated; no call was made.
        Stopped: the folder cannot be written, or nothing came back from a model.
    """
    study = load_study(path, keys=_called(options))
    console = Console(stderr=True)
    everyone = persons(study, options)
    _check(study, everyone)
    folder = options.out or study.folder / "validations" / folder_name(study.content.study.name)
    if plan:
        asks = asyncio.run(_planned(study, everyone, options))
        _print_plan(asks, study, everyone, options, Console())
        return 0
    refuse_other_folder(folder, journal=SPOKEN, holds="validation")
    try:
        found, asked = _validated(study, everyone, options, folder, console)
    except KeyboardInterrupt:
        say("Stopped; the same command takes it up again.", console)
        return 3
    return _conclude(found, asked, folder, console)


def _validated(
    study: Study, everyone: Sequence[Person], options: Options, folder: Path, console: Console
) -> tuple[Validation, Asked]:
    """Everything asked, read, measured and written."""
    seed = study.content.protocol.seed
    with journals_in(folder) as journals:
        asked, judge = asyncio.run(_ask(study, everyone, options, journals, console))
        likelihoods = likelihoods_of(
            everyone, options, journals.likelihood, seed=seed, console=console
        )
        say("Measuring.", console)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        measured = validation(study, everyone, asked, likelihoods, judge, made_at=now)
        found = without_machine_folders(measured, study)
        _write(found, study, everyone, folder)
    return found, asked


def _called(options: Options) -> tuple[str, ...]:
    """The parts of the study whose models are called."""
    simulators = tuple(map(simulator_part, options.users)) or ("users",)
    return (*simulators, "judge") if options.judged else simulators


def _check(study: Study, everyone: Sequence[Person]) -> None:
    """There is something to compare, and no two people are one simulator."""
    from palate.simulators import same_adapters

    adapters = {
        person.user_id: condition.simulator
        for person in everyone
        for condition in person.conditions
        if condition.simulator is not None and condition.kind == "lora"
    }
    same = same_adapters(adapters)
    if same is not None:
        raise InputError(f"{study.file}: {same}")
    reasons = [c.reason for p in everyone for c in p.conditions]
    if not any(c.simulator for p in everyone for c in p.conditions):
        raise InputError(f"no condition of any user can be set up: {reasons[0]}")


async def _planned(study: Study, everyone: Sequence[Person], options: Options) -> tuple[Asks, ...]:
    async with Models(study.content.endpoints, study_dir=study.folder) as models:
        speaking, judge = _seated(study, everyone, options, models)
        return _forecast(study, everyone, speaking, judge)


def _seated(
    study: Study, everyone: Sequence[Person], options: Options, models: Models
) -> tuple[dict[str, tuple[Voice, ...]], Judge | None]:
    """All simulators and the judge, opened before the first call: adapters share one server."""
    speaking = {person.user_id: tuple(voices(person, models)) for person in everyone}
    return speaking, open_judge(study, models) if options.judged else None


def _forecast(
    study: Study,
    everyone: Sequence[Person],
    speaking: Mapping[str, Sequence[Voice]],
    judge: Judge | None,
) -> tuple[Asks, ...]:
    seed = study.content.protocol.seed
    return forecast(everyone, speaking, judge, prices(study), seed=seed)


def _print_plan(
    asks: Sequence[Asks],
    study: Study,
    everyone: Sequence[Person],
    options: Options,
    console: Console,
) -> None:
    print_forecast(asks, console)
    print_plan(everyone, options, console, seed=study.content.protocol.seed)


async def _ask(
    study: Study,
    everyone: Sequence[Person],
    options: Options,
    journals: Journals,
    console: Console,
) -> tuple[Asked, Judge | None]:
    async with Models(study.content.endpoints, study_dir=study.folder) as models:
        speaking, judge = _seated(study, everyone, options, models)
        asks = _forecast(study, everyone, speaking, judge)
        _print_plan(asks, study, everyone, options, console)
        warnings = warnings_of(await _probe(everyone, models))
        total = _questions(everyone, speaking, judge)
        with AskView(console, total, calls=lambda: models.ledger.calls) as view:
            seed = study.content.protocol.seed
            asked = await ask_all(everyone, speaking, judge, journals, seed=seed, watch=view)
    asked.warnings += warnings
    return asked, judge


async def _probe(everyone: Sequence[Person], models: Models) -> tuple[Probed, ...]:
    """An adapter that changes nothing would be taken for its base: it is not validated."""
    adapters = {
        person.user_id: condition.asked
        for person in everyone
        for condition in person.conditions
        if condition.kind == "lora" and condition.asked is not None
    }
    sections = [person.section for person in everyone if person.user_id in adapters]
    return await probe_adapters(adapters, sections, models)


def _questions(
    everyone: Sequence[Person], speaking: Mapping[str, Sequence[Voice]], judge: Judge | None
) -> int:
    """At most so many steps: messages, and where there is a judge, pairs and scores."""
    steps = 0
    for person in everyone:
        conditions = len(speaking[person.user_id])
        steps += len(person.contexts) * (3 * conditions + 2 if judge else conditions)
    return steps


def _write(found: Validation, study: Study, everyone: Sequence[Person], folder: Path) -> None:
    from palate.report.validation import write_validation_page
    from palate.report.validation_charts import read_curve

    with disk(folder):
        text = found.model_dump_json(indent=2, by_alias=True)
        write_atomically(folder / RESULT, text.encode("utf-8", "replace").decode() + "\n")
    sections = {person.user_id: person.section for person in everyone}
    curves = {
        user: read_curve(simulator_folder(study, section) / LOSS_CURVE)
        for user, section in sections.items()
    }
    write_validation_page(found, folder / PAGE, curves=curves)


def _conclude(found: Validation, asked: Asked, folder: Path, console: Console) -> int:
    from palate.report.validation_terminal import print_validation

    print_validation(found, Console())
    click.echo(f"Report: {terminal_safe(str(folder / PAGE))}")
    if not asked.failures:
        return 0
    last = terminal_safe(asked.failures[-1])
    say(
        f"{len(asked.failures)} calls failed (the last: {last}); the same command makes them "
        "again.",
        console,
    )
    return 3
