"""From a run folder to numbers: nothing mixed, nothing that was not said, nothing forgotten."""

from __future__ import annotations

import json

import pytest

from palate import manifest
from palate.aggregate import aggregate
from palate.errors import InputError
from palate.judging.sampling import wanted
from palate.prepare import prepare
from palate.report.data import CellRecord
from palate.results import measure, report_data, score_rows
from palate.run import run
from palate.store import RunFolder
from palate.types import Cell, Judgement, Trajectory
from test_grid import Pool, answer
from test_prepare import history, with_rubric
from worlds import Answering, said, write_study


@pytest.fixture
def prepared(tmp_path):
    model = "openai:m@http://127.0.0.1:9/v1"
    folder = write_study(
        tmp_path / "study", users=("u1",), cards=("k1", "k2"), candidates=("c1",), model=model
    )
    return prepare(folder)


async def played(prepared, path, *, pool=None, limit=None):
    """The run folder's path after a run."""
    about = manifest.about(prepared, run_id="r", created_at="")
    with RunFolder(path, manifest.settings(prepared), about=about) as folder:
        await run(prepared, folder, pool or Pool(), limit=limit)
    return path


def measured(prepared, path):
    with RunFolder(path, manifest.settings(prepared)) as folder:
        return measure(folder).results


async def test_whole_and_expected_scores_are_never_mixed_in_one_table(prepared, tmp_path):
    path = await played(prepared, tmp_path / "run")
    lines = (path / "judgements.jsonl").read_text("utf-8")
    mixed = lines.replace('"score_kind":"integer"', '"score_kind":"expected"', 1)
    assert mixed != lines
    (path / "judgements.jsonl").write_text(mixed, "utf-8")
    with pytest.raises(InputError, match="mixes expected and integer scores"):
        measured(prepared, path)


async def test_an_unscored_verdict_gives_no_dimension_either(prepared, tmp_path):
    """Of four generic verdicts the two on k2 lack G12, so what they say of G1 counts neither."""

    def incomplete(request):
        text = answer(request)
        if request.purpose.track == "generic" and "/k2/" in request.purpose.cell:
            scores = json.loads(text)
            return json.dumps({key: scores[key] for key in scores if key != "G12"})
        return text

    pool = Pool()
    pool.model = Answering(incomplete)
    (candidate,) = measured(
        prepared, await played(prepared, tmp_path / "run", pool=pool)
    ).candidates
    assert (candidate.dimensions["G1"].n, candidate.dimensions["S1"].n) == (2, 4)
    assert (candidate.coverage.scored, candidate.coverage.replies) == (2, 4)


async def test_the_draws_of_cards_are_those_of_the_studys_seed(prepared, tmp_path):
    assert measured(prepared, await played(prepared, tmp_path / "run")).seed == 7


async def test_a_planned_cell_without_a_verdict_is_counted(prepared, tmp_path):
    path = await played(prepared, tmp_path / "run", limit=3)
    (candidate,) = measured(prepared, path).candidates
    assert (candidate.coverage.sessions_scored, candidate.coverage.sessions_planned) == (3, 4)
    assert "low coverage" in {mark.kind for mark in candidate.marks}


def test_a_verdict_that_is_still_to_come_is_unscored_and_not_forgotten():
    """Four of five replies are sampled on two cards; on k2 three calls did not come back."""
    rows = []
    for card, judged in (("k1", 4), ("k2", 1)):
        cell = Cell("u1", card, "A", 1)
        talk = [f"{side}{turn}" for turn in range(5) for side in "uc"]
        trajectory = Trajectory(cell=cell, opening="o", messages=tuple(said(talk)), ended_by="quit")
        items = wanted(trajectory, count=4, seed=7)
        replies = sorted({item.reply for item in items} - {None})[:judged]
        found = tuple(judgement(cell, item) for item in items if item.reply in (None, *replies))
        rows += score_rows(CellRecord(cell, trajectory, judgements=found), items)
    (candidate,) = aggregate(rows).candidates
    assert (candidate.coverage.scored, candidate.coverage.replies) == (5, 8)
    assert candidate.personal["u1"].unscored == 3
    assert candidate.marks[0].kind == "low coverage"


def judgement(cell, item):
    return Judgement(
        cell=cell.key,
        track=item.track,
        reply=item.reply,
        trajectory="",
        rubric="",
        prompt="",
        judge="j",
        reaction_shown=True,
        overall=3.0,
    )


async def test_what_flatters_the_scores_stands_on_the_page(prepared, tmp_path):
    study = prepared.study.folder
    with_rubric(study, history(study, cards=("k1", "x", "y")), "s0#0")
    flattered = prepare(study)
    path = await played(flattered, tmp_path / "run")
    with RunFolder(path, manifest.settings(flattered)) as folder:
        shown = report_data(folder, measure(folder)).warnings
    assert [w for w in shown if "flatters" in w] == list(flattered.warnings())
    assert len(shown) == 1
