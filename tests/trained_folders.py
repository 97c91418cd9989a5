"""Folders of trained simulators without any training: a record, and adapters of random weights."""

from __future__ import annotations

import json
import random
import struct
from array import array
from collections.abc import Mapping
from pathlib import Path

from palate.simulators.lora_prompt import lora_prompts
from palate.simulators.trained import (
    CHAT_TEMPLATE,
    GGUF_ADAPTER,
    LOSS_CURVE,
    PEFT_CONFIG,
    PEFT_WEIGHTS,
    RECORD,
    TrainedRecord,
    file_sha256,
)

EMBEDDED = {
    "name": "local:smollm2-135m",
    "revision": "SmolLM2-135M-Instruct.Q8_0@2c19bfc37e68",
    "architecture": "LlamaForCausalLM",
}
HUB = {"name": "tiny-test/base", "revision": "a" * 40, "architecture": "Qwen3ForCausalLM"}
# What the embedded model's template makes of the fixed conversation of `prompt_form`.
PROBE_TEXT = (
    "<|im_start|>system\nYou are Wren, chatting with Ada.\n\nScene: a quiet harbour.<|im_end|>\n"
    "<|im_start|>user\nWell?<|im_end|>\n<|im_start|>assistant\nok… 好的 🙂<|im_end|>\n"
    "<|im_start|>user\n*waits* And then?<|im_end|>\n<|im_start|>assistant\n"
)
PROBE_TOKENS = (1, 9690, 198, 2683, 359, 47970, 28, 36498, 351, 34099, 30, 198, 198, 48891, 42)
PROBE_TOKENS += (253, 8354, 28899, 30, 2, 198, 1, 4093, 198, 10768, 47, 2, 198, 1, 520, 9531, 198)
PROBE_TOKENS += (2231, 2829, 13223, 115, 138, 11567, 47526, 2, 198, 1, 4093, 198, 26, 10185, 842)
PROBE_TOKENS += (26, 1350, 965, 47, 2, 198, 1, 520, 9531, 198)

_LAYERS, _WIDTH, _KEYS, _INNER = 30, 576, 192, 1536  # of SmolLM2-135M
_SHAPES = {"attn_q": (_WIDTH, _WIDTH), "attn_v": (_WIDTH, _KEYS), "ffn_down": (_INNER, _WIDTH)}
_STRING, _FLOAT, _F32 = 8, 6, 0


def write_trained(
    folder: Path,
    user: str,
    *,
    base: Mapping[str, str] = EMBEDDED,
    weights: bytes | None = None,
    gguf: bytes | None = b"no adapter, only a file",
    form: Mapping[str, object] = {},
    sessions: Mapping[str, str] = {"s1": "aa"},
    **changes: object,
) -> TrainedRecord:
    """A finished folder, as `palate simulator train` leaves it; `changes` are of the record."""
    files = {
        PEFT_CONFIG: b'{"peft_type": "LORA"}',
        PEFT_WEIGHTS: f"weights of {user}".encode() if weights is None else weights,
        CHAT_TEMPLATE: b"{{ messages }}",
        LOSS_CURVE: b"{}\n",
        **({} if gguf is None else {GGUF_ADAPTER: gguf}),
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    told = {
        "template_sha256": "cc",
        "end_of_turn": "<|im_end|>",
        "probe": PROBE_TEXT,
        "probe_tokens": PROBE_TOKENS,
        "one_pass": True,
        **form,
    }
    learned = {"training_sessions": dict(sessions), "validation_sessions": (), "examples": 1}
    learned |= {"supervised_messages": 1, "supervised_tokens": 2, "tokens": 9, "skipped": {}}
    losses = {"first": 3.0, "last": 2.0, "validation_before": None, "validation_best": None}
    losses |= {"best_step": 1, "steps": 1, "epochs": 1.0, "tokens_processed": 9}
    record = TrainedRecord.model_validate(
        {
            "user_id": user,
            "language": "en",
            "base": dict(base),
            "rank": 4,
            "alpha": 4.0,
            "target_modules": ("q_proj", "v_proj", "down_proj"),
            "adapted_layers": 90,
            "parameters": 1,
            "prompt_form": told,
            "prompts": lora_prompts(),
            "learned": learned,
            "settings": {},
            "losses": {**losses, "stopped": "finished"},
            "seconds": 1.0,
            "device": "cpu, float32",
            "versions": {"palate": "0.1.0"},
            "files": {name: file_sha256(folder / name) for name in sorted(files)},
            "gguf": "its architecture has no form in llama.cpp" if gguf is None else None,
            **changes,
        }
    )
    record = record.model_copy(update={"sha256": record.content_sha256()})
    (folder / RECORD).write_text(record.model_dump_json(by_alias=True), "utf-8")
    return record


def with_adapters(
    study: Path, *, model: str | None = None, **folders: Mapping[str, object]
) -> None:
    """Give the users of a study's `folders` trained simulators; `model` is filled with the user."""
    toml = (study / "study.toml").read_text("utf-8")
    before, *users = toml.split("[[users]]")
    for number, section in enumerate(users):
        lines = section.splitlines(keepends=True)
        user = json.loads(next(line for line in lines if line.startswith("id = "))[5:])
        if user in folders:
            write_trained(study / "simulators" / user, user, **folders[user])
            named = f', model = "{model.format(user)}"' if model else ""
            given = f'simulator = {{ kind = "lora", path = "simulators/{user}"{named} }}\n'
            lines = [given if line.startswith("simulator = ") else line for line in lines]
            users[number] = "".join(lines)
    (study / "study.toml").write_text("[[users]]".join([before, *users]), "utf-8")


def random_adapter(seed: int, *, scale: float = 0.3, rank: int = 4) -> bytes:
    """A llama.cpp adapter of the embedded model; `scale` 0 leaves every answer as it is."""
    rng = random.Random(seed)
    tensors: list[tuple[str, tuple[int, int], bytes]] = []
    for layer in range(_LAYERS):
        for name, (taken, given) in _SHAPES.items():
            place = f"blk.{layer}.{name}.weight.lora_"
            tensors.append((place + "a", (taken, rank), _normal(rng, taken * rank, taken**-0.5)))
            tensors.append((place + "b", (rank, given), _normal(rng, rank * given, scale)))
    facts = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(facts) + 1)
    head += b"".join(_text(k) + struct.pack("<I", _STRING) + _text(v) for k, v in facts.items())
    head += _text("adapter.lora.alpha") + struct.pack("<If", _FLOAT, float(rank))
    offset = 0
    for name, shape, content in tensors:
        head += _text(name) + struct.pack("<IQQIQ", 2, *shape, _F32, offset)
        offset += len(_padded(content))
    return _padded(head) + b"".join(_padded(content) for _, _, content in tensors)


def _normal(rng: random.Random, count: int, deviation: float) -> bytes:
    return array("f", [rng.gauss(0.0, deviation) for _ in range(count)]).tobytes()


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 32)
