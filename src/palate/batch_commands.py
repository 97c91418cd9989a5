"""`palate batch export` and `import`: a run's verdicts by way of batch files (paper 3.3).

Nothing new is decided here. Both go through the run's own judging, with a judge that answers from
what was imported so far (RUN/batch/answers.jsonl) and writes down the rest: exporting keeps what
was written down, importing the answers. So a verdict is asked for, read and journalled as it would
be directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from palate import journal, manifest
from palate.commands import write_results
from palate.disk import disk, whole_length
from palate.errors import InputError
from palate.models.batch import WIDTH, Batch, BatchModel, Keep, Leave
from palate.models.batch_files import RequestFiles
from palate.models.batch_responses import Response, Responses
from palate.models.client import Model
from palate.models.ledger import Ledger
from palate.prepare import Prepared, prepare
from palate.report.safe import terminal_safe
from palate.run import Outcome, run
from palate.store import RunFolder, RunReader

KEPT = Path("batch") / "answers.jsonl"  # in a run folder


class Round(NamedTuple):
    """How a pass over the run went: cells, and the batch that it asked."""

    outcome: Outcome
    batch: Batch


def export_batch(path: Path, *, to: Path, study: Path | None) -> int:
    """Write the requests of every verdict that is missing into `to`; the exit code, 0.

    Raises:
        InputError: it is no run folder, its study is not found, or its judge has no batch form.
        StudyChanged: the study is not what the run was begun with.
        StoreError: a folder cannot be written.
    """
    prepared = _study_of(path, study)
    with _open(path, prepared) as folder:
        kept = _repaired(path / KEPT)
        with Responses(kept) as responses, RequestFiles(to) as files:
            found = asyncio.run(_judge(prepared, folder, responses, files.add))
    _tell_unplayed(found.outcome, path)
    if not files.requests:
        done = "every verdict is there" if found.outcome.done else "nothing is played yet"
        click.echo(f"Nothing to ask for: {done}.")
        return 0
    names = ", ".join(file.name for file in files.files)
    click.echo(f"{files.requests} requests for {found.outcome.unjudged} cells: {to} ({names})")
    click.echo(f"Then: palate batch import {path} FILES")
    return 0


def import_batch(path: Path, files: Sequence[Path], *, study: Path | None) -> int:
    """Take in the responses in `files`; the exit code: 0 every verdict is there, 3 some are not.

    Raises:
        InputError: as `export_batch`, or a file holds no responses of this run.
        StudyChanged, StoreError: as `export_batch`.
    """
    prepared = _study_of(path, study)
    with _open(path, prepared) as folder:
        kept = _repaired(path / KEPT)
        with Responses([*kept, *files]) as responses:
            known = responses.ids(0) if kept else set[str]()
            with _keeping(path / KEPT, first_new=len(kept)) as keep:
                found = asyncio.run(_judge(prepared, folder, responses, _nowhere, keep))
            _refuse_foreign(found.batch, known, files)
            _tell(found.batch, known)
        if found.outcome.done:
            write_results(folder)
    return _conclude(found, path)


def _study_of(path: Path, study: Path | None) -> Prepared:
    """The study of a run: as named, else the folder that holds runs/RUN."""
    if not (path / "manifest.json").is_file():
        raise InputError(f"{path} is no run folder; name a folder that `palate run` wrote")
    place = study or path.absolute().parent.parent
    if study is None and not (place / "study.toml").is_file():
        raise InputError(f"the study of {path} is not in {place}; name it with --study")
    return prepare(place, keys=())


def _open(path: Path, prepared: Prepared) -> RunFolder:
    """The run's folder, which keeps its manifest even where nothing was played yet."""
    whole = journal.manifest(RunReader(path))
    about = {name: value for name, value in whole.items() if name not in ("schema", "settings")}
    return RunFolder(path, manifest.settings(prepared), about=about)


def _repaired(kept: Path) -> list[Path]:
    """The answers kept so far, without a line torn by a kill; none before the first import."""
    if not kept.exists():
        return []
    with disk(kept):
        os.truncate(kept, whole_length(kept))
    return [kept]


@contextlib.contextmanager
def _keeping(target: Path, *, first_new: int) -> Iterator[Keep]:
    """A function that keeps an answer that comes from a new file, before its verdict is read."""
    with disk(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab", buffering=0) as lines:

            def keep(response: Response) -> None:
                if response.file >= first_new:
                    lines.write(response.line.rstrip(b"\r\n") + b"\n")

            yield keep
            os.fsync(lines.fileno())


def _nowhere(custom_id: str, body: bytes, model: str) -> None:
    """An import asks for nothing: it counts what is missing."""


class _JudgeAlone:
    """Opens the batch's model in every seat: only the judge is asked."""

    def __init__(self, prepared: Prepared, batch: Batch) -> None:
        content = prepared.study.content
        self._judge = BatchModel(content.judge.model, batch, content.endpoints, Ledger())

    def open(
        self,
        spec: str,
        *,
        headers: Mapping[str, str] | None = None,
        session_header: str | None = None,
        session_field: str | None = None,
        adapter: Path | None = None,
    ) -> Model:
        return self._judge

    def width(self) -> int:
        return WIDTH


async def _judge(
    prepared: Prepared,
    folder: RunFolder,
    responses: Responses,
    leave: Leave,
    keep: Keep = lambda response: None,
) -> Round:
    """Read every verdict that the responses allow, and leave the requests of the others."""
    # The run's own id: answers of another run of the same study are not this one's.
    scope = journal.manifest(folder)["run_id"]
    batch = Batch(responses, leave, scope=scope, keep=keep)
    models = _JudgeAlone(prepared, batch)
    return Round(await run(prepared, folder, models, parts="judge"), batch)


def _refuse_foreign(batch: Batch, known: set[str], files: Sequence[Path]) -> None:
    """Files of which not one line is about this run were named by mistake."""
    given = batch.responses.ids() | set(batch.responses.failed)
    ours = batch.answered | batch.left | known
    if batch.left and not given & (ours - known) and not _repeats(batch, known, given):
        names = ", ".join(str(file) for file in files)
        raise InputError(
            f"{names}: none of the responses belong to this run; name the files that the batch "
            "service gave back for its requests"
        )


def _repeats(batch: Batch, known: set[str], given: set[str]) -> bool:
    """Whether the new files repeat what was imported before."""
    return bool(batch.responses.repeated or batch.responses.differing) and bool(known & given)


def _tell(batch: Batch, known: set[str]) -> None:
    new = len(batch.answered - known)
    click.echo(f"{new} new answers, {len(known)} imported before.")
    for remark in batch.remarks(known):
        click.echo(f"Note: {terminal_safe(remark)}")


def _conclude(found: Round, path: Path) -> int:
    outcome = found.outcome
    if outcome.done:
        click.echo(f"Report: {path / 'report.html'}")
    _tell_unplayed(outcome, path)
    if found.batch.left:
        sentence = (
            f"{len(found.batch.left)} requests of {outcome.unjudged} cells have no answer yet: "
            f"palate batch export {path} writes those that are missing."
        )
        Console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)
    return 0 if outcome.done == outcome.planned else 3


def _tell_unplayed(outcome: Outcome, path: Path) -> None:
    unplayed = outcome.planned - outcome.done - outcome.unjudged
    if unplayed:
        sentence = (
            f"{unplayed} of {outcome.planned} cells are not played to their end; give the command "
            f"that began {path} again."
        )
        Console(stderr=True).print(sentence, markup=False, highlight=False, soft_wrap=True)
