"""A base model as a folder that transformers reads, of some kilobytes, made on the spot."""

import json

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }} {{ message['content'] }}"
    "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant {% endif %}"
)
WORDS = ["<unk>", "<|im_start|>", "<|im_end|>", "system", "user", "assistant", "hi", "yo", "ok"]


def tiny_tokenizer(template=TEMPLATE):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", eos_token="<|im_end|>"
    )
    tokenizer.chat_template = template
    return tokenizer


def tiny_folder(folder, *, template=TEMPLATE, seed=0, **config):
    """A random Llama of two layers with a tokenizer; `config` is written over config.json."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    shape = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.3,
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
    tiny_tokenizer(template).save_pretrained(folder)
    if config:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **config}), "utf-8")
    return folder
