"""Chat templates as models bring them, on tokenizers of a few hundred tokens made on the spot."""

from __future__ import annotations

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# Strips every message, begins with a BOS, and tells a date unless it is given one.
STRIPPING = (
    "{{ bos_token }}{% if not date_string is defined %}"
    "{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
    "{% for m in messages %}{{ '<|head|>' + m.role + '<|/head|>\\n\\n' }}"
    "{% if loop.first and m.role == 'system' %}{{ 'Today: ' + date_string + '\\n\\n' }}{% endif %}"
    "{{ m.content | trim + '<|eot|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|head|>assistant<|/head|>\\n\\n' }}{% endif %}"
)
# An empty thinking block before the last answer and in the prompt, not before earlier answers.
THINKING = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
    "{% if loop.last and m.role == 'assistant' %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
    "{{ m.content.lstrip('\\n') if m.role == 'assistant' else m.content }}{{ '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}"
    "{% else %}{{ '<think>\\n' }}{% endif %}{% endif %}"
)
# As CHATML, but a user must speak first, and there must be one.
USER_FIRST = (
    "{% set said = messages | rejectattr('role', 'equalto', 'system') | list %}"
    "{% if not said or said[0].role != 'user' %}{{ raise_exception('a user must begin') }}"
    "{% endif %}" + CHATML
)
# Instruction marks that are plain text, and a space of the template's own around every answer.
INSTRUCTION = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content + '\\n' }}"
    "{% elif m.role == 'user' %}{{ '[I] ' + m.content + ' [/I]' }}"
    "{% else %}{{ ' ' + m.content + ' ' + eos_token }}{% endif %}{% endfor %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}"
    "{% endif %}{% endfor %}" + CHATML
)

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|head|>", "<|/head|>", "<|eot|>", "<s>", "</s>")


def byte_tokenizer(template: str | None, *, joins_lines: bool = False):
    """Every byte is a token, and so are the words in `SPECIAL`.

    "<think>" and "</think>" are added tokens that are not special, as in Qwen's tokenizers.
    `joins_lines`: two line breaks are one token, but not before a word: GPT-2's way.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {sign: number for number, sign in enumerate([*alphabet, "ĊĊ"])}
    merges = [("Ċ", "Ċ")] if joins_lines else []
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
    backend.add_tokens([AddedToken(w, special=False) for w in ("<think>", "</think>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = template
    return tokenizer


def space_first_tokenizer(template: str):
    """As SentencePiece does it: a space is put before a text's first word; bytes as fallback."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    signs = ["▁", *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,:?*"]
    vocabulary = {f"<0x{number:02X}>": number for number in range(256)}
    vocabulary |= {sign: 256 + number for number, sign in enumerate(signs)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    backend.add_special_tokens(
        [AddedToken(word, special=True, normalized=False) for word in SPECIAL]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = template
    return tokenizer
