"""A person's words as tokens: never the control tokens of a chat, whatever they typed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

from palate.simulators.chat_template import Tokenizer

_BRACKETS = frozenset("<>[]{}|")
_SURROGATES = re.compile("[\ud800-\udfff]")


class PlainText:
    """Encodes messages with one tokenizer, so that "<|im_end|>" in them is ten ordinary signs."""

    def __init__(self, tokenizer: Tokenizer, *, after: str = "") -> None:
        """Collect the tokenizer's control words: special tokens, and added ones in brackets.

        Args:
            after: encode a message as it is encoded after this text. Some tokenizers put a space
                before a text's first word, which a message in mid-prompt does not get.
        """
        self._tokenizer = tokenizer
        self._after = after
        self._after_ids = self._encoded(after)
        control = {
            number: token
            for number, token in tokenizer.added_tokens_decoder.items()
            if token.special or not _BRACKETS.isdisjoint(token.content)
        }
        self.control_ids = frozenset(control)
        self._control = _any_of(token.content for token in control.values())
        # Such as <think> of Qwen, which no option of the tokenizer switches off.
        self._not_special = _any_of(t.content for t in control.values() if not t.special)

    def holds_control_words(self, text: str) -> bool:
        """Whether a tokenizer would take a part of `text` for a control token."""
        return self.first_control_word(text) is not None

    def first_control_word(self, text: str) -> re.Match[str] | None:
        """The first control token of the template's own text."""
        return self._control.search(text) if self._control is not None else None

    def ids(self, text: str) -> list[int]:
        """The tokens of `text` as ordinary text, in itself: no control token is among them."""
        ids = self._as_text(self._after + text)
        before = len(self._after_ids)
        return ids[before:] if ids[:before] == self._after_ids else self._as_text(text)

    def _as_text(self, text: str) -> list[int]:
        cuts = [] if self._not_special is None else self._not_special.finditer(text)
        # Cut after its first sign, a control word is none any more.
        places = [0, *(found.start() + 1 for found in cuts), len(text)]
        ids = [
            number for begin, end in pairwise(places) for number in self._encoded(text[begin:end])
        ]
        if self.control_ids.isdisjoint(ids):
            return ids
        return [number for sign in text for number in self._encoded(sign)]

    def reproduces(self, text: str) -> bool:
        """Whether the tokens of `text` say `text`, up to Unicode's compatible forms.

        Some tokenizers fold those ("ｅ" to "e"), and they are trained and served alike. One that
        drops or replaces signs would teach a message that nobody wrote.
        """
        said = self._tokenizer.decode(
            self.ids(text), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return _folded(str(said)) == _folded(text)

    def template_ids(self, text: str) -> list[int]:
        """The tokens of `text` with the control tokens that the template wrote in it."""
        return self._encoded(text, as_text=False)

    def _encoded(self, text: str, *, as_text: bool = True) -> list[int]:
        if not text:
            return []
        # No tokenizer takes the halves of broken surrogate pairs.
        text = _SURROGATES.sub("\ufffd", text)
        return list(
            self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=as_text)
        )


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip()


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    """Any of these words, a longer one before its own beginning."""
    found = sorted({word for word in words if word}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, found))) if found else None
