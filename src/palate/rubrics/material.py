"""What one induction reads: contrasts in chunks, and trials, from training sessions alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from palate import language
from palate.errors import InputError
from palate.fitting import estimated_tokens
from palate.language import Language
from palate.rubrics.asking import AROUND_TOKENS, Query, halves
from palate.rubrics.citations import Citations
from palate.rubrics.contrasts import Contrast, contrasts
from palate.rubrics.proposing import proposing_query
from palate.rubrics.rated import Rated, one_user, rated_replies
from palate.rubrics.rules import InductionSettings
from palate.rubrics.showing import Room, chunks, contrast_text, room_for
from palate.rubrics.slices import Slices, sliced
from palate.rubrics.testing_rules import Trial, trials
from palate.types import TrainingSession

# Less would show so little of each reply that nothing can be told from it.
MIN_TOKENS = 700


@dataclass(frozen=True)
class Chunk:
    """Contrasts that one call reads, and the turns that its answer may cite."""

    query: Query
    shown: frozenset[str]


@dataclass(frozen=True)
class Material:
    """One user's training sessions made ready; `room` is what is shown of each text."""

    user_id: str
    tongue: Language
    names: Citations
    replies: tuple[Rated, ...]
    slices: Slices
    contrasts: tuple[Contrast, ...]
    chunks: tuple[Chunk, ...]
    trials: tuple[Trial, ...]
    room: Room


def material(
    training: Sequence[TrainingSession],
    settings: InductionSettings,
    *,
    branches: Collection[Collection[str]],
    answer_tokens: int,
) -> Material:
    """Slices, contrasts and trials of these sessions; no call is made.

    Args:
        branches: ids of sessions that are branches of one chat.
        answer_tokens: what the model may write in one call.

    Raises:
        TypeError: something other than training sessions.
        InputError: no sessions, several users, too little that was rated, too small a context.
    """
    user_id = one_user(training)
    sessions = [item.session for item in training]
    tongue = language.of_sessions(sessions)
    slices = sliced(training, branches, seed=settings.seed)
    names = Citations(session.session_id for session in sessions)
    found = contrasts(rated_replies(slices.proposing), most=settings.contrasts)
    budget = _tokens(user_id, tongue, settings, answer_tokens)
    room = room_for(budget)
    return Material(
        user_id=user_id,
        tongue=tongue,
        names=names,
        replies=rated_replies(training),
        slices=slices,
        contrasts=found,
        chunks=_chunks(found, names, room, tongue, budget),
        trials=trials(rated_replies(slices.validation), most=settings.trials, seed=settings.seed),
        room=room,
    )


def _tokens(user_id: str, tongue: Language, settings: InductionSettings, answer_tokens: int) -> int:
    """Tokens that a call has for its part of the material."""
    sheet = halves("rubric_propose", tongue)
    around = sum(estimated_tokens(half.text) for half in (sheet.system, sheet.user))
    around += answer_tokens + AROUND_TOKENS
    if settings.context_tokens - around < MIN_TOKENS:
        raise InputError(
            f"the rubric of {user_id} cannot be induced in a context of {settings.context_tokens} "
            f"tokens; at least {around + MIN_TOKENS} are needed: use another model, or lower "
            "max_tokens"
        )
    return settings.context_tokens - around


def _chunks(
    found: Sequence[Contrast],
    names: Citations,
    room: Room,
    tongue: Language,
    budget: int,
) -> tuple[Chunk, ...]:
    texts = [contrast_text(pair, n, names, room, tongue) for n, pair in enumerate(found, 1)]
    return tuple(
        Chunk(
            proposing_query([texts[n] for n in positions], tongue),
            frozenset(turn for n in positions for turn in _turns(found[n])),
        )
        for positions in chunks(texts, budget)
    )


def _turns(pair: Contrast) -> list[str]:
    return [turn for reply in pair for turn in (reply.citation, reply.reaction) if turn]
