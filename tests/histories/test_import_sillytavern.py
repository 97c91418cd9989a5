"""SillyTavern chats: what was shown counts, what was swiped away is kept beside it."""

import json

import pytest

from chat_files import imported, lines, noted, session, turns
from palate.errors import InputError
from palate.histories.sessions import Preference, Reading, preferences

HEADER = {
    "user_name": "Wren",
    "character_name": "Sable",
    "create_date": "2024-3-9 @10h 00m 00s 000ms",
    "chat_metadata": {},
}


def sable(text, **more):
    return {"name": "Sable", "is_user": False, "is_system": False, "mes": text, "extra": {}, **more}


def wren(text, **more):
    return {"name": "Wren", "is_user": True, "is_system": False, "mes": text, "extra": {}, **more}


def swiped(tmp_path):
    return lines(
        tmp_path / "chat.jsonl",
        HEADER,
        sable(
            "second greeting",
            swipes=["first greeting", "second greeting", "third greeting"],
            swipe_id=1,
        ),
        wren("I sit."),
        sable("reply C", swipes=["reply A", "reply B", "reply C"], swipe_id=2),
        wren("Go on."),
        sable(
            "reply D, edited by hand",
            swipes=["reply D", "reply E"],
            swipe_id=0,
            swipe_info=[{}, {}],
        ),
        wren("And then?"),
        sable("reply F", swipes=["reply F"], swipe_id=9),
        wren("Hm."),
        sable("reply G", swipes=[], swipe_id=None),
        wren(
            "my second wording",
            swipes=["my first wording", "my second wording"],
            swipe_id=1,
        ),
        sable("", swipes=["reply H", "reply I"], swipe_id="1"),
        wren("Good night."),
    )


def test_the_shown_text_wins_and_a_blank_one_gives_way_to_the_chosen_swipe(tmp_path):
    assert turns(swiped(tmp_path)) == [
        ("character", "second greeting"),
        ("user", "I sit."),
        ("character", "reply C"),
        ("user", "Go on."),
        ("character", "reply D, edited by hand"),
        ("user", "And then?"),
        ("character", "reply F"),
        ("user", "Hm."),
        ("character", "reply G"),
        ("user", "my second wording"),
        ("character", "reply I"),
        ("user", "Good night."),
    ]


def test_rejected_swipes_are_kept_as_alternates_of_their_turn(tmp_path):
    kept = session(swiped(tmp_path)).extra["turns"]
    assert {number: one["alternates"] for number, one in kept.items()} == {
        "0": ["first greeting", "third greeting"],
        "2": ["reply A", "reply B"],
        "4": ["reply E"],
        "9": ["my first wording"],
        "10": ["reply H"],
    }


def test_a_swipe_id_that_names_no_swipe_is_one_warning_with_its_line(tmp_path):
    assert noted(swiped(tmp_path)) == [
        ("swipe", "line 8"),
        ("swipe", "line 10"),
        ("swipe", "line 12"),
    ]


@pytest.mark.parametrize("wrong", [-1, 2, None, "x", "7", 1.5, True, [1], {}, 10**30])
def test_no_swipe_id_stops_an_import_or_hides_the_shown_text(tmp_path, wrong):
    path = lines(tmp_path / "c.jsonl", HEADER, sable("shown", swipes=["a", "b"], swipe_id=wrong))
    assert turns(path) == [("character", "shown")]
    assert noted(path) == [("swipe", "line 2")]
    assert session(path).extra["turns"]["0"]["alternates"] == ["a", "b"]


def test_swipes_of_replies_are_preference_pairs_and_no_scores(tmp_path):
    one = session(swiped(tmp_path))
    assert preferences(one) == (
        Preference(0, "second greeting", ("first greeting", "third greeting")),
        Preference(2, "reply C", ("reply A", "reply B")),
        Preference(4, "reply D, edited by hand", ("reply E",)),
        Preference(10, "reply I", ("reply H",)),
    )
    assert all(turn.satisfaction is None for turn in one.turns)


def test_swipes_wrapped_in_objects_are_read(tmp_path):
    path = lines(
        tmp_path / "c.jsonl",
        sable({"message": "b"}, swipes=[{"message": "a"}, {"message": "b"}], swipe_id=1),
    )
    assert turns(path) == [("character", "b")]
    assert session(path).extra["turns"]["0"]["alternates"] == ["a"]


def test_all_messages_keep_the_files_order_whatever_their_dates_say(tmp_path):
    dates = [
        "July 4, 2023 9:05pm",
        "2025-12-01T18:30:09.250Z",
        "2023-8-2 @07h 41m 05s 123ms",
        "2025-12-01@18h30m09s250ms",
        1700000000000,
        1700000000,
        "2019-01-01T00:00:00+09:00",
        "",
        "yesterday-ish",
    ]
    messages = [
        (wren if number % 2 else sable)(f"message {number + 1}", send_date=date)
        for number, date in enumerate(dates)
    ]
    path = lines(tmp_path / "chat.jsonl", HEADER, *messages, wren("message 10"))
    assert [text for _, text in turns(path)] == [f"message {number}" for number in range(1, 11)]
    assert {number: one["date"] for number, one in session(path).extra["turns"].items()} == {
        "0": "2023-07-04T21:05:00",
        "1": "2025-12-01T18:30:09.250Z",
        "2": "2023-08-02T07:41:05.123",
        "3": "2025-12-01T18:30:09.250",
        "4": "2023-11-14T22:13:20Z",
        "5": "2023-11-14T22:13:20Z",
        "6": "2018-12-31T15:00:00Z",
    }
    assert noted(path) == [("date", "line 10")]


def test_a_chat_without_a_first_line_or_with_unused_names_takes_them_from_its_messages(tmp_path):
    bare = lines(tmp_path / "a.jsonl", sable("Yes?"), wren("hi"))
    unused = lines(
        tmp_path / "b.jsonl",
        {"chat_metadata": {}, "user_name": "unused", "character_name": "unused"},
        sable("Yes?"),
        wren("hi"),
    )
    for path in (bare, unused):
        assert session(path).card_id == "Sable"
        assert turns(path) == [("character", "Yes?"), ("user", "hi")]


def test_hidden_messages_and_system_notices_are_kept_beside_the_turns(tmp_path):
    path = lines(
        tmp_path / "c.jsonl",
        HEADER,
        sable("Yes?"),
        {"name": "System", "is_user": False, "mes": "It rains.", "extra": {"type": "narrator"}},
        wren("hidden by hand", is_system=True),
        {
            "name": "Note",
            "is_user": False,
            "is_system": True,
            "mes": "n",
            "extra": {"type": "comment"},
        },
        wren("hi"),
    )
    assert turns(path) == [("character", "Yes?"), ("user", "hi")]
    assert noted(path) == [("system", "line 3"), ("hidden", "line 4"), ("system", "line 5")]
    assert session(path).extra["aside"] == [
        {"before_turn": 1, "speaker": "system", "text": "It rains."},
        {"before_turn": 1, "speaker": "user", "text": "hidden by hand", "hidden": True},
        {"before_turn": 1, "speaker": "system", "text": "n"},
    ]
    assert turns(path, reading=Reading(keep_hidden=True)) == [
        ("character", "Yes?"),
        ("user", "hidden by hand"),
        ("user", "hi"),
    ]


def test_in_a_group_chat_the_card_is_that_of_who_speaks_most_and_all_replies_stay(tmp_path):
    path = lines(
        tmp_path / "c.jsonl",
        {"chat_metadata": {}, "user_name": "unused", "character_name": "unused"},
        sable("one"),
        {"name": "Bo", "is_user": False, "mes": "two"},
        wren("hi"),
        {"name": "Bo", "is_user": False, "mes": "three"},
    )
    one = session(path)
    assert one.card_id == "Bo"
    assert [turn.text for turn in one.turns] == ["one", "two", "hi", "three"]
    assert {number: kept["name"] for number, kept in one.extra["turns"].items()} == {
        "0": "Sable",
        "1": "Bo",
        "3": "Bo",
    }
    assert noted(path) == [("group", "line 2")]


def test_a_message_that_does_not_say_whose_it_is_is_told_by_name_or_reported(tmp_path):
    path = lines(
        tmp_path / "c.jsonl",
        HEADER,
        {"name": "Sable", "mes": "Yes?"},
        {"name": "Wren", "mes": "hi"},
        {"name": "Somebody", "mes": "hello"},
    )
    assert turns(path) == [("character", "Yes?"), ("user", "hi")]
    assert noted(path) == [("speaker", "line 4")]


def test_torn_lines_are_named_and_do_not_stop_the_others(tmp_path):
    path = lines(tmp_path / "c.jsonl", HEADER, sable("Yes?"), wren("hi"))
    whole = path.read_bytes()
    path.write_bytes(whole[40:] + b"\0\0\0\0\n" + b'{"name": "Sable", "is_us')
    assert turns(path) == [("character", "Yes?"), ("user", "hi")]
    assert noted(path) == [("torn", "line 1"), ("torn", "line 4"), ("torn", "line 5")]


def test_a_chat_of_a_first_line_alone_has_no_turns(tmp_path):
    with pytest.raises(InputError, match="no turns found"):
        imported(lines(tmp_path / "c.jsonl", HEADER))


def test_macros_that_were_never_filled_in_stay_and_are_named(tmp_path):
    path = lines(tmp_path / "c.jsonl", sable("Hello, {{user}}."), wren("hi"))
    assert turns(path)[0] == ("character", "Hello, {{user}}.")
    assert noted(path) == [("macro", "line 1")]


def test_a_branch_keeps_the_name_of_the_chat_it_was_made_from(tmp_path):
    header = {**HEADER, "chat_metadata": {"main_chat": "Sable - first"}}
    path = lines(tmp_path / "branch.jsonl", header, sable("Yes?"), wren("hi"))
    assert session(path).extra["branch_of"] == "Sable - first"


def test_messages_that_a_crash_left_on_one_line_are_read_one_by_one(tmp_path):
    one, two = (json.dumps(message) for message in (sable("Yes?"), wren("hi")))
    path = tmp_path / "c.jsonl"
    path.write_text(f'{one}{two}\n{one} {{"name": "Sab\n{two}x\n')
    assert turns(path) == [
        ("character", "Yes?"),
        ("user", "hi"),
        ("character", "Yes?"),
        ("user", "hi"),
    ]
    assert noted(path) == [
        ("joined", "line 1"),
        ("torn", "line 2"),
        ("torn", "line 3"),
    ]


def test_a_swipe_id_that_was_saved_as_a_float_still_finds_its_swipe(tmp_path):
    path = lines(tmp_path / "c.jsonl", sable("", swipes=["No.", "Yes?"], swipe_id=1.0), wren("hi"))
    assert turns(path) == [("character", "Yes?"), ("user", "hi")]
    assert noted(path) == [("swipe", "line 1")]


def test_a_text_that_was_offered_twice_is_one_alternate(tmp_path):
    path = lines(tmp_path / "c.jsonl", sable("Yes?", swipes=["No.", "Yes?", "No."], swipe_id=1))
    assert session(path).extra["turns"]["0"]["alternates"] == ["No."]


def test_in_a_group_chat_the_character_that_the_file_names_goes_before_who_speaks_most(tmp_path):
    others = [{**sable(text), "name": "Bea"} for text in ("one", "two")]
    path = lines(tmp_path / "c.jsonl", HEADER, sable("Yes?"), wren("hi"), *others)
    notes = imported(path).notes.listed
    assert [note.detail for note in notes if note.kind == "group"] == [
        "Bea 2, Sable 1; the card is that of Sable"
    ]
    assert session(path).card_id == "Sable"
