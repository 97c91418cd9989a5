"""What a judge check is made with: the replies, the judge's second seat, and the price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palate import cards
from palate.config import Study, UserSection
from palate.errors import InputError
from palate.judging.asking import Judge
from palate.judging.subject import Rubrics
from palate.language import tokens
from palate.models.spec import Price
from palate.prepare import rubric_of, split_of
from palate.rubrics.shared import load_shared
from palate.scenes import scenes_of
from palate.seats import with_names
from palate.simulators.validation import asking as pair_asking
from palate.studies.judge_check import Asking
from palate.studies.judge_items import CheckItem, check_items
from palate.studies.judge_pairs import OrderPair, questions
from palate.types import Card, Session, Usage
from palate.validation_forecast import AROUND_MESSAGE, Asks

ANSWER_TOKENS = 60  # of a verdict in words, and so many more for each score
ANSWER_TOKENS_A_SCORE = 30
PAIR_TOKENS = 60


@dataclass(frozen=True)
class CheckOptions:
    """What `palate judge check` was asked for; `judge` None: the study's own.

    `gate` is the largest mean move that passes. With `batch` the judge is asked through files of
    that folder.
    """

    judge: str | None = None
    items: int = 20
    seed: int = 0
    gate: float | None = None
    max_concurrency: int | None = None
    batch: Path | None = None
    out: Path | None = None


def drawn_items(study: Study, options: CheckOptions) -> tuple[CheckItem, ...]:
    """Replies of all users with a history, as many of each as can be.

    Raises:
        InputError: nobody has a history, or no reply of a training session has a reaction.
    """
    users = [user for user in study.content.users if user.history is not None]
    if not users:
        raise InputError(
            f"{study.file}: no user has a history, and a judge is checked on real replies; add "
            "history = …, or check it on the sample: `palate init DIR --sample en`"
        )
    share = -(-options.items // len(users))
    drawn = [_items_of(study, user, share, options.seed) for user in users]
    items = tuple(item for own in drawn for item in own)[: options.items]
    if not items:
        raise InputError(f"{study.file}: no reply of a training session has a reaction")
    return items


def _items_of(study: Study, user: UserSection, count: int, seed: int) -> tuple[CheckItem, ...]:
    _, parts = split_of(study, user)
    scenes = scenes_of(study, user)
    rubrics = Rubrics(rubric_of(study, user), load_shared("generic"), load_shared("session"))

    def card_of(session: Session) -> Card:
        card = scenes.card(session)
        if card is not None:
            return with_names(card, user.name, cards.NO_DICE)
        scene = scenes(session)
        return Card(id=session.card_id, language=scene.language, name=scene.character)

    return check_items(parts.training, rubrics, card_of, scenes, count=count, seed=seed)


def forecast(
    wanted: Sequence[Asking],
    compared: Sequence[OrderPair],
    judge: Judge,
    prices: Mapping[str, Price],
) -> Asks:
    """Calls and tokens of a check, counted on the real prompts."""
    usage, calls = Usage(), 0
    digits = judge.form == "digits"
    for asking in wanted:
        question = asking.question(judge)
        shown = tokens(question.system) + tokens(question.user) + 2 * AROUND_MESSAGE
        scores = len(question.asked)
        words = ANSWER_TOKENS + ANSWER_TOKENS_A_SCORE * scores
        usage, calls = usage + Usage(shown, scores if digits else words), calls + 1
    for pair in compared:
        for text in questions(pair, pair_judge(judge)):
            shown = tokens(text) + 2 * AROUND_MESSAGE
            usage, calls = usage + Usage(shown, 1 if digits else PAIR_TOKENS), calls + 1
    name = judge.model.name
    cost = prices[name].cost(usage) if name in prices else None
    return Asks("judge", name, calls, usage, cost)


def pair_judge(judge: Judge) -> pair_asking.Judge:
    """The same judge in the seat of one that compares two messages."""
    return pair_asking.Judge(judge.model, form=judge.form, sampling=judge.sampling)
