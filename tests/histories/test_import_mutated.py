"""Whatever stands where in a file: sessions, or a refusal in one sentence."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from palate.errors import InputError
from palate.histories.adding import line
from palate.histories.importing import Options, read_file
from palate.histories.mapping import HistoryMap

NAMES = """mes is_user is_system name swipes swipe_id send_date extra type user_name character_name
chat_metadata messages role content text conversations from value visible data_visible internal msg
userId characterId histories msgs src is_human info character session_id user_id card_id turns
speaker satisfaction note ended_by language"""
KEYS = st.sampled_from(NAMES.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["user", "character", "assistant", "human", "system", "hi", "", "1", "{{user}}"]
    )
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)
MAPPING = HistoryMap.model_validate(
    {
        "fields": {
            "session": "session_id",
            "turns": "turns",
            "speaker": "role",
            "text": "text",
            "rating": "value",
            "swipes": "swipes",
            "date": "send_date",
            "thumb": "type",
            "end": "ended_by",
            "character": "info.character.name",
        }
    }
)


def outcome(content, mapping):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_bytes(content)
        try:
            items, refusal = read_file(path, Options(user="u1", mapping=mapping)).items, ""
        except InputError as error:
            items, refusal = (), str(error)
    assert bool(items) != bool(refusal)
    assert "\n" not in refusal
    for item in items:
        assert item.session.turns
        assert line(item.session).encode()


@settings(max_examples=80, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_any_json_gives_sessions_or_one_sentence(values, as_lines, with_mapping):
    whole = json.dumps(values)
    text = "\n".join(json.dumps(value) for value in values) if as_lines else whole
    outcome(text.encode(), MAPPING if with_mapping else None)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 200))
def test_any_bytes_in_a_chat_give_sessions_or_one_sentence(noise, at):
    chat = json.dumps({"name": "Ash", "is_user": False, "mes": "Yes?"}).encode() + b"\n"
    content = chat * 3
    outcome(content[:at] + noise + content[at:], None)
