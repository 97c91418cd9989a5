"""Who sits where: the models of a study, opened, and what each of them is told (paper 3.2, 3.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

from palate import cards
from palate.config import CandidateSection, UserSection
from palate.judging.tracks import Judge, Rubrics, Subject
from palate.models.client import Model
from palate.models.spec import ModelSpec
from palate.prepare import Prepared, judge_form, sampling
from palate.prompts import Prompt
from palate.roleplay import Seat, Table
from palate.rubrics.shared import load_shared
from palate.simulators import Simulator, flags
from palate.types import Card, Cell, Trajectory

SESSION_HEADER = "X-Session-Id"


class OpensModels(Protocol):
    """Turns a model's specification into a model: the pool of endpoints, or a forecast."""

    def open(
        self,
        spec: str,
        *,
        headers: Mapping[str, str] | None = None,
        session_header: str | None = None,
        session_field: str | None = None,
        adapter: Path | None = None,
    ) -> Model:
        """The model that `spec` names; `adapter`: the file that the embedded one goes through."""
        ...

    def width(self) -> int:
        """How many calls the opened models take at once, at least 1."""
        ...


class _Shown(NamedTuple):
    """A card as a judge is shown it."""

    card: Card
    lore: tuple[str, ...]


class Seats:
    """The seats of a study's cells; models are opened and prompts written once."""

    def __init__(self, prepared: Prepared, models: OpensModels, *, run_id: str) -> None:
        content = prepared.study.content
        self._prepared = prepared
        self._run_id = run_id
        self._users = {user.id: user for user in content.users}
        self._candidates = {candidate.name: candidate for candidate in content.candidates}
        self._models = {
            **{
                ("user", user.id): open_simulator(prepared.simulators[user.id], user, models)
                for user in content.users
            },
            **{("candidate", c.name): open_candidate(c, models) for c in content.candidates},
        }
        self._open = models.open
        generic, session = load_shared("generic"), load_shared("session")
        self._rubrics = {
            user: Rubrics(rubric, generic, session) for user, rubric in prepared.rubrics.items()
        }
        self._with_dice = {id_ for id_, c in prepared.cards.items() if cards.draws_from_dice(c)}
        self._shown_cards: dict[tuple[str, str, cards.Dice], _Shown] = {}
        self._simulator_seats: dict[tuple[str, str, cards.Dice], Seat] = {}
        self._candidate_seats: dict[tuple[str, str, str, cards.Dice], Seat] = {}

    @cached_property
    def judge(self) -> Judge:
        """Opened when it is first asked for: a run that only plays needs no key of its."""
        section = self._prepared.study.content.judge
        return Judge(
            model=self._open(section.model, headers=section.headers),
            sampling=sampling("judge", section),
            form=judge_form(self._prepared.study),
        )

    def open_judge(self) -> None:
        """Open the judge before the first call, so that what is wrong with it is known by then."""
        _ = self.judge

    def table(self, cell: Cell) -> Table:
        """Everything that `cell` is played with."""
        card = self._prepared.cards[cell.card_id]
        protocol = self._prepared.study.content.protocol
        character = cards.nickname(card)

        def flags_of_user(text: str, own: Sequence[str]) -> tuple[str, ...]:
            return flags(text, own, character=character)

        return Table(
            cell=cell,
            opening=cards.opening(
                card, user_name=self._users[cell.user_id].name, dice=self._dice(cell)
            ),
            simulator=self._simulator_seat(cell),
            candidate=self._candidate_seat(cell),
            depth_limit=protocol.depth_limit,
            seed=protocol.seed,
            # A digest, so that a service learns neither user nor candidate from it.
            session=hashlib.sha256(f"{self._run_id}|{cell.key}".encode()).hexdigest()[:32],
            flags_of_user=flags_of_user,
            resample=protocol.resample,
        )

    def subject(self, trajectory: Trajectory) -> Subject:
        """A finished trajectory with all that a judge is shown of its card and its user."""
        cell = trajectory.cell
        dice = self._dice(cell)
        key = (cell.user_id, cell.card_id, dice)
        if key not in self._shown_cards:
            card, name = self._prepared.cards[cell.card_id], self._users[cell.user_id].name
            lore = cards.known_lore(card, user_name=name, dice=dice)
            self._shown_cards[key] = _Shown(with_names(card, name, dice), lore)
        shown = self._shown_cards[key]
        return Subject(trajectory, shown.card, self._rubrics[cell.user_id], shown.lore)

    def _dice(self, cell: Cell) -> cards.Dice:
        if cell.card_id not in self._with_dice:
            return cards.NO_DICE  # one for all cells: they share seats and prompts
        seed = self._prepared.study.content.protocol.seed
        return cards.dice(self._prepared.cards[cell.card_id], seed=seed, cell=cell)

    def _simulator_seat(self, cell: Cell) -> Seat:
        key = (cell.user_id, cell.card_id, self._dice(cell))
        if key not in self._simulator_seats:
            self._simulator_seats[key] = self._new_simulator_seat(cell)
        return self._simulator_seats[key]

    def _new_simulator_seat(self, cell: Cell) -> Seat:
        return simulator_seat(
            self._prepared.simulators[cell.user_id],
            self._models["user", cell.user_id],
            self._prepared.cards[cell.card_id],
            user_name=self._users[cell.user_id].name,
            dice=self._dice(cell),
        )

    def _candidate_seat(self, cell: Cell) -> Seat:
        key = (cell.candidate, cell.card_id, cell.user_id, self._dice(cell))
        if key not in self._candidate_seats:
            self._candidate_seats[key] = self._new_candidate_seat(cell)
        return self._candidate_seats[key]

    def _new_candidate_seat(self, cell: Cell) -> Seat:
        return candidate_seat(
            self._candidates[cell.candidate],
            self._models["candidate", cell.candidate],
            self._prepared.cards[cell.card_id],
            user_name=self._users[cell.user_id].name,
            prompt=self._prepared.own_prompts.get(cell.candidate),
            dice=self._dice(cell),
        )


def simulator_seat(
    simulator: Simulator,
    model: Model,
    card: Card,
    *,
    user_name: str | None,
    dice: cards.Dice = cards.NO_DICE,
) -> Seat:
    """The seat of a user's simulator that talks with the character of `card`."""
    return Seat(
        model=model,
        sampling=simulator.sampling,
        system=simulator.system(cards.scene(card, user_name=user_name, dice=dice)),
        seeded=_takes_seeds(simulator.model),
    )


def open_simulator(simulator: Simulator, user: UserSection, models: OpensModels) -> Model:
    """The model that plays `user`: with the headers of the study, through the person's adapter."""
    trained = simulator.trained
    embedded = ModelSpec.parse(simulator.model).provider == "local"
    return models.open(
        simulator.model,
        headers=user.simulator.headers,
        adapter=trained.gguf if trained is not None and embedded else None,
    )


def candidate_seat(
    candidate: CandidateSection,
    model: Model,
    card: Card,
    *,
    user_name: str | None,
    prompt: Prompt | None,
    dice: cards.Dice,
) -> Seat:
    """The seat of a candidate that plays `card`; `prompt` is its own prompt file, if it has one."""
    system, after, tells = "", None, None
    if candidate.prompt != "none":
        system, after = cards.candidate_prompt(card, user_name=user_name, prompt=prompt, dice=dice)
        tells = cards.tells(card, user_name=user_name, prompt=prompt, dice=dice)
    return Seat(
        model=model,
        sampling=sampling("candidate", candidate),
        system=system,
        after_history=after or "",
        seeded=_takes_seeds(candidate.model),
        gets_session=_session_header(candidate) is not None or candidate.session_field is not None,
        remembers=candidate.sends == "last",
        tells=tells,
    )


def open_candidate(candidate: CandidateSection, models: OpensModels) -> Model:
    """The candidate's model, with its headers and the place of its session id."""
    return models.open(
        candidate.model,
        headers=candidate.headers,
        session_header=_session_header(candidate),
        session_field=candidate.session_field,
    )


def _session_header(candidate: CandidateSection) -> str | None:
    """A service with a memory of its own is told a session id; where, unless said, in a header."""
    if candidate.session_header or candidate.session_field:
        return candidate.session_header
    return SESSION_HEADER if candidate.prompt == "none" else None


def _takes_seeds(model: str) -> bool:
    """Vendors differ in whether a seed is taken, ignored or refused; our own server takes it."""
    return ModelSpec.parse(model).provider == "local"


def with_names(card: Card, user_name: str | None, dice: cards.Dice) -> Card:
    """The card as a judge reads it: {{char}} and {{user}} filled in everywhere."""
    user = user_name or cards.NEUTRAL_NAME[card.language]
    texts = ("persona", "personality", "scenario", "opening", "example_dialogue", "system_prompt")
    filled = {
        name: cards.filled(
            getattr(card, name), char=cards.nickname(card), user=user, dice=dice, place=name
        )
        for name in texts
    }
    return card.model_copy(update={**filled, "name": cards.nickname(card)})
