"""How a chat becomes the tokens that are trained, so that serving sees the same (paper 3.1).

Roles have flipped by now: the simulated user is the "assistant". The *target* of a message is its
words and the end-of-turn token after them, and it begins where a server lets the model go on: a
prompt and its answer are encoded apart, as they are when the answer is generated. Words of a person
are encoded as plain text; control tokens come from the template alone.

Where a message in the middle of a chat is rendered as it was when it came last, a session is
encoded once with all its targets (`encode`); elsewhere once a target (`encode_turn`), and `why`
says what differs. Where both can be had, they give the same tokens up to every target.

A server reads a prompt otherwise in two cases, which no simulated chat holds: control words that a
person typed (it takes them for control tokens), and white space at the beginning of a message of
the user (`palate.chat.read_user` strips it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from palate.errors import InputError
from palate.models.client import ChatMessage
from palate.simulators.chat_template import (
    Marked,
    Template,
    Tokenizer,
    outer_space,
    without_marks,
)
from palate.simulators.plain_text import PlainText
from palate.simulators.prompt_form import PROBE, first_difference
from palate.simulators.trained import PromptForm

_DEPENDENT = "the first tokens of a message depend on the text before it"
_SYSTEM = ChatMessage("system", "A quiet harbour.")
# Every kind of neighbour that a message can have, and outer white space that a template may strip.
_CHAT = (
    ChatMessage("user", "Well?"),
    ChatMessage("assistant", "ok"),
    ChatMessage("user", " *waits*\n"),
    ChatMessage("assistant", "\n  fine \n"),
    ChatMessage("user", "好的～ And then?"),
    ChatMessage("assistant", "nothing"),
)
# Without outer white space, as the messages of a simulated chat are.
_TIDY = tuple(message._replace(text=message.text.strip()) for message in (_SYSTEM, *_CHAT))


class Span(NamedTuple):
    """Positions of tokens, `end` not included; never empty."""

    start: int
    end: int


class Encoded(NamedTuple):
    """A chat as tokens, and where in them the targets are, in their order."""

    ids: tuple[int, ...]
    targets: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class ChatForm:
    """The form in which one base model is trained and served; made by `of`."""

    template: Template
    plain: PlainText
    end_of_turn: str
    end_id: int
    answer_head: str  # the template's own text right before an answer
    why: str = ""  # why a session is not encoded once; "" where it is

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, source: str) -> ChatForm:
        """Probe the tokenizer and its chat template.

        Args:
            source: the model's name, for errors.

        Raises:
            InputError: there is no template, or no simulated user can be trained with it: no
                system role, no end-of-turn token, an open thinking block, today's date, …
        """
        template, plain = Template(tokenizer, source), PlainText(tokenizer)
        if not plain.reproduces("Well, ok?"):
            raise InputError(
                f"the tokenizer of {source} does not give back the text that it is given; use "
                "another base model"
            )
        end_of_turn, end_id = _end_of_turn(template, plain)
        form = cls(template, plain, end_of_turn, end_id, _answer_head(template))
        why = _why_not_once(form)
        after_a_line = replace(form, plain=PlainText(tokenizer, after="\n"))
        if why == _DEPENDENT and not _why_not_once(after_a_line):
            return after_a_line
        return replace(form, why=why)

    @property
    def one_pass(self) -> bool:
        """A session is encoded once, with a mask over all messages of the user."""
        return not self.why

    def encode(self, messages: Sequence[ChatMessage]) -> Encoded:
        """A whole chat with the targets of all messages of the user; only where `one_pass`."""
        assert self.one_pass, self.why
        return self.encoded(self.template.rendered(messages, answer_next=False))

    def encode_turn(self, messages: Sequence[ChatMessage]) -> Encoded:
        """A chat that ends with a message of the user, with its target alone."""
        asked = self.template.rendered(messages[:-1], answer_next=True)
        prompt = self.encoded(asked).ids
        ids = (*prompt, *self.plain.ids(self._answer(messages, asked)), self.end_id)
        return Encoded(ids, (Span(len(prompt), len(ids)),))

    def answer(self, messages: Sequence[ChatMessage]) -> str:
        """The last message, of the user, as the template renders it: some strip white space."""
        return self._answer(messages, self.template.rendered(messages[:-1], answer_next=True))

    def _answer(self, messages: Sequence[ChatMessage], asked: Marked) -> str:
        assert messages[-1].role == "assistant"
        given = self.template.rendered(messages, answer_next=False)
        last = len(given.messages) - 1
        prompt, answered = asked.text, given.before(last)
        before = answered[len(prompt) :] if answered.startswith(prompt) else ""
        begin, end = self.own_space(given, last, before)
        return begin + given.words(last) + end

    def prompt_text(self, messages: Sequence[ChatMessage]) -> str:
        """The text that a model is asked to continue with the user's next message."""
        return self.template.rendered(messages, answer_next=True).filled

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The tokens of `prompt_text`, the words of messages as plain text."""
        return list(self.encoded(self.template.rendered(messages, answer_next=True)).ids)

    def record(self) -> PromptForm:
        """What is stored with an adapter, to hold serving against."""
        return PromptForm(
            template_sha256=self.template.sha256,
            template_arguments=self.template.arguments,
            first_role=self.template.rules.first_role,
            end_of_turn=self.end_of_turn,
            probe=self.prompt_text(PROBE),
            probe_tokens=tuple(self.prompt_ids(PROBE)),
            one_pass=self.one_pass,
            why=self.why,
        )

    def own_space(self, marked: Marked, index: int, before: str) -> tuple[str, str]:
        """What the template left of the white space around a message's words.

        Args:
            before: what it wrote between the prompt and the words; what is not the message's own
                is left out.
        """
        begin, end = outer_space(marked.messages[index].text)
        after = self.after_words(marked, index)
        return before if begin.endswith(before) else "", after if end.startswith(after) else ""

    def before_words(self, marked: Marked, index: int) -> str:
        """What stands between the head of an answer and its words."""
        _, head, before = marked.between[index].rpartition(self.answer_head)
        return before if head else ""

    def after_words(self, marked: Marked, index: int) -> str:
        """What stands between the words of an answer and its end-of-turn token."""
        return marked.between[index + 1].partition(self.end_of_turn)[0]

    def encoded(self, marked: Marked) -> Encoded:
        """The tokens: what a server would read at once is encoded at once.

        In a form of one pass the user's messages stand alone, as they do when they are generated.
        """
        ids: list[int] = []
        targets: list[Span] = []
        pending = marked.between[0]
        for index, message in enumerate(marked.messages):
            gap = marked.between[index + 1]
            if self.one_pass and message.role == "assistant":
                begin, end = self.own_space(marked, index, self.before_words(marked, index))
                ids += self.plain.template_ids(pending.removesuffix(begin))
                start = len(ids)
                ids += self.plain.ids(begin + marked.words(index) + end)
                targets.append(Span(start, len(ids) + 1))
                pending = gap.removeprefix(end)
            elif self.plain.holds_control_words(marked.words(index)):
                ids += self.plain.template_ids(pending) + self.plain.ids(marked.words(index))
                pending = gap
            else:
                pending += marked.words(index) + gap
        ids += self.plain.template_ids(pending)
        return Encoded(tuple(ids), tuple(targets))


def _end_of_turn(template: Template, plain: PlainText) -> tuple[str, int]:
    """The control token that ends an answer, and its id."""
    after = template.rendered(_TIDY, answer_next=False).between[-1]
    found = plain.first_control_word(after)
    ids = plain.template_ids(found[0]) if found else []
    if found is None or after[: found.start()].strip() or len(ids) != 1:
        raise InputError(
            f"the chat template of {template.source} writes no end-of-turn token after an answer, "
            "so that a simulator could never learn to stop; use another instruct model"
        )
    return found[0], ids[0]


def _answer_head(template: Template) -> str:
    """The template's own text right before an answer."""
    chat = _TIDY[:-1]
    asked = template.rendered(chat, answer_next=True).between[-1]
    if asked.count("<think>") > asked.count("</think>"):
        raise InputError(
            f"the chat template of {template.source} opens a thinking block before every answer, "
            "and a person's message is no thought; use an instruct model that answers at once"
        )
    without = template.rendered(chat, answer_next=False).between[-1]
    return asked.removeprefix(without) or asked


def _why_not_once(form: ChatForm) -> str:
    """Why a session cannot be encoded once for all its targets, in a sentence; "" where it can."""
    chats = [_CHAT, (_SYSTEM, *_CHAT), _TIDY]
    if form.template.rules.first_role == "any":
        chats.append((_SYSTEM, *_CHAT[1:]))
    for chat in chats:
        for last, message in enumerate(chat):
            if message.role == "assistant" and (why := _differs(form, chat, last)):
                return why
    return "" if _tokens_agree(form) else _DEPENDENT


def _differs(form: ChatForm, chat: Sequence[ChatMessage], last: int) -> str:
    """How the answer `chat[last]` reads otherwise in the whole chat than when it was given."""
    asked = form.template.rendered(chat[:last], answer_next=True).text
    given = form.template.rendered(chat[: last + 1], answer_next=False)
    at = len(given.messages) - 1
    answered = given.before(at)
    if not answered.startswith(asked):
        return "the chat template writes " + _sides(asked, answered).format(
            "where a message is asked for", "where it is answered"
        )
    around = answered[len(asked) :], form.after_words(given, at)
    if around != form.own_space(given, at, around[0]):
        return (
            f"the chat template puts {around[0]!r} and {around[1]!r} around the words of an answer"
        )
    later = form.template.rendered(chat, answer_next=False)
    then, now = answered + around[1], later.before(at) + form.after_words(later, at)
    if then != now:
        return "the chat template writes " + _sides(then, now).format(
            "around a message that comes last", "around the same one in the middle of a chat"
        )
    return ""


def _sides(one: str, other: str) -> str:
    """The first difference of two texts, as "X {} but Y {}"."""
    shown = without_marks(one), without_marks(other)
    at = first_difference(*shown)
    first, second = (
        repr(text[at : at + 40]).replace("{", "{{").replace("}", "}}") if text[at:] else "nothing"
        for text in shown
    )
    return f"{first} {{}} but {second} {{}}"


def _tokens_agree(form: ChatForm) -> bool:
    """Whether parts that are encoded apart are, put together, what a server reads at once."""
    ends = [n for n, message in enumerate(_TIDY) if message.role == "assistant"]
    return all(
        form.encoded(marked).ids == tuple(form.plain.template_ids(marked.filled))
        for end in ends
        for marked in (
            form.template.rendered(_TIDY[:end], answer_next=True),
            form.template.rendered(_TIDY[: end + 1], answer_next=False),
        )
    )
