"""The number format that a training computes in: bfloat16 where the processor has it.

Where it has not, bfloat16 on a CPU is emulated and several times slower than 32 bits. The weights
and the adapter stay as they are; only the products are computed in the shorter format.
"""

from __future__ import annotations

import contextlib
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Precision = Literal["float32", "bfloat16"]

_CPU_FLAGS = re.compile(r"^(?:flags|Features)\s*:.*\b(?:avx512_bf16|amx_bf16|bf16)\b", re.MULTILINE)
_CPUINFO = Path("/proc/cpuinfo")


def is_gpu(device: str) -> bool:
    """Whether `device` is a GPU; "auto" takes one if it can."""
    import torch

    return device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())


def best_precision(device: str) -> Precision:
    """What `device` ("cpu", "cuda") computes fastest without being wrong."""
    import torch

    if device == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    if has_bfloat16(_cpu_description()):
        return "bfloat16"
    return "float32"


def has_bfloat16(description: str) -> bool:
    """Whether a processor, as Linux describes it, multiplies bfloat16 by itself."""
    return _CPU_FLAGS.search(description) is not None


def computing(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """The context in which a model is run on `device`."""
    import torch

    if precision == "float32":
        return contextlib.nullcontext()
    autocast: AbstractContextManager[object] = torch.autocast(
        device_type=device.type, dtype=torch.bfloat16
    )
    return autocast


def _cpu_description() -> str:
    """Of the first core; "" on systems that do not say."""
    try:
        return _CPUINFO.read_text("utf-8", "replace")
    except OSError:
        return ""
