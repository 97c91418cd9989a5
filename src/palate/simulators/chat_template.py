"""A model's own chat template, rendered so that the place of every message in the text is known.

The template is given a mark instead of each message's words, with the white space around them left
as it is: what it strips is stripped, what it adds is seen, and no word that a person typed can pass
for a part of the template. Marks are characters of a private-use area and never reach a model.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from jinja2 import TemplateError

from palate.errors import InputError
from palate.models.client import ChatMessage
from palate.models.shapes import ShapeRules, shape

_MARK = re.compile("\ue000([0-9]+)\ue001")
_CLOCK = re.compile(r"strftime_now\(\s*([\"'])(.+?)\1\s*\)")
# What a person wrote is answered at once, and a prompt must say tomorrow what it says today.
_FIXED_ARGUMENTS: dict[str, bool | str] = {"enable_thinking": False, "date_string": "26 Jul 2024"}
# What a template raises on purpose, and what it runs into with a conversation it does not expect.
_REFUSALS = (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)


class AddedToken(Protocol):
    """A word that the tokenizer reads as one token wherever it stands."""

    content: str
    special: bool


class Tokenizer(Protocol):
    """What is used of a Hugging Face tokenizer (transformers 5)."""

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]:
        """The added tokens by id."""
        ...

    def get_chat_template(self) -> str:
        """The chat template; raises ValueError where there is none."""
        ...

    def apply_chat_template(
        self,
        conversation: list[dict[str, str]],
        **options: Any,  # noqa: ANN401 - the template's own
    ) -> Any:  # noqa: ANN401 - a str, with tokenize=False
        """The conversation as text."""
        ...

    def encode(
        self, text: str, *, add_special_tokens: bool, split_special_tokens: bool
    ) -> list[int]:
        """The tokens of `text`."""
        ...

    def decode(
        self,
        token_ids: list[int],
        *,
        skip_special_tokens: bool,
        clean_up_tokenization_spaces: bool,
    ) -> Any:  # noqa: ANN401 - a str, for one list of ids
        """The text of these tokens."""
        ...


class Marked(NamedTuple):
    """A rendered conversation: between the marks of its messages stands the template's own text.

    `between[i]` comes before message i, the last one after all of them. What survived of the
    white space around a message's words is part of it.
    """

    between: tuple[str, ...]
    messages: tuple[ChatMessage, ...]  # as shaped: what the marks stand for

    def before(self, index: int) -> str:
        """All text before a message, with the marks of those before it."""
        parts = (f"{self.between[i]}{_mark(i)}" for i in range(index))
        return "".join(parts) + self.between[index]

    @property
    def text(self) -> str:
        """All of it, with marks."""
        return self.before(len(self.messages))

    @property
    def filled(self) -> str:
        """All of it, with words."""
        words = (f"{gap}{self.words(i)}" for i, gap in enumerate(self.between[:-1]))
        return "".join(words) + self.between[-1]

    def words(self, index: int) -> str:
        """The words of a message, without outer white space."""
        return self.messages[index].text.strip()


class Template:
    """The chat template of one tokenizer, with the arguments that training and serving share."""

    def __init__(self, tokenizer: Tokenizer, source: str) -> None:
        """Find the arguments and the shape that the template needs.

        Raises:
            InputError: there is no template, or it cannot serve a simulated user.
        """
        self.source = source
        self._tokenizer = tokenizer
        self.text = _text(tokenizer, source)
        self.arguments = _arguments(self.text)
        self.rules = ShapeRules()
        if not self._takes_user_first():
            self.rules = ShapeRules(first_role="user")
        self._check()

    @property
    def sha256(self) -> str:
        """SHA-256 of the template's text, as of a file that holds it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def rendered(self, messages: Sequence[ChatMessage], *, answer_next: bool) -> Marked:
        """The conversation as the template writes it.

        Args:
            answer_next: with the beginning of the next message of the simulated user.

        Raises:
            InputError: the template refuses the conversation, or drops or repeats a message.
        """
        shaped = tuple(shape(messages, self.rules).messages)
        text = self._apply(shaped, answer_next)
        found = tuple(int(number) for number in _MARK.findall(text))
        if found != tuple(range(len(shaped))):
            raise InputError(
                f"the chat template of {self.source} drops, repeats or reorders messages, so that "
                "no simulator can be trained with it; use an instruct model with another template"
            )
        return Marked(tuple(_MARK.split(text)[::2]), shaped)

    def _apply(self, messages: Sequence[ChatMessage], answer_next: bool) -> str:
        marked = [
            {"role": message.role, "content": _marked(message.text, number)}
            for number, message in enumerate(messages)
        ]
        try:
            text = self._tokenizer.apply_chat_template(
                marked, tokenize=False, add_generation_prompt=answer_next, **self.arguments
            )
        except _REFUSALS as error:
            raise InputError(
                f"the chat template of {self.source} refuses a conversation of the roles "
                f"{', '.join(m.role for m in messages)} ({_first_line(error)}); use an instruct "
                "model whose template takes a system message and a chat of two sides"
            ) from None
        return str(text)

    def _takes_user_first(self) -> bool:
        """Whether the simulated user may speak first (roles flip: they are the "assistant")."""
        system = ChatMessage("system", "s")
        begun = (ChatMessage("assistant", "a"), ChatMessage("user", "b"))
        try:
            for chat in ((system,), begun, (system, *begun)):
                self.rendered(chat, answer_next=True)
        except InputError:
            return False
        return True

    def _check(self) -> None:
        """Refuse a template that has no system role, or that tells the time."""
        chat = (ChatMessage("user", "a"), ChatMessage("assistant", "b"), ChatMessage("user", "c"))
        self.rendered(chat, answer_next=True)
        told = (ChatMessage("system", "s"), *chat)
        try:
            text = self.rendered(told, answer_next=True).text
        except InputError:
            raise InputError(
                f"the chat template of {self.source} writes no system message before the chat, "
                "where a simulated user is told the scene; use an instruct model that has one"
            ) from None
        now = [time.strftime(form) for _, form in _CLOCK.findall(self.text)]
        again = self.rendered(told, answer_next=True).text
        if text != again or any(date and date in text for date in now):
            raise InputError(
                f"the chat template of {self.source} writes the date or time into every prompt, so "
                "that serving could never repeat what was trained; take the date out of the "
                "template in a copy of the model's folder and name that folder"
            )


def _text(tokenizer: Tokenizer, source: str) -> str:
    try:
        text = tokenizer.get_chat_template()
    except (ValueError, AttributeError):
        text = ""
    if not text:
        raise InputError(
            f"{source} has no chat template; a simulator is trained on an instruct model, which "
            "brings one"
        )
    return text


def _arguments(template: str) -> dict[str, bool | str]:
    """Those of the fixed arguments that the template asks for."""
    return {
        name: value
        for name, value in _FIXED_ARGUMENTS.items()
        if re.search(rf"\b{name}\b", template)
    }


def _mark(number: int) -> str:
    return f"\ue000{number}\ue001"


def _marked(text: str, number: int) -> str:
    """A message with its words replaced: their outer white space shows what is stripped."""
    begin, end = outer_space(text)
    return begin + _mark(number) + end


def without_marks(text: str) -> str:
    """Rendered text as an error may show it, each mark as one sign."""
    return _MARK.sub("…", text)


def outer_space(text: str) -> tuple[str, str]:
    """The white space before and after the words of a message."""
    begin = len(text) - len(text.lstrip())
    return text[:begin], text[begin:][len(text.strip()) :]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
