"""The embedded model's weights in the form that transformers trains on, made once and kept.

Training must see the very weights that the embedded server serves, or an adapter would be fitted to
another model. So they come out of the same Q8_0 file, in single precision, which holds an eight-bit
value times a half-precision scale exactly (bfloat16 does not). Reading the file takes transformers
15 s; the copy, half a gigabyte in the cache folder, takes it one.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from palate.errors import InputError
from palate.models import weights
from palate.simulators.file_modes import make_readable
from palate.simulators.quiet import quiet

_MARKER = "converted.json"  # written last: a folder without it is not read
_FORM = 1  # of the copy; a change makes every machine convert again
_LOCK_LIMIT_S = 600.0

_GGUF = {"smollm2-135m": weights.smollm2_135m}


class EmbeddedBase(NamedTuple):
    """A folder that transformers reads, and the name that the server gives the same weights."""

    folder: Path
    revision: str


def embedded_base(model: str) -> EmbeddedBase:
    """The trainable form of `local:MODEL`, converted on first use (about 20 s).

    Raises:
        InputError: no such embedded model, its weights cannot be had, or the cache is not writable.
    """
    if model not in _GGUF:
        known = ", ".join(f"local:{name}" for name in _GGUF)
        raise InputError(f"model local:{model} does not exist; the embedded models are: {known}")
    served = _GGUF[model]()
    folder = served.path.with_name(f"{served.path.stem}.float32-{_FORM}")
    try:
        with FileLock(f"{folder}.lock", timeout=_LOCK_LIMIT_S):
            if not _whole(folder, served.revision):
                _convert(served, folder)
    except Timeout:
        raise InputError(
            f"{folder} has been locked by another process for {_LOCK_LIMIT_S:.0f} s: end that "
            "process and run the same command again"
        ) from None
    except OSError as error:
        raise InputError(
            f"the trainable copy of local:{model} cannot be kept in {folder} "
            f"({error.strerror or error}): free 600 MB there or name another folder in PALATE_CACHE"
        ) from error
    return EmbeddedBase(folder, served.revision)


def _whole(folder: Path, revision: str) -> bool:
    """The copy is of these weights and none of its files was cut short since."""
    try:
        marker = json.loads((folder / _MARKER).read_bytes())
        sizes = {name: (folder / name).stat().st_size for name in marker["bytes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(marker.get("revision") == revision and sizes == marker["bytes"])


def _convert(served: weights.Served, folder: Path) -> None:
    with quiet(), tempfile.TemporaryDirectory(prefix="new-", dir=folder.parent) as scratch:
        new = Path(scratch) / folder.name
        _write(served.path, new)
        marker = {"revision": served.revision, "bytes": _sizes(new)}
        (new / _MARKER).write_text(json.dumps(marker), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        new.replace(folder)


def _write(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    place = {"gguf_file": gguf.name, "local_files_only": True}
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent),
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),  # what is still quantised cannot be saved
        **place,
    )
    model.save_pretrained(folder)
    make_readable(folder, like="config.json")
    AutoTokenizer.from_pretrained(str(gguf.parent), **place).save_pretrained(folder)


def _sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
