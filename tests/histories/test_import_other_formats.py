"""oobabooga, Agnai, CAI Tools and palate's own sessions."""

import pytest

from chat_files import document, imported, lines, noted, session, turns
from palate.errors import InputError
from palate.study_rules import fault_of_id
from palate.types import Session, Turn
from worlds import HOSTILE_NAMES


@pytest.mark.parametrize("key", ["data_visible", "visible"])
def test_oobabooga_shown_texts_win_and_their_entities_are_turned_back(tmp_path, key):
    value = {
        "internal": [["<|BEGIN-VISIBLE-CHAT|>", "as sent"], ["hi", "as sent too"]],
        key: [["", "Yes? I&#x27;m &lt;here&gt;."], ["hi &amp; hello", "Mm."]],
    }
    path = document(tmp_path / "ooba.json", value)
    assert imported(path).format == "oobabooga"
    assert turns(path) == [
        ("character", "Yes? I'm <here>."),
        ("user", "hi & hello"),
        ("character", "Mm."),
    ]
    assert noted(path) == []


@pytest.mark.parametrize("key", ["data", "internal"])
def test_oobabooga_without_shown_texts_begins_at_its_mark(tmp_path, key):
    pairs = [["example", "nobody said this"], ["<|BEGIN-VISIBLE-CHAT|>", "Yes? &amp;"], ["hi", ""]]
    path = document(tmp_path / "ooba.json", {key: pairs})
    assert turns(path) == [("character", "Yes? &amp;"), ("user", "hi")]


def test_oobabooga_pairs_that_are_none_are_named(tmp_path):
    path = document(tmp_path / "o.json", {"visible": [["hi", "Mm."], ["alone"], "text", None]})
    assert turns(path) == [("user", "hi"), ("character", "Mm.")]
    assert noted(path) == [("torn", "pair 2"), ("torn", "pair 3"), ("torn", "pair 4")]


def test_agnai_tells_the_sides_by_ids_and_the_character_by_its_handle(tmp_path):
    value = {
        "name": "Exported",
        "greeting": "",
        "messages": [
            {
                "characterId": "imported",
                "handle": "Ash",
                "msg": "Yes?",
                "createdAt": "2023-07-04T21:05:00Z",
            },
            {"userId": "9f", "handle": "You", "msg": "hi"},
            {"userId": "9f", "handle": "You", "msg": "(brb)", "ooc": True},
            {"handle": "Ghost", "msg": "boo"},
        ],
    }
    path = document(tmp_path / "chat-1.json", value)
    assert imported(path).format == "agnai"
    assert session(path).card_id == "Ash"
    assert session(path).extra["turns"] == {"0": {"date": "2023-07-04T21:05:00Z"}}
    assert turns(path) == [("character", "Yes?"), ("user", "hi")]
    assert noted(path) == [("hidden", "message 3"), ("speaker", "message 4")]


def test_cai_tools_histories_are_a_session_each(tmp_path):
    def message(is_human, text):
        return {"src": {"is_human": is_human, "name": "x"}, "text": text}

    value = {
        "info": {"character": {"name": "Ash"}},
        "histories": {
            "histories": [
                {"msgs": [message(False, "Yes?"), message(True, "hi")]},
                {"msgs": [message(True, "again"), {"text": "whose?"}]},
                {"msgs": []},
            ]
        },
    }
    path = document(tmp_path / "cai.json", value)
    found = imported(path)
    assert found.format == "cai-tools"
    assert [item.session.session_id for item in found.items] == ["cai-1", "cai-2"]
    assert [item.session.card_id for item in found.items] == ["Ash", "Ash"]
    assert [[turn.text for turn in item.session.turns] for item in found.items] == [
        ["Yes?", "hi"],
        ["again"],
    ]
    assert noted(path) == [("speaker", "history 2, message 2"), ("turns", "history 3")]


def own(**changes):
    return {
        "session_id": "s1",
        "user_id": "u1",
        "card_id": "ash",
        "language": "ja",
        "ended_by": "quit",
        "turns": [
            {"speaker": "character", "text": "Yes?", "satisfaction": 2, "note": "flat"},
            {"speaker": "user", "text": "hi", "at": 12},
        ],
        "extra": {"mood": "tired"},
        **changes,
    }


def test_palates_own_sessions_are_read_as_they_are(tmp_path):
    path = lines(tmp_path / "u1.jsonl", own())
    assert imported(path).format == "palate"
    assert session(path) == Session(
        session_id="s1",
        user_id="u1",
        card_id="ash",
        language="ja",
        ended_by="quit",
        turns=(
            Turn(speaker="character", text="Yes?", satisfaction=2, note="flat"),
            Turn(speaker="user", text="hi"),
        ),
        extra={"mood": "tired", "turns": {"1": {"at": 12}}},
    )


def test_one_of_palates_sessions_that_is_wrong_is_named_and_the_others_are_taken(tmp_path):
    path = lines(tmp_path / "u1.jsonl", own(), own(session_id=""), own(session_id="s3"))
    assert [item.session.session_id for item in imported(path).items] == ["s1", "s3"]
    assert noted(path) == [("refused", "line 2")]


def test_of_several_users_only_the_wanted_one_is_taken(tmp_path):
    path = lines(tmp_path / "all.jsonl", own(), own(session_id="s2", user_id="u2"))
    assert [item.session.session_id for item in imported(path).items] == ["s1"]
    assert noted(path) == [("user", "")]
    with pytest.raises(InputError, match="holds sessions of 2 users, none of them 'u3': u1, u2"):
        imported(path, user="u3")


def test_without_a_wanted_user_each_session_is_of_its_own(tmp_path):
    path = lines(tmp_path / "all.jsonl", own(), own(session_id="s2", user_id="u2"))
    assert [item.session.user_id for item in imported(path, user=None).items] == ["u1", "u2"]


def test_the_only_user_of_a_file_may_be_called_otherwise_here_and_that_is_said(tmp_path):
    path = lines(tmp_path / "u9.jsonl", own())
    assert session(path, user="ines").user_id == "ines"
    (note,) = [note for note in imported(path, user="ines").notes.listed if note.kind == "user"]
    assert note.detail == "the file calls the user 'u1'"


def test_a_user_id_that_is_no_file_name_is_refused(tmp_path):
    path = lines(tmp_path / "x.jsonl", own(user_id="../../escape"))
    with pytest.raises(InputError, match="cannot be used"):
        imported(path, user=None)


def test_a_chat_that_names_nobody_needs_a_user(tmp_path):
    path = document(tmp_path / "x.json", {"messages": [{"role": "user", "content": "hi"}]})
    with pytest.raises(InputError, match="name the user with --user"):
        imported(path, user=None)


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("ASH  the Grey", "ash-2"),
        ("Ｖｅｓｐｅｒ", "vesper"),
        ("Nobody", "Nobody"),
        ("../x y", "x-y-0bed1d"),
    ],
)
def test_the_card_is_the_studys_of_that_name_or_a_safe_id_made_of_it(tmp_path, name, card):
    path = lines(
        tmp_path / "c.jsonl",
        {"character_name": name, "user_name": "W"},
        {"name": name, "is_user": False, "mes": "Yes?"},
    )
    cards = {"ash the grey": ("ash-2",), "vesper": ("vesper",)}
    assert session(path, cards=cards).card_id == card
    assert session(path, cards=cards, card="given").card_id == "given"


def test_two_cards_of_one_name_are_no_guess(tmp_path):
    path = lines(tmp_path / "c.jsonl", {"name": "Vesper", "is_user": False, "mes": "Ahoy."})
    with pytest.raises(
        InputError, match="2 cards are called 'Vesper': a, b; choose one with --card"
    ):
        imported(path, cards={"vesper": ("a", "b")})


def test_a_chat_without_a_character_gets_no_made_up_card(tmp_path):
    path = document(tmp_path / "x.json", {"messages": [{"role": "user", "content": "hi"}]})
    assert session(path).card_id == "unknown"
    assert [note.kind for note in imported(path).notes.listed] == ["character"]


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Chat with Ash - 2024-3-9 @10h.jsonl", "Chat-with-Ash---2024-3-9-@10h"),
        ("..jsonl", "session"),
        ("我的 聊天.json", "我的-聊天"),
        ("a#1.json.gz", "a-1"),
    ],
)
def test_a_session_is_called_after_its_file(tmp_path, name, made):
    path = lines(tmp_path / name, {"messages": [{"role": "user", "content": "hi"}]})
    assert session(path).session_id == made


def test_a_long_id_is_cut_and_stays_its_own(tmp_path):
    names = ["名" * 150 + end for end in "ab"]
    said = [{"from": "human", "value": "hi"}]
    path = lines(tmp_path / "x.jsonl", *({"id": name, "conversations": said} for name in names))
    made = [item.session.session_id for item in imported(path).items]
    assert len(set(made)) == 2
    assert all(len(name.encode()) <= 200 for name in made)


def test_every_name_gives_a_card_id_of_its_own_that_a_study_can_use(tmp_path):
    made = []
    names = [name for name in HOSTILE_NAMES if name != "e\u0301"]  # one with \u00e9, see below
    for name in names:
        path = lines(
            tmp_path / "c.jsonl",
            {"character_name": name},
            {"name": name, "is_user": False, "mes": "Yes?"},
        )
        made.append(session(path).card_id)
    assert [fault_of_id(name) for name in made] == [""] * len(names)
    assert len(set(made)) == len(names)


def test_two_unicode_forms_of_a_name_are_one_character(tmp_path):
    cards = set()
    for name in ("\u00e9", "e\u0301"):
        path = lines(tmp_path / "c.jsonl", {"name": name, "is_user": False, "mes": "Yes?"})
        cards.add(session(path).card_id)
    assert cards == {"\u00e9"}


def test_where_all_sessions_are_wrong_the_refusal_says_why(tmp_path):
    wrong = {"speaker": "character", "text": "Yes?", "satisfaction": "4"}
    about = {"session_id": "a", "user_id": "u1", "card_id": "ash", "turns": [wrong]}
    with pytest.raises(InputError, match=r"no turns found .*line 1, turn 0: satisfaction is '4'"):
        imported(lines(tmp_path / "p.jsonl", about))


def test_agnai_replies_that_were_generated_anew_are_alternates(tmp_path):
    reply = {"msg": "Yes?", "characterId": "imported", "retries": ["No.", "Yes?", "No.", " ", 3]}
    path = document(tmp_path / "a.json", {"messages": [reply, {"msg": "hi", "userId": "anon"}]})
    assert session(path).extra["turns"] == {"0": {"alternates": ["No."]}}


def test_sessions_get_the_id_that_their_file_gives_them(tmp_path):
    said = [{"role": "user", "content": "hi"}]
    path = lines(
        tmp_path / "x.jsonl",
        {"id": "7", "session_id": "s7", "messages": said},
        {"id": 8, "messages": said},
        {"messages": said},
    )
    ids = [item.session.session_id for item in imported(path).items]
    assert ids == ["s7", "8", "x"]
    msgs = [{"src": {"is_human": True}, "text": "hi"}]
    histories = [{"external_id": "e1", "msgs": msgs}, {"msgs": msgs}]
    path = document(tmp_path / "c.json", {"histories": {"histories": histories}})
    assert [item.session.session_id for item in imported(path).items] == ["e1", "c"]


def test_the_format_that_is_named_is_read_whatever_the_file_looks_like(tmp_path):
    path = document(tmp_path / "x.json", {"messages": [{"role": "user", "content": "hi"}]})
    assert imported(path).format == "openai"
    assert imported(path, format="sharegpt").format == "sharegpt"
    with pytest.raises(InputError, match=r"no turns found .read as agnai"):
        imported(path, format="agnai")


def test_chats_without_an_id_are_numbered_among_themselves(tmp_path):
    said = [{"role": "user", "content": "hi"}]
    chats = ({"messages": said}, {"id": "own", "messages": said}, {"messages": said})
    ids = [item.session.session_id for item in imported(lines(tmp_path / "x.jsonl", *chats)).items]
    assert ids == ["x-1", "own", "x-2"]
