"""Cards in CHARX files: read, and what is refused about a zip."""

import struct
import zipfile

import pytest

from card_bytes import charx, png, text, v3
from palate.cards.files import load
from palate.errors import InputError

CARD = v3(first_mes="Hm?", assets=[{"type": "icon", "uri": "embeded://assets/a.png"}])
PICTURE = ("assets/a.png", b"pixels")


def loaded(folder, raw):
    path = folder / "lantern.charx"
    path.write_bytes(raw)
    return load(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("before", [b"", b"\xff\xd8\xff\xe0 a JPEG", png()])
def test_the_card_is_read_alone_or_behind_a_picture(tmp_path, method, before):
    raw = before + charx(PICTURE, ("card.json", text(CARD)), method=method)
    found = loaded(tmp_path, raw)
    assert found.carrier == "charx"
    assert found.warnings == ()
    assert found.card.original == CARD


def test_a_field_that_cannot_be_read_is_told_with_the_member(tmp_path):
    with pytest.raises(InputError, match=r"lantern\.charx \(card\.json\): name holds an object"):
        loaded(tmp_path, charx(("card.json", text(v3(name={})))))


def test_an_empty_card_is_told_with_the_member(tmp_path):
    with pytest.raises(InputError, match=r"\(card\.json\) holds no character card: it is empty"):
        loaded(tmp_path, charx(("card.json", b"")))


def changed(raw, at, form, value):
    """`raw` with a field of the only central record changed, `at` bytes into it."""
    held = bytearray(raw)
    struct.pack_into(form, held, held.rindex(b"PK\1\2") + at, value)
    return bytes(held)


GOOD = charx(("card.json", text(CARD)))


def twice():
    with pytest.warns(UserWarning, match="Duplicate name"):
        return charx(("card.json", text(CARD)), ("card.json", text(CARD)))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (charx(PICTURE), "no card found; the zip has no card.json at its root"),
        (charx(("deep/card.json", text(CARD))), "no card found; the zip has no card.json at its"),
        (GOOD[:-30], "no card found; it has no complete zip"),
        (GOOD[:-22], "no card found; it has no complete zip"),
        (charx(("Card.json", text(CARD))), "no card found; the zip has no card.json at its root"),
        (charx(("../x", b""), ("card.json", text(CARD))), "card data refused: member '../x' leads"),
        (charx(("a/../../x", b"")), "card data refused: member 'a/../../x' leads outside"),
        (charx(("/etc/x", b"")), "card data refused: member '/etc/x' leads outside"),
        (charx(("a\\..\\..\\x", b"")), "card data refused: member"),
        (charx(("C:\\x", b"")), "card data refused: member"),
        (charx(("a\nb", b"")), "card data refused: member 'a\\nb' leads outside"),
        (changed(GOOD, 8, "<H", 1), "card data refused: it is encrypted"),
        (changed(GOOD, 10, "<H", 14), "card data refused: card.json is packed in a way"),
        (changed(GOOD, 16, "<L", 7), "card data damaged: its checksum is wrong"),
        (changed(GOOD, 24, "<L", 9), "card data damaged: it unpacks to more than the zip says"),
        (changed(GOOD, 24, "<L", 999), "card data damaged: its checksum is wrong"),
        (changed(GOOD, 42, "<L", 9), "card data damaged: member 'card.json' is not where"),
        (changed(GOOD, 28, "<H", 999), "card data damaged: its directory is cut off"),
        (changed(GOOD, 0, "<L", 9), "card data damaged: its directory cannot be read"),
        (changed(GOOD, 20, "<L", 10**6), "card data refused: members of the zip overlap"),
        (
            GOOD[:-22] + b"PK\6\7" + bytes(16) + GOOD[-22:],
            "card data refused: a zip64 holds more than any card",
        ),
        (
            GOOD[:-10] + struct.pack("<L", 3 << 20) + GOOD[-6:],
            "card data refused: the zip has too many members",
        ),
        (
            GOOD[:-10] + struct.pack("<L", 1 << 20) + GOOD[-6:],
            "card data damaged: its directory is not where the zip says",
        ),
    ],
)
def test_a_zip_that_is_damaged_or_hostile_is_refused_with_its_name(tmp_path, raw, message):
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, raw)
    assert str(raised.value).startswith(f"{tmp_path / 'lantern.charx'}: {message}")


def test_two_cards_in_one_zip_have_no_one_reading(tmp_path):
    with pytest.raises(InputError, match=r"card data refused: the zip has 2 files card\.json"):
        loaded(tmp_path, twice())


def test_a_zip_comment_does_not_hide_the_directory(tmp_path):
    raw = GOOD[:-2] + struct.pack("<H", 5) + b"hello"
    assert loaded(tmp_path, raw).card.name == "Tin Lantern"


@pytest.mark.parametrize("name", ["主\u3000图.png", "a\xa0b.png", "👩\u200d👧.png", "é.png"])
def test_members_may_have_any_name_that_leads_nowhere(tmp_path, name):
    assert loaded(tmp_path, charx(("card.json", text(CARD)), (name, b"x"))).card.original == CARD
