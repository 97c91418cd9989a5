"""Files made to exhaust whoever reads them: each refused under 100 MB and a second."""

import base64
import io
import os
import time
import tracemalloc
import zipfile
import zlib

import pytest

from card_bytes import END, HEADER, SIGNATURE, charx, chunk, packed, png, t_ext, v2
from palate.cards import MAX_BYTES, warnings
from palate.cards.files import load
from palate.errors import InputError

MEGABYTE = 1_000_000


def filled(before, unit, after, size=MAX_BYTES):
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def measured(path):
    """What a check of the card says, the processor time it took, the most memory it held."""

    def said():
        try:
            card = load(path).card
            warnings(card)
            return card.name
        except InputError as error:
            return str(error)

    began = time.process_time()
    answer = said()
    took = time.process_time() - began
    tracemalloc.start()
    try:
        said()
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return answer, took, held


def within_bounds(path, message):
    answer, took, held = measured(path)
    assert message in answer
    assert took < 1
    assert held < 100 * MEGABYTE


def put(folder, content, name="card"):
    path = folder / name
    path.write_bytes(content)
    return path


def test_fifty_megabytes_of_picture_without_a_card(tmp_path):
    path = tmp_path / "big.png"
    with path.open("wb") as file:
        file.write(SIGNATURE + HEADER + (50 * MEGABYTE).to_bytes(4, "big") + b"IDAT")
        file.seek(50 * MEGABYTE + 4, os.SEEK_CUR)
        file.write(END)
    within_bounds(path, "no card found; the picture carries none")


def test_fifty_megabytes_of_picture_with_a_card_behind_the_pixels_load(tmp_path):
    path = tmp_path / "big.png"
    with path.open("wb") as file:
        file.write(SIGNATURE + HEADER + (50 * MEGABYTE).to_bytes(4, "big") + b"IDAT")
        file.seek(50 * MEGABYTE + 4, os.SEEK_CUR)
        file.write(t_ext(b"chara", packed(v2())) + END)
    within_bounds(path, "Tin Lantern")


@pytest.mark.parametrize("kind", [b"IDAT", b"tEXt"])
def test_a_picture_of_a_million_chunks(tmp_path, kind):
    path = put(tmp_path, SIGNATURE + HEADER + chunk(kind, b"") * 1_000_000)
    within_bounds(path, "it has more than 100000 chunks")


def test_a_picture_with_hundreds_of_deflate_bombs(tmp_path):
    bomb = chunk(b"zTXt", b"chara\0\0" + zlib.compress(bytes(64 << 20)))
    within_bounds(put(tmp_path, png(bomb)), "it holds more than 8 MB")
    within_bounds(put(tmp_path, png(*[bomb] * 300)), "its card chunks hold too much text")


def test_a_text_chunk_larger_than_any_card(tmp_path):
    path = put(tmp_path, png(t_ext(b"ccv3", b"QUJD" * 5 * MEGABYTE)))
    within_bounds(path, "it holds more than 8 MB")


HOSTILE_JSON = {
    "lists": filled(b'{"name":"x","a":[', b"[],", b"0]}"),
    "objects": filled(b'{"name":"x","a":[', b'{"a":0},', b"0]}"),
    "texts": filled(b'{"name":"x","a":[', b'"ab",', b'""]}'),
    "levels": filled(b'{"name":"x","a":', b"[", b""),
    "levels of objects": filled(b'{"name":"x","a":', b'{"a":', b""),
    "placeholders": filled(b'{"name":"x","description":"', b"{{a}}", b'"}'),
    "open comments": filled(b'{"name":"x","description":"', b"{{//", b'"}'),
    "closing braces": filled(b'{"name":"x","description":"', b"}}", b'"}'),
    "escaped braces": filled(b'{"name":"x","description":"', b"\\u007b\\u007b", b'"}'),
    "angles": filled(b'{"name":"x","description":"', b"<User>", b'"}'),
    "decorators": filled(b'{"name":"x","description":"', b"@@a\\n", b'"}'),
}


@pytest.mark.parametrize("kind", HOSTILE_JSON)
def test_json_that_takes_many_times_its_size(tmp_path, kind):
    within_bounds(put(tmp_path, HOSTILE_JSON[kind]), "more than ")


def test_json_of_some_hundred_levels(tmp_path):
    deep = b'{"name":"x","a":' + b"[" * 500 + b"]" * 500 + b"}"
    within_bounds(put(tmp_path, deep), "is nested too deeply")


@pytest.mark.parametrize(
    "text",
    [
        filled(b'{"name":"Fox","description":"\xf0\x9f\xa6\x8a', b"a", b'"}'),
        filled(b'{"name":"Fox","description":"\\ud83e \xf0\x9f\xa6\x8a', b"a", b'"}'),
        filled(b'{"name":"Fox","description":"', b'\\"', b'"}'),
        filled(b'{"name":"Fox","description":"', b"so, then, ", b'"}'),
        filled(b'{"name":"Fox","first_mes":"', "灯".encode(), b'"}'),
    ],
    ids=["wide", "half a pair", "escapes", "commas", "Chinese"],
)
def test_the_largest_text_that_is_allowed_loads_within_the_bounds(tmp_path, text):
    within_bounds(put(tmp_path, text), "Fox")
    within_bounds(put(tmp_path, png(t_ext(b"ccv3", base64.b64encode(text)))), "Fox")


@pytest.mark.parametrize("kind", [b"tEXt", b"zTXt"])
def test_a_card_of_two_megabytes_loads(tmp_path, kind):
    card = packed(v2(description="守灯人 keeps the lamp, and waits. " * 50_000))
    body = b"chara\0" + card if kind == b"tEXt" else b"chara\0\0" + zlib.compress(card)
    within_bounds(put(tmp_path, png(chunk(kind, body))), "Tin Lantern")


def test_a_zip_bomb(tmp_path):
    bomb = charx(("card.json", b'{"name":"' + bytes(200 * MEGABYTE)))
    within_bounds(put(tmp_path, bomb), "(card.json) is larger than 8 MB")


def test_a_zip_of_sixty_thousand_members(tmp_path):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        for number in range(60_000):
            file.writestr(zipfile.ZipInfo(f"a/{number}.txt"), b"")
    within_bounds(put(tmp_path, held.getvalue()), "the zip has too many members")


LAUGHS = "name: x\na: &a [x, x, x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}]\n"
    for old, new in zip("abcdefghijk", "bcdefghijkl", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS.encode(), "has YAML anchors or aliases"),
        (b"name: x\na: " + b"[" * MEGABYTE, "line 2: exceeded maximum nesting depth"),
        (b"name: x\na:\n" + b"- " * MEGABYTE, "nested too deeply or has too many values"),
        (b"name: x\na: " + b"&a " * MEGABYTE, "has YAML anchors or aliases"),
        (filled(b"name: x\n", b"a: 1\n", b"", 4 * 1024**2), "or has too many values"),
        (filled(b"name: x\n", b"- a\n", b"", 4 * 1024**2), "is not YAML that can be read"),
        (filled(b"name: x\na: [", b"b,", b"]", 4 * 1024**2), "or has too many values"),
        (b"name: x\n" + b"#" * 5 * MEGABYTE, "is larger than 4 MB"),
        (filled(b"name: x\na: \xf0\x9f\xa6\x8a", b"b", b"", 4 * 1024**2), "x"),
    ],
    ids=["laughs", "levels", "dashes", "anchors", "twice", "mixed", "items", "large", "wide"],
)
def test_yaml_that_takes_many_times_its_size(tmp_path, text, message):
    within_bounds(put(tmp_path, text), message)


def test_a_pipe_a_folder_and_a_device_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for path in [tmp_path / "pipe.png", tmp_path]:
        with pytest.raises(InputError, match=r"cannot be read as a card: it is no file"):
            load(path)
    with pytest.raises(InputError, match=r"/dev/zero cannot be read as a card: it is no file"):
        load(type(tmp_path)("/dev/zero"))
    with pytest.raises(InputError, match=r"none\.png does not exist"):
        load(tmp_path / "none.png")
