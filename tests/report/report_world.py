"""A synthetic run for the report: 2 users × 3 cards × 3 candidates × 2, with every kind of end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from palate.aggregate import (
    DimensionRow,
    aggregate,
    dimension_correlations,
    dimension_table,
    with_dimensions,
)
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
from palate.types import TRACKS, Cell, Judgement, Message, ScoreRow, Track, Trajectory, Usage

GENERIC = load_shared("generic")
SESSION = load_shared("session")
TASTE = {
    ("ada", "captain"): 4.2,
    ("ada", "terse"): 3.1,
    ("ben", "captain"): 3.3,
    ("ben", "terse"): 4.0,
}


@dataclass(frozen=True)
class Words:
    """The texts that strangers and models write; hostile ones in some tests."""

    message: str = (
        "“Keep her off the sandbar,” I say, and hand you the lamp. What do you see out there?"
    )
    reason: str = "Answers the question, then leaves the next move to the user."
    error: str = "HTTP 503 from http://127.0.0.1:8000/v1 after 5 attempts"
    card_name: str = "Harbour master Ilse"
    file: str = "cards/harbour.json"
    model: str = "openai:my-rpa@http://127.0.0.1:8000/v1"
    study: str = "harbour"
    candidate: str = "captain"
    raw: str = '{"score": 4, "reason": "Answers the question."}'


PLAIN = Words()


def _known(cell: Cell) -> str:
    """The candidate's plain name: hostile names change no score."""
    return cell.candidate if cell.candidate in ("terse", "rambler") else "captain"


def verdict(
    cell: Cell, track: Track, reply: int | None, words: Words, chance: random.Random
) -> Judgement:
    rubric = {"generic": GENERIC, "session": SESSION}.get(track)
    names = [d.id for d in rubric.dimensions] if rubric else ["satisfaction"]
    level = TASTE.get((cell.user_id, _known(cell)), 3.0)
    scores: dict[str, float | None] = {
        name: float(min(5, max(1, round(chance.gauss(level, 0.8))))) for name in names
    }
    if "G5" in scores:
        scores["G5"] = None
    given = [score for score in scores.values() if score is not None]
    return Judgement(
        cell=cell.key,
        track=track,
        reply=reply,
        trajectory="a" * 64,
        rubric={"personal": "b", "generic": "c", "session": "d"}[track] * 64,
        prompt="e" * 64,
        judge="openai:gpt-5.5",
        judge_revision="gpt-5.5-2026-03-01",
        reaction_shown=track == "personal",
        scores=scores,
        overall=sum(given) / len(given),
        reason=words.reason,
        raw=words.raw,
        usage=Usage(1200, 60, 900),
    )


def unscored(judgement: Judgement, reason: str) -> Judgement:
    return judgement.model_copy(update={"scores": {}, "overall": None, "unscored": reason})


def record(cell: Cell, words: Words, turns: int) -> CellRecord:
    chance = random.Random(f"{cell.user_id}/{cell.card_id}/{_known(cell)}/{cell.repetition}")
    messages: list[Message] = []
    for turn in range(turns):
        asked = Message(
            speaker="user",
            text=f"({turn + 1}) and then? {words.message if turn % 3 == 1 else 'I look up.'}",
        )
        reply = Message(speaker="character", text=f"{words.message} {chance.randint(1, 10**6)}")
        messages += [asked, reply]
    judgements = [
        verdict(cell, track, reply, words, chance)
        for track in ("personal", "generic")
        for reply in range(min(turns, 4))
    ]
    judgements.append(verdict(cell, "session", None, words, chance))
    messages.append(Message(speaker="user", text="Good night, captain."))
    return CellRecord(
        cell=cell,
        trajectory=Trajectory(
            cell=cell,
            opening=f"The lamp is lit. {words.message}",
            messages=tuple(messages),
            ended_by="quit",
        ),
        judgements=tuple(judgements),
        usage=Usage(5400, 610, 3000),
    )


def blocked(cell: Cell, words: Words) -> CellRecord:
    messages = (
        Message(speaker="user", text="Tell me how you came by the scar.", flags=("repetition",)),
    )
    trajectory = Trajectory(
        cell=cell, opening="The lamp is lit.", messages=messages, ended_by="candidate_blocked"
    )
    verdict_of_nothing = unscored(
        verdict(cell, "personal", None, words, random.Random(0)), "no reply to score"
    )
    return CellRecord(cell=cell, trajectory=trajectory, judgements=(verdict_of_nothing,))


def cut_short(cell: Cell, words: Words) -> CellRecord:
    failure = Failure(cell=cell.key, role="candidate", error=words.error, turn=1)
    said = (
        Message(speaker="user", text=words.message),
        Message(speaker="character", text="“Sit.”", finish="length", flags=("refusal_in_words",)),
    )
    return CellRecord(
        cell=cell, trajectory=None, opening="The lamp is lit.", so_far=said, failures=(failure,)
    )


def cells(words: Words = PLAIN, *, turns: int = 6) -> Iterator[CellRecord]:
    names = (words.candidate, "terse", "rambler")
    for repetition, card, user, candidate in product(
        (1, 2), ("harbour", "archive", "greenhouse"), ("ada", "ben"), names
    ):
        cell = Cell(user, card, candidate, repetition)
        if (user, card, candidate, repetition) == ("ben", "archive", "rambler", 1):
            yield blocked(cell, words)
        elif (user, card, candidate, repetition) == ("ben", "harbour", "rambler", 2):
            yield cut_short(cell, words)
        else:
            made = record(cell, words, turns)
            if (candidate, card) == ("terse", "archive"):
                last = unscored(made.judgements[-1], "the verdict is not JSON")
                made = CellRecord(
                    cell,
                    made.trajectory,
                    judgements=(*made.judgements[:-1], last),
                    usage=made.usage,
                )
            yield made


def score_rows(records: list[CellRecord]) -> list[ScoreRow]:
    rows = [
        ScoreRow(*r.cell, track=j.track, reply=j.reply, score=j.overall)
        for r in records
        for j in r.judgements
    ]
    rows += [
        ScoreRow(*r.cell, track=t, reply=None, score=None)
        for r in records
        for t in TRACKS
        if t not in {j.track for j in r.judgements}
    ]
    return rows


def dimension_rows(records: list[CellRecord]) -> list[DimensionRow]:
    return [
        DimensionRow(
            r.cell.candidate,
            r.cell.user_id,
            r.cell.card_id,
            r.cell.repetition,
            j.track,
            j.reply,
            name,
            value,
        )
        for r in records
        for j in r.judgements
        if j.track != "personal" and j.unscored is None
        for name, value in j.scores.items()
    ]


def report_data(
    words: Words = PLAIN, *, judge: str = "openai:gpt-5.5", turns: int = 6
) -> ReportData:
    records = list(cells(words, turns=turns))
    dimensions = dimension_rows(records)
    results = with_dimensions(
        aggregate(score_rows(records), draws=200), dimension_table(dimensions, draws=200)
    )
    return ReportData(
        study_name=words.study,
        results=results.model_dump(mode="json"),
        cells=iter(records),
        cards=(
            CardLabel(id="harbour", name=words.card_name, file=words.file),
            CardLabel(id="archive", name="The archivist", file="cards/archive.json"),
            CardLabel(
                id="greenhouse", name="温室管理员", language="zh", file="cards/greenhouse.json"
            ),
        ),
        users=(
            UserSetting(
                user_id="ada",
                simulator="profile",
                model="openai:my-sim@http://127.0.0.1:8001/v1",
                temperature=0.9,
            ),
            UserSetting(
                user_id="ben", simulator="prompted", model="openai:my-sim@http://127.0.0.1:8001/v1"
            ),
        ),
        candidates=(
            CandidateSetting(
                name=words.candidate,
                model=words.model,
                temperature=0.8,
                message_form="system, then assistant and user in turn",
            ),
            CandidateSetting(
                name="terse", model=words.model, prompt="prompts/terse.md", temperature=0.2
            ),
            CandidateSetting(name="rambler", model=words.model, temperature=1.3),
        ),
        repetitions=2,
        depth_limit=20,
        sampled_replies=4,
        seed=7,
        models=(
            ModelUse(
                role="simulator",
                model="openai:my-sim@http://127.0.0.1:8001/v1",
                calls=252,
                usage=Usage(180_400, 9_900, 120_000),
            ),
            ModelUse(
                role="candidate",
                model=words.model,
                revisions=("rpa-2026-02",),
                calls=216,
                usage=Usage(250_100, 21_300, 0),
            ),
            ModelUse(
                role="judge",
                model=judge,
                revisions=("gpt-5.5-2026-03-01",),
                calls=324,
                usage=Usage(402_000, 30_400, 310_000),
                cost=1.2345,
            ),
        ),
        rubrics=(GENERIC, SESSION),
        correlations=tuple(
            Matrix(
                track=track,
                dimensions=found.dimensions,
                values=found.matrix,
                n=max(n for row in found.pairs for n in row),
            )
            for track, found in dimension_correlations(dimensions).items()
        ),
        settings=(
            Fact(name="protocol.depth_limit", value="20"),
            Fact(name="judge.form", value="json"),
            Fact(name="endpoints.http://127.0.0.1:8000/v1.max_concurrency", value="64"),
        ),
        fingerprints=(
            Fingerprint(kind="prompt", name="judge_generic.en.md", sha256="0f" * 32),
            Fingerprint(kind="card", name="harbour", sha256="1e" * 32),
            Fingerprint(kind="rubric", name="ada", sha256="2d" * 32),
        ),
        manifest={"schema": "palate.run/1", "settings": {"name": words.study}},
        finished="2026-03-02 14:05 UTC",
    )
