"""`palate simulator chat`: a person plays the character and talks with a simulated user.

What the simulator is told, its seat and its decoding are those of a run. What it says is shown as
it is said, with its flags, and nothing is drawn anew unless the person asks for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from palate import cards
from palate.adapter_probe import probe_adapters
from palate.chat import read_user
from palate.chat_screen import Screen
from palate.config import Study, UserSection, load_study, simulator_part
from palate.disk import disk, write_atomically
from palate.errors import InputError, ModelError, PalateError
from palate.models.client import Completion, Purpose, Request
from palate.models.pool import Models
from palate.models.streaming import Show, streamed
from palate.prepare import simulator_folder, simulator_of, user_section
from palate.probed import warnings_of
from palate.roleplay import ATTEMPTS_AT_A_MESSAGE, EMPTY, Seat, prompt_for, seed_of
from palate.seats import open_simulator, simulator_seat
from palate.simulators import Simulator, flags
from palate.simulators.trained import read_trained
from palate.types import Card, Cell, Finish, Message, Session, SimulatorKind, Turn, digest

# The person at the keyboard has the candidate's place in the cell that seeds and scripts go by.
PERSON = "chat"
COMMANDS = "/retry, /save FILE and /quit"
_FINISH: dict[str, Finish] = {"length": "length", "refused": "refused"}
_ABOUT_FINISH = {"length": ("cut at the token limit",), "refused": ("blocked by the provider",)}


def chat(
    study: Path, *, user: str, card: str | None, condition: SimulatorKind | None, model: str | None
) -> None:
    """Let a person talk, as the character of a panel card, with a user's simulator.

    `condition` and `model` take the place of the study's for this chat.

    Raises:
        InputError: no such user or card, or the simulator cannot be had.
        ModelError: the last call brought nothing, and the person did not ask again.
    """
    loaded = load_study(study, keys=() if model else (simulator_part(user),))
    section = _section(loaded, user_section(loaded, user), condition, model)
    simulator = simulator_of(loaded, section)
    cell, chosen = _cell(loaded, user, card)
    with asyncio.Runner() as runner:
        models = Models(loaded.content.endpoints, study_dir=loaded.folder)
        try:
            talk = _talk(loaded, section, simulator, cell, chosen, models)
            probed = runner.run(probe_adapters({user: simulator}, (section,), models))
            _Desk(talk, Screen(), runner).hold(warnings_of(probed))
        finally:
            runner.run(models.close())


def _section(
    study: Study, user: UserSection, condition: SimulatorKind | None, model: str | None
) -> UserSection:
    """The study's user with what this chat changes."""
    written = user.simulator
    kind = condition or written.kind
    if model is None:
        model = written.model if kind == written.kind else _other_model(study, user, kind)
    return user.simulated_by(kind, model)


def _other_model(study: Study, user: UserSection, kind: SimulatorKind) -> str | None:
    """The model of another kind than the study's: an adapter and its base are two models."""
    if kind == "lora":
        return None  # the embedded base, or the error says what to name
    if user.simulator.kind != "lora":
        return user.simulator.model
    base = read_trained(simulator_folder(study, user), user_id=user.id).record.base.name
    if not base.startswith("local:"):
        raise InputError(
            f"{study.file}: user {user.id}: the study names the model of the adapter alone; name "
            f"its base as a server holds it, for example --model openai:{base}@"
            "http://127.0.0.1:8000/v1"
        )
    return base


def _cell(study: Study, user: str, card_id: str | None) -> tuple[Cell, Card]:
    """The cell of this chat, and its card: the one asked for, or the panel's first."""
    files = {path.stem: path for path in study.panel_files()}
    chosen = next(iter(files)) if card_id is None else card_id
    if chosen not in files:
        raise InputError(
            f"{study.file}: the panel has no card {chosen!r}; its cards are {', '.join(files)}"
        )
    return Cell(user, chosen, PERSON, 1), cards.read(files[chosen])


def _talk(
    study: Study, user: UserSection, simulator: Simulator, cell: Cell, card: Card, models: Models
) -> _Talk:
    seed = study.content.protocol.seed
    dice = cards.dice(card, seed=seed, cell=cell)
    model = open_simulator(simulator, user, models)
    return _Talk(
        cell=cell,
        seat=simulator_seat(simulator, model, card, user_name=user.name, dice=dice),
        seed=seed,
        simulator=simulator,
        user_name=user.name or user.id,
        character=cards.nickname(card),
        language=card.language,
        opening=cards.opening(card, user_name=user.name, dice=dice),
    )


@dataclass(slots=True)
class _Talk:
    """The conversation so far, and all that the simulator is asked with."""

    cell: Cell
    seat: Seat
    seed: int
    simulator: Simulator
    user_name: str
    character: str
    language: str
    opening: str
    messages: list[Message] = field(default_factory=list)
    attempt: int = 0  # calls for the message that is due
    left: bool = False

    @property
    def is_due(self) -> bool:
        """Whether the user is still to speak: nothing came of the last call."""
        return len(self.messages) % 2 == 0

    async def ask(self, show: Show) -> Completion:
        """The user's next message, asked for again while it is empty; raises `ModelError`."""
        completion = await self._call(show)
        for _ in range(ATTEMPTS_AT_A_MESSAGE - 1):
            if completion.status == "refused" or any(read_user(completion.text)):
                break
            completion = await self._call(show)
        return completion

    async def _call(self, show: Show) -> Completion:
        completion = await streamed(self.seat.model, self._request(), show)
        self.attempt += 1
        return completion

    def take(self, completion: Completion) -> tuple[str, ...]:
        """Add what the user said, if anything; what is odd about it."""
        act = read_user(completion.text)
        self.left = act.quit
        if not act.text:
            return () if act.quit else (EMPTY,)
        own = [message.text for message in self.messages if message.speaker == "user"]
        found = flags(act.text, own, character=self.character)
        finish = _FINISH.get(completion.status, "ok")
        self.messages.append(Message(speaker="user", text=act.text, finish=finish, flags=found))
        return found + _ABOUT_FINISH.get(finish, ())

    def answer(self, text: str) -> None:
        """Add the character's reply; the user's next message is due."""
        self.messages.append(Message(speaker="character", text=text))
        self.attempt = 0

    def take_back(self) -> None:
        """Forget the user's last message; it is due again, with another seed."""
        if self.messages and self.messages[-1].speaker == "user":
            self.messages.pop()
        self.left = False

    def session(self) -> Session:
        """The chat as a session, under a name that no history of the person's takes in."""
        opening = Message(speaker="character", text=self.opening)
        turns = tuple(Turn(speaker=m.speaker, text=m.text) for m in (opening, *self.messages))
        return Session(
            session_id=digest([self.cell.key, [turn.text for turn in turns]])[:16],
            user_id=f"simulator-of-{self.cell.user_id}",
            card_id=self.cell.card_id,
            language=self.language,
            ended_by="quit" if self.left else "unknown",
            turns=turns,
            extra={"simulator": self.simulator.record().model_dump(mode="json")},
        )

    def _request(self) -> Request:
        key, turn, sampling = self.cell.key, len(self.messages) // 2, self.seat.sampling
        if self.seat.seeded:
            sampling = replace(sampling, seed=seed_of(self.seed, key, "user", turn, self.attempt))
        return Request(
            messages=prompt_for(self.seat, "user", self.opening, self.messages),
            sampling=sampling,
            purpose=Purpose("simulator", key, turn, attempt=self.attempt),
            cache_prefix=1 if self.seat.system else 0,
        )


class _Desk:
    """The chat at the terminal. The event loop runs only while the model is asked, so that a person
    may think as long as they like, and Ctrl-C reaches them."""

    def __init__(self, talk: _Talk, screen: Screen, runner: asyncio.Runner) -> None:
        self._talk = talk
        self._screen = screen
        self._runner = runner
        self._file: Path | None = None
        self._failure: ModelError | None = None

    def hold(self, warnings: Sequence[str]) -> None:
        """Talk until the user leaves or the person ends it; raises the last call's failure."""
        talk, screen, simulator = self._talk, self._screen, self._talk.simulator
        for warning in warnings:
            screen.note(warning)
        screen.note(
            f"You play {talk.character}; {talk.user_name} is a simulator ({simulator.kind}, "
            f"{simulator.model}). A line that ends with \\ goes on; empty lines are not sent; "
            f"commands are {COMMANDS}."
        )
        screen.say(talk.character, talk.opening)
        try:
            self._ask()
            while not talk.left and (typed := screen.typed(talk.character)) is not None:
                if not self._do(typed):
                    break
        except KeyboardInterrupt:
            return screen.note("Ended.")
        if self._failure is not None:
            raise self._failure

    def _do(self, typed: str) -> bool:
        """A reply or a command; whether the chat goes on."""
        text = typed.strip()
        if typed.startswith("/"):
            return self._command(*text.partition(" ")[::2])
        if text and self._talk.is_due:
            self._screen.note(f"{self._talk.user_name} has said nothing; /retry asks again.")
        elif text:
            self._talk.answer(text)
            self._ask()
        return True

    def _command(self, command: str, rest: str) -> bool:
        if command == "/retry":
            self._talk.take_back()
            self._ask()
        elif command == "/save":
            self._save_as(rest.strip())
        elif command != "/quit":
            self._screen.note(
                f"There is no {command}; commands are {COMMANDS}. To say it, put a space before it."
            )
        return command != "/quit"

    def _ask(self) -> None:
        """Have the user speak; a call that fails is told, and may be made again."""
        talk, screen = self._talk, self._screen
        self._failure = None
        speech = screen.speech(talk.user_name)
        try:
            completion = self._runner.run(talk.ask(lambda text: speech.show(read_user(text).text)))
        except ModelError as error:
            speech.give_up()
            if not screen.has_person:
                raise
            self._failure = error
            return screen.note(f"{error} (/retry asks again)")
        speech.end(read_user(completion.text).text)
        screen.flagged(talk.take(completion))
        if talk.left:
            screen.user_left()
        self._keep()

    def _save_as(self, name: str) -> None:
        file = Path(name)
        if not (name and name.isprintable()) or os.path.lexists(file):
            why = f"{file} is there already" if name else "/save needs the name of a file"
            return self._screen.note(f"{why}; name a new one.")
        self._file = file
        self._keep()
        if self._file is not None:
            self._screen.note(f"The chat is kept in {file}, to its end.")

    def _keep(self) -> None:
        """Write the chat as it is now to the file that the person named, if they did."""
        if self._file is None:
            return
        try:
            with disk(self._file):
                write_atomically(self._file, self._talk.session().model_dump_json() + "\n")
        except PalateError as error:
            self._screen.note(str(error))
            self._file = None
