"""What a simulator is told of the card of a recorded session: training's side of a scene.

A run knows the cards of its panel; a history is older than the panel and was held with any card.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from palate import cards, language
from palate.cards import library
from palate.cards.places import CARDS, files_in
from palate.config import Study, UserSection
from palate.types import Card, Scene, Session

# A character that has no card here is still someone, whose name is not known.
NO_CHARACTER = {"en": "the character", "zh": "角色"}


class Scenes:
    """Session -> its scene: name and scenario of its card (docs: method, 2).

    Cards are sought by id on the study's panel, in its cards folder and in the library, in this
    order. A session whose card is nowhere gets a neutral scene without a scenario; `neutral` keeps
    its id, so that training can say how many there are.
    """

    def __init__(self, study: Study, user: UserSection) -> None:
        self._user_name = user.name
        self._places = _places(study)
        self._known: dict[str, Card | None] = {}
        self._neutral: dict[str, None] = {}

    def __call__(self, session: Session) -> Scene:
        """The scene of a session.

        Raises:
            InputError: the card of the session is there but cannot be read.
        """
        card = self.card(session)
        if card is not None:
            return cards.scene(card, user_name=self._user_name)
        self._neutral[session.session_id] = None
        return _neutral(session, self._user_name)

    def card(self, session: Session) -> Card | None:
        """The session's card as its author wrote it, or None where it is nowhere.

        Raises:
            InputError: it is there but cannot be read.
        """
        return self._card(session.card_id)

    @property
    def neutral(self) -> tuple[str, ...]:
        """Ids of the sessions that got a neutral scene, in the order they came."""
        return tuple(self._neutral)

    def _card(self, card_id: str) -> Card | None:
        if card_id not in self._known:
            path = self._places.get(card_id)
            self._known[card_id] = None if path is None else cards.read(path)
        return self._known[card_id]


def scenes_of(study: Study, user: UserSection) -> Scenes:
    """The scenes of one user's sessions; reads a card only when a session needs it.

    Raises:
        InputError: the study's panel or its cards folder cannot be listed.
    """
    return Scenes(study, user)


def _places(study: Study) -> dict[str, Path]:
    """Card files by id; where two places have the same id, the first keeps it."""
    found: dict[str, Path] = {}
    for paths in (study.panel_files(), _own_cards(study), library.paths()):
        for path in paths:
            found.setdefault(path.stem, path)
    return found


def _own_cards(study: Study) -> Sequence[Path]:
    folder = study.folder / CARDS
    return files_in(folder) if folder.is_dir() else ()


def _neutral(session: Session, user_name: str | None) -> Scene:
    text = "\n".join(turn.text for turn in session.turns)
    tongue = language.named(session.language) or language.of_text(text)
    return Scene(
        language=tongue,
        character=_character(session) or NO_CHARACTER[tongue],
        scenario="",
        user=user_name or cards.NEUTRAL_NAME[tongue],
    )


def _character(session: Session) -> str:
    """The character's name as the history has it; "" where it has none, or several."""
    named = session.extra.get("character") or session.extra.get("character_name")
    names = {named} if isinstance(named, str) else set(_names_of_turns(session))
    return names.pop().strip() if len(names) == 1 else ""


def _names_of_turns(session: Session) -> Iterator[str]:
    """Names that importers keep beside turns: those of the characters of a group chat."""
    beside = session.extra.get("turns")
    for number, turn in enumerate(session.turns):
        about = beside.get(str(number)) if isinstance(beside, dict) else None
        name = about.get("name") if isinstance(about, dict) else None
        if turn.speaker == "character" and isinstance(name, str) and name.strip():
            yield name.strip()
