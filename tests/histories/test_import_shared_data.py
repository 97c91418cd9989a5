"""Two public data sets beside the repository, through a mapping file, against their own counts."""

from collections import Counter
from pathlib import Path

import pytest

from palate.histories.adding import added
from palate.histories.importing import Options, read_file
from palate.histories.mapping import HistoryMap

DATA = Path(__file__).parents[3] / "shared" / "data"
FIELDS = {
    "session": "session_id",
    "user": "user_id",
    "character": "character.name",
    "language": "language",
    "turns": "turns",
    "speaker": "role",
    "text": "text",
}


def found(name, mapping):
    path = DATA / name / "sessions.jsonl.gz"
    if not path.exists():
        pytest.skip("the data sets are not beside the repository")
    return list(read_file(path, Options(mapping=mapping)).items)


def test_dbdc3_has_the_sessions_raters_and_rated_turns_that_its_readme_counts():
    mapping = HistoryMap.model_validate(
        {"fields": FIELDS | {"rating": "rating"}, "scale": {"1": 1, "2": 3, "3": 5}}
    )
    sessions = [item.session for item in found("dbdc3", mapping)]
    labels = [turn.satisfaction for session in sessions for turn in session.turns]
    assert len(sessions) == 1611
    assert len({session.user_id for session in sessions}) == 20
    assert sum(label is not None for label in labels) == 16185
    first = Counter(
        turn.satisfaction
        for session in sessions
        if session.user_id == "dbdc3-en-r01"
        for turn in session.turns
    )
    assert (first[5], first[3], first[1]) == (1131, 506, 193)


def test_realpersonachat_has_the_sessions_and_utterances_that_its_readme_counts():
    mapping = HistoryMap.model_validate({"fields": FIELDS | {"session_rating": "session_rating"}})
    items = found("realpersonachat", mapping)
    sessions = [item.session for item in items]
    assert len(sessions) == 1834
    assert len({session.user_id for session in sessions}) == 10
    turns = [turn for session in sessions for turn in session.turns]
    assert sum(turn.speaker == "user" for turn in turns) == 27618
    assert all(turn.satisfaction is None for turn in turns)
    scores = Counter(
        session.extra["session_rating"]["satisfaction"]
        for session in sessions
        if session.user_id == "DA"
    )
    assert scores == {1: 11, 2: 34, 3: 53, 4: 61, 5: 39}
    # One session of this user stands in the file twice; a history holds it once.
    assert added((), [item for item in items if item.session.user_id == "FA"]).already == (
        "rpc-11838",
    )
