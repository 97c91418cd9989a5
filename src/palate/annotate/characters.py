"""The cards and candidates of a study, as a rater meets them.

A rater sees of a card what a user sees: name, scenario, opening. Which candidate plays is not
shown: a name would be rated with the reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from palate import cards
from palate.annotate.chats import Chat
from palate.annotate.starting import Beginning
from palate.config import Study
from palate.models.client import Completion, Model, Purpose, Request
from palate.models.streaming import Show, streamed
from palate.prepare import own_prompts
from palate.prompts import Prompt
from palate.roleplay import ATTEMPTS_AT_A_MESSAGE, Seat, prompt_for, seed_of
from palate.seats import OpensModels, candidate_seat, open_candidate
from palate.types import Card, Cell, Message, digest


class Face(NamedTuple):
    """What a rater sees of a card before the chat."""

    id: str
    name: str
    language: str
    scenario: str
    opening: str


class Characters:
    """Everybody who can be talked to in a study."""

    def __init__(self, study: Study, models: OpensModels) -> None:
        """Read the panel and open the candidates' models.

        Raises:
            InputError: a card or a prompt cannot be used, or a model's settings are wrong.
        """
        content = study.content
        self._seed = content.protocol.seed
        self._names = {user.id: user.name for user in content.users}
        self._cards: Mapping[str, Card] = {
            path.stem: cards.read(path) for path in study.panel_files()
        }
        self._candidates = {one.name: one for one in content.candidates}
        self._prompts: Mapping[str, Prompt] = dict(own_prompts(study))
        self._models: Mapping[str, Model] = {
            one.name: open_candidate(one, models) for one in content.candidates
        }
        for card in self._cards.values():
            cards.opening(card)
            for prompt in self._prompts.values():
                cards.candidate_prompt(card, prompt=prompt)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of all candidates, in the study's order."""
        return tuple(self._candidates)

    def faces(self, person_id: str) -> tuple[Face, ...]:
        """All cards, as this person sees them before a chat."""
        return tuple(self._face(id_, card, person_id) for id_, card in self._cards.items())

    def knows_card(self, card_id: str) -> bool:
        """Whether the card is on the panel; an id is looked up, never opened as a path."""
        return card_id in self._cards

    def name_of(self, card_id: str) -> str:
        """The character's name; the id of a card that is not on the panel (any more)."""
        card = self._cards.get(card_id)
        return cards.nickname(card) if card else card_id

    def scenario_of(self, chat: Chat) -> str:
        """The card's scenario, names put in; "" for a card that is not on the panel."""
        card = self._cards.get(chat.card_id)
        name = self._names.get(chat.person_id)
        return cards.scene(card, user_name=name).scenario if card else ""

    def can_reply(self, chat: Chat) -> bool:
        """Whether the study still has the card and the candidate of this chat."""
        return chat.card_id in self._cards and chat.candidate in self._candidates

    def can_rewind(self, chat: Chat) -> bool:
        """Whether a message can be taken back: not from a service that keeps the chat itself."""
        return self.can_reply(chat) and self._candidates[chat.cell.candidate].sends == "full"

    def begin(self, card_id: str, person_id: str, candidate: str, number: int) -> Beginning:
        """The beginning of a person's chat with a card."""
        card = self._cards[card_id]
        dice = self._dice(Cell(person_id, card_id, candidate, number))
        opening = cards.opening(card, user_name=self._names.get(person_id), dice=dice)
        section = self._candidates[candidate]
        extra: dict[str, object] = {
            "candidate": candidate,
            "model": section.model,
            "card_sha256": card.digest(),
            "card_name": cards.nickname(card),
        }
        return Beginning(opening, card.language, extra)

    async def reply(self, chat: Chat, show: Show) -> Completion:
        """Ask for the reply to the chat's last message; `show` gets what is there so far.

        An empty reply is asked for again, as often as in a run; the last answer counts.

        Raises:
            ModelError: the model gave no answer.
        """
        seat = self._seat(chat)
        completion = await streamed(seat.model, self._request(chat, seat, 0), show)
        for attempt in range(1, ATTEMPTS_AT_A_MESSAGE):
            if completion.status == "refused" or completion.text.strip():
                break
            completion = await streamed(seat.model, self._request(chat, seat, attempt), show)
        return completion

    def _seat(self, chat: Chat) -> Seat:
        cell = chat.cell
        return candidate_seat(
            self._candidates[cell.candidate],
            self._models[cell.candidate],
            self._cards[cell.card_id],
            user_name=self._names.get(cell.user_id),
            prompt=self._prompts.get(cell.candidate),
            dice=self._dice(cell),
        )

    def _request(self, chat: Chat, seat: Seat, attempt: int) -> Request:
        opening, *said = chat.turns
        messages = [Message(speaker=turn.speaker, text=turn.text) for turn in said]
        turn = sum(one.speaker == "character" for one in said)
        # What was turned down here counts as attempts, so that another seed is drawn.
        turned_down = [o for o in chat.alternates if o.position == chat.turns[-1].position + 1]
        attempt += ATTEMPTS_AT_A_MESSAGE * len(turned_down)
        key = chat.cell.key
        sampling = seat.sampling
        if seat.seeded:
            sampling = replace(sampling, seed=seed_of(self._seed, key, "character", turn, attempt))
        return Request(
            messages=prompt_for(seat, "character", opening.text, messages),
            sampling=sampling,
            purpose=Purpose("candidate", key, turn, attempt=attempt),
            # A digest, so that a service learns nothing of the person from it.
            session=digest(["annotate", chat.id])[:32] if seat.gets_session else None,
            cache_prefix=1 if seat.system else 0,
        )

    def _dice(self, cell: Cell) -> cards.Dice:
        return cards.dice(self._cards[cell.card_id], seed=self._seed, cell=cell)

    def _face(self, card_id: str, card: Card, person_id: str) -> Face:
        name = self._names.get(person_id)
        scene = cards.scene(card, user_name=name)
        opening = cards.opening(card, user_name=name)
        return Face(card_id, scene.character, card.language, scene.scenario, opening)
