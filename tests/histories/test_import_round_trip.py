"""Whatever a session holds, written as a line and imported it is the same session."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from palate.histories import read
from palate.histories.adding import added, write
from palate.histories.importing import Options, read_file
from palate.types import Session, Turn

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
words = texts.filter(lambda text: text.strip())
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
notes = st.none() | texts
turns = st.one_of(
    st.builds(Turn, speaker=st.just("user"), text=words, note=notes),
    st.builds(Turn, speaker=st.just("character"), text=words, note=notes),
    st.builds(
        Turn, speaker=st.just("character"), text=texts, note=notes, satisfaction=st.integers(1, 5)
    ),
)
sessions = st.builds(
    Session,
    session_id=words,
    user_id=st.just("u1"),
    card_id=words,
    language=st.sampled_from(["en", "zh", "ja"]),
    ended_by=st.sampled_from(["quit", "limit", "unknown"]),
    turns=st.lists(turns, min_size=1, max_size=5).map(tuple),
    extra=st.dictionaries(texts, values, max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(sessions, min_size=1, max_size=4, unique_by=lambda session: session.session_id))
def test_a_written_history_imports_back_identical(history):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "u1.jsonl")
        write(path, history)
        found = read_file(path, Options(user="u1")).items
        assert [item.session for item in found] == history
        assert added((), found).new == tuple(history)
        assert read(path) == tuple(history)
        again = added(history, found)
        assert (again.sessions, again.new) == (tuple(history), ())
