"""The collected faulty cards, where the folder that holds them lies beside the repository."""

import json
from pathlib import Path

import pytest

from palate import cards
from palate.cards.export import export
from palate.cards.files import load
from palate.cards.names import file_stem
from palate.errors import InputError

CASES = Path(__file__).parents[2] / "shared" / "cases"
PNG = CASES / "01-card-png-chunks"
TWO = CASES / "02-card-two-chunks-disagree"
BLANK = CASES / "05-card-blank-opening"
NAMES = CASES / "07-card-names-and-paths"

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason="the collected cases (shared/cases) are not beside the repository"
)


def test_of_a_folder_of_pictures_the_good_are_read_and_the_bad_told_by_name():
    read, refused = {}, {}
    for path in sorted(PNG.glob("*.png")):
        try:
            read[path.name[0]] = load(path)
        except InputError as error:
            refused[path.name[0]] = str(error).removeprefix(f"{path}: ")  # it begins with the file
    assert "".join(read) == "abcdefgk"
    assert len({json.dumps(found.card.original["data"]["name"]) for found in read.values()}) == 1
    assert (
        len({found.card.model_dump_json(exclude={"id", "original"}) for found in read.values()})
        == 1
    )
    assert {name for name, found in read.items() if found.warnings} == {"k"}
    assert all("守灯人" in found.card.persona for found in read.values())
    assert {name: told[:17] for name, told in refused.items()} == {
        "h": "no card found; th",
        "i": "card data damaged",
        "j": "card data damaged",
        "l": "card data damaged",
    }


@pytest.mark.parametrize(
    ("name", "card", "opening", "warnings"),
    [
        ("a_disagree", "Mirel (new)", "new opening", 0),
        ("a_reverse", "Mirel (new)", "new opening", 0),
        ("b_ccv3_damaged", "Mirel (old)", "old opening", 1),
        ("c_ccv3_only", "Mirel (new)", "new opening", 0),
        ("d_chara_holds_v3", "Mirel (new)", "new opening", 0),
        ("e_two_chara", "Mirel (old)", "old opening", 1),
        ("f_nickname", "Mirel of the Long Pier", "Mi waves at Lin.", 0),
    ],
)
def test_of_two_copies_the_newer_sound_one_is_read(name, card, opening, warnings):
    found = load(TWO / f"{name}.png")
    assert found.card.name == card
    assert cards.opening(found.card, user_name="Lin") == opening
    assert len(found.warnings) == warnings


def test_of_blank_openings_none_is_offered():
    offered = {path.stem[0]: cards.openings(load(path).card) for path in BLANK.glob("*.json")}
    assert offered == {
        "a": (cards.Opening(3, "Third door opens."),),
        "b": (),
        "c": (),
        "d": (),
        "e": (cards.Opening(0, "Knock."),),
        "f": (cards.Opening(0, "Who am I?"),),
        "g": (
            cards.Opening(0, 'The lamp flickers. "You came back, {{user}}."'),
            cards.Opening(1, "Just one, as a string."),
        ),
    }
    assert load(BLANK / "f_empty_name.json").card.name == "f_empty_name"


def test_every_name_and_every_folder_takes_a_card(tmp_path):
    folders = (NAMES / "dirs.txt").read_text().splitlines()
    names = json.loads((NAMES / "names.json").read_text())
    for folder in folders:
        taken = []
        for name in names:
            stem = file_stem(name, taken)
            taken.append(stem)
            target = tmp_path / folder / f"{stem}.png"
            card = {"name": name, "description": name or "d", "first_mes": "Hm."}
            given = cards.from_json(card, card_id=stem, where="names.json")
            assert export(given, target) == ()
            assert load(target).card.original["data"]["name"] == name
        assert sorted(p.stem for p in (tmp_path / folder).iterdir()) == sorted(taken)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(folders)


def test_two_cards_of_one_name_keep_their_own_text():
    first, second = (load(NAMES / f"same_name_{x}.json").card for x in "ab")
    assert first.name == second.name
    assert first.id != second.id
    assert first.digest() != second.digest()
