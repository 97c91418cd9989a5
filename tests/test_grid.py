"""The paper's whole grid in small: 5 users × 10 cards × 16 candidates × 2 = 1,600 trajectories.

Every role is played by a function of the call. The planted satisfaction of user u with candidate c
is 1 + (u + c) mod 5; generic dimensions are all 4, session dimensions all 2.
"""

import json
import re

import pytest

from palate import manifest
from palate.prepare import prepare
from palate.results import measure
from palate.run import run
from palate.store import RunFolder
from worlds import Answering, write_study

USERS, CARDS, CANDIDATES = 5, 10, 16


def planted(user: int, candidate: int) -> int:
    return 1 + (user + candidate) % 5


def answer(request):
    purpose = request.purpose
    if purpose.role != "judge":
        return f"{purpose.role} speaks, turn {purpose.turn}"
    user, _, candidate, _ = purpose.cell.split("/")
    if purpose.track == "personal":
        return json.dumps({"satisfaction": planted(int(user[1:]), int(candidate[1:]))})
    score = 4 if purpose.track == "generic" else 2
    asked = re.findall(r'"([GS]\d+)": "<', request.messages[0].text)
    return json.dumps(dict.fromkeys(asked, score))


class Pool:
    """Opens one model for every role."""

    def __init__(self):
        self.model = Answering(answer)

    def open(self, spec, **_details):
        return self.model

    def width(self):
        return 50


@pytest.mark.slow
async def test_the_papers_grid_gives_the_planted_indices(tmp_path):
    """P̄(c) = (1+2+3+4+5)/5 = 3 for every c: U 60; G = 4, S = 2: G-Score 60, Overall 60."""
    study = write_study(
        tmp_path / "study",
        users=[f"u{n}" for n in range(USERS)],
        cards=[f"k{n}" for n in range(CARDS)],
        candidates=[f"c{n:02}" for n in range(CANDIDATES)],
        depth=3,
        sampled=2,
        model="local:smollm2-135m",
        judge="openai:judge@http://127.0.0.1:1/v1",
    )
    prepared = prepare(study)
    about = manifest.about(prepared, run_id="grid", created_at="")
    with RunFolder(tmp_path / "run", manifest.settings(prepared), about=about) as folder:
        outcome = await run(prepared, folder, Pool())
        results = measure(folder).results
    assert (outcome.done, outcome.planned) == (1600, 1600)
    assert len(results.candidates) == CANDIDATES
    for number, candidate in enumerate(results.candidates):
        assert candidate.u_score.mean == pytest.approx(60)
        assert candidate.g_score.mean == pytest.approx(60)
        assert candidate.overall.mean == pytest.approx(60)
        for user in range(USERS):
            score = candidate.personal[f"u{user}"]
            assert score.mean == planted(user, number)
            assert (score.replies, score.trajectories) == (40, 20)
        assert candidate.coverage.sessions_planned == USERS * CARDS * 2
        assert candidate.coverage.scored == candidate.coverage.replies == USERS * CARDS * 2 * 2
    best = {u: [f"c{c:02}" for c in range(CANDIDATES) if planted(u, c) == 5] for u in range(USERS)}
    assert {user: list(names) for user, names in results.winners.items()} == {
        f"u{user}": names for user, names in best.items()
    }
    assert results.rank_stability["user:u0"].spearman == pytest.approx(1.0)
    assert results.rank_stability["u_score"].spearman is None  # all equal: undefined, not 1
