"""`palate cards`: what a person who brings cards sees, from the command line inwards."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest

from palate import cards
from palate.card_list import list_cards, print_cards
from palate.cards import library, panel
from worlds import HOSTILE_NAMES, palate, write_study


def v2(name: str, **fields: object) -> dict[str, object]:
    data = {"name": name, "description": "d", "first_mes": "Well?", **fields}
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def said(*arguments: object) -> subprocess.CompletedProcess[str]:
    return palate("cards", *arguments)


def listed(place) -> list[str]:
    return [row["name"] for row in json.loads(said("list", place, "--json").stdout)]


# check


def test_check_tells_the_playable_the_unplayable_and_the_unreadable_apart(tmp_path):
    good = write(tmp_path / "good.json", v2("Ash"))
    mute = write(tmp_path / "mute.json", v2("Mute", first_mes=""))
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert said("check", good).returncode == 0
    assert said("check", good, mute).returncode == 1
    every = said("check", tmp_path)
    assert every.returncode == 2
    assert "3 files: 1 can be played, 1 cannot, 1 refused" in every.stdout
    assert str(broken) in every.stdout
    assert "Traceback" not in every.stdout + every.stderr


def test_check_as_json_holds_what_the_lines_say(tmp_path):
    write(tmp_path / "a.json", v2("Ash", alternate_greetings=["", "Third"], first_mes=" "))
    (tmp_path / "b.json").write_text("[]")
    a, b = json.loads(said("check", tmp_path, "--json").stdout)
    assert (a["name"], a["openings"], a["faults"], a["refused"]) == ("Ash", [2], [], None)
    assert b["refused"]
    assert str(tmp_path / "b.json") in b["refused"]


def test_check_shows_what_a_candidate_is_sent_when_the_chat_begins(tmp_path):
    card = v2(
        "Ash", description="{{char}} distrusts {{user}}.", post_history_instructions="Be curt."
    )
    shown = said("check", write(tmp_path / "a.json", card), "--show").stdout
    assert "Ash distrusts Alex." in shown
    assert shown.index("--- assistant\nWell?") < shown.index("--- system\nBe curt.")


def test_a_place_without_cards_is_named(tmp_path):
    for place, why in ((tmp_path / "none", "does not exist"), (tmp_path, "holds no card file")):
        found = said("check", place)
        assert found.returncode == 2
        assert why in found.stderr


def test_a_name_cannot_steer_the_terminal(tmp_path):
    found = said("check", write(tmp_path / "a.json", v2("\x1b[2JAsh\u202e")))
    assert "Ash" in found.stdout
    assert "\x1b" not in found.stdout
    assert "\u202e" not in found.stdout


# import


def test_every_name_imports_and_is_listed_exactly_as_given(tmp_path):
    sources = [
        write(tmp_path / "in" / f"{at}.json", v2(name)) for at, name in enumerate(HOSTILE_NAMES)
    ]
    into = tmp_path / "out"
    done = said("import", *sources, "--into", into)
    assert done.returncode == 0, done.stderr
    assert sorted(listed(into)) == sorted(HOSTILE_NAMES)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}
    names = [path.name for path in into.iterdir()]
    assert all(len(name.encode()) <= 255 for name in names)
    folded = {unicodedata.normalize("NFC", name).casefold() for name in names}
    assert len(folded) == len(HOSTILE_NAMES)


def test_two_cards_of_one_name_stand_side_by_side_and_a_third_time_is_no_copy(tmp_path):
    first = write(tmp_path / "a.json", v2("Sam", description="one"))
    second = write(tmp_path / "b.json", v2("Sam", description="two"))
    said("import", first, second, "--into", tmp_path / "out")
    again = said("import", second, "--into", tmp_path / "out")
    assert "already there" in again.stdout
    found = [cards.read(path) for path in (tmp_path / "out").iterdir()]
    assert sorted(card.persona for card in found) == ["one", "two"]
    assert {card.name for card in found} == {"Sam"}
    assert len({card.id for card in found}) == 2


def test_bad_files_do_not_stop_the_good_ones_and_nothing_of_them_is_left(tmp_path):
    write(tmp_path / "in" / "a.json", v2("Ash"))
    (tmp_path / "in" / "b.json").write_text("{")
    (tmp_path / "in" / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = said("import", tmp_path / "in", "--into", tmp_path / "out")
    assert done.returncode == 2
    assert "1 imported, 2 refused" in done.stdout
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize(
    "folder", ["with space", "资料 夹", "quote'and\"double", "hash#percent%20amp&", "😀 data"]
)
def test_a_study_in_an_awkward_folder_takes_cards_in_and_gives_them_out(tmp_path, folder):
    study = write_study(tmp_path / folder)
    before = len(listed(study))
    card = write(tmp_path / "new.json", v2("New One"))
    assert said("import", card, "--into", study).returncode == 0
    assert len(listed(study)) == before + 1
    assert said("check", study).returncode == 0
    target = tmp_path / folder / "out.png"
    assert said("export", study / "cards" / "New One.json", target).returncode == 0
    assert cards.read(target).name == "New One"


# export and list


def test_a_library_card_goes_out_as_a_picture_and_comes_back_the_same(tmp_path):
    target = tmp_path / "gu.png"
    assert said("export", "library:gu-qiuping-zh", target).returncode == 0
    assert cards.read(target).original == library.cards("gu-qiuping-zh")[0].original
    again = said("export", "library:gu-qiuping-zh", target)
    assert again.returncode == 2
    assert "exists" in again.stderr
    assert said("export", "library:gu-qiuping-zh", target, "--overwrite").returncode == 0


def test_the_panel_goes_out_into_a_folder_and_not_into_one_file(tmp_path):
    assert said("export", "library:panel-en", tmp_path / "cards").returncode == 0
    assert {path.stem for path in (tmp_path / "cards").iterdir()} == {
        f"{character}-en" for character in panel.panel().characters
    }
    refused = said("export", "library:panel-en", tmp_path / "one.json")
    assert refused.returncode == 2
    assert "names 10 cards" in refused.stderr


def test_the_list_shows_the_panel_with_its_digest_and_filters_by_label():
    shown = said("list", "--panel", "--language", "en").stdout
    assert all(character in shown for character in panel.panel().characters)
    assert panel.panel().sha256[:12] in shown
    rows = json.loads(said("list", "--genre", "sea and expedition", "--json").stdout)
    assert len(rows) == 20
    assert {row["genre"] for row in rows} == {"sea and expedition"}


def test_a_study_plays_the_library_by_name_and_an_unknown_name_is_refused(tmp_path):
    study = write_study(tmp_path / "s")
    (study / "replies.json").write_text("[]")
    file = study / "study.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace('"cards/*.json"', '"library:panel-zh"'), "utf-8")
    assert len(listed_panel(study)) == 10
    file.write_text(text.replace('"cards/*.json"', '"library:no-such-en"'), "utf-8")
    refused = palate("plan", study)
    assert refused.returncode == 2
    assert "library:no-such-en names no card of the library" in refused.stderr


def listed_panel(study) -> list[str]:
    from palate.config import load_study

    return [path.stem for path in load_study(study).panel_files()]


# what stands in the way


def test_a_lorebook_that_no_study_reads_is_a_fault(tmp_path):
    book = {"entries": [{"keys": {"a": 1}, "content": "c"}]}
    found = said("check", write(tmp_path / "a.json", v2("Ash", character_book=book)))
    assert found.returncode == 1
    assert found.stdout.startswith("fault")
    assert found.stdout.count("card a: its lorebook's entry 1: keys is {'a': 1} and not a") == 1


def test_every_imported_name_is_an_id_that_a_study_takes(tmp_path):
    study = write_study(tmp_path / "s", cards=(), users=("u1",), candidates=("A",))
    for number, name in enumerate(HOSTILE_NAMES):
        write(tmp_path / f"{number}.json", v2(name))
    said("import", tmp_path, "--into", study)
    (study / "replies.json").write_text("[]")
    found = palate("plan", study)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("place", ["none", "a.json"])
def test_a_list_of_what_is_no_folder_is_refused(tmp_path, place):
    write(tmp_path / "a.json", v2("Ash"))
    found = said("list", tmp_path / place)
    assert found.returncode == 2
    assert "is no folder; name a study or a folder of cards" in found.stderr


@pytest.mark.parametrize("place", ["a.json", "a.json/cards", "study"])
def test_cards_go_into_no_file(tmp_path, place):
    source = write(tmp_path / "a.json", v2("Ash"))
    write(tmp_path / "study" / "study.toml", {})
    write(tmp_path / "study" / "cards", {})
    found = said("import", source, "--into", tmp_path / place)
    assert found.returncode == 2
    assert "is no folder; name a study or a folder to import into" in found.stderr


@pytest.mark.parametrize("command", ["check", "import", "list"])
def test_a_name_that_the_system_refuses_is_a_fault_of_the_input(command):
    found = said(command, "a" * 300 + ".json")
    assert found.returncode == 2
    assert "Traceback" not in found.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name can be written")
def test_a_name_that_this_system_cannot_write_does_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    write(tmp_path / "a.json", v2("守灯人"))
    write(tmp_path / "b.json", v2("Ash"))
    found = said("import", tmp_path, "--into", tmp_path / "out")
    assert found.returncode == 2
    assert "set the environment variable PYTHONUTF8=1" in found.stdout
    assert found.stdout.endswith("1 imported, 1 refused\n")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["Ash.json"]


def test_check_takes_a_studys_panel_and_library_cards_too(tmp_path):
    study = write_study(tmp_path / "s")
    file = study / "study.toml"
    text = file.read_text("utf-8").replace('"cards/*.json"', '"cards/*.json", "library:panel-zh"')
    file.write_text(text, "utf-8")
    own = len(list((study / "cards").iterdir()))
    found = said("check", study, "library:gu-qiuping-en")
    assert found.returncode == 0, found.stderr
    assert f"{own + panel.SIZE + 1} files" in found.stdout
    assert len(listed(study)) == own + panel.SIZE


def test_check_as_json_with_show_holds_what_is_sent():
    [found] = json.loads(said("check", "library:gu-qiuping-zh", "--show", "--json").stdout)
    assert [role for role, _ in found["sent"]] == ["system", "assistant"]
    assert "顾秋萍" in found["sent"][0][1]


def test_a_file_named_like_a_warning_keeps_its_warnings(tmp_path):
    card = v2("Ash", description="{{weather}}")
    found = said("check", write(tmp_path / "has no opening.json", card))
    assert "{{weather}}" in found.stdout


def test_filters_hold_in_any_list_and_a_value_that_no_card_has_is_refused(tmp_path):
    said("export", "library:panel-en", tmp_path)
    rows = json.loads(said("list", tmp_path, "--genre", "romance", "--json").stdout)
    assert [row["genre"] for row in rows] == ["romance"]
    assert len(json.loads(said("list", tmp_path, "--panel", "--json").stdout)) == panel.SIZE
    assert len(json.loads(said("list", "library:panel-zh", "--json").stdout)) == panel.SIZE
    secrets = json.loads(said("list", "--difficulty", "secret", "--json").stdout)
    assert secrets
    assert all("secret" in row["difficulty"] for row in secrets)
    refused = said("list", "--genre", "Romance")
    assert refused.returncode == 2
    assert "romance" in refused.stderr


def test_ids_and_names_are_whole_in_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    print_cards(list_cards("library:panel-en", filters={}, only_panel=False), as_json=False)
    shown = capsys.readouterr().out
    assert all(f"{character}-en" in shown for character in panel.panel().characters)
