"""Pictures, zips and cards for the tests of card carriers, built byte by byte."""

import base64
import io
import json
import struct
import zipfile
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXELS = b"x\x9cc``\x00\x00\x00\x03\x00\x01"


def v2(**fields):
    data = {"name": "Tin Lantern", "description": "A keeper of small lights. 守灯人。", **fields}
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}


def v3(**fields):
    return {**v2(**fields), "spec": "chara_card_v3", "spec_version": "3.0"}


def text(card):
    return json.dumps(card, ensure_ascii=False).encode()


def packed(card):
    return base64.b64encode(text(card))


def chunk(kind, data, checksum=None):
    right = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum or right)


def t_ext(keyword, value):
    return chunk(b"tEXt", keyword + b"\0" + value)


HEADER = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
DATA = chunk(b"IDAT", PIXELS)
END = chunk(b"IEND", b"")


def png(*chunks, after=(), end=END):
    """A picture with `chunks` before the pixels and `after` behind them."""
    return SIGNATURE + HEADER + b"".join(chunks) + DATA + b"".join(after) + end


def chunks_of(raw):
    """(kind, data) of each chunk of a whole picture."""
    found, at = [], len(SIGNATURE)
    while at < len(raw):
        (length,) = struct.unpack(">I", raw[at : at + 4])
        found.append((raw[at + 4 : at + 8], raw[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def charx(*members, method=zipfile.ZIP_DEFLATED):
    """A zip of (name, bytes) pairs."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content, method)
    return held.getvalue()
