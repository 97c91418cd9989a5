"""Q4_1 tensors of a GGUF file become Q8_0 ones; all else stays byte for byte."""

import struct

import numpy as np
import pytest

from palate.models.requantise import q8_0


def text(word):
    return struct.pack("<Q", len(word.encode())) + word.encode()


def gguf(path, tensors, file_type=3):
    """A GGUF file with a file type, a list of words, and `tensors`: (name, weights, kind, raw)."""
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), 2)
    head += text("general.file_type") + struct.pack("<II", 4, file_type)
    head += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("猫")
    data = b""
    for name, count, kind, raw in tensors:
        data += bytes(-len(data) % 32)
        head += text(name) + struct.pack("<IQIQ", 1, count, kind, len(data))
        data += raw
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def q4_1_block(scale, minimum, halves):
    """32 four-bit values: the first sixteen in the low halves, the last sixteen in the high."""
    packed = [low | high << 4 for low, high in zip(halves[:16], halves[16:], strict=True)]
    return struct.pack("<ee", scale, minimum) + bytes(packed)


def q8_0_block(scale, values):
    return struct.pack("<e", scale) + np.array(values, dtype=np.int8).tobytes()


def test_weights_are_the_same_in_eight_bits(tmp_path):
    """Scale 1, minimum 0: weights 0..15 and again. Largest 15, so the scale is 15 / 127."""
    block = q4_1_block(1.0, 0.0, [*range(16), *range(16)])
    norm = struct.pack("<3f", 1.5, -2.0, 0.25)
    gguf(tmp_path / "old", [("w", 32, 3, block), ("norm", 3, 0, norm)])
    q8_0(tmp_path / "old", tmp_path / "new")
    scale = float(np.float16(15 / 127))  # 0.1181…
    values = [0, 8, 17, 25, 34, 42, 51, 59, 68, 76, 85, 93, 102, 110, 119, 127]
    gguf(
        tmp_path / "expected",
        [("w", 32, 8, q8_0_block(scale, [*values, *values])), ("norm", 3, 0, norm)],
        file_type=7,
    )
    assert (tmp_path / "new").read_bytes() == (tmp_path / "expected").read_bytes()


def test_a_block_of_zeros_stays_zero(tmp_path):
    gguf(tmp_path / "old", [("w", 32, 3, q4_1_block(0.0, 0.0, [7] * 32))])
    q8_0(tmp_path / "old", tmp_path / "new")
    gguf(tmp_path / "expected", [("w", 32, 8, q8_0_block(0.0, [0] * 32))], file_type=7)
    assert (tmp_path / "new").read_bytes() == (tmp_path / "expected").read_bytes()


def test_something_else_is_not_taken_for_a_model(tmp_path):
    (tmp_path / "old").write_bytes(b"PK\x03\x04" + bytes(60))
    with pytest.raises(ValueError, match="not a GGUF file"):
        q8_0(tmp_path / "old", tmp_path / "new")
