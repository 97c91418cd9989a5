"""What a folder of model weights is, as one hash: an adapter belongs to these weights alone.

Small models are hashed in full. Over `FULL_HASH_BYTES` that would take longer than loading them, so
of each file of weights the size, the first block (in safetensors: the names and shapes of the
tensors) and evenly spaced blocks are hashed: a fine-tuned or re-quantised copy differs in nearly
every weight and so in nearly every block. A change of a few weights can be missed; the revision
says "sampled" so that nobody takes it for more.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from palate.types import digest

FULL_HASH_BYTES = 2 << 30
_BLOCK = 1 << 18  # bytes
_BLOCKS = 64  # of each file

# What decides the model's answers; a README, a licence and training state do not.
_WEIGHTS = re.compile(r".*\.(safetensors|bin|pt|pth)")
_TEXT = re.compile(
    r"config\.json|.*\.index\.json|tokenizer.*|special_tokens_map\.json|added_tokens\.json|"
    r"vocab.*|merges\.txt|chat_template.*|.*\.model|.*\.tiktoken"
)


def folder_revision(folder: Path, *, full_hash_bytes: int = FULL_HASH_BYTES) -> str:
    """ "sha256:…" over config, tokenizer, template and weights, or "sampled:…" for big weights.

    Raises:
        OSError: a file cannot be read.
    """
    files = sorted(file for file in folder.iterdir() if file.is_file())
    weights = [file for file in files if _WEIGHTS.fullmatch(file.name)]
    texts = [file for file in files if file not in weights and _TEXT.fullmatch(file.name)]
    full = sum(file.stat().st_size for file in weights) <= full_hash_bytes
    found = {file.name: _full(file) for file in texts}
    found |= {file.name: _full(file) if full else _sampled(file) for file in weights}
    return f"{'sha256' if full else 'sampled'}:{digest(found)}"


def _full(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sampled(file: Path) -> str:
    size = file.stat().st_size
    hashed = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for block in range(_BLOCKS):
            stream.seek((size - _BLOCK) * block // (_BLOCKS - 1) if size > _BLOCK else 0)
            hashed.update(stream.read(_BLOCK))
    return hashed.hexdigest()
