"""Whether a server writes a conversation as training wrote it: told from one fixed conversation.

An adapter that is served with other text before the person's message than it was trained with
still answers, and nothing fails; only its answers are no longer the person's. So training records
what it made of `PROBE` (`PromptForm` in `trained`), and whoever serves asks the server for the
same. Needs nothing of torch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from palate.models.client import ChatMessage
from palate.simulators.trained import PromptForm

# Every record of a trained simulator holds what became of these very words: never change them.
# An answered message before the last shows templates that treat the two differently.
PROBE = (
    ChatMessage("system", "You are Wren, chatting with Ada.\n\nScene: a quiet harbour."),
    ChatMessage("user", "Well?"),
    ChatMessage("assistant", "ok… 好的 🙂"),
    ChatMessage("user", "*waits* And then?"),
)

_SHOWN = 60  # characters of each side in an error
_BEFORE = 24  # characters that name the place
_THINK_BLOCK = re.compile(r"<think>\s*</think>\s*")
# A begin-of-sequence token that a server adds to the tokens instead of to the text.
_BEGINNING = re.compile(r"<[^<>\s]{1,40}>")


def differing_form(record: PromptForm, served_text: str) -> str | None:
    """Why an adapter of this form must not be served so: one sentence, or None where texts agree.

    Args:
        served_text: `PROBE` as the server writes it, up to where the user's message begins. A
            missing begin-of-sequence token is no difference: some servers add it as a token.
    """
    trained = record.probe
    beginning = _BEGINNING.match(trained)
    if beginning and served_text == trained[beginning.end() :]:
        return None
    return differing_text(trained, served_text)


def differing_text(trained: str, served: str) -> str | None:
    """The sentence that names the first difference of two prompts; None where they are equal."""
    if trained == served:
        return None
    at = first_difference(trained, served)
    return (
        "the prompt forms of training and serving differ before the user's message"
        f"{_by_a_think_block(trained, served)}: after {_end_of(trained[:at])} training has "
        f"{_start_of(trained[at:])} and serving {_start_of(served[at:])}; serve the adapter with "
        "the chat template and the template arguments that it was trained with"
    )


def differing_tokens(record: PromptForm, served: Sequence[int]) -> str | None:
    """As `differing_form`, of the tokens of `PROBE`: another tokenizer, or a doubled BOS."""
    if tuple(served) == record.probe_tokens:
        return None
    at = first_difference(record.probe_tokens, served)
    return (
        "training and serving read the same prompt as different tokens: token "
        f"{at + 1} is {_token(record.probe_tokens, at)} in training and {_token(served, at)} in "
        "serving; serve the base model with the tokenizer that it was trained with"
    )


def first_difference(one: Sequence[object], other: Sequence[object]) -> int:
    """The first position at which two sequences differ; the shorter's length if it is a prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _by_a_think_block(trained: str, served: str) -> str:
    for name, one, other in (("serving", served, trained), ("training", trained, served)):
        if _THINK_BLOCK.search(one) and _THINK_BLOCK.sub("", one) == other:
            return f" by an empty think block, which only {name} has"
    return ""


def _end_of(text: str) -> str:
    if not text:
        return "the beginning"
    return repr(text if len(text) <= _BEFORE else "…" + text[-_BEFORE:])


def _start_of(text: str) -> str:
    if not text:
        return "nothing more"
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _token(tokens: Sequence[int], at: int) -> str:
    return str(tokens[at]) if at < len(tokens) else "missing"
