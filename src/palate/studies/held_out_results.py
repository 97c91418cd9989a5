"""results.json of the study on one's own ratings: the agreement, and all that it rests on.

The object of the CSV mode with more fields: who judged, with which prompts, what could not be
scored and why.
"""

from __future__ import annotations

from palate.studies.agreement_results import Agreement
from palate.studies.panel import Disagreement, PanelRule
from palate.types import Record, ScoreKind, Usage


class JudgeUsed(Record):
    """One judge: what it was asked and gave; `cost` None: a price is not known.

    `agreement` is its own macro agreement by condition, which a panel's members differ in; `calls`
    are those of all times that the study was taken up.
    """

    model: str
    revisions: tuple[str, ...]
    form: str
    score_kind: ScoreKind
    calls: int
    usage: Usage
    cost: float | None
    scored: int
    unscored: dict[str, int]  # kind of reason -> verdicts
    agreement: dict[str, float | None]


class Unscored(Record):
    """Of one condition: replies with a score, and those without one by the kind of reason."""

    scored: int
    unscored: dict[str, int]


class RaterUsed(Record):
    """One user of the study: what was judged, and what the judge was told of the person."""

    rated_replies: int
    judged_replies: int
    held_out_sessions: dict[str, str]  # session id -> SHA-256
    rubric: str | None  # its hash; None: no condition shows it
    examples: tuple[str, ...]  # "SESSION#TURN" of training sessions
    sessions_without_card: int


class HeldOutAgreement(Agreement):
    """The whole study on held-out ratings; `order` is that of the paper's table."""

    study: str
    order: tuple[str, ...]
    raters: dict[str, RaterUsed]
    judges: tuple[JudgeUsed, ...]
    panel: PanelRule | None
    disagreement: tuple[Disagreement, ...]
    counts: dict[str, Unscored]
    prompts: dict[str, dict[str, str]]  # condition -> prompt file -> SHA-256
    baseline: str | None  # which re-implementation, where the condition was asked for
    confidence_asked: bool
    draw_seed: int
    limit: int | None
    cautions: tuple[str, ...]
    made_at: str
