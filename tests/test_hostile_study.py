"""Study files as clumsy and hostile people write them: one sentence, exit code 2, no call made."""

import json

import pytest

from palate import prepare as prepared
from palate.config import load_study
from palate.errors import InputError
from worlds import card, write_study


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path / "study")
    (folder / "replies.json").write_text("[]", "utf-8")
    return folder


def refusal(study, old, new):
    """The sentence with which the study is refused after `old` became `new`."""
    file = study / "study.toml"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(InputError) as fault:
        prepared.prepare(study)
    return str(fault.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["cards/*.json"]', '[""]', "no pattern of files"),
        ('["cards/*.json"]', '["/"]', "no pattern of files"),
        ('["cards/*.json"]', '["cards/**.json"]', "no pattern of files"),
        ('["cards/*.json"]', f'["{"a" * 5000}"]', "no pattern of files"),
        ('["cards/*.json"]', '"cards/*.json"', "study.panel is wrong: Input should be a list"),
        ('["cards/*.json"]', "[]", "the list needs an entry"),
        ("repetitions = 2", 'repetitions = "2"', "protocol.repetitions is wrong"),
        ("repetitions = 2", "repetitions = true", "protocol.repetitions is wrong"),
        ("seed = 7", "seed = 9223372036854775808", "beyond 64 bits"),
        ("[judge]", "[[judge]]", "judge is wrong: Input should be a table"),
        ("[judge]", '[judge]\nheaders = { "X Y" = "a" }', "cannot be the name of a header"),
        ("[judge]", '[judge]\nheaders = { X = "a\\nb" }', "characters that cannot be sent"),
        ("[judge]", '[judge]\nheaders = { X = "env:" }', "names no variable"),
        ('form = "json"', 'form = "digits"', "returns no token probabilities"),
        ('rubric = "rubrics/u1.json"', 'rubric = "r\\u0000"', "users.rubric holds a NUL"),
        ('name = "A"', 'name = "A"\nprompt = "p\\u0000"', "candidates.prompt holds a NUL"),
        ('id = "u1"', f'id = "{"😀" * 51}"', "204 bytes of UTF-8"),
        ('id = "u1"', 'id = "u\\u009b1"', "control character"),
        ("[judge]", f"[judge]\nbody = {{ a = {'[' * 60 + ']' * 60} }}", "nested too deeply"),
        ("[judge]", f"a = {'[' * 3000 + ']' * 3000}\n[judge]", "nested too deeply"),
        ('name = "A"', 'name = "A"\nsession_field = "messages"', "taken in a request"),
        ('name = "A"', 'name = "A"\nsession_header = "a b"', "cannot be the name of a header"),
        ("replies.json", "r" * 300, "does not exist; write it"),
    ],
)
def test_a_wrong_value_is_one_sentence(study, old, new, says):
    sentence = refusal(study, old, new)
    assert "study.toml" in sentence
    assert says in sentence
    assert "\n" not in sentence


def test_two_tables_for_one_endpoint_are_not_settled_by_their_order(study):
    tables = '[endpoints."http://a/v1"]\n[endpoints."http://A/v1/"]\n[judge]'
    assert "for the same address" in refusal(study, "[judge]", tables)


@pytest.mark.parametrize("field", ["messages", "model", "stream", "n", "temperature", "stop"])
def test_a_body_cannot_overrule_what_a_request_is(study, field):
    sentence = refusal(study, "[judge]", f"[judge]\nbody = {{ {field} = 3 }}")
    assert f"{field} is not for the body of a request" in sentence


@pytest.mark.parametrize("value", ["1979-05-27", "nan", "[inf]", "{ b = 07:32:00 }"])
def test_a_body_holds_only_what_json_can_say(study, value):
    assert "which JSON lacks" in refusal(study, "[judge]", f"[judge]\nbody = {{ a = {value} }}")


@pytest.mark.parametrize("stem", ["a|b", " k", "k\x01", "a\\b", "x" * 120])
def test_a_card_file_whose_name_cannot_be_an_id_is_named(study, stem):
    (study / "cards" / f"{stem}.json").write_text(json.dumps(card("k")), "utf-8")
    with pytest.raises(InputError, match="needs another file name"):
        load_study(study).panel_files()


def test_a_card_link_that_leads_nowhere_is_a_fault_not_a_smaller_panel(study):
    (study / "cards" / "k3.json").symlink_to("gone.json")
    with pytest.raises(InputError, match=r"k3\.json does not exist"):
        prepared.prepare(study)


def test_one_card_under_two_spellings_of_its_path_is_one_card(study):
    file = study / "study.toml"
    panel = '["cards/../cards/k1.json", "cards/k1.json"]'
    file.write_text(file.read_text("utf-8").replace('["cards/*.json"]', panel), "utf-8")
    assert [path.stem for path in load_study(study).panel_files()] == ["k1"]


def test_a_study_path_that_no_disk_takes_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_study(tmp_path / ("a" * 5000))


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault(study):
    file = study / "study.toml"
    text = file.read_text("utf-8").replace("\n", "\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(load_study(study).content.candidates) == 3
