"""A base model of a few kilobytes, made on the spot: a random Llama that learns fast."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chat_templates import CHATML, byte_tokenizer
from palate.simulators.base_model import Base
from palate.simulators.examples import Example
from palate.simulators.trained import BaseModelRecord

VOCABULARY = 64


def tiny_base(*, seed: int = 0, **changes: object) -> Base:
    """Without a tokenizer: what is trained on comes as token ids."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.3,  # a head this size lets a small adapter say something
    }
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**{**shape, **changes})).eval()
    record = BaseModelRecord(name="tiny", revision=f"seed {seed}", architecture="LlamaForCausalLM")
    return Base(model, None, record)  # type: ignore[arg-type]


def write_tiny_base(folder: Path) -> Path:
    """One of one layer as a folder that commands take; every byte is a token, in ChatML."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_tokenizer(CHATML)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        initializer_range=0.3,
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def example(session: str, *parts: Sequence[int]) -> Example:
    """Context and target by turns: example("s", [1, 2], [3]) supervises the 3."""
    ids: list[int] = []
    supervised: list[bool] = []
    for number, part in enumerate(parts):
        ids += part
        supervised += [number % 2 == 1] * len(part)
    return Example(session, tuple(ids), tuple(supervised), len(parts) // 2)
