"""A card in a chat: what its candidate is told for each reply, and what its judges know of it.

Choices: a chat settles its dice once (`dice`), so that every candidate meets the same opening and
a judge reads what the candidate was told; post-history instructions alone are rolled anew for each
reply. With a candidate's own prompt file the lorebook is part of <<card>>, what it puts among the
messages too: a file without <<card>> has none of it. A role counts among the messages alone, and
the last message is never the assistant's, which would ask for its continuation: it is the
system's. In the system prompt, entries are paragraphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from palate.cards.activation import active, chat
from palate.cards.entries import Entry, Position, Role
from palate.cards.files import openings
from palate.cards.lorebook import Lorebook, lorebook, settled
from palate.cards.macros import NO_DICE, Dice, draws, draws_anew
from palate.cards.prompts import Lore, filler, opening, post_history, system
from palate.chat import Insertion, Told, as_seen_by, told_messages
from palate.models.client import ChatMessage
from palate.prompts import Prompt, placeholders
from palate.types import Card, Cell, Message

# Counts up when the rules of matching or placing change: chats under other rules are not mixed.
LORE_RULES = 1

_IN_CHAT: tuple[Position, ...] = ("depth", "reverse_depth")
_DRAWN_ONCE = ("persona", "personality", "scenario", "example_dialogue", "system_prompt")


class CandidatePrompt(NamedTuple):
    """What the candidate is told before and after the conversation."""

    system: str
    post_history: str | None


def candidate_prompt(
    card: Card,
    *,
    user_name: str | None = None,
    prompt: Prompt | None = None,
    dice: Dice = NO_DICE,
) -> CandidatePrompt:
    """The candidate's instructions and its character at the beginning of a chat (paper 3.2).

    `prompt` is a candidate's own prompt file, with any of <<card>> (all card text), <<name>>,
    <<scenario>> and <<user>>; it takes the place of our instructions and the card's.

    Raises:
        InputError: `prompt` has another placeholder, or the lorebook cannot be read.
    """
    told = _telling(card, user_name, prompt, dice)(())
    return CandidatePrompt(told.system, told.after_history or None)


def tells(
    card: Card,
    *,
    user_name: str | None = None,
    prompt: Prompt | None = None,
    dice: Dice = NO_DICE,
) -> Callable[[Sequence[Message]], Told] | None:
    """What the candidate is told for its next reply, as a function of the messages so far.

    None where it is told the same throughout: what `candidate_prompt` says.

    Raises:
        InputError: as `candidate_prompt`.
    """
    if _lore(card, user_name, prompt, dice).entries or draws_anew(card.post_history_instructions):
        return _telling(card, user_name, prompt, dice)
    return None


def chat_prompt(
    card: Card,
    messages: Sequence[Message],
    *,
    user_name: str | None = None,
    prompt: Prompt | None = None,
    dice: Dice = NO_DICE,
) -> tuple[ChatMessage, ...]:
    """The messages that a candidate is sent for its next reply in this chat, opening included.

    Raises:
        InputError: as `candidate_prompt`, or the card has no opening.
    """
    first = opening(card, user_name=user_name, dice=dice)
    told = _telling(card, user_name, prompt, dice)(messages)
    return told_messages(told, as_seen_by("character", first, messages))


def dice(card: Card, *, seed: int, cell: Cell) -> Dice:
    """What the card's dice are drawn from in this cell; one and the same for a card without dice.

    The candidate has no part in it: candidates are compared on the same chat.
    """
    if not draws_from_dice(card):
        return NO_DICE
    return Dice(f"{seed}|{cell.user_id}|{cell.card_id}|{cell.repetition}")


def draws_from_dice(card: Card) -> bool:
    """Whether what the card says differs from chat to chat."""
    texts = [getattr(card, field) for field in _DRAWN_ONCE]
    texts += [card.post_history_instructions, *(offered.text for offered in openings(card)[:1])]
    for entry in lorebook(card).entries:
        texts += [entry.content, *(key.text for key in entry.search.all_keys())]
    return any(map(draws, texts))


def known_lore(
    card: Card, *, user_name: str | None = None, dice: Dice = NO_DICE
) -> tuple[str, ...]:
    """The entries that a chat with this opening may bring in, those that it always has first.

    For judges: without them, what a character knows from its lorebook would pass for invented.
    """
    book = _lore(card, user_name, None, dice)
    greeting = _greeting(card)
    known = [e for e in book.entries if e.can_match and e.when.greeting in (None, greeting)]
    known.sort(key=lambda entry: (not entry.search.constant, entry.order))
    return tuple(entry.content for entry in known if entry.content)


def _telling(
    card: Card, user_name: str | None, prompt: Prompt | None, dice: Dice
) -> Callable[[Sequence[Message]], Told]:
    book = _lore(card, user_name, prompt, dice)
    greeting = _greeting(card)
    first = opening(card, user_name=user_name, dice=dice) if openings(card) else ""

    def told(messages: Sequence[Message]) -> Told:
        said = chat(first, messages)
        found = active(book, said, greeting=greeting)
        among = [entry for entry in found if entry.place.position in _IN_CHAT]
        replies = sum(message.speaker == "character" for message in messages)
        after = post_history(card, user_name=user_name, dice=dice._replace(moment=replies))
        return Told(
            system=system(
                card, user_name=user_name, prompt=prompt, dice=dice, lore=_by_position(found)
            ),
            after_history=after or "",
            inserted=tuple(_inserted(entry, len(said)) for entry in among),
        )

    return told


def _lore(card: Card, user_name: str | None, prompt: Prompt | None, dice: Dice) -> Lorebook:
    if prompt is not None and "card" not in placeholders(prompt):
        return Lorebook()
    names = filler(card, user_name, dice)
    return settled(lorebook(card), char=names.char, user=names.user, dice=dice)


def _greeting(card: Card) -> int:
    offered = openings(card)
    return offered[0].number if offered else 0


def _by_position(entries: Sequence[Entry]) -> Lore:
    lore: dict[Position, list[str]] = {}
    for entry in entries:
        lore.setdefault(entry.place.position, []).append(entry.content)
    return lore


def _inserted(entry: Entry, total: int) -> Insertion:
    """Where an entry stands among `total` messages, the opening included."""
    position, depth, role = entry.place
    after = max(total - depth if position == "reverse_depth" else depth, 0)
    return Insertion(after, ChatMessage(_spoken_as(role, after), entry.content))


def _spoken_as(role: Role, after: int) -> Role:
    return "system" if role == "assistant" and after == 0 else role
