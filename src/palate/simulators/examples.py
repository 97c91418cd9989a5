"""From training sessions to examples: context, then what the user wrote next (paper 3.1).

The loss falls on the user's messages and on the end-of-turn token after each, nothing else. A
session over the budget is cut from the front by whole turns, never in the target, and keeps the
system text. Where the form allows one pass, such a session becomes several examples: each repeats
earlier turns as context, up to half of the budget, and every message is a target once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from palate.models.client import ChatMessage
from palate.simulators.chat_form import ChatForm, Encoded
from palate.simulators.user_side import user_side
from palate.types import Session, TrainingSession

# Why a message is not learned from, besides those of `user_side`: keys of `Counts.skipped`.
TOO_LONG = "too_long_target"
TOO_LONG_WITH_SYSTEM = "too_long_with_system_text"  # would fit without it
NOT_REPRODUCED = "not_reproduced"  # the tokenizer drops or replaces signs of it


class Example(NamedTuple):
    """A stretch of a session as tokens; `supervised` is True where a token is to be learned."""

    session_id: str
    input_ids: tuple[int, ...]
    supervised: tuple[bool, ...]
    messages: int  # of the user, supervised
    leaves_from: int | None = None  # where the target that ends with [QUIT] begins


class Counts(NamedTuple):
    """What examples were made of, and what was left out."""

    sessions: int
    examples: int
    supervised_messages: int
    supervised_tokens: int
    tokens: int  # of all examples, once
    quits: int  # supervised messages that end with [QUIT]
    without_context: int  # supervised messages for which no earlier turn fitted
    skipped: dict[str, int]  # reason -> messages of the user

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            sessions=self.sessions + other.sessions,
            examples=self.examples + other.examples,
            supervised_messages=self.supervised_messages + other.supervised_messages,
            supervised_tokens=self.supervised_tokens + other.supervised_tokens,
            tokens=self.tokens + other.tokens,
            quits=self.quits + other.quits,
            without_context=self.without_context + other.without_context,
            skipped=dict(Counter(self.skipped) + Counter(other.skipped)),
        )

    def sentence(self) -> str:
        """The counts in words."""
        left_out = ", ".join(
            f"{number} {reason.replace('_', ' ')}"
            for reason, number in sorted(self.skipped.items())
        )
        return (
            f"{self.examples} examples from {self.sessions} sessions: {self.supervised_messages} "
            f"messages of the user, of which {self.quits} leave, in {self.supervised_tokens} "
            f"supervised tokens of {self.tokens}; skipped: {left_out or 'none'}; without an "
            f"earlier turn: {self.without_context}"
        )


NO_COUNTS = Counts(0, 0, 0, 0, 0, 0, 0, {})


def examples(
    training: Sequence[TrainingSession],
    form: ChatForm,
    *,
    system: Callable[[Session], str],
    max_tokens: int,
    per_turn: bool = False,
) -> tuple[list[Example], Counts]:
    """The examples of these sessions, in their order.

    Args:
        system: the system text that the session's simulator is served with.
        max_tokens: of one example.
        per_turn: an example for every target, though one pass would do.

    Raises:
        TypeError: something other than training sessions, which would leak the held-out part.
        InputError: the chat template refuses a session.
    """
    made: list[Example] = []
    counts = NO_COUNTS
    for item in training:
        if not isinstance(item, TrainingSession):
            raise TypeError(
                "a simulator is trained from training sessions as histories.split returns them, "
                f"not from {type(item).__name__}"
            )
        text = system(item.session)
        more, its = session_examples(
            item.session, form, system=text, max_tokens=max_tokens, per_turn=per_turn
        )
        made += more
        counts = counts.plus(its)
    return made, counts


def session_examples(
    session: Session, form: ChatForm, *, system: str, max_tokens: int, per_turn: bool = False
) -> tuple[list[Example], Counts]:
    """The examples of one session, of whatever part of the split: validation reads them too."""
    side = user_side(session)
    once = form.one_pass and not per_turn
    chat = _Chat(form, system, side.messages, max_tokens, once, Counter(side.skipped))
    windows = list(chat.windows())
    leaving = len(side.messages) - 1 if side.leaves else None
    made = [_example(session.session_id, chat, window, leaving) for window in windows]
    return made, Counts(
        sessions=1,
        examples=len(made),
        supervised_messages=sum(example.messages for example in made),
        supervised_tokens=sum(sum(example.supervised) for example in made),
        tokens=sum(len(example.input_ids) for example in made),
        quits=sum(example.leaves_from is not None for example in made),
        without_context=sum(window.start == window.targets[0] > 0 for window in windows),
        skipped=dict(chat.skipped),
    )


class _Window(NamedTuple):
    """A stretch of a chat: from message `start` to the last of `targets`, which are learned."""

    start: int
    targets: tuple[int, ...]


@dataclass
class _Chat:
    """One session's messages, and how they are cut into windows that fit."""

    form: ChatForm
    system: str
    messages: tuple[ChatMessage, ...]
    max_tokens: int
    once: bool
    skipped: Counter[str]
    _sizes: dict[tuple[int, int], int] = field(default_factory=dict)

    def windows(self) -> Iterator[_Window]:
        """The windows, in order; messages that fit in none are counted in `skipped`."""
        left = self._targets()
        start = 0
        first = True
        while left:
            start = self._start(left[0], start, first=first)
            if self._size(start, left[0]) > self.max_tokens:
                self.skipped[self._reason(left[0])] += 1
                left = left[1:]
                continue
            reach = self._reach(start, left) if self.once else 1
            yield _Window(start, tuple(left[:reach]))
            left = left[reach:]
            first = False

    def encoded(self, start: int, last: int) -> Encoded:
        """The messages `start` to `last`, the latter of the user, after the system text."""
        told = (ChatMessage("system", self.system),) if self.system else ()
        chat = (*told, *self.messages[start : last + 1])
        return self.form.encode(chat) if self.once else self.form.encode_turn(chat)

    def _targets(self) -> list[int]:
        """The user's messages that the tokenizer can say."""
        found = [n for n, message in enumerate(self.messages) if message.role == "assistant"]
        sayable = [n for n in found if self.form.plain.reproduces(self.messages[n].text)]
        if len(sayable) < len(found):
            self.skipped[NOT_REPRODUCED] += len(found) - len(sayable)
        return sayable

    def _reason(self, target: int) -> str:
        alone = self._tokens(target)
        return TOO_LONG if alone > self.max_tokens else TOO_LONG_WITH_SYSTEM

    def _start(self, target: int, least: int, *, first: bool) -> int:
        """The turn from `least` on with which the window of `target` begins.

        In one pass a later window leaves about half of its room for targets, if that leaves any
        earlier turn at all. `target` itself: no earlier turn fits.
        """
        if self.once and not first:
            half = min(self.max_tokens, self.max_tokens // 2 + self._tokens(target))
            start = self._earliest(target, least, half)
            if start < target:
                return start
        return self._earliest(target, least, self.max_tokens)

    def _earliest(self, target: int, least: int, room: int) -> int:
        """The earliest start that fits; a window begins with the character, as a chat does, or
        where the chat began."""
        starts = [n for n in range(least, target) if n == 0 or self.messages[n].role == "user"]
        starts.append(target)
        # Doubling steps first: mostly the start of the window before will do, or its neighbour.
        near = 1
        while near < len(starts) and self._size(starts[near - 1], target) > room:
            near *= 2
        at = bisect_left(
            starts,
            -room,
            lo=near // 2,
            hi=min(near, len(starts)),
            key=lambda start: -self._size(start, target),
        )
        return starts[min(at, len(starts) - 1)]

    def _tokens(self, target: int) -> int:
        """Tokens of a target, its end-of-turn token included."""
        return len(self.form.plain.ids(self.messages[target].text)) + 1

    def _reach(self, start: int, left: Sequence[int]) -> int:
        """How many of the targets `left` fit in a window that begins at `start`."""
        near = 1
        while near < len(left) and self._size(start, left[near]) <= self.max_tokens:
            near *= 2
        return bisect_right(
            left,
            self.max_tokens,
            lo=near // 2 + 1,
            hi=min(near, len(left)),
            key=lambda target: self._size(start, target),
        )

    def _size(self, start: int, last: int) -> int:
        """Tokens of the messages `start` to `last`, up to the end of the target."""
        if (start, last) not in self._sizes:
            self._sizes[start, last] = self.encoded(start, last).targets[-1].end
        return self._sizes[start, last]


def _example(session_id: str, chat: _Chat, window: _Window, leaving: int | None) -> Example:
    """A window as tokens; it ends with its last target, for nothing after that is learned."""
    last = window.targets[-1]
    encoded = chat.encoded(window.start, last)
    users = [n for n in range(window.start, last + 1) if chat.messages[n].role == "assistant"]
    spans = dict(zip(users if chat.once else [last], encoded.targets, strict=True))
    supervised = [False] * spans[last].end
    for target in window.targets:
        start, end = spans[target]
        supervised[start:end] = [True] * (end - start)
    return Example(
        session_id=session_id,
        input_ids=encoded.ids[: spans[last].end],
        supervised=tuple(supervised),
        messages=len(window.targets),
        leaves_from=spans[last].start if last == leaving else None,
    )
