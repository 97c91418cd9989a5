"""`palate study agreement STUDY`: do the scores order held-out replies as the person did?

(paper 4.3, Table 3)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from palate.agreement_setup import StudyOptions, forecast, open_judges, prices_of, raters_of
from palate.config import Study, load_study
from palate.disk import disk, refuse_other_folder, write_atomically
from palate.judging.asking import Judge
from palate.models.batch import BatchFolder
from palate.models.pool import Models
from palate.report.agreement import write_agreement_page
from palate.report.agreement_terminal import agreement_console, print_agreement
from palate.report.plain import say, to_json
from palate.report.safe import terminal_safe
from palate.simulators.validation.answers import Answers
from palate.studies.held_out import Rater
from palate.studies.held_out_agreement import (
    Setting,
    held_out_agreement,
    label_rows,
    labels_csv,
    score_rows,
    scores_csv,
)
from palate.studies.held_out_results import HeldOutAgreement
from palate.studies.judging_held_out import HeldOutVerdict, Job, Judged, jobs, judge_held_out
from palate.validation_forecast import print_forecast

FOLDER = Path("studies") / "agreement"
JOURNAL = "verdicts.jsonl"
LABELS, SCORES, RESULTS, PAGE = "labels.csv", "scores.csv", "results.json", "report.html"


class _Done(NamedTuple):
    judged: Judged
    setting: Setting


def study_agreement(path: Path, options: StudyOptions, *, plan: bool, as_json: bool) -> int:
    """Judge the held-out replies of a study and compare; the exit code: 0 done, 3 work left.

    Raises:
        InputError: the study cannot be judged so; no call was made.
        StoreError: the folder cannot be written.
        Stopped: calls are left to a batch; the same command reads the answers.
    """
    study = load_study(path, keys=() if options.judges or options.batch else ("judge",))
    raters = raters_of(study, options)
    folder = options.out or study.folder / FOLDER
    refuse_other_folder(folder, journal=JOURNAL, holds="agreement study")
    console = Console(stderr=True)
    if plan:
        asyncio.run(_plan(study, raters, options, folder))
        return 0
    try:
        with Answers(folder / JOURNAL, HeldOutVerdict) as journal:
            judged, setting = asyncio.run(_ask(study, raters, options, journal, console))
            say("Measuring.", console)
            found = _written(raters, judged, setting, folder)
    except KeyboardInterrupt:
        say("Stopped; the same command takes it up again.", console)
        return 3
    _show(found, folder, as_json=as_json)
    return _conclude(judged, console)


async def _plan(
    study: Study, raters: tuple[Rater, ...], options: StudyOptions, folder: Path
) -> None:
    async with _models(study, options) as models:
        judges = open_judges(study, options, models)
        wanted = list(jobs(raters, options.conditions, judges))
        known = prices_of(study, judges)
        with _answered(folder) as answered:
            asks = forecast(wanted, answered, known, confidence=options.confidence)
    print_forecast(asks, Console())


@contextmanager
def _answered(folder: Path) -> Iterator[Callable[[str], bool]]:
    """Which verdicts are there already; a look that leaves no folder behind."""
    if not (folder / JOURNAL).exists():
        yield lambda key: False
        return
    with Answers(folder / JOURNAL, HeldOutVerdict) as journal:
        yield lambda key: journal.get(key) is not None


def _models(study: Study, options: StudyOptions) -> Models | BatchFolder:
    if options.batch is not None:
        return BatchFolder(options.batch, study.content.endpoints, scope="agreement")
    return Models(
        study.content.endpoints,
        study_dir=study.folder,
        max_concurrency=options.max_concurrency,
    )


async def _ask(
    study: Study,
    raters: tuple[Rater, ...],
    options: StudyOptions,
    journal: Answers[HeldOutVerdict],
    console: Console,
) -> _Done:
    async with _models(study, options) as models:
        judges = open_judges(study, options, models)
        wanted: list[Job] = list(jobs(raters, options.conditions, judges))
        setting = _setting(study, options, judges)
        asks = forecast(
            wanted,
            lambda key: journal.get(key) is not None,
            setting.prices,
            confidence=options.confidence,
        )
        print_forecast(asks, console)
        with _bar(len(wanted), console) as bar:
            task = bar.task_ids[0]
            judged = await judge_held_out(
                wanted,
                journal,
                confidence=options.confidence,
                width=models.width(),
                tick=lambda: bar.advance(task),
            )
    if isinstance(models, BatchFolder):
        for remark in models.remarks():
            say(remark, console)
        models.raise_if_left()
    return _Done(judged, setting)


def _setting(study: Study, options: StudyOptions, judges: tuple[Judge, ...]) -> Setting:
    return Setting(
        study=study.content.study.name,
        conditions=options.conditions,
        judges=judges,
        panel=options.panel,
        confidence=options.confidence,
        threshold=options.threshold,
        prices=prices_of(study, judges),
        draw_seed=study.content.protocol.seed,
        limit=options.limit,
        seed=options.seed,
        resamples=options.resamples,
    )


@contextmanager
def _bar(steps: int, console: Console) -> Iterator[Progress]:
    columns = (TextColumn("Judging"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task("judging", total=steps)
        yield bar


def _written(
    raters: tuple[Rater, ...], judged: Judged, setting: Setting, folder: Path
) -> HeldOutAgreement:
    rows = score_rows(raters, judged.verdicts, setting)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    found = held_out_agreement(raters, judged.verdicts, rows, setting, made_at=now)
    with disk(folder):
        write_atomically(folder / LABELS, labels_csv(label_rows(raters)))
        write_atomically(folder / SCORES, scores_csv(rows))
        write_atomically(folder / RESULTS, to_json(found) + "\n")
    write_agreement_page(found, folder / PAGE, title=setting.study)
    return found


def _show(found: HeldOutAgreement, folder: Path, *, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(found))
    else:
        print_agreement(found, agreement_console())
    click.echo(f"Report: {terminal_safe(str(folder / PAGE))}", err=as_json)


def _conclude(judged: Judged, console: Console) -> int:
    if not judged.left:
        return 0
    last = f" (the last: {terminal_safe(judged.failures[-1])})" if judged.failures else ""
    early = "; stopped after several failures in a row" if judged.stopped_early else ""
    say(
        f"{judged.left:,} verdicts are left, {len(judged.failures):,} calls failed{last}{early}; "
        "the same command asks for them again.",
        console,
    )
    return 3
