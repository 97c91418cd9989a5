"""Where a base model is put, and in what precision (extra `train`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from palate.errors import InputError

if TYPE_CHECKING:
    import torch

Dtype = Literal["auto", "float32", "bfloat16"]

# Of a GPU's free memory, for weights where a model is spread: the rest is for activations.
_WEIGHTS_SHARE = 0.7


class Placement(NamedTuple):
    """What `from_pretrained` is told: the weights' type, and the device map's arguments."""

    dtype: torch.dtype
    arguments: dict[str, Any]


def check_device(device: str) -> None:
    """Refuse a device that is not on this machine, before anything is loaded for it.

    Raises:
        InputError: no such device, or not on this machine.
    """
    if device != "auto":
        _checked(device, _gpus())


def placement(device: str = "auto", dtype: Dtype = "auto") -> Placement:
    """Where and how to load weights; "auto": the first GPU and more where it is full, or the CPU.

    bfloat16 on a GPU that has it, else float32: weights in bfloat16 make training slower on most
    CPUs. (Training may still multiply in bfloat16 there: that is autocast's.)

    Raises:
        InputError: no such device, or not on this machine.
    """
    import torch

    gpus = _gpus()
    if device == "auto":
        device = "cuda" if gpus else "cpu"
        spread = gpus > 1
    else:
        spread = False
    kind = _checked(device, gpus)
    floats = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    fast = kind.type == "cuda" and torch.cuda.is_bf16_supported()
    chosen = floats["bfloat16" if fast else "float32"] if dtype == "auto" else floats[dtype]
    if spread:
        # "sequential" fills one GPU before the next, so a model that fits stays on one.
        room = {n: int(torch.cuda.mem_get_info(n)[0] * _WEIGHTS_SHARE) for n in range(gpus)}
        return Placement(chosen, {"device_map": "sequential", "max_memory": room})
    return Placement(chosen, {} if kind.type == "cpu" else {"device_map": {"": kind}})


def _gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _checked(device: str, gpus: int) -> torch.device:
    import torch

    try:
        kind = torch.device(device)
    except RuntimeError:
        kind = torch.device("meta")
    if kind.type not in ("cpu", "cuda"):
        raise InputError(f'device {device!r} is not known; give "auto", "cpu", "cuda" or "cuda:1"')
    if kind.type == "cuda" and (kind.index or 0) >= gpus:
        raise InputError(f"device {device} is not on this machine, which has {gpus} GPUs for torch")
    return kind
