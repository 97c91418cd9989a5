"""A GGUF file's Q4_1 tensors rewritten as Q8_0, which llama.cpp reads a prompt much faster with.

llama.cpp has a fast matrix product for Q8_0 on CPUs and none for Q4_1. The eight-bit blocks hold
the four-bit values almost exactly, so answers stay as they were; going to Q4_0, faster still,
does not (docs/adr/0002-embedded-model.md has the numbers).

Only the header's type and offset of each tensor change; names, vocabulary and every other tensor
are copied. The arithmetic is IEEE single precision, one rounding an operation: the same bytes on
every machine.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]

_MAGIC = 0x46554747  # "GGUF"
_STRING, _ARRAY = 8, 9
_VALUE_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_F32, _F16, _Q4_1, _Q8_0 = 0, 1, 3, 8
_BLOCK = 32  # weights that share a scale
_BLOCK_BYTES = {_Q4_1: 20, _Q8_0: 34}  # scales and values of one block
_ALIGNMENT = 32  # of each tensor: the default, which this model keeps
_HEADER_LIMIT = 16 << 20  # bytes; the vocabulary makes it 2 MB here
_FILE_TYPE = b"general.file_type"
_MOSTLY_Q8_0 = 7


class _Tensor(NamedTuple):
    kind: int
    weights: int
    offset: int  # bytes, from the start of the tensor data
    place: int  # where the header says kind and offset

    def bytes(self) -> int:
        plain = {_F32: 4, _F16: 2}.get(self.kind)
        return self.weights * plain if plain else self.weights // _BLOCK * _BLOCK_BYTES[self.kind]


def q8_0(source: Path, target: Path) -> None:
    """Write `source` (GGUF with Q4_1 tensors) to `target` with Q8_0 ones.

    Raises:
        ValueError: not a GGUF file.
    """
    content = np.memmap(source, dtype=np.uint8, mode="r")
    header = _Header(content[:_HEADER_LIMIT].tobytes())
    with target.open("wb") as stream:
        stream.write(bytes(header.length))  # filled in below, when the offsets are known
        stream.write(bytes(-header.length % _ALIGNMENT))
        data = stream.tell()
        for tensor in header.tensors:
            stream.write(bytes(-stream.tell() % _ALIGNMENT))
            kind = _Q8_0 if tensor.kind == _Q4_1 else tensor.kind
            struct.pack_into("<IQ", header.content, tensor.place, kind, stream.tell() - data)
            raw = content[data + tensor.offset :][: tensor.bytes()]
            stream.write((_to_q8_0(_from_q4_1(raw)) if tensor.kind == _Q4_1 else raw).tobytes())
        stream.seek(0)
        stream.write(header.content[: header.length])


class _Header:
    """What stands before the tensor data, and where; its file type is set to Q8_0."""

    def __init__(self, start: bytes) -> None:
        self.content = bytearray(start)
        self.length = 0
        magic, _, tensors, values = self._numbers("<IIQQ")
        if magic != _MAGIC:
            raise ValueError("not a GGUF file")
        for _ in range(values):
            self._pass_value()
        self.tensors = [self._tensor() for _ in range(tensors)]

    def _numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self.content, self.length)
        self.length += struct.calcsize(form)
        return found

    def _string(self) -> bytes:
        (size,) = self._numbers("<Q")
        self.length += size
        return bytes(self.content[self.length - size : self.length])

    def _pass_value(self) -> None:
        name = self._string()
        (kind,) = self._numbers("<I")
        count = 1
        if kind == _ARRAY:
            kind, count = self._numbers("<IQ")
        if kind == _STRING:
            for _ in range(count):
                self._string()
            return
        if name == _FILE_TYPE:
            struct.pack_into("<I", self.content, self.length, _MOSTLY_Q8_0)
        self.length += count * _VALUE_BYTES[kind]

    def _tensor(self) -> _Tensor:
        self._string()
        (axes,) = self._numbers("<I")
        shape = self._numbers(f"<{axes}Q")
        place = self.length
        kind, offset = self._numbers("<IQ")
        return _Tensor(kind, math.prod(shape), offset, place)


def _from_q4_1(raw: _Bytes) -> npt.NDArray[np.float32]:
    """Blocks as rows of 32 weights: scale and minimum, then low and high half bytes."""
    blocks = raw.reshape(-1, _BLOCK_BYTES[_Q4_1])
    scale, minimum = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32).T
    halves = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    weights: npt.NDArray[np.float32] = halves.astype(np.float32) * scale[:, None]
    weights += minimum[:, None]
    return weights


def _to_q8_0(weights: npt.NDArray[np.float32]) -> _Bytes:
    """Rows of 32 weights as blocks: scale, then signed bytes."""
    scale = (np.abs(weights).max(axis=1, keepdims=True) / np.float32(127)).astype("<f2")
    divisor = np.where(scale == 0, 1, scale).astype(np.float32)
    values = np.clip(np.rint(weights / divisor), -127, 127).astype(np.int8)
    return np.concatenate([scale.view(np.uint8), values.view(np.uint8)], axis=1)
