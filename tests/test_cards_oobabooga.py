"""Characters of oobabooga and Pygmalion: their field names, and YAML as plain data."""

import pytest

from palate import cards
from palate.cards.files import load, openings
from palate.errors import InputError

CHIHARU = """\
# a character
name: Chiharu
greeting: |-
  *Chiharu waves.* Hi, {{user}}!
  Sit down.
context: "Chiharu mends radios: 收音机."
example_dialogue: '{{user}}: hi'
your_name: You
temperature: 0.5
"""


def loaded(folder, text, name="chiharu.yaml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path)


def test_a_yaml_character_reads_as_a_card_and_its_own_fields_stay(tmp_path):
    found = loaded(tmp_path, CHIHARU)
    assert found.carrier == "yaml"
    assert found.warnings == ()
    card = found.card
    assert (card.id, card.name) == ("chiharu", "Chiharu")
    assert card.persona == "Chiharu mends radios: 收音机."
    assert card.opening == "*Chiharu waves.* Hi, {{user}}!\nSit down."
    assert card.example_dialogue == "{{user}}: hi"
    assert card.original["your_name"] == "You"
    assert card.original["temperature"] == 0.5
    assert "description" not in card.original


def test_a_pygmalion_card_reads_by_its_own_field_names():
    card = cards.from_json(
        {
            "char_name": "Pyg",
            "char_persona": "A machine.",
            "char_greeting": "Hello.",
            "world_scenario": "A room.",
            "example_dialogue": "<START>\nYou: hi",
        },
        card_id="pyg",
        where="pyg.json",
    )
    assert (card.name, card.persona, card.opening) == ("Pyg", "A machine.", "Hello.")
    assert (card.scenario, card.example_dialogue) == ("A room.", "<START>\nYou: hi")
    assert openings(card) == (cards.Opening(0, "Hello."),)
    assert cards.warnings(card) == ()


def test_the_first_spelling_wins_where_a_card_has_several():
    both = {"name": "Real", "char_name": "Other", "char_persona": "first", "context": "second"}
    card = cards.from_json(both, card_id="x", where="x.json")
    assert (card.name, card.persona) == ("Real", "first")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("No", "No"),
        ("007", "007"),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("12", "12"),
        ('"null"', "null"),
        ("'~'", "~"),
        ("!!str 5", "5"),
        (">-\n  two\n  words", "two words"),
    ],
)
def test_text_stays_text(tmp_path, written, name):
    assert loaded(tmp_path, f"name: {written}\ngreeting: Hi\n").card.name == name


@pytest.mark.parametrize("written", ["", "~", "null", '""'])
def test_a_name_that_is_nothing_is_no_name(tmp_path, written):
    assert loaded(tmp_path, f"name: {written}\ngreeting: Hi\n").card.name == "chiharu"


@pytest.mark.parametrize("start", ["\ufeff", "---\n", "# x\n\n", "%YAML 1.1\n---\n", "'bot': A\n"])
def test_a_yaml_file_may_begin_in_every_usual_way(tmp_path, start):
    assert loaded(tmp_path, f"{start}greeting: Hi\n").card.opening == "Hi"


def test_yaml_inside_json_braces_or_renamed_is_told_by_its_content(tmp_path):
    assert loaded(tmp_path, '{"name": "A", "first_mes": "x"}', "a.yaml").carrier == "json"
    assert loaded(tmp_path, CHIHARU, "a.json").carrier == "yaml"


BOMB = "name: x\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "has YAML anchors or aliases"),
        ("name: x\nself: &self [*self]\n", "has YAML anchors or aliases"),
        ("name: x\n<<: {a: 1}\nname: y\n", "has 'name' twice"),
        ("name: x\na: !!python/object/apply:os.system ['true']\n", "has the YAML tag"),
        ("name: !mine x\n", "has the YAML tag '!mine'"),
        ("name: x\n---\nname: y\n", "holds more than one YAML document"),
        ("name: x\n[a]: y\n", "has a YAML key that is no text"),
        ("name: x\na: " + "{a: " * 500, "is nested too deeply or has too many values"),
        ("name: x\n" + "".join(f"k{i}: v\n" for i in range(20_000)), "is nested too deeply or"),
        ("name: 'x\n", "is not YAML that can be read in line 2"),
        (b"name: \xff\n", "is not YAML in UTF-8"),
        ("name: \x07\n", "is not YAML that can be read"),
        ("title: x\n", "holds no character card: it has neither"),
        ("name: {a: 1}\n", r": name holds an object where text belongs"),
    ],
)
def test_yaml_that_is_not_plain_data_is_refused_in_a_sentence(tmp_path, text, message):
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, text)
    said = str(raised.value)
    assert said.startswith(str(tmp_path / "chiharu.yaml"))
    assert message in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"- name: x\n", "holds no character card: its YAML is not a mapping"),
        ("name: Ash\n".encode("utf-16"), "is not YAML in UTF-8"),
        (b"\n \n", "holds no character card: it is empty"),
    ],
)
def test_odd_text_is_told_as_what_its_ending_says(tmp_path, raw, said):
    path = tmp_path / "ash.yaml"
    path.write_bytes(raw)
    with pytest.raises(InputError) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path} {said}")


def test_a_yaml_character_may_begin_with_a_key_of_any_letters(tmp_path):
    path = tmp_path / "ash.yml"
    path.write_text("备注: 无\nname: Ash\ngreeting: Hm?\n", "utf-8")
    assert load(path).card.name == "Ash"
    path.write_text('\ufeff {"name": "Elm"}', "utf-8")
    assert load(path).carrier == "json"
