"""A PEFT adapter in llama.cpp's form, for architectures in which that is a renaming.

llama.cpp adds alpha / rank x B·A to a weight, as PEFT does, under its own names of the layers. Its
"llama" family keeps the rows of the q and k projections in another order: within each head, PEFT's
rows i and i + half are neighbours there, because the rotation of positions is applied to neighbours
and not to halves. B's rows are put into that order too; A and all other layers stay as they are.

An architecture is listed only where nothing else is changed between the two forms; for the others
the reason is returned, and recorded in simulator.json: such an adapter is served by vLLM.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from palate.simulators.adapter_file import AdapterConfig, AdapterFile, Matrix, Pair, read_adapter
from palate.simulators.base_model import Base

# Half precision halves the file; it is kept where rounding moves B·A by less than this share.
_HALF_ERROR = 1e-3


class _Family(NamedTuple):
    arch: str  # llama.cpp's name
    neighbours: bool  # q and k in the order of neighbours


_FAMILIES = {
    "LlamaForCausalLM": _Family("llama", True),
    "MistralForCausalLM": _Family("llama", True),
    "Qwen2ForCausalLM": _Family("qwen2", False),
    "Qwen3ForCausalLM": _Family("qwen3", False),
}


def write_gguf_adapter(peft_folder: Path, base: Base, target: Path) -> str | None:
    """Write the adapter in `peft_folder` as `target`; None, or why there can be no such file.

    Raises:
        InputError: the adapter cannot be read, or has no effect.
        OSError: `target` cannot be written; nothing is left of it.
    """
    family = _FAMILIES.get(base.record.architecture)
    if family is None:
        return (
            f"palate does not know llama.cpp's form of {base.record.architecture}; serve the PEFT "
            "adapter (palate simulator serve)"
        )
    file = read_adapter(peft_folder)
    why_not = _unsupported(file)
    if why_not:
        return why_not
    names = _names(family.arch, file, base.model.config.num_hidden_layers)
    unnamed = sorted(name for name in file.pairs if name not in names)
    if unnamed:
        return f"llama.cpp has no name for {len(unnamed)} of the adapted layers, first {unnamed[0]}"
    pairs = {names[name]: _reordered(name, pair, family, base) for name, pair in file.pairs.items()}
    _write(target, family.arch, file.config, pairs)
    return None


def _unsupported(file: AdapterFile) -> str | None:
    config = file.config
    if config.use_dora:
        return "llama.cpp has no DoRA"
    if file.others or config.modules_to_save:
        return "llama.cpp reads nothing but A and B matrices of linear layers, and this has others"
    if config.rank_pattern or config.alpha_pattern:
        return "ranks or scales differ from layer to layer"
    return None


def _names(arch: str, file: AdapterFile, layers: int) -> dict[str, str]:
    """The adapted layers' names in llama.cpp, where it has one."""
    import gguf

    model = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)
    known = gguf.get_tensor_name_map(model, layers)
    found = {name: known.get_name(name) for name in file.pairs}
    return {name: f"{other}.weight" for name, other in found.items() if other}


def _reordered(name: str, pair: Pair, family: _Family, base: Base) -> Pair:
    config = base.model.config
    if not family.neighbours or not name.endswith((".q_proj", ".k_proj")):
        return pair
    heads = config.num_attention_heads if name.endswith(".q_proj") else config.num_key_value_heads
    return Pair(pair.a, neighbours(pair.b, heads))


def neighbours(rows: Matrix, heads: int) -> Matrix:
    """Rows 0, 1, …, of each head in the order 0, half, 1, half + 1, …

    Raises:
        ValueError: the rows are not `heads` heads of an even number of rows.
    """
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, rows.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def _write(target: Path, arch: str, config: AdapterConfig, pairs: dict[str, Pair]) -> None:
    import gguf

    kind = np.float16 if all(_half_is_enough(pair) for pair in pairs.values()) else np.float32
    beside = target.with_name(f".{target.name}.part")
    try:
        writer = gguf.GGUFWriter(beside, arch)
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        # Divided by the rank over there, so that rank-stabilised scales come out right too.
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, config.scale * config.r)
        for name, pair in pairs.items():
            writer.add_tensor(f"{name}.lora_a", pair.a.astype(kind))
            writer.add_tensor(f"{name}.lora_b", pair.b.astype(kind))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _half_is_enough(pair: Pair) -> bool:
    """Rounding to half precision keeps both matrices: no overflow, and nothing sinks to zero."""
    limit = float(np.finfo(np.float16).max)
    for matrix in pair:
        if np.abs(matrix).max() > limit:
            return False
        lost = matrix - matrix.astype(np.float16).astype(np.float32)
        if np.linalg.norm(lost) > _HALF_ERROR * np.linalg.norm(matrix):
            return False
    return True
