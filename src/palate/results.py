"""From a run folder to numbers: score rows, results.json and report.html.

Everything is read from the folder alone, so that a report can be written anew wherever the folder
was copied to. Cells are streamed: only one is in memory at a time, whatever the size of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from palate import journal
from palate.aggregate import (
    DimensionRow,
    Results,
    aggregate,
    dimension_correlations,
    dimension_table,
    with_dimensions,
)
from palate.errors import InputError
from palate.journal import FailureLine, StepLine
from palate.judging.sampling import Item, wanted
from palate.probed import kept, warnings_of
from palate.report.conduct import Conduct
from palate.report.data import (
    CandidateSetting,
    CardLabel,
    CellRecord,
    Fact,
    Failure,
    Fingerprint,
    Matrix,
    ReportData,
    UserSetting,
)
from palate.rubrics.shared import load_shared
from palate.spending import model_uses
from palate.store import Json, RunReader
from palate.types import (
    TRACKS,
    Cell,
    Judgement,
    ScoreRow,
    Trajectory,
    Usage,
)


class Measured(NamedTuple):
    """The results of a run, and what a report shows beside them; `conduct` by user."""

    results: Results
    correlations: tuple[Matrix, ...]
    conduct: dict[str, Conduct]


@dataclass(slots=True)
class _Gathered:
    """Lines of the journals that belong to one cell."""

    steps: list[StepLine] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    failures: list[FailureLine] = field(default_factory=list)


def measure(reader: RunReader) -> Measured:
    """Aggregate all that the folder holds (paper 3.3).

    Raises:
        InputError: nothing is scored or planned yet, or verdicts of two score kinds are mixed.
    """
    manifest = journal.manifest(reader)
    seed = int(manifest["settings"]["protocol"]["seed"])
    rows: list[ScoreRow] = []
    dimensions: list[DimensionRow] = []
    kinds: dict[str, set[str]] = defaultdict(set)
    conduct = {user: Conduct() for user in manifest["settings"]["users"]}
    for record in cell_records(reader):
        conduct[record.cell.user_id].add(record)
        rows += score_rows(record, wanted_of(record, manifest))
        dimensions += _dimension_rows(record)
        for judgement in record.judgements:
            if judgement.unscored is None:
                kinds[judgement.track].add(judgement.score_kind)
    _refuse_mixed_kinds(reader, kinds)
    results = with_dimensions(aggregate(rows, seed=seed), dimension_table(dimensions, seed=seed))
    return Measured(results, _matrices(dimensions), conduct)


def cell_records(reader: RunReader) -> Iterator[CellRecord]:
    """One record a planned cell, in the order of the plan, with all that came of it."""
    manifest = journal.manifest(reader)
    gathered: dict[str, _Gathered] = defaultdict(_Gathered)
    for step in journal.steps(reader):
        gathered[step.cell].steps.append(step)
    for judgement in journal.judgements(reader):
        gathered[judgement.cell].judgements.append(judgement)
    for failure in journal.failures(reader):
        gathered[failure.cell].failures.append(failure)
    openings: dict[str, str] = manifest["openings"]
    for cell in journal.planned_cells(manifest):
        pair = f"{cell.user_id}/{cell.card_id}"
        opening = openings.get(f"{pair}/{cell.repetition}", openings[pair])  # of a card with dice
        yield _cell_record(cell, gathered.pop(cell.key, _Gathered()), opening)
    if gathered:
        reader.warn(
            f"the journals speak of {len(gathered)} cells that are not of this study, for example "
            f"{min(gathered)}; they were ignored"
        )


def _cell_record(cell: Cell, lines: _Gathered, opening: str) -> CellRecord:
    messages = tuple(step.message for step in lines.steps if step.message is not None)
    ended_by = lines.steps[-1].ended_by if lines.steps else None
    if not lines.steps and lines.judgements:  # depth 0: a trajectory without a step
        ended_by = "depth_limit"
    trajectory = None
    judgements: tuple[Judgement, ...] = ()
    if ended_by is not None:
        trajectory = Trajectory(cell=cell, opening=opening, messages=messages, ended_by=ended_by)
        judgements = _about(trajectory, lines.judgements)
        if not lines.steps and not judgements:
            trajectory = None
    return CellRecord(
        cell=cell,
        trajectory=trajectory,
        opening=opening,
        so_far=() if trajectory else messages,
        judgements=judgements,
        failures=tuple(_failure(line) for line in lines.failures),
        usage=sum((step.usage for step in lines.steps), start=Usage()),
        resampled=tuple(step.rejected for step in lines.steps if step.rejected),
    )


def _about(trajectory: Trajectory, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """The verdicts on this very conversation; of two on the same thing the first counts."""
    digest = trajectory.digest()
    found: dict[str, Judgement] = {}
    for judgement in judgements:
        if judgement.trajectory == digest:
            found.setdefault(judgement.key, judgement)
    return tuple(found.values())


def _failure(line: FailureLine) -> Failure:
    return Failure(cell=line.cell, role=line.role, error=f"{line.kind}: {line.error}", when=line.at)


def wanted_of(record: CellRecord, manifest: Json) -> tuple[Item, ...]:
    """The verdicts that a cell should have; none are known before its conversation has ended."""
    if record.trajectory is None:
        return ()
    protocol = manifest["settings"]["protocol"]
    return wanted(record.trajectory, count=protocol["sampled_replies"], seed=protocol["seed"])


def score_rows(record: CellRecord, asked_for: Sequence[Item]) -> list[ScoreRow]:
    """A row a verdict, scored or not, and rows without a score for what has none yet.

    A verdict that is still to come is an unscored row; a planned cell without a verdict of a track
    is a row with reply and score empty. So coverage counts both.
    """
    cell = record.cell
    rows = [
        ScoreRow(*cell, track=j.track, reply=j.reply, score=j.overall) for j in record.judgements
    ]
    found = {(row.track, row.reply) for row in rows}
    rows += [
        ScoreRow(*cell, track=item.track, reply=item.reply, score=None)
        for item in asked_for
        if item not in found
    ]
    present = {row.track for row in rows}
    rows += [ScoreRow(*cell, track=t, reply=None, score=None) for t in TRACKS if t not in present]
    return rows


def _dimension_rows(record: CellRecord) -> list[DimensionRow]:
    cell = record.cell
    return [
        DimensionRow(
            candidate=cell.candidate,
            user=cell.user_id,
            card=cell.card_id,
            repetition=cell.repetition,
            track=judgement.track,
            reply=judgement.reply,
            dimension=dimension,
            value=value,
        )
        for judgement in record.judgements
        if judgement.unscored is None and judgement.track != "personal"
        for dimension, value in judgement.scores.items()
    ]


def _refuse_mixed_kinds(reader: RunReader, kinds: dict[str, set[str]]) -> None:
    for track, found in sorted(kinds.items()):
        if len(found) > 1:
            raise InputError(
                f"{reader.path}: the {track} track mixes {' and '.join(sorted(found))} scores, "
                "which are not comparable; judge the run again with one judge"
            )


def _matrices(dimensions: Iterable[DimensionRow]) -> tuple[Matrix, ...]:
    return tuple(
        Matrix(
            track=track,
            dimensions=found.dimensions,
            values=found.matrix,
            n=max((n for row in found.pairs for n in row), default=0),
        )
        for track, found in dimension_correlations(dimensions).items()
    )


def report_data(reader: RunReader, measured: Measured) -> ReportData:
    """Everything the report shows, from the folder alone."""
    manifest = journal.manifest(reader)
    settings = manifest["settings"]
    protocol = settings["protocol"]
    return ReportData(
        study_name=settings["name"],
        results=measured.results.model_dump(mode="json"),
        cells=cell_records(reader),
        cards=tuple(CardLabel(id=id_, **card) for id_, card in manifest["cards"].items()),
        users=tuple(_user(id_, user) for id_, user in settings["users"].items()),
        candidates=tuple(
            _candidate(name, candidate, manifest["message_forms"])
            for name, candidate in settings["candidates"].items()
        ),
        repetitions=protocol["repetitions"],
        depth_limit=protocol["depth_limit"],
        sampled_replies=protocol["sampled_replies"],
        seed=protocol["seed"],
        resample=protocol.get("resample", 0),
        models=model_uses(reader),
        rubrics=(load_shared("generic"), load_shared("session")),
        correlations=measured.correlations,
        settings=tuple(_facts(settings)),
        fingerprints=tuple(_fingerprints(manifest)),
        warnings=(
            *manifest.get("warnings", ()),
            *warnings_of(kept(reader.path)),
            *reader.warnings,
        ),
        manifest=manifest,
        finished=_last_written(reader),
    )


def _user(user_id: str, user: Json) -> UserSetting:
    simulator = user["simulator"]
    return UserSetting(
        user_id=user_id,
        simulator=simulator["kind"],
        model=simulator["model"],
        temperature=simulator["temperature"],
    )


def _candidate(name: str, candidate: Json, forms: dict[str, str]) -> CandidateSetting:
    return CandidateSetting(
        name=name,
        model=candidate["model"],
        prompt=candidate["prompt"],
        temperature=candidate["temperature"],
        message_form=forms[name],
    )


def _facts(settings: Json) -> Iterator[Fact]:
    """The settings as "path: value", flattened, without what other tables show."""
    for path, value in _flat(settings, ""):
        if not path.endswith("sha256"):
            yield Fact(name=path, value=value)


def _flat(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else key)
    elif value not in (None, [], ""):
        yield path, str(value)


def _fingerprints(manifest: Json) -> Iterator[Fingerprint]:
    for path, value in _flat(manifest["settings"], ""):
        if path.endswith("sha256"):
            kind, _, name = path.removesuffix("sha256").strip("._").partition(".")
            yield Fingerprint(kind=kind, name=name or kind, sha256=value)


def _last_written(reader: RunReader) -> str:
    last = ""
    for line in journal.cells(reader):
        last = line.at
    return last.replace("T", " ").replace("+00:00", " UTC")
