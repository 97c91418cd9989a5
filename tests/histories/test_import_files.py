"""Files as they come: packed, in other encodings, torn, hostile."""

import gzip
import json
import os

import pytest

from chat_files import document, imported, lines, noted, turns
from palate.errors import InputError
from palate.histories.formats import normal, source

CHAT = [
    {"name": "Ash", "is_user": False, "mes": "Ja? 你好 🙂"},
    {"name": "Wren", "is_user": True, "mes": "hi\u2028there"},
]
SAID = [("character", "Ja? 你好 🙂"), ("user", "hi\u2028there")]


def text(*, ascii_only=False):
    return "\n".join(json.dumps(one, ensure_ascii=ascii_only) for one in CHAT) + "\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain", text().encode()),
        ("mark", text().encode("utf-8-sig")),
        ("utf-16 with a mark", text().encode("utf-16")),
        ("big-endian", b"\xfe\xff" + text().encode("utf-16-be")),
        ("utf-16 without a mark", text().encode("utf-16-le")),
        ("big-endian without a mark", text().encode("utf-16-be")),
        ("utf-32", text().encode("utf-32")),
        ("Windows line ends", text().replace("\n", "\r\n").encode()),
        ("packed", gzip.compress(text().encode())),
        ("packed utf-16", gzip.compress(text().encode("utf-16"))),
        ("escapes", text(ascii_only=True).encode()),
        ("NULs after the end", text().encode() + b"\0" * 4096),
    ],
)
def test_a_file_is_read_whatever_it_is_packed_and_encoded_in(tmp_path, name, content):
    path = tmp_path / "chat"
    path.write_bytes(content)
    assert turns(path) == SAID


def test_a_line_that_is_not_utf8_is_named_and_the_others_are_read(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(text().encode() + b'{"name": "Ash", "is_user": false, "mes": "caf\xe9"}\n')
    assert turns(path) == SAID
    assert noted(path) == [("torn", "line 3")]


def test_half_an_emoji_becomes_a_question_mark(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"name": "Ash", "is_user": false, "mes": "oh \\ud83d"}\n')
    assert turns(path) == [("character", "oh ?")]


def test_nul_characters_are_taken_out_and_counted(tmp_path):
    path = lines(tmp_path / "c.jsonl", {"name": "Ash", "is_user": False, "mes": "a\0b"})
    assert turns(path) == [("character", "ab")]
    assert noted(path) == [("nul", "line 1")]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "is empty: no turns found"),
        (b"\n \n\0\0", "is empty: no turns found"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"messages": [{"role": "user", "content": "cut', "is not JSON in UTF-8"),
        (gzip.compress(text().encode())[:-12], "is a damaged gzip file"),
        (b"\x1f\x8b nothing", "is a damaged gzip file"),
        (b"\xff\xfe" + "{}".encode("utf-16-le") + b"\x00", "damaged UTF-16|no turns found"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "no chat that palate knows|no turns found"),
        (b"3\n4\n", "no chat that palate knows"),
        (b"[]", "no turns found"),
        (b"{}", "no turns found"),
        (b"[[], [1], {}]", "no turns found"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "not JSON|no turns found"),
    ],
)
def test_what_holds_no_chat_is_refused_in_one_sentence(tmp_path, content, fault):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError, match=fault) as refused:
        imported(path)
    assert "\n" not in str(refused.value)


def test_a_small_file_that_unpacks_to_a_long_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_LINE", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 22)))
    with pytest.raises(InputError, match="line 1 is longer than 1 MB"):
        imported(path)


def test_a_file_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(text().encode() * 20_000))
    with pytest.raises(InputError, match="holds more than 1 MB"):
        imported(path)


def test_a_small_file_of_countless_damaged_lines_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(normal, "MOST_NOTES", 50)
    path = tmp_path / "c.jsonl.gz"
    whole = json.dumps({"name": "Ash", "is_user": False, "mes": "Yes?"}).encode()
    path.write_bytes(gzip.compress(whole + b"\n" + b"{\n" * 49))
    assert len(imported(path).notes.listed) == 50  # one of them of the card
    path.write_bytes(gzip.compress(whole + b"\n" + b"{\n" * 60))
    with pytest.raises(InputError, match=r"c.jsonl.gz holds more than 50 things .* line 52"):
        imported(path)


@pytest.mark.parametrize("name", ["pipe", "/dev/null"])
def test_a_pipe_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no file but a pipe or a device"):
        imported(tmp_path / name)


def test_a_document_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_DOCUMENT", 1 << 10)
    said = [{"role": "user", "content": "x" * 2000}]
    with pytest.raises(InputError, match="write one session a line"):
        imported(document(tmp_path / "x.json", {"messages": said}))


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "a\0b"])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(InputError):
        imported(tmp_path / name)


def test_the_places_of_a_document_are_its_items(tmp_path):
    chats = [{"messages": [{"role": "user", "content": "hi"}, {"role": "x", "content": "?"}]}] * 2
    path = document(tmp_path / "x.json", chats)
    assert noted(path) == [("speaker", "item 1, message 2"), ("speaker", "item 2, message 2")]


def test_nul_characters_are_taken_out_of_alternates_too(tmp_path):
    reply = {"name": "Ash", "is_user": False, "mes": "Yes?", "swipes": ["N\0o.", "Yes?"]}
    (item,) = imported(lines(tmp_path / "c.jsonl", reply | {"swipe_id": 1})).items
    assert item.session.extra["turns"]["0"]["alternates"] == ["No."]
