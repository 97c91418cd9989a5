"""Character cards: what is read, what is filled in, and what each side is told."""

import json

import pytest

from palate import cards
from palate.cards import library
from palate.cards.labels import Labels
from palate.errors import InputError
from palate.prompts import from_text
from palate.types import Card


def v2(**fields):
    data = {"name": "Door Warden", "description": "A keeper of small lights. 守灯人。", **fields}
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}


def card(**fields):
    return cards.from_json(v2(**fields), card_id="warden", where="warden.json")


@pytest.mark.parametrize(
    ("template", "user", "expected"),
    [
        ("{{user}}", "", ""),
        ("｛｛user｝｝", "Lin", "｛｛user｝｝"),
        ("{{user\n}}", "Lin", "Lin"),
        ("{{time}} {{getvar::mood}}", "Lin", "{{time}} {{getvar::mood}}"),
        ("{{random:red,green}}", "Lin", "red"),
        ("<user> in code: `if a <user> b`", "Lin", "Lin in code: `if a Lin b`"),
    ],
)
def test_choices_about_placeholders_are_fixed(template, user, expected):
    assert cards.filled(template, char="Ash", user=user) == expected


def test_a_macro_that_stays_is_named_once_in_a_warning():
    warned = card(first_mes="Hi {{time}}", scenario="{{time}} {{roll:6}} {{getvar::mood}}")
    assert cards.warnings(warned) == (
        "card warden uses macros that stay as they are: {{time}}, {{getvar::mood}}",
    )


def test_a_blank_opening_gives_way_to_the_first_readable_alternate_which_keeps_its_number():
    opened = card(first_mes="", alternate_greetings=["", "  \n", "Third door opens."])
    assert cards.openings(opened) == (cards.Opening(3, "Third door opens."),)
    assert cards.opening(opened) == "Third door opens."
    assert opened.opening == "Third door opens."


@pytest.mark.parametrize(
    "fields",
    [
        {"first_mes": " \n\t", "alternate_greetings": ["", "\u3000"]},
        {"first_mes": "\xa0\u200b\xa0", "alternate_greetings": [None]},
        {"first_mes": None, "alternate_greetings": None, "extensions": None, "tags": None},
        {"first_mes": "{{// author note: write this later}}", "alternate_greetings": []},
        {},
    ],
)
def test_a_card_without_an_opening_reads_but_cannot_be_played(fields):
    silent = card(**fields)
    assert silent.name == "Door Warden"
    assert cards.openings(silent) == ()
    assert "card warden has no opening; a run needs one" in cards.warnings(silent)
    with pytest.raises(InputError, match=r"card warden has no opening; write a first message"):
        cards.opening(silent)


def test_a_flat_v1_card_reads_like_a_v2_card():
    flat = cards.from_json(
        {"name": "Door Warden", "description": "flat", "first_mes": "Knock."},
        card_id="e",
        where="e.json",
    )
    assert (flat.name, flat.persona, flat.opening) == ("Door Warden", "flat", "Knock.")


@pytest.mark.parametrize("name", ["", "  ", None, "\u200b"])
def test_a_card_without_a_name_is_called_after_its_file(name):
    nameless = cards.from_json(v2(name=name, first_mes="Hm?"), card_id="f_empty", where="f.json")
    assert nameless.name == "f_empty"
    assert cards.warnings(nameless) == (
        "card f_empty has no name; it is called 'f_empty', after its file",
    )


def test_text_where_a_list_belongs_is_one_element_and_a_list_where_text_belongs_is_lines():
    odd = card(
        first_mes="Lamp.",
        mes_example=["<START>", "{{user}}: hi"],
        alternate_greetings="Just one, as a string.",
        tags="calm, night",
        extensions=[],
    )
    assert cards.openings(odd) == (
        cards.Opening(0, "Lamp."),
        cards.Opening(1, "Just one, as a string."),
    )
    assert odd.example_dialogue == "<START>\n{{user}}: hi"


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("description", {"en": "x"}, "an object"),
        ("first_mes", [["x"]], "a list"),
        ("alternate_greetings", [True], "true or false"),
        ("name", {"a": 1}, "an object"),
    ],
)
def test_a_field_without_one_reading_is_refused(field, value, kind):
    with pytest.raises(InputError, match=rf"warden\.json: {field} holds {kind} where text"):
        card(**{field: value})


def test_the_nickname_fills_char_and_the_name_stays():
    mirel = card(
        name="Mirel of the Long Pier", nickname="Mi", first_mes="{{char}} waves, {{User}}."
    )
    assert mirel.name == "Mirel of the Long Pier"
    assert cards.opening(mirel, user_name="Lin") == "Mi waves, Lin."


@pytest.mark.parametrize("nickname", ["", " ", None, ["Mi"]])
def test_a_nickname_that_is_none_leaves_the_name(nickname):
    mirel = card(name="Mirel", nickname=nickname, first_mes="{{char}}, <bot>, <CHAR>")
    assert cards.opening(mirel) == "Mirel, Mirel, Mirel"


def test_greetings_for_groups_are_no_openings():
    assert cards.openings(card(first_mes="", group_only_greetings=["All of you!"])) == ()


@pytest.mark.parametrize(
    ("version", "warned"),
    [("3.1", True), ("10", True), ("3.0", False), ("2.0", False), ("3", False), ("new", False)],
)
def test_a_version_newer_than_the_specification_is_told_by_its_number(version, warned):
    value = {"spec": "chara_card_v3", "spec_version": version, "data": {"name": "Ash"}}
    found = cards.warnings(cards.from_json(value, card_id="ash", where="ash.json"))
    said = f"card ash has version {version}, newer than what palate knows (3.0)"
    assert (said in found) is warned


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"description": "A keeper of small lights. 守灯人。"}, "en"),
        ({"description": "{{user}} 守灯人，Elizabeth 的朋友。"}, "zh"),
        ({"description": ""}, "en"),
        ({"description": "守灯人", "extensions": {"palate": {"language": "en"}}}, "en"),
        ({"description": "words", "extensions": {"palate": {"language": "zh-CN"}}}, "zh"),
    ],
)
def test_the_language_is_declared_or_else_that_of_most_of_the_text(fields, expected):
    assert card(**fields).language == expected


def test_a_third_language_is_refused():
    with pytest.raises(InputError, match=r'language is \'fr\', but cards are judged in "en" or'):
        card(extensions={"palate": {"language": "fr"}})


def test_a_file_gives_the_card_its_id(tmp_path):
    path = tmp_path / "守灯人 two.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(v2(first_mes="Hm.")).encode())
    assert cards.read(path).id == "守灯人 two"
    assert cards.read(path).original == v2(first_mes="Hm.")


def test_half_an_emoji_is_replaced_because_nothing_can_store_it(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text('{"name": "Fox \\ud83e", "description": "d"}')
    assert cards.read(path).name == "Fox ?"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"not json", "is not JSON in UTF-8"),
        (b'{"name": "\xb0\xd7"}', "is not JSON in UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"n": ' + b"9" * 5000 + b"}", "is not JSON in UTF-8"),
        (b"[1, 2]", "holds no character card: its JSON is not an object"),
        (b'{"title": "x"}', "holds no character card: it has neither"),
        (b"", "holds no character card: it is empty"),
        (b" \n\n", "holds no character card: it is empty"),
        (
            b'{"spec": "lorebook_v3", "data": {"name": "x"}}',
            "holds no character card: it is a lore",
        ),
        (b'{"name": "x", "creation_date": NaN}', "has a number that JSON has no word for"),
        (b'{"name": "x", "creation_date": -Infinity}', "has a number that JSON has no word for"),
        (b'{"name": "x", "tags": [1e999]}', "has a number that JSON has no word for"),
    ],
)
def test_what_is_not_a_card_is_refused_with_the_file_named(tmp_path, raw, message):
    path = tmp_path / "odd.json"
    path.write_bytes(raw)
    with pytest.raises(InputError) as raised:
        cards.read(path)
    assert str(raised.value).startswith(f"{path} {message}")
    assert "\n" not in str(raised.value)


def test_a_missing_file_a_folder_and_a_huge_file_are_refused(tmp_path):
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(cards.MAX_BYTES + 1)
    for path, message in [
        (tmp_path / "none.json", "does not exist"),
        (tmp_path, "cannot be read as a card"),
        (huge, "is larger than 8 MB"),
    ]:
        with pytest.raises(InputError, match=message):
            cards.read(path)


FULL = Card(
    id="ash",
    language="en",
    name="Ash",
    persona="{{char}} mends clocks.",
    personality="patient",
    scenario="A shop; {{user}} comes in.",
    opening="Yes, {{user}}?",
    example_dialogue="<START>\n{{user}}: hi\n<START>\n{{char}}: hm",
)


def test_the_candidate_is_told_the_whole_card_with_names_put_in():
    told = cards.candidate_prompt(FULL, user_name="Lin")
    assert told.system == (
        "You are Ash, a character in a role-play chat with Lin. Stay in character. Write only "
        "Ash's next message. What Lin says, does and feels is up to Lin.\n\n"
        "Name: Ash\n\n"
        "About the character:\nAsh mends clocks.\n\n"
        "Personality:\npatient\n\n"
        "Scenario:\nA shop; Lin comes in.\n\n"
        "Example dialogue:\nLin: hi\n\nAsh: hm"
    )
    assert told.post_history is None


def test_blank_fields_leave_no_heading_behind():
    bare = FULL.model_copy(
        update={"personality": " ", "scenario": "{{// later}}", "example_dialogue": "<START>"}
    )
    assert cards.card_text(bare) == "Name: Ash\n\nAbout the character:\nAsh mends clocks."


def test_a_cards_system_prompt_replaces_ours_unless_it_names_the_original():
    own = FULL.model_copy(update={"system_prompt": "Speak in rhyme, {{char}}."})
    assert cards.candidate_prompt(own).system.startswith("Speak in rhyme, Ash.\n\nName: Ash")
    both = FULL.model_copy(update={"system_prompt": "{{Original}} Rhyme."})
    system = cards.candidate_prompt(both).system
    assert system.startswith("You are Ash, a character in")
    assert "is up to Alex. Rhyme.\n\nName: Ash" in system


def test_post_history_instructions_come_apart_for_after_the_conversation():
    late = FULL.model_copy(update={"post_history_instructions": "{{original}} Keep {{user}} warm."})
    told = cards.candidate_prompt(late, user_name="Lin")
    assert told.post_history == "Keep Lin warm."
    assert "warm" not in told.system


def test_a_chinese_card_is_told_in_chinese():
    chinese = FULL.model_copy(update={"language": "zh", "name": "阿灰"})
    assert cards.candidate_prompt(chinese).system.startswith(
        "你在一场角色扮演聊天中扮演阿灰，对方是小安。"
    )


def test_a_candidates_own_prompt_file_takes_what_it_names():
    prompt = from_text("terse.md", "Be terse, <<name>>.\n<<card>>")
    system = cards.candidate_prompt(FULL, prompt=prompt).system
    assert system.startswith("Be terse, Ash.\nName: Ash\n\nAbout the character:")


def test_a_candidates_own_prompt_file_with_another_placeholder_is_refused():
    with pytest.raises(InputError, match=r"prompt terse\.md has <<mood>>; only <<card>>"):
        cards.candidate_prompt(FULL, prompt=from_text("terse.md", "<<mood>>"))


def test_a_scene_holds_nothing_but_what_a_user_sees():
    assert cards.scene(FULL, user_name="Lin") == ("en", "Ash", "A shop; Lin comes in.", "Lin")


@pytest.mark.parametrize("spelling", ["{{user}}", "{{User}}", "{{ USER }}", "<user>", "<BOT>"])
def test_no_spelling_of_a_placeholder_reaches_a_prompt(spelling):
    fields = ("persona", "personality", "scenario", "example_dialogue", "system_prompt")
    spelt = FULL.model_copy(update=dict.fromkeys((*fields, "opening"), f"x {spelling}"))
    assert spelling not in cards.candidate_prompt(spelt).system
    assert spelling not in cards.scene(spelt).scenario
    assert spelling not in cards.opening(spelt)


@pytest.mark.parametrize("difficulty", [None, 3, "secret", {}])
def test_labels_that_only_look_like_the_librarys_are_none(difficulty):
    labels = {**dict.fromkeys(Labels._fields, "x"), "difficulty": difficulty}
    odd = card(extensions={"palate": {"library": labels}})
    assert library.labels(odd) is None
