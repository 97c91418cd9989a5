"""A PEFT adapter as it lies on disk, read with numpy alone and checked for having an effect.

An adapter whose A or B matrices are all zero, or whose tensors fit nothing, answers exactly as the
base model does, and every measurement of "the person" is then one of the base model. So that is an
error here, before any server or model sees it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from palate.errors import InputError
from palate.json_input import parsed

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"

_PREFIX = "base_model.model."  # of PEFT, before the base model's own name of a layer
_A, _B = ".lora_A.weight", ".lora_B.weight"
# Named beginnings of A and B that leave the base's weights alone. The others (PiSSA, OLoRA, CorDA,
# LoftQ, LoRA-GA) move a part of each weight into its pair: beside the whole weight that part counts
# twice, and PEFT, where it takes it out again on loading, does so under every other adapter too.
_LEAVE_THE_BASE = frozenset({"gaussian", "orthogonal", "eva", "mica"})

Matrix = npt.NDArray[np.float32]


class AdapterConfig(BaseModel):
    """What palate needs of adapter_config.json; PEFT writes more, which is PEFT's."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    peft_type: str
    r: int = Field(gt=0)
    lora_alpha: float = Field(gt=0)
    target_modules: tuple[str, ...] | str | None = None
    target_parameters: tuple[str, ...] | None = None
    base_model_name_or_path: str | None = None
    use_rslora: bool = False
    use_dora: bool = False
    init_lora_weights: bool | str | None = True
    bias: Literal["none", "all", "lora_only"] = "none"
    fan_in_fan_out: bool = False
    modules_to_save: tuple[str, ...] | None = None
    rank_pattern: dict[str, int] = Field(default_factory=dict)
    alpha_pattern: dict[str, float] = Field(default_factory=dict)

    @property
    def scale(self) -> float:
        """What B·A is multiplied by."""
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)


class Pair(NamedTuple):
    """One layer's low-rank update: B (outputs x rank) times A (rank x inputs)."""

    a: Matrix
    b: Matrix


class AdapterFile(NamedTuple):
    """An adapter's settings and its matrices by the base model's name of the layer."""

    folder: Path
    config: AdapterConfig
    pairs: dict[str, Pair]
    others: tuple[str, ...]  # tensors that are no LoRA pair of a linear layer


def read_adapter(folder: Path) -> AdapterFile:
    """The adapter in `folder`; every value is finite, and neither all A nor all B are zero.

    Raises:
        InputError: it cannot be read, is no LoRA, is cut short, or has no effect.
    """
    config = _config(folder / CONFIG)
    tensors = _tensors(folder / WEIGHTS)
    names = {name.removesuffix(_A) for name in tensors if name.endswith(_A)}
    names &= {name.removesuffix(_B) for name in tensors if name.endswith(_B)}
    pairs = {
        name.removeprefix(_PREFIX): Pair(tensors[name + _A], tensors[name + _B])
        for name in sorted(names)
    }
    paired = {name + end for name in names for end in (_A, _B)}
    _check_effect(folder, pairs)
    return AdapterFile(folder, config, pairs, tuple(sorted(set(tensors) - paired)))


def _check_effect(folder: Path, pairs: dict[str, Pair]) -> None:
    if not pairs:
        raise InputError(f"the adapter {folder} adapts no layer; train it again")
    broken = [n for n, pair in pairs.items() if not all(np.isfinite(m).all() for m in pair)]
    if broken:
        raise InputError(
            f"the adapter {folder} holds values that are no numbers, first in {broken[0]}; train "
            "it again with a lower learning rate"
        )
    for side in ("B", "A"):  # before the first step B is zero, and with MiCA it is A
        if not any(getattr(pair, side.lower()).any() for pair in pairs.values()):
            raise InputError(
                f"the adapter {folder} has no effect: all of its {len(pairs)} {side} matrices are "
                "zero, as before the first step of training; train it"
            )


def _config(path: Path) -> AdapterConfig:
    try:
        config = AdapterConfig.model_validate(parsed(path.read_bytes(), str(path)))
    except OSError as error:
        raise InputError(
            f"the adapter's {path} cannot be read ({error.strerror}); give the folder that "
            "training wrote"
        ) from None
    except InputError as error:
        raise InputError(f"{error}; train it again") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {place}: {first['msg']}; train it again") from None
    if config.peft_type.upper() != "LORA":
        raise InputError(
            f"{path}: an adapter of kind {config.peft_type} is not LoRA; palate needs LoRA"
        )
    beginning = config.init_lora_weights
    if isinstance(beginning, str) and beginning.lower() not in _LEAVE_THE_BASE:
        raise InputError(
            f"{path}: an adapter with init_lora_weights {beginning[:40]!r} is trained on a changed "
            "base and gives wrong answers on the base itself; have PEFT save it as a plain LoRA "
            "(path_initial_model_for_weight_conversion) or train it again"
        )
    return config


def _tensors(path: Path) -> dict[str, Matrix]:
    """All tensors of a safetensors file, in single precision.

    Read here because numpy lacks bfloat16, in which adapters trained on GPUs may be saved.
    """
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header: dict[str, Any] = json.loads(content[8 : 8 + length])
        body = memoryview(content)[8 + length :]
        return {n: _tensor(body, told) for n, told in header.items() if n != "__metadata__"}
    except OSError as error:
        raise InputError(
            f"the adapter's {path} cannot be read ({error.strerror}); copy or train it again"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"the adapter's {path} is no whole safetensors file; copy or train it again"
        ) from None


def _tensor(body: memoryview, told: dict[str, Any]) -> Matrix:
    start, end = told["data_offsets"]
    raw, kind = body[start:end], told["dtype"]
    if kind == "BF16":  # the upper half of a single-precision number
        values = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    else:
        values = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[kind])
    return values.reshape(told["shape"]).astype(np.float32)
