"""OpenAI messages and ShareGPT: no assumption about who begins, alternates or is called what."""

import pytest

from chat_files import document, imported, lines, noted, session, turns
from palate.errors import InputError
from palate.models.client import ChatMessage
from palate.models.shapes import ShapeRules, shape

RUNS = {
    "messages": [
        {"role": "system", "content": "You are Oak."},
        {"role": "system", "content": "Speak slowly."},
        {"role": "user", "content": "Oak?"},
        {"role": "user", "content": "Are you awake?"},
        {"role": "assistant", "content": "Mm."},
        {"role": "assistant", "content": None},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Awake"}, {"type": "text", "text": " now."}],
        },
        {"role": "user", "content": "   "},
        {"role": "user", "content": "Good."},
    ]
}


def test_a_chat_may_begin_with_the_character(tmp_path):
    said = [
        {"from": "gpt", "value": "Welcome to the inn."},
        {"from": "human", "value": "A room, please."},
        {"from": "gpt", "value": "Upstairs, left."},
    ]
    path = document(tmp_path / "a.json", [{"id": "x1", "conversations": said}])
    assert imported(path).format == "sharegpt"
    assert session(path).session_id == "x1"
    assert turns(path) == [
        ("character", "Welcome to the inn."),
        ("user", "A room, please."),
        ("character", "Upstairs, left."),
    ]
    assert noted(path) == []


def test_an_unknown_role_is_reported_with_its_place_and_never_taken_for_the_user(tmp_path):
    said = [
        {"from": "human", "value": "Hi"},
        {"from": "narrator", "value": "Thunder."},
        {"from": "chatgpt", "value": "Inside, quick!"},
        {"from": "human", "value": ""},
    ]
    path = document(tmp_path / "b.json", [{"conversations": said}])
    assert turns(path) == [("user", "Hi"), ("character", "Inside, quick!")]
    assert session(path).extra["aside"] == [
        {"before_turn": 1, "speaker": "unknown:narrator", "text": "Thunder."}
    ]
    assert noted(path) == [("speaker", "item 1, message 2"), ("blank", "item 1, message 4")]


def test_runs_of_one_speaker_stay_separate_and_blank_messages_are_counted(tmp_path):
    path = document(tmp_path / "c.json", RUNS)
    assert imported(path).format == "openai"
    assert turns(path) == [
        ("user", "Oak?"),
        ("user", "Are you awake?"),
        ("character", "Mm."),
        ("character", "Awake now."),
        ("user", "Good."),
    ]
    assert [one["text"] for one in session(path).extra["aside"]] == [
        "You are Oak.",
        "Speak slowly.",
    ]
    assert [kind for kind, _ in noted(path)] == ["system", "system", "blank", "blank"]


def test_runs_are_merged_only_in_a_request_to_an_endpoint_that_wants_alternation(tmp_path):
    one = session(document(tmp_path / "c.json", RUNS))
    roles = {"character": "assistant", "user": "user", "system": "system"}
    aside = [ChatMessage(roles[m["speaker"]], m["text"]) for m in one.extra["aside"]]
    said = [ChatMessage(roles[turn.speaker], turn.text) for turn in one.turns]
    sent = shape((*aside, *said), ShapeRules(alternate=True, max_system=1)).messages
    assert [tuple(message) for message in sent] == [
        ("system", "You are Oak.\n\nSpeak slowly."),
        ("user", "Oak?\n\nAre you awake?"),
        ("assistant", "Mm.\n\nAwake now."),
        ("user", "Good."),
    ]


def test_a_last_word_without_an_answer_stays(tmp_path):
    said = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three, unanswered"},
    ]
    path = lines(tmp_path / "d.jsonl", {"messages": said})
    assert turns(path) == [("user", "one"), ("character", "two"), ("user", "three, unanswered")]


def test_a_file_with_nothing_usable_says_that_no_turns_were_found(tmp_path):
    said = [{"role": "system", "content": "nothing else"}]
    path = document(tmp_path / "e.json", {"messages": said})
    with pytest.raises(InputError, match="no turns found") as refused:
        imported(path)
    assert str(path) in str(refused.value)


def test_unusual_key_names_are_taken_and_said(tmp_path):
    said = [{"role": "user", "text": "Key names differ."}, {"role": "bot", "text": "They do."}]
    path = document(tmp_path / "f.json", [{"conversation": said}])
    assert turns(path) == [("user", "Key names differ."), ("character", "They do.")]
    (note,) = [note for note in imported(path).notes.listed if note.kind == "keys"]
    assert note.detail == '"conversation" / "role" / "text"'


def test_keys_that_nobody_knows_are_named_in_the_refusal(tmp_path):
    path = document(tmp_path / "g.json", [{"talk": [{"who": "user", "words": "hi"}]}])
    with pytest.raises(InputError, match='no turns found under the keys "talk", "who", "words"'):
        imported(path)


@pytest.mark.parametrize("form", ["object", "list", "lines", "bare", "bare lines"])
def test_openai_messages_come_in_any_of_their_packings(tmp_path, form):
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Yes?"}]
    path = tmp_path / "x.json"
    if form == "object":
        document(path, {"messages": said})
    elif form == "list":
        document(path, [{"messages": said}])
    elif form == "lines":
        lines(path, {"messages": said})
    elif form == "bare":
        document(path, said)
    else:
        lines(path, *said)
    assert imported(path).format == "openai"
    assert turns(path) == [("user", "hi"), ("character", "Yes?")]


def test_each_rating_stays_with_its_own_message(tmp_path):
    said = [
        {"role": "user", "content": "hi", "satisfaction": 5},
        {"role": "assistant", "content": "one", "satisfaction": 2, "note": "flat"},
        {"role": "assistant", "content": "two", "satisfaction": 4.0},
        {"role": "assistant", "content": "three", "satisfaction": 9},
    ]
    path = document(tmp_path / "x.json", {"messages": said})
    one = session(path)
    assert [(turn.satisfaction, turn.note) for turn in one.turns] == [
        (None, None),
        (2, "flat"),
        (4, None),
        (None, None),
    ]
    assert {number: kept["rating"] for number, kept in one.extra["turns"].items()} == {
        "0": 5,
        "3": 9,
    }
    assert noted(path) == [("rating", "message 1"), ("scale", "message 4")]


def test_pictures_are_named_and_their_text_is_kept(tmp_path):
    parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "Look!"}]
    path = document(tmp_path / "x.json", {"messages": [{"role": "user", "content": parts}]})
    assert turns(path) == [("user", "Look!")]
    assert noted(path) == [("attachment", "message 1")]


def test_a_system_text_beside_the_conversation_is_no_turn(tmp_path):
    value = {"system": "You are Oak.", "conversations": [{"from": "human", "value": "hi"}]}
    path = document(tmp_path / "x.json", [value])
    assert turns(path) == [("user", "hi")]
    assert noted(path) == [("system", "item 1, system")]


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [None, 3, "text", ["x"], {}, {"role": None}, {"role": "user", "content": {}}]},
        {"messages": [{"role": ["user"], "content": "x"}]},
        {"conversations": [None, {"from": 3, "value": [None]}]},
        {"conversations": {"from": "human", "value": "x"}},
    ],
)
def test_messages_of_wrong_types_are_refused_in_a_sentence(tmp_path, value):
    with pytest.raises(InputError, match="no turns found"):
        imported(document(tmp_path / "x.json", value))


def test_refusals_in_words_and_texts_of_openais_threads_are_texts(tmp_path):
    path = document(
        tmp_path / "x.json",
        [
            {"role": "user", "content": [{"type": "text", "text": {"value": "hi"}}]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]},
            {"role": "user", "content": "why?"},
            {"role": "assistant", "content": None, "refusal": "I may not."},
        ],
    )
    assert [text for _, text in turns(path)] == ["hi", "I can't.", "why?", "I may not."]


def test_a_call_of_a_tool_on_a_line_of_its_own_is_a_blank_message_and_no_damage(tmp_path):
    path = lines(
        tmp_path / "x.jsonl",
        {"role": "user", "content": "how late is it?"},
        {"role": "assistant", "tool_calls": [{"id": "1"}]},
        {"role": "assistant", "content": "nine"},
    )
    assert turns(path) == [("user", "how late is it?"), ("character", "nine")]
    assert noted(path) == [("blank", "line 2")]


def test_a_chat_that_mixes_key_names_loses_no_message(tmp_path):
    said = [
        {"from": "human", "value": "hi"},
        {"role": "assistant", "content": "Yes?"},
        {"from": "gpt", "text": "Well?"},
    ]
    path = document(tmp_path / "x.json", [{"conversations": said}])
    assert turns(path) == [("user", "hi"), ("character", "Yes?"), ("character", "Well?")]
