"""The paper's base model, as far as a recipe needs it: the shape of Qwen3.5-35B-A3B.

Figures (layers, widths, heads, experts, vocabulary) from a public training script for this very
model (https://github.com/THUDM/slime, scripts/models/qwen3.5-35B-A3B.sh), which agree with the
defaults of transformers' Qwen3_5MoeTextConfig, written after this checkpoint. The vision tower is
not loaded by training, and not counted.
"""

from __future__ import annotations

PAPER_BASE = "Qwen/Qwen3.5-35B-A3B"

SHAPE: dict[str, str | int | float | bool] = {
    "model_type": "qwen3_5_moe_text",
    "vocab_size": 248320,
    "hidden_size": 2048,
    "num_hidden_layers": 40,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_conv_kernel_dim": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
