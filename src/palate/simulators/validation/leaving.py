"""[QUIT] against what the person did at the same contexts, and leaving by turn (paper 3.1).

A token cannot be indistinguishable from a human's silence, so leaving is evaluated apart from the
words. Only sessions that ended by the user's choice say where they left; in all others the user
stayed at every context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from palate.simulators.validation.contexts import Context
from palate.simulators.validation.estimates import (
    SHARE,
    missing,
    per_session,
    pooled,
    weighted_share,
    wilson,
)
from palate.simulators.validation.measures import AtTurn, Estimate, Leaving
from palate.simulators.validation.speaking import Utterance

NO_CHOSEN_END = "no held-out session ended by the user's choice"
NO_CONTEXT_LEFT = "no context where the person left was answered"
NEVER_LEFT = "the simulator never left"
NEVER_STAYED = "no context where the person stayed was answered"


class Decision(NamedTuple):
    """Who left at one context; `weight` is the number of contexts that it stands for."""

    session_id: str
    turn: int  # from 0
    person: bool
    simulator: bool
    weight: float = 1.0


def decisions(contexts: Sequence[Context], utterances: Sequence[Utterance]) -> list[Decision]:
    """The contexts at which the simulator said something or left; silence decides nothing."""
    answered = {(u.session_id, u.turn): u.left for u in utterances if not u.silent}
    return [
        Decision(c.session_id, c.turn, c.left, answered[c.session_id, c.turn], c.weight)
        for c in contexts
        if (c.session_id, c.turn) in answered
    ]


def leaving(made: Sequence[Decision], everywhere: Sequence[Context], *, seed: int) -> Leaving:
    """The simulator's decisions, of which there must be one at least, against the person's.

    Args:
        made: at the contexts that were asked.
        everywhere: all contexts of the held-out sessions: they give the person's curve.
    """
    chosen_end = any(context.left for context in everywhere)
    both = [(decision.person, decision.simulator) for decision in made]
    return Leaving(
        hits=both.count((True, True)),
        misses=both.count((True, False)),
        false=both.count((False, True)),
        stayed=both.count((False, False)),
        precision=_precision(made) if chosen_end else missing(NO_CHOSEN_END),
        recall=_recall(made) if chosen_end else missing(NO_CHOSEN_END),
        f1=_f1(made, seed) if chosen_end else missing(NO_CHOSEN_END),
        false_quit_rate=_share(
            [decision for decision in made if not decision.person], "simulator", NEVER_STAYED
        ),
        real_rate=sum(context.left for context in everywhere) / len(everywhere),
        by_turn=by_turn(made, everywhere),
    )


def by_turn(made: Sequence[Decision], everywhere: Sequence[Context]) -> tuple[AtTurn, ...]:
    """The hazard of leaving at each user turn, of the person and of the simulator.

    A session counts at the turns that it reached, whatever ended it, so sessions cut by a limit
    are not taken for chosen ends. The simulator is asked in real chats, which go on where it left:
    its curve is what it would do there, not how its own chats end.
    """
    curve = []
    for turn in sorted({context.turn for context in everywhere}):
        here = [context for context in everywhere if context.turn == turn]
        curve.append(
            AtTurn(
                turn=turn + 1,
                real=wilson(sum(context.left for context in here), len(here), sessions=len(here)),
                simulated=_share(
                    [decision for decision in made if decision.turn == turn],
                    "simulator",
                    "no context at this turn was answered",
                ),
            )
        )
    return tuple(curve)


def _recall(made: Sequence[Decision]) -> Estimate:
    """Of the contexts where the person left, the share where the simulator left."""
    return _share([d for d in made if d.person], "simulator", NO_CONTEXT_LEFT)


def _precision(made: Sequence[Decision]) -> Estimate:
    """Of the contexts where the simulator left, the share where the person left."""
    return _share([d for d in made if d.simulator], "person", NEVER_LEFT)


def _f1(made: Sequence[Decision], seed: int) -> Estimate:
    """2 hits / (2 hits + misses + false): the harmonic mean of precision and recall."""
    if not any(decision.person for decision in made):
        return missing(NO_CONTEXT_LEFT)
    names = [decision.session_id for decision in made]
    twice_hits = [2 * d.weight if d.person and d.simulator else 0.0 for d in made]
    all_three = [d.weight * (d.person + d.simulator) for d in made]
    tops = per_session(twice_hits, names)
    bottoms = per_session(all_three, names)
    estimate = pooled([t for t, _ in tops], [b for b, _ in bottoms], seed=seed, scale=SHARE)
    return estimate.model_copy(update={"n": len(made)})


def _share(made: Sequence[Decision], who: str, why_none: str) -> Estimate:
    """Share of the weight of `made` where `who` left."""
    if not made:
        return missing(why_none)
    holds = [decision.person if who == "person" else decision.simulator for decision in made]
    return weighted_share(
        holds, [d.weight for d in made], sessions=len({d.session_id for d in made})
    )
