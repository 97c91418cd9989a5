"""From a run folder to numbers: score rows, results.json and report.html.

Everything is read from the folder alone, so that a report can be written anew wherever the folder
was copied to. Cells are streamed: only one is in memory at a time, whatever the size of the run.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from palate.aggregate import (
    DimensionRow,
    Results,
    aggregate,
    dimension_correlations,
    dimension_table,
    with_dimensions,
)
from palate.errors import InputError
from palate.models.client import Role
from palate.models.spec import Price
from palate.report.data import (
    CandidateSetting,
    CardLabel,
    CellRecord,
    Fact,
    Failure,
    Fingerprint,
    Matrix,
    ModelUse,
    ReportData,
    UserSetting,
)
from palate.rubrics.shared import load_shared
from palate.run import message_of
from palate.store import Json, RunReader
from palate.types import (
    Cell,
    Judgement,
    ScoreRow,
    Track,
    Trajectory,
    TrajectoryEnd,
    Usage,
)

TURN_TRACKS: tuple[Track, ...] = ("personal", "generic")


class Measured(NamedTuple):
    """The results of a run, and what a report shows beside them."""

    results: Results
    correlations: tuple[Matrix, ...]


@dataclass(slots=True)
class _Gathered:
    """Lines of the journals that belong to one cell; the first of a doubled pair counts."""

    steps: dict[int, Json] = field(default_factory=dict)
    judgements: dict[tuple[str, int | None], Json] = field(default_factory=dict)
    failures: list[Json] = field(default_factory=list)


def planned_cells(manifest: Json) -> list[Cell]:
    """Every cell of the study that the run belongs to, in the order of its plan."""
    settings = manifest["settings"]
    return [
        Cell(user, card, candidate, repetition)
        for repetition, card, user, candidate in itertools.product(
            range(1, settings["protocol"]["repetitions"] + 1),
            settings["cards"],
            settings["users"],
            settings["candidates"],
        )
    ]


def measure(reader: RunReader) -> Measured:
    """Aggregate all that the folder holds (paper 3.3).

    Raises:
        InputError: nothing is scored or planned yet, or verdicts of two score kinds are mixed.
    """
    manifest = reader.manifest()
    seed = int(manifest["settings"]["protocol"]["seed"])
    rows: list[ScoreRow] = []
    dimensions: list[DimensionRow] = []
    kinds: dict[str, set[str]] = defaultdict(set)
    for record in cell_records(reader):
        rows += score_rows(record)
        dimensions += _dimension_rows(record)
        for judgement in record.judgements:
            if judgement.unscored is None:
                kinds[judgement.track].add(judgement.score_kind)
    _refuse_mixed_kinds(reader, kinds)
    results = with_dimensions(aggregate(rows, seed=seed), dimension_table(dimensions, seed=seed))
    return Measured(results, _matrices(dimensions))


def cell_records(reader: RunReader) -> Iterator[CellRecord]:
    """One record a planned cell, in the order of the plan, with all that came of it."""
    manifest = reader.manifest()
    gathered: dict[str, _Gathered] = defaultdict(_Gathered)
    for record in reader.records("messages"):
        gathered[record["cell"]].steps.setdefault(record["n"], record)
    for record in reader.records("judgements"):
        key = (record["track"], record["reply"])
        gathered[record["cell"]].judgements.setdefault(key, record)
    for record in reader.records("failures"):
        gathered[record["cell"]].failures.append(record)
    openings: dict[str, str] = manifest["openings"]
    for cell in planned_cells(manifest):
        yield _cell_record(
            cell, gathered.pop(cell.key, _Gathered()), openings[f"{cell.user_id}/{cell.card_id}"]
        )


def _cell_record(cell: Cell, lines: _Gathered, opening: str) -> CellRecord:
    steps = [lines.steps[n] for n in sorted(lines.steps)]
    messages = tuple(m for m in map(message_of, steps) if m is not None)
    ended_by: TrajectoryEnd | None = steps[-1]["ended_by"] if steps else None
    judgements = tuple(Judgement.model_validate(j) for j in lines.judgements.values())
    if ended_by is None and judgements:  # depth 0: a trajectory without a step
        ended_by = "depth_limit"
    trajectory = None
    if ended_by is not None:
        trajectory = Trajectory(cell=cell, opening=opening, messages=messages, ended_by=ended_by)
    return CellRecord(
        cell=cell,
        trajectory=trajectory,
        opening=opening,
        so_far=() if trajectory else messages,
        judgements=judgements,
        failures=tuple(_failure(record) for record in lines.failures),
        usage=sum((Usage(*step["usage"]) for step in steps), start=Usage()),
    )


def _failure(record: Json) -> Failure:
    return Failure(
        cell=record["cell"],
        role=record["role"],
        error=f"{record['kind']}: {record['error']}",
        when=record["at"],
    )


def score_rows(record: CellRecord) -> list[ScoreRow]:
    """A row a verdict, scored or not, and rows without a score for what has none yet.

    A planned cell without a verdict of a track is a row with reply and score empty, so that
    coverage counts it.
    """
    cell = record.cell
    rows = [
        ScoreRow(*cell, track=j.track, reply=j.reply, score=j.overall) for j in record.judgements
    ]
    present = {row.track for row in rows}
    missing: tuple[Track, ...] = (*TURN_TRACKS, "session")
    rows += [ScoreRow(*cell, track=t, reply=None, score=None) for t in missing if t not in present]
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
    manifest = reader.manifest()
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
        models=model_uses(reader),
        rubrics=(load_shared("generic"), load_shared("session")),
        correlations=measured.correlations,
        settings=tuple(_facts(settings)),
        fingerprints=tuple(_fingerprints(manifest)),
        warnings=tuple(reader.warnings),
        manifest=manifest,
        finished=_last_written(reader),
    )


def model_uses(reader: RunReader) -> tuple[ModelUse, ...]:
    """Calls, tokens and money by role and model, over all calls that the folder knows of."""
    manifest = reader.manifest()
    settings = manifest["settings"]
    prices = {spec: Price.model_validate(price) for spec, price in manifest["prices"].items()}
    uses: dict[tuple[Role, str], _Use] = defaultdict(_Use)
    for record in reader.records("messages"):
        user, _, candidate, _ = record["cell"].split("/")
        role: Role = "candidate" if record["speaker"] == "character" else "simulator"
        model = (
            settings["candidates"][candidate]["model"]
            if role == "candidate"
            else settings["users"][user]["simulator"]["model"]
        )
        uses[role, model].add(record["model"], record["attempts"], Usage(*record["usage"]))
    for record in reader.records("judgements"):
        usage = Usage(*record["usage"])
        uses["judge", record["judge"]].add(record["judge_revision"], record["attempts"], usage)
    return tuple(
        ModelUse(
            role=role,
            model=model,
            revisions=tuple(sorted(use.revisions - {""})),
            calls=use.calls,
            usage=use.usage,
            cost=prices[model].cost(use.usage) if model in prices else None,
        )
        for (role, model), use in sorted(uses.items())
    )


@dataclass(slots=True)
class _Use:
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    revisions: set[str] = field(default_factory=set)

    def add(self, revision: str, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage += usage
        self.revisions.add(revision)


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
    for record in reader.records("cells"):
        last = record["at"]
    return last.replace("T", " ").replace("+00:00", " UTC")
