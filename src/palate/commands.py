"""What the commands do, apart from parsing: each public function is one command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import click
from rich.console import Console

from palate import manifest
from palate.adapter_probe import probe_adapters
from palate.config import EVERY_MODEL, SimulatorSection, Study, load_study, simulator_part
from palate.errors import InputError, StoreError
from palate.models.client import Sampling
from palate.models.pool import Models
from palate.prepare import (
    PROFILE,
    Prepared,
    prepare,
    prices,
    simulator_folder,
    split_of,
    user_section,
)
from palate.probed import keep, kept, warnings_of
from palate.progress import ProgressView
from palate.report.plain import say
from palate.report.safe import terminal_safe
from palate.run import Outcome, run
from palate.simulators import Profile, save_profile, write_profile
from palate.simulators.parts import drawn
from palate.store import RunFolder, RunReader
from palate.types import TrainingSession

if TYPE_CHECKING:
    from palate.results import Measured

# What a profile is written within: the embedded model's slot, and what any current model reads.
LOCAL_CONTEXT_TOKENS = 2048
WRITER_CONTEXT_TOKENS = 16384
NARROWEST = 60  # columns

Judging = Literal["now", "later"]


def run_study(
    study: Path,
    *,
    out: Path | None,
    limit: int | None,
    max_concurrency: int | None,
    judging: Judging = "now",
) -> int:
    """Play, judge and report a study; the exit code: 0 done, 3 work left.

    `judging` "later" only plays; the verdicts are left to a batch (`palate.batch_commands`).

    Raises:
        InputError: the study cannot be run; no call was made.
        StoreError: the run folder cannot be written.
    """
    later = judging == "later"
    prepared = prepare(study, keys=("users", "candidates") if later else EVERY_MODEL)
    path = out or prepared.study.folder / "runs" / prepared.run_name
    console = Console(stderr=True)
    about = manifest.about(prepared, run_id=uuid4().hex, created_at=datetime.now(UTC).isoformat())
    with RunFolder(path, manifest.settings(prepared), about=about) as folder:
        try:
            outcome = asyncio.run(_work(prepared, folder, console, limit, max_concurrency, judging))
        except KeyboardInterrupt:
            console.print("\nStopped; the same command takes it up again.")
            return 3
        for warning in (*folder.warnings, *warnings_of(kept(path))):
            say(f"Note: {warning}", console)
        if outcome.done:
            write_results(folder)
    return _conclude(outcome, path, console)


async def _work(
    prepared: Prepared,
    folder: RunFolder,
    console: Console,
    limit: int | None,
    max_concurrency: int | None,
    judging: Judging,
) -> Outcome:
    study = prepared.study
    async with Models(
        study.content.endpoints, study_dir=study.folder, max_concurrency=max_concurrency
    ) as models:

        async def check_adapters() -> None:
            keep(folder, await probe_adapters(prepared.simulators, study.content.users, models))

        with ProgressView(console, models.ledger, prices(study)) as view:
            return await run(
                prepared,
                folder,
                models,
                limit=limit,
                parts="play" if judging == "later" else "all",
                observe=view.show,
                before_calls=check_adapters,
            )


def write_results(folder: RunFolder) -> None:
    """Write results.json and report.html of an open run folder, and print the results."""
    from palate.report.page import write_report
    from palate.results import measure, report_data

    measured = measure(folder)
    folder.write_text("results.json", measured.results.model_dump_json(indent=2) + "\n")
    write_report(report_data(folder, measured), folder.path / "report.html")
    _print(measured)


def _print(measured: Measured) -> None:
    from palate.report.conduct import print_conduct
    from palate.report.terminal import print_results

    console = _console()
    print_results(measured.results, console)
    print_conduct(measured.conduct, console)


def report_run(run_folder: Path, *, as_json: bool) -> None:
    """Measure a run folder anew, write its report, and print the results.

    Raises:
        InputError: it is no run folder, or its scores are of two kinds.
    """
    from palate.report.page import write_report
    from palate.results import measure, report_data

    reader = RunReader(run_folder)
    measured = measure(reader)
    try:
        written = write_report(report_data(reader, measured), run_folder / "report.html")
        where = f"Report: {written}"
    except StoreError as error:  # a folder that may only be read still has its numbers
        where = f"Note: {error}"
    if as_json:
        click.echo(measured.results.model_dump_json(indent=2))
    else:
        _print(measured)
    click.echo(where, err=as_json)


def aggregate_scores(scores: Path, *, as_json: bool, seed: int) -> None:
    """Aggregate a CSV of scores and print the results.

    Raises:
        InputError: the file is wrong; the sentence names its line.
    """
    from palate.aggregate import aggregate, read_scores
    from palate.report.terminal import print_results

    results = aggregate(read_scores(scores), seed=seed)
    if as_json:
        click.echo(results.model_dump_json(indent=2))
    else:
        print_results(results, _console())


def _console() -> Console:
    """Where results are printed; below 60 columns tables would break into single letters."""
    console = Console()
    return console if console.width >= NARROWEST else Console(width=NARROWEST)


def _conclude(outcome: Outcome, path: Path, console: Console) -> int:
    """Say how the run went and where its report is; the exit code."""
    left = outcome.planned - outcome.done - outcome.unjudged
    if outcome.done:
        click.echo(f"Report: {path / 'report.html'}")
    if outcome.unjudged:
        sentence = (
            f"Judging left: {outcome.unjudged} of {outcome.planned} cells are played and wait for "
            f"their verdicts; palate batch export {path} writes the requests."
        )
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if not left:
        return 3 if outcome.unjudged else 0
    why = (
        f"stopped after {outcome.failures} failed calls in a row"
        if outcome.stopped_early
        else f"{outcome.failures} calls failed"
    )
    sentence = (
        f"{left} of {outcome.planned} cells are open: {why} (see {path / 'failures.jsonl'}); the "
        "same command takes them up again."
    )
    console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if outcome.last_failure:
        last = f"Last failure: {terminal_safe(outcome.last_failure)}"
        console.print(last, markup=False, highlight=False, soft_wrap=True)
    return 3


def write_user_profile(
    study: Path, *, user: str, model: str | None, force: bool, max_tokens: int | None = None
) -> None:
    """Split a user's history and write their profile from the training part alone.

    `max_tokens`: of whole sessions drawn by the study's seed, by estimate; None reads all.

    Raises:
        InputError: no such user, no history, too few sessions, or a profile that is there already.
        ModelError: the model gave no profile.
    """
    loaded = load_study(study, keys=() if model else (simulator_part(user),))
    section = user_section(loaded, user)
    writer = model or section.simulator.model
    if writer is None:
        raise InputError(f"{loaded.file}: user {user}: name a simulator.model, or give --model")
    target = simulator_folder(loaded, section) / PROFILE
    if target.exists() and not force:
        raise InputError(f"{target} is there already; --force writes it anew")
    _, parts = split_of(loaded, section)
    training: Sequence[TrainingSession] = parts.training
    if max_tokens is not None:
        training = drawn(training, max_tokens, loaded.content.protocol.seed)
    by_writer = section.simulated_by(section.simulator.kind, writer)
    profile = asyncio.run(_profile(loaded, training, writer, by_writer.simulator))
    save_profile(profile, target)
    of_all = f" of {len(parts.training)}" if len(training) < len(parts.training) else ""
    click.echo(f"Profile of {user} from {len(training)}{of_all} training sessions: {target}")
    click.echo(terminal_safe(profile.shown(), lines=True))


async def _profile(
    study: Study, training: Sequence[TrainingSession], writer: str, section: SimulatorSection
) -> Profile:
    async with Models(study.content.endpoints, study_dir=study.folder) as models:
        opened = models.open(writer, headers=section.headers)
        context = LOCAL_CONTEXT_TOKENS if writer.startswith("local:") else WRITER_CONTEXT_TOKENS
        return await write_profile(
            training,
            opened,
            sampling=Sampling(temperature=0.0, max_tokens=min(400, context // 4)),
            context_tokens=context,
        )
