"""What is done is not asked for again: a run goes on from the call that failed."""

from __future__ import annotations

import json
from collections import Counter

from palate import manifest
from palate.errors import TransportError
from palate.prepare import prepare
from palate.run import run
from palate.store import RunFolder
from test_grid import Pool, answer
from worlds import Answering, write_study


async def played(prepared, path, answering):
    """How a run went, and which verdicts and messages were asked for."""
    asked = []

    def remembering(request):
        asked.append((request.purpose.role, request.purpose.track, request.purpose.turn))
        return answering(request)

    pool = Pool()
    pool.model = Answering(remembering)
    about = manifest.about(prepared, run_id="r", created_at="")
    with RunFolder(path, manifest.settings(prepared), about=about) as folder:
        outcome = await run(prepared, folder, pool)
    return outcome, Counter(asked)


def study(folder):
    """One cell of three turns with two judged replies."""
    return prepare(
        write_study(
            folder,
            users=("u1",),
            cards=("k1",),
            candidates=("c1",),
            repetitions=1,
            depth=3,
            sampled=2,
            model="openai:m@http://127.0.0.1:9/v1",
        )
    )


async def test_a_verdict_that_came_back_is_kept_when_another_of_its_cell_did_not(tmp_path):
    def failing(request):
        if request.purpose.track == "generic" and request.purpose.turn == 1:
            raise TransportError("no answer")
        return answer(request)

    prepared = study(tmp_path / "study")
    outcome, asked = await played(prepared, tmp_path / "run", failing)
    assert (outcome.done, outcome.failures, asked.total()) == (0, 1, 3 + 3 + 5)
    outcome, asked = await played(prepared, tmp_path / "run", answer)
    assert outcome.done == 1
    assert asked == {("judge", "generic", 1): 1}
    lines = (tmp_path / "run" / "judgements.jsonl").read_text("utf-8").splitlines()
    assert len({(json.loads(x)["track"], json.loads(x)["reply"]) for x in lines}) == len(lines) == 5


async def test_a_chat_goes_on_in_the_middle_with_the_side_that_failed(tmp_path):
    def failing(request):
        if request.purpose.role == "candidate" and request.purpose.turn == 1:
            raise TransportError("no answer")
        return answer(request)

    prepared = study(tmp_path / "study")
    outcome, asked = await played(prepared, tmp_path / "run", failing)
    assert (outcome.done, asked.total()) == (0, 4)
    outcome, asked = await played(prepared, tmp_path / "run", answer)
    assert outcome.done == 1
    played_again = {key: n for key, n in asked.items() if key[0] != "judge"}
    assert played_again == {
        ("candidate", None, 1): 1,
        ("simulator", None, 2): 1,
        ("candidate", None, 2): 1,
    }
