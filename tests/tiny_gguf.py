"""Tiny models of random weights in both forms: transformers', and a GGUF file for llama.cpp."""

import numpy as np

from palate.simulators.gguf_adapter import neighbours

WORDS = 259  # unknown, begin, end and the names of the bytes
SIZES = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}


def tiny_model(kind, *, seed=0):
    """A model of one of the architectures "Llama", "Qwen2", "Qwen3", with sharp attention."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(**SIZES, initializer_range=0.3)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def write_gguf(model, arch, target):
    """`model` in single precision, with a small vocabulary."""
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(target, arch)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(SIZES["head_dim"])
    writer.add_value_length(SIZES["head_dim"])
    writer.add_rope_dimension_count(SIZES["head_dim"])
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(0)
    _add_words(writer)
    known = gguf.get_tensor_name_map(
        next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == arch),
        config.num_hidden_layers,
    )
    for name, tensor in model.state_dict().items():
        values = tensor.float().numpy()
        if arch == "llama" and name.endswith("q_proj.weight"):
            values = neighbours(values, config.num_attention_heads)
        if arch == "llama" and name.endswith("k_proj.weight"):
            values = neighbours(values, config.num_key_value_heads)
        writer.add_tensor(known.get_name(name, (".weight", ".bias")), np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_words(writer):
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * len(words))
    # As plain words, not as bytes: the server says nothing of a token that is half a character.
    writer.add_token_types([2, 3, 3, *[1] * 256])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
