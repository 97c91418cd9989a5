"""What a simulator is told of the card of a recorded session."""

import json

import pytest

from palate.config import read_study
from palate.errors import InputError
from palate.scenes import scenes_of
from palate.types import Scene, Session

STUDY = """
[study]
name = "t"
panel = ["panel/*.json"]
[judge]
model = "scripted:nowhere.json"
[[users]]
id = "u1"
name = "Wren"
rubric = "r.json"
simulator = { kind = "lora" }
[[users]]
id = "u2"
rubric = "r.json"
simulator = { kind = "lora" }
[[candidates]]
name = "A"
model = "openai:no-key-is-needed-to-look-at-cards"
"""


def card(name, scenario):
    return json.dumps(
        {
            "spec": "chara_card_v2",
            "spec_version": "2.0",
            "data": {"name": name, "scenario": scenario, "first_mes": "Hi.", "description": "S"},
        }
    )


@pytest.fixture
def study(tmp_path):
    for folder in ("panel", "cards"):
        (tmp_path / folder).mkdir()
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    (tmp_path / "panel/k1.json").write_text(card("Captain", "{{user}} boards {{char}}'s boat."))
    (tmp_path / "cards/k1.json").write_text(card("Another", "not this one"))
    (tmp_path / "cards/k2.json").write_text(card("Mira", ""))
    return read_study(tmp_path)


def session(card_id, *, language="en", turns=(("character", "Hi."), ("user", "hi")), **extra):
    return Session.model_validate(
        {
            "session_id": f"s-{card_id}",
            "user_id": "u1",
            "card_id": card_id,
            "language": language,
            "turns": [{"speaker": who, "text": text} for who, text in turns],
            "extra": extra,
        }
    )


def scenes(study, user=0):
    return scenes_of(study, study.content.users[user])


def test_the_panel_comes_before_the_folder_of_cards(study):
    expected = Scene("en", "Captain", "Wren boards Captain's boat.", "Wren")
    assert scenes(study)(session("k1")) == expected


def test_a_card_off_the_panel_is_found_in_the_folder_and_a_user_without_a_name_gets_one(study):
    assert scenes(study, 1)(session("k2")) == Scene("en", "Mira", "", "Alex")


def test_a_card_of_the_library_needs_no_file_in_the_study(study):
    found = scenes(study)(session("gu-qiuping-zh", language="zh"))
    assert found.language == "zh"
    assert found.scenario != ""


def test_a_studys_own_card_comes_before_the_librarys_of_the_same_id(study):
    (study.folder / "cards/gu-qiuping-zh.json").write_text(card("Mine", ""), "utf-8")
    assert scenes(study)(session("gu-qiuping-zh")).character == "Mine"


def test_a_session_whose_card_is_nowhere_gets_a_neutral_scene_and_is_counted(study):
    known = scenes(study)
    assert known(session("gone")) == Scene("en", "the character", "", "Wren")
    assert known(session("weg", language="zh-CN")) == Scene("zh", "角色", "", "Wren")
    known(session("gone"))
    known(session("k1"))
    assert known.neutral == ("s-gone", "s-weg")


def test_a_language_we_do_not_know_is_told_by_the_words(study):
    turns = (("character", "你好，欢迎上船。"), ("user", "嗯"))
    assert scenes(study)(session("gone", language="ja", turns=turns)).language == "zh"


def test_a_name_that_the_history_has_is_used(study):
    assert scenes(study)(session("gone", character="Old Tom")).character == "Old Tom"
    named = {"0": {"name": "Old Tom"}, "1": {"name": "me"}}
    assert (
        scenes(study)(
            session("gone", turns_=1).model_copy(update={"extra": {"turns": named}})
        ).character
        == "Old Tom"
    )


def test_of_several_characters_none_is_named(study):
    turns = (("character", "a"), ("character", "b"), ("user", "c"))
    several = session("gone", turns=turns).model_copy(
        update={"extra": {"turns": {"0": {"name": "Tom"}, "1": {"name": "Ada"}}}}
    )
    assert scenes(study)(several).character == "the character"


@pytest.mark.parametrize("odd", [{"turns": [1]}, {"turns": {"0": "x"}}, {"character": 3}])
def test_odd_extras_are_no_names(study, odd):
    strange = session("gone").model_copy(update={"extra": odd})
    assert scenes(study)(strange).character == "the character"


def test_a_broken_card_is_told_only_when_a_session_needs_it(study):
    (study.folder / "cards/bad.json").write_text("{", "utf-8")
    known = scenes(study)
    known(session("k1"))
    with pytest.raises(InputError, match=r"bad\.json"):
        known(session("bad"))
