"""Sessions from JSON Lines: what is read, and what is refused with its line."""

import json

import pytest

from palate.errors import InputError
from palate.histories import read
from palate.types import Session, Turn


def row(**changes):
    return {
        "session_id": "s1",
        "user_id": "u1",
        "card_id": "ash",
        "language": "en",
        "ended_by": "quit",
        "turns": [
            {"speaker": "character", "text": "Yes?"},
            {"speaker": "user", "text": "hi"},
            {"speaker": "character", "text": "Hm.", "satisfaction": 2, "note": "flat"},
        ],
        **changes,
    }


def write(path, *rows):
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    return path


def turn(**changes):
    return row(turns=[{"speaker": "character", "text": "Yes?", **changes}])


def test_a_session_reads_as_it_was_written(tmp_path):
    path = write(tmp_path / "u1.jsonl", row())
    assert read(path) == (
        Session(
            session_id="s1",
            user_id="u1",
            card_id="ash",
            language="en",
            ended_by="quit",
            turns=(
                Turn(speaker="character", text="Yes?"),
                Turn(speaker="user", text="hi"),
                Turn(speaker="character", text="Hm.", satisfaction=2, note="flat"),
            ),
        ),
    )


def test_unknown_fields_are_kept_under_extra_those_of_turns_by_their_number(tmp_path):
    path = write(
        tmp_path / "u1.jsonl",
        row(
            app="0.3",
            extra={"mood": "tired"},
            turns=[
                {"speaker": "character", "text": "Yes?"},
                {"speaker": "user", "text": "hi", "at": 12},
            ],
        ),
    )
    (session,) = read(path)
    assert session.extra == {"mood": "tired", "app": "0.3", "turns": {"1": {"at": 12}}}


def test_blank_lines_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "u1.jsonl"
    lines = [json.dumps(row(session_id=name)) for name in ("a", "b")]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(lines).encode() + b"\r\n")
    assert [session.session_id for session in read(path)] == ["a", "b"]


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path):
    path = write(tmp_path / "u1.jsonl", turn(text="one\u2028two\x85three"))
    assert read(path)[0].turns[0].text == "one\u2028two\x85three"


def test_half_an_emoji_is_replaced_because_nothing_can_store_it(tmp_path):
    path = tmp_path / "u1.jsonl"
    path.write_text(json.dumps(turn(text="cut \ud83e")))
    assert read(path)[0].turns[0].text == "cut ?"


def test_missing_ending_is_unknown_and_missing_language_is_that_of_the_text(tmp_path):
    path = write(
        tmp_path / "u1.jsonl",
        row(ended_by=None, language=None, turns=[{"speaker": "user", "text": "今晚去哪里，Ash？"}]),
    )
    (session,) = read(path)
    assert (session.ended_by, session.language) == ("unknown", "zh")


def test_a_rating_written_by_a_table_program_is_a_whole_number(tmp_path):
    path = write(tmp_path / "u1.jsonl", turn(satisfaction=4.0))
    assert read(path)[0].turns[0].satisfaction == 4


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("{", "line 2 is not JSON in UTF-8"),
        ("[" * 100_000, "line 2 is nested too deeply"),
        ("[1]", "line 2 is not a session: a JSON object is expected"),
        (row(session_id=" "), "line 2: session_id must be a text that is not blank"),
        (row(user_id=7), "line 2: user_id must be a text that is not blank"),
        (row(card_id=None), "line 2: card_id must be a text that is not blank"),
        (row(turns=[]), "line 2: turns must be a list with at least one turn"),
        (row(turns="hi"), "line 2: turns must be a list with at least one turn"),
        (row(turns=["hi"]), "line 2, turn 0 is not a turn"),
        (row(ended_by="error"), "line 2: ended_by is wrong: Input should be 'quit', 'limit'"),
        (row(language=5), "line 2: language is wrong"),
        (row(extra=[1]), "line 2: extra must be a JSON object"),
        (turn(speaker="assistant"), "line 2, turn 0: speaker is 'assistant', but must be"),
        (turn(text=" "), "line 2, turn 0: text must be a text that is not blank"),
        (turn(text=["a"]), "line 2, turn 0: text must be a text that is not blank"),
        (turn(note=3), "line 2, turn 0: note is wrong"),
        (turn(satisfaction=0), "line 2, turn 0: satisfaction is 0, but must be 1, 2, 3, 4, 5"),
        (turn(satisfaction=6), "line 2, turn 0: satisfaction is 6"),
        (turn(satisfaction=True), "line 2, turn 0: satisfaction is True"),
        (turn(satisfaction="4"), "line 2, turn 0: satisfaction is '4'"),
        (turn(satisfaction=4.5), "line 2, turn 0: satisfaction is 4.5"),
        (turn(satisfaction=float("nan")), "line 2, turn 0: satisfaction is nan"),
        (
            turn(speaker="user", satisfaction=4),
            "line 2, turn 0: a user's turn carries a satisfaction; only replies are rated",
        ),
        (row(session_id="first"), "line 2: session 'first' was already on line 1"),
        (row(user_id="u2"), "line 2: the session is of user 'u2', not of 'u1'"),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_line(tmp_path, second, message):
    path = tmp_path / "u1.jsonl"
    text = second if isinstance(second, str) else json.dumps(second)
    path.write_text(json.dumps(row(session_id="first")) + "\n" + text + "\n", "utf-8")
    with pytest.raises(InputError) as raised:
        read(path, user_id="u1")
    assert str(raised.value).startswith(f"{path} {message}")
    assert "\n" not in str(raised.value)


def test_wrong_encoding_is_refused_with_its_line(tmp_path):
    path = tmp_path / "u1.jsonl"
    path.write_bytes(json.dumps(row()).encode() + b"\n" + '{"a": "守灯"}'.encode("gbk") + b"\n")
    with pytest.raises(InputError, match=r"u1\.jsonl line 2 is not JSON in UTF-8"):
        read(path)


def test_a_history_without_sessions_and_one_that_is_missing_are_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n \n")
    for name, message in [
        ("empty.jsonl", "holds no session"),
        ("none.jsonl", "does not exist"),
        ("", "cannot be read as a history"),
    ]:
        with pytest.raises(InputError, match=message):
            read(tmp_path / name)
