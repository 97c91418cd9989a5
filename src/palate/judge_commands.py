"""`palate judge check`: how much a judge moves on the same reply (paper 3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from palate.agreement_setup import StudyOptions, open_judges, prices_of
from palate.config import Study, load_study
from palate.disk import disk, refuse_other_folder, write_atomically
from palate.judge_setup import CheckOptions, drawn_items, forecast, pair_judge
from palate.judging.asking import Judge
from palate.models.batch import BatchFolder
from palate.models.pool import Models
from palate.prepare import folder_name
from palate.report.judge_check import gate_lines, print_judge_check, write_judge_page
from palate.report.plain import say, to_json
from palate.report.safe import terminal_safe
from palate.simulators.validation import asking as pair_asking
from palate.simulators.validation.answers import Answers
from palate.studies.judge_check import Asking, Checked, Checks, askings, check, key_of, prompt_files
from palate.studies.judge_items import CheckItem
from palate.studies.judge_moves import RESAMPLES, JudgeCheck, moves, over, remarks, unscored
from palate.studies.judge_pairs import Orders, check_orders, flips, pairs
from palate.validation_forecast import print_forecast

FOLDER = "judge-checks"
JOURNAL, PAIRS, RESULTS, PAGE = "answers.jsonl", "pairs.jsonl", "results.json", "report.html"
NARROWEST = 100  # columns


class _Asked(NamedTuple):
    judge: Judge
    checks: Checks
    orders: Orders


def check_judge(path: Path, options: CheckOptions, *, plan: bool, as_json: bool) -> int:
    """Ask, measure and show; the exit code: 0 done, 1 the gate says no, 3 work left.

    Raises:
        InputError: the study or the judge cannot be used so; no call was made.
        Stopped: the folder cannot be written, or questions were left to a batch.
    """
    study = load_study(path, keys=() if options.judge or options.batch else ("judge",))
    items = drawn_items(study, options)
    console = Console(stderr=True)
    if plan:
        asyncio.run(_plan(study, items, options))
        return 0
    name = folder_name(options.judge or study.content.judge.model)
    folder = options.out or study.folder / FOLDER / name
    refuse_other_folder(folder, journal=JOURNAL, holds="judge check")
    try:
        asked = asyncio.run(_ask(study, items, options, folder, console))
    except KeyboardInterrupt:
        say("Stopped; the same command takes it up again.", console)
        return 3
    found = _measured(items, asked, options)
    with disk(folder):
        write_atomically(folder / RESULTS, to_json(found) + "\n")
    write_judge_page(found, folder / PAGE, title=study.content.study.name)
    if as_json:
        click.echo(to_json(found))
    else:
        print_judge_check(found, _wide())
    click.echo(f"Report: {terminal_safe(str(folder / PAGE))}", err=as_json)
    return _conclude(found, asked, options, console)


def _models(study: Study, options: CheckOptions) -> Models | BatchFolder:
    if options.batch is not None:
        return BatchFolder(options.batch, study.content.endpoints, scope="judge check")
    return Models(
        study.content.endpoints,
        study_dir=study.folder,
        max_concurrency=options.max_concurrency,
    )


def _judge(study: Study, options: CheckOptions, models: Models | BatchFolder) -> Judge:
    named = () if options.judge is None else (options.judge,)
    [judge] = open_judges(study, StudyOptions(conditions=(), judges=named), models)
    return judge


async def _plan(study: Study, items: Sequence[CheckItem], options: CheckOptions) -> None:
    async with Models(study.content.endpoints, study_dir=study.folder) as models:
        judge = _judge(study, options, models)
        wanted, compared = list(askings(items)), list(pairs(items))
        prices = prices_of(study, [judge])
        print_forecast([forecast(wanted, compared, judge, prices)], Console())


async def _ask(
    study: Study,
    items: Sequence[CheckItem],
    options: CheckOptions,
    folder: Path,
    console: Console,
) -> _Asked:
    wanted, compared = list(askings(items)), list(pairs(items))
    with (
        Answers(folder / JOURNAL, Checked) as journal,
        Answers(folder / PAIRS, pair_asking.Heard) as heard,
    ):
        async with _models(study, options) as models:
            judge = _judge(study, options, models)
            new = [one for one in wanted if not _kept(one, judge, journal)]
            asks = forecast(new, compared, judge, prices_of(study, [judge]))
            print_forecast([asks], console)
            with _bar(len(wanted), console) as bar:
                task = bar.task_ids[0]
                checks = await check(
                    wanted,
                    judge,
                    journal,
                    width=models.width(),
                    tick=lambda: bar.advance(task),
                )
            orders = Orders({}, (), len(compared))
            if not checks.stopped_early:
                orders = await check_orders(compared, pair_judge(judge), heard)
    if isinstance(models, BatchFolder):
        for remark in models.remarks():
            say(f"Note: {remark}", console)
        models.raise_if_left()
    return _Asked(judge, checks, orders)


def _kept(asking: Asking, judge: Judge, journal: Answers[Checked]) -> bool:
    return journal.get(key_of(asking, asking.question(judge), judge)) is not None


@contextmanager
def _bar(steps: int, console: Console) -> Iterator[Progress]:
    columns = (TextColumn("Asking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("asking", total=steps)
        yield bar


def _measured(items: Sequence[CheckItem], asked: _Asked, options: CheckOptions) -> JudgeCheck:
    found = asked.checks.found
    measured, counted = moves(found, seed=options.seed), unscored(found)
    missing = asked.checks.left + asked.orders.left
    return JudgeCheck(
        judge=asked.judge.model.name,
        revisions=tuple(sorted({one.revision for one in found} - {""})),
        form=asked.judge.form,
        items=len(items),
        users=tuple(dict.fromkeys(item.user for item in items)),
        seed=options.seed,
        resamples=RESAMPLES,
        missing=missing,
        moves=measured,
        unscored=counted,
        orders=flips(asked.orders.judged),
        prompts=prompt_files(),
        remarks=remarks(measured, counted, missing),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _conclude(found: JudgeCheck, asked: _Asked, options: CheckOptions, console: Console) -> int:
    failures = (*asked.checks.failures, *asked.orders.failures)
    if found.missing:
        last = f" (the last: {failures[-1]})" if failures else ""
        say(
            f"{found.missing} questions are left, {len(failures)} calls failed{last}; the same "
            "command asks them again.",
            console,
        )
        return 3
    if options.gate is None:
        return 0
    refused = over(found, options.gate)
    for line in gate_lines(refused, options.gate):
        say(f"Gate: {line}", console)
    return 1 if refused or not found.moves else 0


def _wide() -> Console:
    console = Console(highlight=False)
    return console if console.width >= NARROWEST else Console(highlight=False, width=NARROWEST)
