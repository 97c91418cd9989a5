"""Tables and JSON of any shape, by a mapping file."""

import json

import pytest

from chat_files import imported, lines, noted, session, turns
from palate.errors import InputError
from palate.histories.mapping import read_map
from palate.histories.sessions import Reading, Thumbs

NESTED = """
[fields]
session = "session_id"
user = "user_id"
character = "character.name"
language = "language"
session_rating = "session_rating"
turns = "turns"
speaker = "role"
text = "text"
rating = "rating"
[scale]
1 = 1
2 = 3
3 = 5
"""
FLAT = """
[fields]
session = "chat"
card = "card"
end = "left"
speaker = "who"
text = "words"
rating = "stars"
thumb = "thumb"
note = "why"
date = "when"
[speakers]
character = ["K", 0]
user = ["B", 1]
[ends]
quit = ["yes"]
"""


@pytest.fixture
def mapping(tmp_path):
    def write(text):
        path = tmp_path / "map.toml"
        path.write_text(text, "utf-8")
        return read_map(path)

    return write


def table(tmp_path, text, name="chats.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_nested_turns_are_read_with_their_scale_and_a_session_rating_is_never_spread(
    tmp_path, mapping
):
    row = {
        "session_id": "CIC/1",
        "user_id": "r1",
        "character": {"name": "Ash", "description": ""},
        "language": "ja",
        "session_rating": {"satisfaction": 4},
        "split": "dev",
        "turns": [
            {"role": "character", "text": "Yes?"},
            {"role": "user", "text": "hi"},
            {"role": "character", "text": "Mm.", "rating": 2},
            {"role": "character", "text": "Off.", "rating": 4},
        ],
    }
    path = lines(tmp_path / "x.jsonl", row)
    one = session(path, user=None, mapping=mapping(NESTED))
    assert (one.session_id, one.user_id, one.card_id, one.language) == ("CIC-1", "r1", "Ash", "ja")
    assert [turn.satisfaction for turn in one.turns] == [None, None, 3, None]
    assert one.extra["session_rating"] == {"satisfaction": 4}
    assert one.extra["split"] == "dev"
    assert one.extra["turns"] == {"2": {"rating": 2}, "3": {"rating": 4}}
    assert noted(path, user=None, mapping=mapping(NESTED)) == [("scale", "line 1, turn 3")]


def test_a_blank_reply_that_was_rated_is_kept_with_its_rating(tmp_path, mapping):
    said = [
        {"role": "user", "text": "hi"},
        {"role": "character", "text": "", "rating": 1},
        {"role": "character", "text": ""},
    ]
    path = lines(tmp_path / "x.jsonl", {"session_id": "a", "user_id": "u1", "turns": said})
    one = session(path, mapping=mapping(NESTED))
    assert [(turn.text, turn.satisfaction) for turn in one.turns] == [("hi", None), ("", 1)]
    assert noted(path, mapping=mapping(NESTED)) == [
        ("silent", "line 1, turn 1"),
        ("blank", "line 1, turn 2"),
    ]


def test_rows_of_one_session_come_together_in_the_files_order(tmp_path, mapping):
    path = table(
        tmp_path,
        "chat,who,words,stars,why,when,left,card\n"
        'a,K,"Yes, you?",4,,2023-07-04,,ash\n'
        "b,B,other,,,,,\n"
        'a,B,"two\nlines",,,,,\n'
        "a,K,Mm.,4.0,dull,,yes,\n"
        "a,K,Hm.,4.5,,,,\n",
    )
    found = imported(path, mapping=mapping(FLAT))
    first, second = (item.session for item in found.items)
    assert [(turn.speaker, turn.text, turn.satisfaction, turn.note) for turn in first.turns] == [
        ("character", "Yes, you?", 4, None),
        ("user", "two\nlines", None, None),
        ("character", "Mm.", 4, "dull"),
        ("character", "Hm.", None, None),
    ]
    assert (first.session_id, first.card_id, first.ended_by) == ("a", "ash", "quit")
    assert (second.session_id, second.card_id, second.ended_by) == ("b", "unknown", "unknown")
    assert noted(path, mapping=mapping(FLAT)) == [("scale", "line 7")]


@pytest.mark.parametrize("start", ["", "sep=;\r\n", "\ufeff", "\ufeffsep=;\r\n"])
def test_other_delimiters_a_sep_line_and_windows_line_ends_are_told(tmp_path, mapping, start):
    path = table(tmp_path, start + 'chat;who;words\r\na;K;"Yes; you, too?"\r\na;B;hi\r\n')
    assert turns(path, mapping=mapping(FLAT)) == [("character", "Yes; you, too?"), ("user", "hi")]


def test_tabs_and_numbers_for_speakers_are_read(tmp_path, mapping):
    path = table(tmp_path, "who\twords\tchat\n0\tYes?\ta\n1\thi\ta\n2\twho?\ta\n")
    assert turns(path, mapping=mapping(FLAT)) == [("character", "Yes?"), ("user", "hi")]
    assert noted(path, mapping=mapping(FLAT)) == [("speaker", "line 4")]


def test_a_table_without_a_session_field_is_one_chat(tmp_path, mapping):
    path = table(tmp_path, "who,words\nuser,hi\nbot,Yes?\n")
    fields = '[fields]\nspeaker = "who"\ntext = "words"\n'
    assert turns(path, mapping=mapping(fields)) == [("user", "hi"), ("character", "Yes?")]
    assert session(path, mapping=mapping(fields)).session_id == "chats"


def test_rows_without_their_session_are_named(tmp_path, mapping):
    path = table(tmp_path, "chat,who,words\na,K,Yes?\n,B,whose?\n\n")
    assert turns(path, mapping=mapping(FLAT)) == [("character", "Yes?")]
    assert noted(path, mapping=mapping(FLAT)) == [("torn", "line 3")]


THUMBED = "chat,who,words,stars,thumb\na,K,one,,up\na,K,two,,👎\na,K,three,3,up\na,K,four,,maybe\n"


def test_thumbs_are_kept_and_become_no_number_unless_the_user_says_which(tmp_path, mapping):
    path = table(tmp_path, THUMBED)
    one = session(path, mapping=mapping(FLAT))
    assert [turn.satisfaction for turn in one.turns] == [None, None, 3, None]
    assert one.extra["turns"] == {
        "0": {"thumb": "up"},
        "1": {"thumb": "down"},
        "2": {"thumb": "up"},
    }
    assert noted(path, mapping=mapping(FLAT)) == [
        ("scale", "line 5"),
        ("thumb", "line 2"),
        ("thumb", "line 3"),
    ]


def test_thumbs_are_mapped_as_the_user_says_and_a_rating_wins_over_them(tmp_path, mapping):
    one = session(
        table(tmp_path, THUMBED), mapping=mapping(FLAT), reading=Reading(Thumbs(up=5, down=2))
    )
    assert [turn.satisfaction for turn in one.turns] == [5, 2, 3, None]


def test_a_mapping_that_fits_no_row_names_the_fields_there_are(tmp_path, mapping):
    path = table(tmp_path, "chat,author,words\na,K,Yes?\n")
    with pytest.raises(InputError, match=r"'who' holds the speaker, .* are: chat, author, words"):
        imported(path, mapping=mapping(FLAT))
    nested = lines(tmp_path / "x.jsonl", {"rows": []})
    with pytest.raises(InputError, match=r"'turns' holds a list of turns, .* are: rows"):
        imported(nested, mapping=mapping(NESTED))


def test_a_table_without_a_mapping_asks_for_one(tmp_path):
    with pytest.raises(InputError, match="--map"):
        imported(table(tmp_path, "who,words\nuser,hi\n"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("who,who\nuser,hi\n", "two columns called 'who'"),
        ("who,words\nuser,hi,you\n", "line 2 has 3 cells and the heading 2"),
        ("", "is empty"),
        ("\n\n", "is empty"),
    ],
)
def test_tables_that_cannot_be_meant_are_refused(tmp_path, mapping, text, fault):
    with pytest.raises(InputError, match=fault):
        imported(table(tmp_path, text), mapping=mapping('[fields]\nspeaker="who"\ntext="words"'))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[fields]\ntext = "t"', "fields.speaker is missing"),
        ('[fields]\nspeaker = "s"\ntext = "t"\nratings = "r"', "fields.ratings is not a setting"),
        ('[fields]\nspeaker = "s"\ntext = "t"\n[scale]\n1 = 6', "scale.1 is wrong"),
        ('[fields]\nspeaker = "s"\ntext = ""', "fields.text is wrong"),
        (
            '[fields]\nspeaker = "s"\ntext = "t"\n[speakers]\nuser = ["x"]\ncharacter = ["x"]',
            "'x' stands for two speakers",
        ),
        ("fields = 3", "fields is wrong"),
        ("[fields", "is not valid TOML"),
    ],
)
def test_a_wrong_mapping_is_refused_with_its_setting(tmp_path, mapping, text, fault):
    with pytest.raises(InputError, match=fault):
        mapping(text)


def test_a_value_may_be_a_number_where_the_mapping_says_text(tmp_path, mapping):
    text = (
        '[fields]\nspeaker = "s"\ntext = "t"\nsession = "n"\nrating = "r"\n[scale]\n"-1" = 1\n1 = 5'
    )
    rows = [
        {"n": 7, "s": "bot", "t": 12, "r": -1},
        {"n": 7.0, "s": "bot", "t": "x", "r": 1.0},
        {"n": 7, "s": "bot", "t": "y", "r": True},
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(rows))
    one = session(path, mapping=mapping(text))
    assert one.session_id == "7"
    assert [(turn.text, turn.satisfaction) for turn in one.turns] == [
        ("12", 1),
        ("x", 5),
        ("y", None),
    ]


def test_a_card_id_that_no_study_can_hold_is_made_safe_and_languages_get_their_short_names(
    tmp_path, mapping
):
    text = '[fields]\nspeaker = "s"\ntext = "t"\ncard = "c"\nlanguage = "l"'
    path = table(tmp_path, "s,t,c,l\nbot,Yes?,a/b,zh-CN\n")
    one = session(path, mapping=mapping(text))
    assert (one.card_id[:4], one.language) == ("a-b-", "zh")


def test_a_field_of_the_mapping_that_no_row_has_is_named(tmp_path, mapping):
    path = table(tmp_path, "who,words,stars\nbot,Yes?,4\n")
    text = '[fields]\nspeaker = "who"\ntext = "words"\nrating = "starz"\nnote = "why"'
    told = imported(path, mapping=mapping(text)).notes.listed
    absent = [note.detail for note in told if note.kind == "absent"]
    assert absent == ["rating = 'starz'", "note = 'why'"]
    right = imported(path, mapping=mapping(text.replace("starz", "stars").replace("why", "words")))
    assert not [note for note in right.notes.listed if note.kind == "absent"]


def test_a_session_field_that_no_row_has_is_refused_with_the_fields_there_are(tmp_path, mapping):
    path = table(tmp_path, "chat,who,words\n1,bot,Yes?\n")
    text = '[fields]\nspeaker = "who"\ntext = "words"\nsession = "chta"'
    with pytest.raises(InputError, match=r"'chta' holds the session id.*chat, who, words"):
        imported(path, mapping=mapping(text))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[thumbs]\nup = ["x"]\ndown = ["x"]', "thumbs: 'x' stands for up and down"),
        ('[ends]\nquit = [1]\nlimit = ["1"]', "ends: '1' stands for two ways of ending"),
        ("[scale]\n0.5 = 1", r"scale.0 is no whole number from 1 to 5; .* in quotes"),
    ],
)
def test_one_value_with_two_meanings_and_a_bare_value_with_a_dot_are_refused(mapping, text, fault):
    with pytest.raises(InputError, match=fault):
        mapping(f'[fields]\nspeaker = "s"\ntext = "t"\n{text}')


def test_the_values_of_a_scale_may_be_spelled_as_tables_do(tmp_path, mapping):
    path = table(tmp_path, "s,t,r\nbot,Yes?,3\nbot,Well?,0.5\n")
    text = '[fields]\nspeaker = "s"\ntext = "t"\nrating = "r"\n[scale]\n"3.0" = 5\n"0.5" = 1'
    assert [turn.satisfaction for turn in session(path, mapping=mapping(text)).turns] == [5, 1]


def test_what_is_no_turn_in_a_list_of_turns_is_named_and_numbers_stay(tmp_path, mapping):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"said": ["x", {"s": "bot", "t": "Yes?", "d": "never"}]}]))
    text = '[fields]\nturns = "said"\nspeaker = "s"\ntext = "t"\ndate = "d"'
    assert noted(path, mapping=mapping(text)) == [
        ("torn", "item 1, turn 0"),
        ("date", "item 1, turn 1"),
    ]


def test_a_quote_that_is_never_closed_does_not_swallow_the_rest_of_a_table(tmp_path, mapping):
    text = '[fields]\nspeaker = "s"\ntext = "t"\nrating = "r"'
    path = table(tmp_path, 's,t,r\nbot,Yes?,3\nbot,"Well,4\nuser,hm,\n')
    with pytest.raises(InputError, match="line 3 has a quote that is never closed"):
        imported(path, mapping=mapping(text))
    closed = table(tmp_path, 's,t,r\nbot,"Yes?\nWell?",3\nbot,"a ""b""",4')
    assert turns(closed, mapping=mapping(text)) == [
        ("character", "Yes?\nWell?"),
        ("character", 'a "b"'),
    ]


def test_a_table_of_an_old_mac_is_read(tmp_path, mapping):
    path = table(tmp_path, 's,t\rbot,"Yes?\rWell?"\ruser,hi\r')
    text = '[fields]\nspeaker = "s"\ntext = "t"'
    assert turns(path, mapping=mapping(text)) == [("character", "Yes?\nWell?"), ("user", "hi")]


def test_a_sep_line_that_names_a_tab_is_read_and_lines_are_counted_with_it(tmp_path, mapping):
    text = '[fields]\nspeaker = "s"\ntext = "t"\ndate = "d"'
    path = table(tmp_path, "sep=\t\ns\tt\td\nbot\tYes, and no?\tnever\n")
    assert turns(path, mapping=mapping(text)) == [("character", "Yes, and no?")]
    assert noted(path, mapping=mapping(text)) == [("date", "line 3")]


def test_the_delimiter_that_the_mapping_names_wins(tmp_path, mapping):
    text = '[fields]\nspeaker = "s"\ntext = "a,b"\n[table]\ndelimiter = ";"'
    path = table(tmp_path, "s;a,b;c,d\nbot;Yes?;\n")
    assert turns(path, mapping=mapping(text)) == [("character", "Yes?")]


def test_swipes_of_a_mapping_are_alternates_without_the_text_that_was_shown(tmp_path, mapping):
    path = lines(tmp_path / "x.jsonl", {"s": "bot", "t": "Yes?", "o": ["No.", "Yes?", " ", "No."]})
    text = '[fields]\nspeaker = "s"\ntext = "t"\nswipes = "o"'
    one = session(path, mapping=mapping(text))
    assert one.extra["turns"] == {"0": {"alternates": ["No."]}}
