"""From a run folder to numbers: nothing mixed, nothing that was not said, nothing forgotten."""

from __future__ import annotations

import json

import pytest

from palate.errors import InputError
from palate.prepare import prepare
from palate.results import measure
from palate.run import run
from palate.store import RunFolder
from test_grid import Pool, answer
from worlds import Answering, write_study


@pytest.fixture
def prepared(tmp_path):
    model = "openai:m@http://127.0.0.1:9/v1"
    folder = write_study(
        tmp_path / "study", users=("u1",), cards=("k1", "k2"), candidates=("c1",), model=model
    )
    return prepare(folder)


async def played(prepared, path, *, pool=None, limit=None):
    """The run folder's path after a run."""
    about = prepared.about(run_id="r", created_at="")
    with RunFolder(path, prepared.settings, about=about) as folder:
        await run(prepared, folder, pool or Pool(), limit=limit)
    return path


def measured(prepared, path):
    with RunFolder(path, prepared.settings) as folder:
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
