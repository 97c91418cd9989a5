"""`palate history import`: what is said, what is written, what is left alone."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from chat_files import document, imported, lines
from palate.cli import palate
from palate.errors import PalateError, StoreError
from palate.histories import adding, read


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "study"
    (folder / "cards").mkdir(parents=True)
    card = {"spec": "chara_card_v2", "data": {"name": "Ash", "first_mes": "Yes?"}}
    (folder / "cards" / "ash-1.json").write_text(json.dumps(card))
    return folder


class Result(NamedTuple):
    exit_code: int
    output: str


def run(*words):
    """What the command prints, with the sentence of a `PalateError` as `main` ends with it."""
    result = CliRunner().invoke(palate, ["history", "import", *map(str, words)])
    if isinstance(result.exception, PalateError):
        return Result(result.exception.exit_code, f"{result.output}{result.exception}")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Result(result.exit_code, result.output)


def chat(path, *, last="bye"):
    return lines(
        path,
        {"user_name": "Wren", "character_name": "Ash", "chat_metadata": {}},
        {"name": "Ash", "is_user": False, "mes": "Yes?", "swipes": ["No.", "Yes?"], "swipe_id": 1},
        {"name": "Wren", "is_user": True, "mes": "hi"},
        {"name": "Ash", "is_user": False, "mes": "Mm."},
        {"name": "Wren", "is_user": True, "mes": "  "},
        {"name": "Ash", "is_user": False, "mes": "Well?"},
        {"name": "Wren", "is_user": True, "mes": last},
    )


def test_a_dry_run_says_what_was_understood_and_writes_nothing(tmp_path, study):
    result = run(chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines", "--dry-run")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"{tmp_path}/c.jsonl: sillytavern",
        "  1 session, 5 turns (3 of the character, 2 of the user), 0 ratings, "
        "1 reply chosen over swipes",
        "  user: ines",
        "  card: ash-1",
        "  language: en",
        "  blank messages left out: 1; line 5 (user)",
        "  session c, 5 turns:",
        "    0 character: Yes?",
        "    1 user: hi",
        "    …",
        "    3 character: Well?",
        "    4 user: bye",
        f"{study}/histories/ines.jsonl would get 1 session",
        "Nothing was written: leave --dry-run out to import.",
    ]
    assert not (study / "histories").exists()


def test_an_import_adds_to_a_history_and_the_same_session_only_once(tmp_path, study):
    first = chat(tmp_path / "c.jsonl")
    run(first, "--into", study, "--user", "ines")
    copy = chat(tmp_path / "copy of c.jsonl")
    other = chat(tmp_path / "d.jsonl", last="later")
    result = run(first, copy, other, "--into", study, "--user", "ines")
    assert result.exit_code == 0
    history = study / "histories" / "ines.jsonl"
    assert result.output.splitlines()[-1] == (
        f"{history} got 1 session; already there: c, copy-of-c"
    )
    assert [session.session_id for session in read(history, user_id="ines")] == ["c", "d"]


def test_another_session_of_a_known_id_gets_its_own_and_is_named(tmp_path, study):
    run(chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines")
    result = run(chat(tmp_path / "c.jsonl", last="no"), "--into", study, "--user", "ines")
    first, second = read(study / "histories" / "ines.jsonl")
    assert first.session_id == "c"
    assert second.session_id.startswith("c-")
    assert f"another session is called c; this one is {second.session_id}" in result.output
    again = run(tmp_path / "c.jsonl", "--into", study, "--user", "ines")
    assert "got 0 sessions; already there: c" in again.output


def test_a_wrong_file_is_named_and_does_not_stop_the_others(tmp_path, study):
    bad = tmp_path / "bad.json"
    bad.write_text('{"messages": [')
    result = run(bad, chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines")
    assert result.exit_code == 2
    assert result.output.startswith(f"refused  {bad} is not JSON")
    assert len(read(study / "histories" / "ines.jsonl")) == 1


def test_a_file_without_turns_is_refused_and_nothing_is_written(tmp_path, study):
    path = document(tmp_path / "e.json", {"messages": [{"role": "system", "content": "x"}]})
    result = run(path, "--into", study, "--user", "ines")
    assert result.exit_code == 2
    assert "no turns found" in result.output
    assert not (study / "histories").exists()


def test_nothing_is_added_to_a_history_that_is_damaged(tmp_path, study):
    history = study / "histories" / "ines.jsonl"
    history.parent.mkdir()
    history.write_text('{"session_id": "a"')
    result = run(chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines")
    assert result.exit_code != 0
    assert history.read_text() == '{"session_id": "a"'


def test_ratings_beside_the_chats_reach_their_turns(tmp_path, study):
    ratings = tmp_path / "r.csv"
    ratings.write_text('session;turn;satisfaction;note\nc;0;4;\nc;2;2;"too\nflat"\nz;1;3;\n')
    result = run(
        chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines", "--ratings", ratings
    )
    (session,) = read(study / "histories" / "ines.jsonl")
    assert [(turn.satisfaction, turn.note) for turn in session.turns] == [
        (4, None),
        (None, None),
        (2, "too\nflat"),
        (None, None),
        (None, None),
    ]
    assert "1 rating of sessions that are in none of the files: z" in result.output


def test_ratings_that_come_later_join_the_session_that_is_there(tmp_path, study):
    first = chat(tmp_path / "c.jsonl")
    run(first, "--into", study, "--user", "ines")
    ratings = tmp_path / "r.csv"
    ratings.write_text("session,turn,satisfaction\nc,2,2\n")
    result = run(first, "--into", study, "--user", "ines", "--ratings", ratings)
    assert "got 0 sessions; new ratings for: c" in result.output
    (session,) = read(study / "histories" / "ines.jsonl")
    assert session.turns[2].satisfaction == 2


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ("session,turn,satisfaction\nc,9,3\n", "line 2: session c has turns 0 to 4, not 9"),
        ("session,turn,satisfaction\nc,1,3\n", "line 2: turn 1 of c is the user's"),
        ("session,turn,satisfaction\nc,0,6\n", "line 2: satisfaction is '6'"),
        ("session,turn,satisfaction\nc,-1,3\n", "line 2: turn is '-1'"),
        ("session,turn,satisfaction\nc,0,3\nc,0,4\n", "line 3 rates turn 0 of 'c' again"),
        ("session,turn,stars\nc,0,3\n", "has a column 'stars'"),
        ("session,satisfaction\nc,3\n", "has no column turn"),
        ("session,turn\nc,3\n", "neither a column satisfaction nor a column thumb"),
        ("session,turn,satisfaction\n", "holds no rating"),
        ("session,turn,thumb\nc,0,up\n", "say with --thumbs"),
    ],
)
def test_a_wrong_ratings_table_is_refused_before_anything_is_written(tmp_path, study, table, fault):
    ratings = tmp_path / "r.csv"
    ratings.write_text(table)
    words = (chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines", "--ratings", ratings)
    result = run(*words)
    assert result.exit_code == 2
    assert fault in result.output
    assert not (study / "histories").exists()


def test_thumbs_beside_the_chats_count_as_the_user_says(tmp_path, study):
    ratings = tmp_path / "r.csv"
    ratings.write_text("session,turn,thumb\nc,0,up\nc,2,down\n")
    words = ("--into", study, "--user", "ines", "--ratings", ratings, "--thumbs", "up=5,down=2")
    run(chat(tmp_path / "c.jsonl"), *words)
    (session,) = read(study / "histories" / "ines.jsonl")
    assert [turn.satisfaction for turn in session.turns] == [5, None, 2, None, None]


@pytest.mark.parametrize(
    "words",
    [
        ("--thumbs", "up=5"),
        ("--thumbs", "up=2,down=5"),
        ("--thumbs", "up=9,down=1"),
        ("--thumbs", "5,2"),
        ("--user", "../x"),
        ("--card", ""),
        ("--into", "nowhere"),
        ("--map", "missing.toml"),
    ],
)
def test_a_wrong_option_is_refused(tmp_path, study, words):
    result = run(chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines", *words)
    assert result.exit_code == 2
    assert not (study / "histories").exists()


def test_escape_codes_in_a_chat_do_not_reach_the_terminal(tmp_path, study):
    path = lines(
        tmp_path / "c.jsonl", {"name": "A\x1b[2J", "is_user": False, "mes": "\x1b]0;x\x07hi"}
    )
    result = run(path, "--into", study, "--user", "ines", "--dry-run")
    assert "\x1b" not in result.output
    assert "0 character: hi" in result.output


def test_sixteen_thousand_rated_turns_are_imported_in_under_five_seconds(tmp_path, study):
    said = [
        {"role": "assistant", "content": f"Reply {n}, " + "with some words " * 5, "satisfaction": 3}
        if n % 2
        else {"role": "user", "content": f"Question {n}?"}
        for n in range(20)
    ]
    path = lines(tmp_path / "big.jsonl", *({"id": f"s{n}", "messages": said} for n in range(1600)))
    begun = time.process_time()
    result = run(path, "--into", study, "--user", "ines", "--card", "ash-1")
    assert time.process_time() - begun < 5
    assert (
        "1600 sessions, 32000 turns (16000 of the character, 16000 of the user), 16000 ratings"
        in (result.output)
    )


@pytest.mark.parametrize(
    "name",
    ["with space", "资料 夹", "quote'and\"double", "hash#percent%20amp&", "😀 data"],
)
def test_a_study_may_lie_in_any_folder(tmp_path, name):
    study = tmp_path / name
    study.mkdir()
    result = run(chat(study / "c.jsonl"), "--into", study, "--user", "ines")
    assert result.exit_code == 0
    assert len(read(study / "histories" / "ines.jsonl")) == 1


def test_two_cards_of_one_name_refuse_the_chat_until_one_is_chosen(tmp_path, study):
    (study / "cards" / "ash-2.json").write_bytes((study / "cards" / "ash-1.json").read_bytes())
    path = chat(tmp_path / "c.jsonl")
    refused = run(path, "--into", study, "--user", "ines")
    assert refused.exit_code == 2
    assert "2 cards are called 'Ash': ash-1, ash-2; choose one with --card" in refused.output
    assert run(path, "--into", study, "--user", "ines", "--card", "ash-2").exit_code == 0
    (session,) = read(study / "histories" / "ines.jsonl")
    assert session.card_id == "ash-2"


def test_what_is_read_back_is_what_was_imported(tmp_path, study):
    path = chat(tmp_path / "c.jsonl")
    run(path, "--into", study, "--user", "ines", "--card", "ash-1")
    (item,) = imported(path, user="ines", card="ash-1").items
    assert read(study / "histories" / "ines.jsonl") == (item.session,)


def rate(path, *rows):
    path.write_text("session,turn,satisfaction\n" + "".join(f"{row}\n" for row in rows))
    return path


def test_chats_that_are_imported_again_without_their_ratings_make_no_copies(tmp_path, study):
    into = ("--into", study, "--user", "ines")
    path = chat(tmp_path / "c.jsonl")
    run(path, *into, "--ratings", rate(tmp_path / "r.csv", "c,2,4"))
    result = run(path, chat(tmp_path / "copy.jsonl"), *into)
    assert "got 0 sessions; already there: c, copy" in result.output
    (one,) = read(study / "histories" / "ines.jsonl")
    assert one.turns[2].satisfaction == 4


def test_ratings_that_come_in_two_tables_come_together_and_a_contradiction_does_not(
    tmp_path, study
):
    into = ("--into", study, "--user", "ines")
    path = chat(tmp_path / "c.jsonl")
    run(path, *into, "--ratings", rate(tmp_path / "r.csv", "c,2,4"))
    result = run(path, *into, "--ratings", rate(tmp_path / "r.csv", "c,3,2"))
    assert "got 0 sessions; new ratings for: c" in result.output
    (one,) = read(study / "histories" / "ines.jsonl")
    assert [turn.satisfaction for turn in one.turns] == [None, None, 4, 2, None]
    result = run(path, *into, "--ratings", rate(tmp_path / "r.csv", "c,2,1"))
    assert "another session is called c" in result.output
    assert len(read(study / "histories" / "ines.jsonl")) == 2


def test_a_card_that_is_named_later_goes_into_the_session_that_is_there(tmp_path, study):
    path = document(tmp_path / "x.json", {"messages": [{"role": "user", "content": "hi"}]})
    run(path, "--into", study, "--user", "ines")
    result = run(path, "--into", study, "--user", "ines", "--card", "ash-1")
    assert "got 0 sessions; card or ending now known for: x" in result.output
    (one,) = read(study / "histories" / "ines.jsonl")
    assert one.card_id == "ash-1"
    assert "already there: x" in run(path, "--into", study, "--user", "ines").output


def test_sessions_of_the_same_words_with_ids_of_their_own_stay_apart(tmp_path, study):
    said = [{"speaker": "character", "text": "Yes?"}]
    about = {"user_id": "ines", "card_id": "ash-1", "turns": said}
    path = lines(tmp_path / "p.jsonl", {"session_id": "a", **about}, {"session_id": "b", **about})
    assert "got 2 sessions" in run(path, "--into", study).output


def test_a_row_of_ratings_that_was_cut_short_is_named_by_its_line(tmp_path, study):
    into = ("--into", study, "--user", "ines")
    path = chat(tmp_path / "c.jsonl")
    result = run(path, *into, "--ratings", rate(tmp_path / "r.csv", "c,2,4", "c"))
    assert (result.exit_code, "line 3: turn is ''" in result.output) == (2, True)
    result = run(path, *into, "--ratings", rate(tmp_path / "r.csv", "c,2,4", "c,3"))
    assert result.exit_code == 0
    assert "1 rating" in result.output


def test_a_file_name_that_is_no_utf8_does_not_stop_an_import(tmp_path, study):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    chat(path)
    into = ("--into", str(study), "--user", "ines")
    command = (sys.executable, "-c", "from palate.cli import main; main()", "history", "import")
    assert subprocess.run([*command, str(path), *into], check=False, stdout=-1).returncode == 0
    (one,) = read(study / "histories" / "ines.jsonl")
    assert one.extra["source"]["file"] == "?.jsonl"


def test_imports_at_once_lose_no_session(tmp_path, study):
    """Each reads the history and writes it back, so that two must not do so at a time."""
    paths = [chat(tmp_path / f"c{number}.jsonl", last=f"bye {number}") for number in range(6)]
    into = ("--into", str(study), "--user", "ines")
    command = (sys.executable, "-c", "from palate.cli import main; main()", "history", "import")
    # Held here until all have begun.
    with adding.alone(study / "histories"):
        begun = [subprocess.Popen([*command, str(path), *into], stdout=-1) for path in paths]
        time.sleep(1.0)
        assert not (study / "histories" / "ines.jsonl").exists()
    assert [process.communicate() and process.returncode for process in begun] == [0] * 6
    assert len(read(study / "histories" / "ines.jsonl")) == 6


def test_an_import_that_waits_too_long_says_for_what(tmp_path, study):
    folder = study / "histories"
    too_long = pytest.raises(StoreError, match="another import has been writing")
    with adding.alone(folder), too_long, adding.alone(folder, patience=0.1):
        pass
    with adding.alone(folder, patience=0.1):
        pass


def test_another_note_on_the_same_reply_keeps_the_sessions_apart(tmp_path, study):
    def noted_by(word):
        reply = {"speaker": "character", "text": "Yes?", "satisfaction": 4, "note": word}
        about = {"session_id": "a", "user_id": "ines", "card_id": "ash-1", "turns": [reply]}
        return lines(tmp_path / "p.jsonl", about)

    run(noted_by("warm"), "--into", study)
    assert "another session is called a" in run(noted_by("cold"), "--into", study).output
    assert "already there: a" in run(noted_by("cold"), "--into", study).output
    assert len(read(study / "histories" / "ines.jsonl")) == 2


def test_a_card_is_found_by_its_nickname_too(tmp_path, study):
    data = {"name": "Ashley of the Gate", "nickname": "Ash", "first_mes": "Yes?"}
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    (study / "cards" / "ash-1.json").write_text(json.dumps(card))
    result = run(chat(tmp_path / "c.jsonl"), "--into", study, "--user", "ines", "--dry-run")
    assert "card: ash-1" in result.output


def test_a_table_of_ratings_may_call_a_session_as_its_file_does(tmp_path, study):
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Yes?"}]
    path = document(tmp_path / "x.json", {"id": "2024/7", "messages": said})
    ratings = rate(tmp_path / "r.csv", "2024/7,1,4")
    run(path, "--into", study, "--user", "ines", "--ratings", ratings)
    (one,) = read(study / "histories" / "ines.jsonl")
    assert (one.session_id, one.turns[1].satisfaction) == ("2024-7", 4)


def test_a_rating_that_the_table_replaces_is_named(tmp_path, study):
    said = [{"role": "user", "content": "hi"}]
    said.append({"role": "assistant", "content": "Yes?", "satisfaction": 5})
    path = document(tmp_path / "x.json", {"messages": said})
    ratings = rate(tmp_path / "r.csv", "x,1,2")
    result = run(path, "--into", study, "--user", "ines", "--ratings", ratings)
    assert f"replaced by those of the ratings file: 1; {ratings} line 2 (5 by 2)" in result.output


def test_a_mapping_and_a_format_are_not_both_taken(tmp_path, study):
    mapping = tmp_path / "m.toml"
    mapping.write_text('[fields]\nspeaker = "role"\ntext = "content"')
    path = document(tmp_path / "x.json", [{"role": "user", "content": "hi"}])
    into = ("--into", study, "--user", "ines", "--map", mapping)
    assert run(path, *into, "--dry-run").exit_code == 0
    result = run(path, *into, "--format", "openai")
    assert (result.exit_code, "leave --format out" in result.output) == (2, True)


def test_a_history_is_not_written_anew_where_nothing_is_new(tmp_path, study):
    path = chat(tmp_path / "c.jsonl")
    run(path, "--into", study, "--user", "ines")
    before = (study / "histories" / "ines.jsonl").stat()
    run(path, "--into", study, "--user", "ines")
    after = (study / "histories" / "ines.jsonl").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("other", [{"card_id": "bo-1"}, {"ended_by": "limit"}])
def test_another_card_or_ending_keeps_the_sessions_apart(tmp_path, study, other):
    turns = [{"speaker": "character", "text": "Yes?", "satisfaction": 4}]
    about = {"session_id": "a", "user_id": "ines", "card_id": "ash-1", "ended_by": "quit"}
    run(lines(tmp_path / "p.jsonl", {**about, "turns": turns}), "--into", study)
    again = lines(tmp_path / "p.jsonl", {**about, **other, "turns": turns})
    assert "another session is called a" in run(again, "--into", study).output
    assert "got 0 sessions; already there: a" in run(again, "--into", study).output


def test_what_was_kept_beside_a_session_stays_when_ratings_join_it(tmp_path, study):
    turns = [{"speaker": "character", "text": "Yes?"}]
    about = {"session_id": "a", "user_id": "ines", "card_id": "ash-1"}
    run(lines(tmp_path / "p.jsonl", {**about, "mood": "wet", "turns": turns}), "--into", study)
    turns[0]["satisfaction"] = 4
    run(lines(tmp_path / "p.jsonl", {**about, "place": "inn", "turns": turns}), "--into", study)
    (one,) = read(study / "histories" / "ines.jsonl")
    assert one.extra == {"mood": "wet", "place": "inn"}
    assert one.turns[0].satisfaction == 4


def own(path, *turns, ended_by="unknown"):
    """One session of palate's own form, an id of its own; turns are (speaker, text, rating)."""
    keys = ("speaker", "text", "satisfaction")
    session = {"session_id": "s1", "user_id": "ines", "card_id": "ash-1", "ended_by": ended_by}
    return lines(path, {**session, "turns": [dict(zip(keys, turn, strict=True)) for turn in turns]})


OPENING, ASKED = ("character", "Yes?", None), ("user", "hi", None)


def test_a_chat_that_went_on_takes_the_place_of_its_beginning_with_all_ratings(tmp_path, study):
    half = own(tmp_path / "a.jsonl", OPENING, ASKED, ("character", "Mm.", 4))
    run(half, "--into", study, "--user", "ines")
    more = (("user", "and?", None), ("character", "No.", 2))
    whole = own(
        tmp_path / "b.jsonl", OPENING, ASKED, ("character", "Mm.", None), *more, ended_by="quit"
    )
    result = run(whole, "--into", study, "--user", "ines")
    assert "got 0 sessions; gone on: s1" in result.output
    [session] = read(study / "histories" / "ines.jsonl")
    assert [turn.satisfaction for turn in session.turns] == [None, None, 4, None, 2]
    assert session.ended_by == "quit"
    assert "already there" in run(whole, "--into", study, "--user", "ines").output


def test_a_chat_that_went_on_from_other_words_or_ratings_is_another_session(tmp_path, study):
    run(own(tmp_path / "a.jsonl", OPENING, ASKED, ("character", "Mm.", 4)), "--into", study)
    for name, reply in (("b", ("character", "Hm.", 4)), ("c", ("character", "Mm.", 1))):
        longer = own(tmp_path / f"{name}.jsonl", OPENING, ASKED, reply, ("user", "so?", None))
        run(longer, "--into", study)
    assert len(read(study / "histories" / "ines.jsonl")) == 3


def test_a_history_that_no_user_of_the_study_has_is_said(tmp_path):
    CliRunner().invoke(palate, ["init", str(tmp_path / "s")])
    said = run(chat(tmp_path / "c.jsonl"), "--into", tmp_path / "s", "--user", "ada")
    assert 'add a [[users]] with history = "histories/ada.jsonl"' in said.output
    known = run(chat(tmp_path / "c.jsonl"), "--into", tmp_path / "s", "--user", "synthetic-ines")
    assert "[[users]]" not in known.output
