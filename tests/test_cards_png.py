"""Cards in pictures: every legal place is read, every damaged one is told."""

import zlib

import pytest

from card_bytes import DATA, END, HEADER, SIGNATURE, chunk, packed, png, t_ext, text, v2, v3
from palate.cards.files import load
from palate.errors import InputError

CARD = v2(first_mes="The lamp flickers.")
OTHER = (t_ext(b"Software", b"paint 1.0"), t_ext(b"Comment", b"not a card at all"))


def loaded(folder, raw):
    path = folder / "lantern.png"
    path.write_bytes(raw)
    return load(path)


def z_txt(keyword, value):
    return chunk(b"zTXt", keyword + b"\0\0" + zlib.compress(value))


def i_txt(keyword, value, flag=b"\0"):
    return chunk(b"iTXt", keyword + b"\0" + flag + b"\0en\0word\0" + value)


@pytest.mark.parametrize(
    "raw",
    [
        png(t_ext(b"chara", packed(CARD))),
        png(*OTHER, t_ext(b"chara", packed(CARD))),
        png(z_txt(b"chara", packed(CARD))),
        png(i_txt(b"ccv3", packed(CARD))),
        png(i_txt(b"ccv3", zlib.compress(packed(CARD)), flag=b"\1")),
        png(after=[t_ext(b"chara", packed(CARD))]),
        png(t_ext(b"Chara", packed(CARD))),
        png(t_ext(b"CCV3", packed(CARD))),
        png(t_ext(b"chara", text(CARD))),
        png(t_ext(b"chara", packed(CARD).rstrip(b"="))),
        png(t_ext(b"chara", packed(CARD)[:40] + b"\r\n" + packed(CARD)[40:])),
        png(chunk(b"acTL", b"\0\0\0\1\0\0\0\0"), t_ext(b"chara", packed(CARD))),
        png(t_ext(b"chara", packed(CARD)), end=END + b"more, after the picture"),
    ],
)
def test_a_card_is_read_from_every_place_in_use_without_a_warning(tmp_path, raw):
    found = loaded(tmp_path, raw)
    assert found.carrier == "png"
    assert found.warnings == ()
    assert (found.card.id, found.card.name) == ("lantern", "Tin Lantern")
    assert "守灯人" in found.card.persona
    assert found.card.original == CARD


def test_the_content_not_the_ending_says_what_a_file_is(tmp_path):
    path = tmp_path / "really a picture.json"
    path.write_bytes(png(t_ext(b"chara", packed(CARD))))
    assert load(path).carrier == "png"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (png(*OTHER), "no card found; the picture carries none"),
        (png(*OTHER)[:50], "no card found; the picture is cut off"),
        (SIGNATURE[:6] + b"\n\n" + png()[8:], "no card found; the picture was damaged"),
        (
            png(chunk(b"zTXt", b"chara\0\0" + zlib.compress(packed(CARD))[:-4] + b"abcd")),
            "card data damaged in chunk chara: it cannot be unpacked",
        ),
        (
            png(chunk(b"zTXt", b"chara\0\0" + zlib.compress(packed(CARD))[:-9])),
            "card data damaged in chunk chara: its packed text has no end",
        ),
        (
            png(t_ext(b"chara", packed(CARD)))[:99],
            "card data damaged in chunk chara: the file is cut off inside it",
        ),
        (
            png(t_ext(b"chara", b"%%%not-base64%%%")),
            "card data damaged in chunk chara: it is neither base64 nor JSON",
        ),
        (
            SIGNATURE + HEADER + b"\x7f\xff\xff\xfftEXtchara\0" + packed(CARD),
            "card data damaged in chunk chara: the file is cut off inside it",
        ),
        (
            png(chunk(b"zTXt", b"chara\0\0" + zlib.compress(bytes(64 << 20), 9))),
            "card data damaged in chunk chara: it holds more than 8 MB",
        ),
    ],
)
def test_a_picture_without_a_readable_card_is_refused_with_its_name(tmp_path, raw, message):
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, raw)
    assert str(raised.value).startswith(f"{tmp_path / 'lantern.png'}: {message}")
    assert "\n" not in str(raised.value)


def test_a_field_that_cannot_be_read_is_told_with_its_chunk(tmp_path):
    with pytest.raises(InputError, match=r"lantern\.png \(chunk chara\): description holds an obj"):
        loaded(tmp_path, png(t_ext(b"chara", packed(v2(description={})))))
    with pytest.raises(InputError, match=r"lantern\.png \(chunk ccv3\) is not JSON in UTF-8"):
        loaded(tmp_path, png(t_ext(b"ccv3", b"QUJD")))


OLD, NEW = v2(name="Mirel (old)", first_mes="old"), v3(name="Mirel (new)", first_mes="new")


@pytest.mark.parametrize("order", [1, -1])
def test_ccv3_goes_before_chara_whatever_their_order(tmp_path, order):
    both = [t_ext(b"chara", packed(OLD)), t_ext(b"ccv3", packed(NEW))]
    found = loaded(tmp_path, png(*both[::order]))
    assert (found.card.name, found.card.opening) == ("Mirel (new)", "new")
    assert found.warnings == ()


def test_a_chara_chunk_may_hold_a_v3_card(tmp_path):
    found = loaded(tmp_path, png(t_ext(b"chara", packed(NEW))))
    assert found.card.original["spec"] == "chara_card_v3"


@pytest.mark.parametrize(
    ("newer", "warning"),
    [
        (t_ext(b"ccv3", b"%%%not-base64%%%"), "(chunk ccv3) is damaged (it is neither base64 nor"),
        (t_ext(b"ccv3", b"QUJD"), "(chunk ccv3) is not JSON in UTF-8"),
        (t_ext(b"ccv3", packed([])), "(chunk ccv3) holds no character card"),
        (t_ext(b"ccv3", packed({"data": {"x": 1}})), "(chunk ccv3) holds no character card"),
        (t_ext(b"ccv3", packed(v3(name={}))), "(chunk ccv3): name holds an object"),
        (chunk(b"tEXt", b"ccv3\0" + packed(NEW), checksum=7), "damaged (its checksum is wrong)"),
    ],
)
def test_a_damaged_newer_copy_gives_way_to_the_older_with_a_warning(tmp_path, newer, warning):
    found = loaded(tmp_path, png(newer, t_ext(b"chara", packed(OLD))))
    assert found.card.name == "Mirel (old)"
    assert len(found.warnings) == 1
    assert warning in found.warnings[0]


def test_of_two_differing_chunks_the_first_is_used_with_a_warning(tmp_path):
    second = v2(name="Mirel (second)", first_mes="x")
    found = loaded(tmp_path, png(t_ext(b"chara", packed(OLD)), t_ext(b"Chara", packed(second))))
    assert found.card.name == "Mirel (old)"
    assert found.warnings == (
        f"{tmp_path / 'lantern.png'} has chunks chara that differ; the first of them is used",
    )


def test_the_same_chunk_twice_is_no_news(tmp_path):
    twice = [t_ext(b"chara", packed(OLD))] * 2
    assert loaded(tmp_path, png(*twice)).warnings == ()


def test_a_wrong_checksum_is_read_with_a_warning_where_there_is_no_sound_copy(tmp_path):
    found = loaded(tmp_path, png(chunk(b"tEXt", b"chara\0" + packed(OLD), checksum=7)))
    assert found.card.name == "Mirel (old)"
    assert found.warnings == (
        f"{tmp_path / 'lantern.png'}: the checksum of chunk chara is wrong; "
        "its text may be damaged",
    )


def test_a_picture_cut_off_after_the_card_reads_with_a_warning(tmp_path):
    raw = SIGNATURE + HEADER + t_ext(b"chara", packed(OLD)) + DATA[:12]
    assert loaded(tmp_path, raw).warnings == (
        f"{tmp_path / 'lantern.png'} is cut off after the card; the picture is damaged",
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"GIF89a" + bytes(9),
        b"RIFF\0\0\0\0WEBPVP8 ",
        b"BM" + bytes(9),
        b"\xff\xd8\xff\xe1\0\x20Exif\0\0" + packed(OLD) + b"\xff\xd9",
        b"\0\0\0\x20ftypavif" + bytes(9),
    ],
)
def test_a_picture_of_another_kind_carries_no_card(tmp_path, raw):
    with pytest.raises(InputError, match=r"no card found; cards are carried by PNG"):
        loaded(tmp_path, raw)
