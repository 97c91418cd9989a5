"""What the study on one's own held-out ratings is made with: raters, judges, and its price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from palate import cards
from palate.config import Study, UserSection
from palate.errors import InputError
from palate.histories import Split
from palate.judging.asking import Judge
from palate.judging.subject import Rubrics
from palate.judging.transcript import Form
from palate.language import tokens
from palate.models.spec import ModelSpec, Price
from palate.prepare import FREE, prices, rubric_of, sampling, split_of
from palate.rubrics.freeze import refuse_if_built_from, verify_evidence
from palate.rubrics.shared import load_shared
from palate.scenes import Scenes, scenes_of
from palate.seats import OpensModels, with_names
from palate.studies.agreement_rows import held_out_labels
from palate.studies.conditions import Condition
from palate.studies.held_out import Rater, ShownCard, drawn_labels, held_out_replies
from palate.studies.judging_held_out import Job, key_of
from palate.studies.panel import PanelRule
from palate.studies.rated_examples import DEFAULT_EXAMPLES, DrawnExample, rated_examples
from palate.types import Card, PersonalRubric, Session, Usage
from palate.validation_forecast import AROUND_MESSAGE, Asks

ANSWER_TOKENS_A_SCORE = 30  # of a verdict in words, its reason included
ANSWER_TOKENS = 60


@dataclass(frozen=True)
class StudyOptions:
    """What `palate study agreement STUDY` was asked for.

    `limit` is of replies a user; `examples` is K; `judges` empty: the study's own. `threshold` is
    the confidence from which on a score counts as confident.
    """

    conditions: tuple[Condition, ...]
    users: tuple[str, ...] = ()
    limit: int | None = None
    examples: int = DEFAULT_EXAMPLES
    judges: tuple[str, ...] = ()
    panel: PanelRule = "mean"
    confidence: bool = False
    threshold: float | None = None
    seed: int = 0
    resamples: int = 2000
    max_concurrency: int | None = None
    out: Path | None = None
    batch: Path | None = None  # a folder of batch files that judges are asked through


def raters_of(study: Study, options: StudyOptions) -> tuple[Rater, ...]:
    """The users whose held-out replies are judged: those named, else all who have a history.

    Raises:
        InputError: a user is not known or has no history, a rubric does not hold or was built from
            what it would score, or nothing held out was rated.
    """
    known = {user.id: user for user in study.content.users}
    for name in options.users:
        if name not in known:
            raise InputError(f"{study.file} has no user {name!r}; its users are {', '.join(known)}")
    chosen = options.users or tuple(id_ for id_, user in known.items() if user.history is not None)
    if not chosen:
        raise InputError(
            f"{study.file}: no user has a history, and agreement is measured on one's own ratings; "
            'add history = "histories/….jsonl"'
        )
    raters = tuple(_rater(study, known[name], options) for name in dict.fromkeys(chosen))
    if not any(rater.replies for rater in raters):
        raise InputError(
            f"{study.file}: no held-out reply of {', '.join(chosen)} was rated; agreement needs "
            "ratings in held-out sessions"
        )
    return raters


def _rater(study: Study, user: UserSection, options: StudyOptions) -> Rater:
    sessions, parts = split_of(study, user)
    seed = study.content.protocol.seed
    rubric = None
    if any(condition.rubric for condition in options.conditions):
        rubric = _rubric(study, user, sessions, parts)
    examples: tuple[DrawnExample, ...] = ()
    if any(condition.examples for condition in options.conditions):
        examples = rated_examples(parts.training, count=options.examples, seed=seed)
        if not examples:
            raise InputError(
                f"user {user.id} rated no reply of a training session, which the conditions with "
                "examples need; leave them out with --conditions"
            )
    cards_shown = _Cards(study, user, sessions)
    labels = drawn_labels(parts, limit=options.limit, seed=seed)
    rubrics = Rubrics(rubric, load_shared("generic"), load_shared("session"))
    replies = held_out_replies(parts, labels, rubrics, cards_shown)
    return Rater(
        user=user.id,
        replies=replies,
        labels=labels,
        rated=sum(1 for _ in held_out_labels(parts)),
        sessions={item.session.session_id: item.sha256 for item in parts.held_out},
        rubric=rubric,
        examples=tuple(one.example for one in examples),
        sources=tuple(one.source for one in examples),
        neutral=cards_shown.neutral,
    )


def _rubric(
    study: Study, user: UserSection, sessions: Sequence[Session], parts: Split
) -> PersonalRubric:
    """The frozen rubric, checked against the history; it must not have seen what it scores."""
    rubric = rubric_of(study, user)
    verify_evidence(rubric, sessions)
    held_out = {item.session.session_id for item in parts.held_out}
    # The full sessions: what the split gives out has lost its ratings, and so its digest.
    refuse_if_built_from(rubric, [one for one in sessions if one.session_id in held_out])
    return rubric


class _Cards:
    """The card of each session as a judge is shown it; made once a session."""

    def __init__(self, study: Study, user: UserSection, sessions: Sequence[Session]) -> None:
        self._scenes: Scenes = scenes_of(study, user)
        self._name = user.name
        self._originals = {session.session_id: session for session in sessions}
        self._shown: dict[str, ShownCard] = {}

    def __call__(self, session: Session) -> ShownCard:
        if session.session_id not in self._shown:
            self._shown[session.session_id] = self._made(session)
        return self._shown[session.session_id]

    @property
    def neutral(self) -> int:
        """How many sessions have no card here."""
        return sum(not shown.known for shown in self._shown.values())

    def _made(self, session: Session) -> ShownCard:
        card = self._scenes.card(session)
        if card is not None:
            lore = cards.known_lore(card, user_name=self._name)
            return ShownCard(with_names(card, self._name, cards.NO_DICE), lore)
        # As the history has it: the split leaves out what importers keep beside the turns.
        scene = self._scenes(self._originals[session.session_id])
        neutral = Card(id=session.card_id, language=scene.language, name=scene.character)
        return ShownCard(neutral, known=False)


def open_judges(study: Study, options: StudyOptions, models: OpensModels) -> tuple[Judge, ...]:
    """The judges, all in one form: kinds of scores are never mixed in one table.

    Raises:
        InputError: two are the same, they would answer in different forms, or one cannot be set up.
    """
    names = options.judges or (study.content.judge.model,)
    doubled = [name for n, name in enumerate(names) if name in names[:n]]
    if doubled:
        raise InputError(f"--judge names {doubled[0]} twice; a panel has different judges")
    judges = tuple(_judge(study, name, models) for name in names)
    forms = {judge.form for judge in judges}
    if len(forms) > 1:
        told = ", ".join(f"{judge.model.name} in {judge.form}" for judge in judges)
        raise InputError(
            f"the judges would answer in different forms ({told}), which cannot be averaged; set "
            'form = "json" or "digits" under [judge], or name judges of one kind'
        )
    return judges


def _judge(study: Study, name: str, models: OpensModels) -> Judge:
    """A judge with the study's decoding; its headers and body are for its own endpoint alone."""
    section = study.content.judge
    own = name == section.model
    form: Form
    if section.form == "auto":
        form = "digits" if ModelSpec.parse(name).provider == "local" else "json"
    else:
        form = section.form
    decoding = section if own else section.model_copy(update={"body": {}, "headers": {}})
    model = models.open(name, headers=decoding.headers)
    return Judge(model=model, form=form, sampling=sampling("judge", decoding))


def prices_of(study: Study, judges: Sequence[Judge]) -> dict[str, Price]:
    """Prices by model; a judge on this machine is free."""
    here = {
        judge.model.name: FREE
        for judge in judges
        if ModelSpec.parse(judge.model.name).provider in ("local", "scripted")
    }
    return {**here, **prices(study)}


def forecast(
    wanted: Sequence[Job],
    answered: Callable[[str], bool],
    known_prices: Mapping[str, Price],
    *,
    confidence: bool,
) -> tuple[Asks, ...]:
    """Calls and tokens by judge of what was not `answered` yet, which is told by its key."""
    calls: dict[str, int] = defaultdict(int)
    usage: dict[str, Usage] = defaultdict(Usage)
    for job in wanted:
        name = job.judge.model.name
        calls[name] += 0
        for shown, answer in _sizes(job, answered, confidence=confidence):
            calls[name] += 1
            usage[name] += Usage(shown, answer)
    return tuple(
        Asks("judge", name, count, usage[name], _cost(name, usage[name], known_prices))
        for name, count in calls.items()
    )


def _sizes(
    job: Job, answered: Callable[[str], bool], *, confidence: bool
) -> Iterator[tuple[int, int]]:
    """Tokens of the prompt and of the answer, if the job takes a call."""
    if not job.has_question:
        return
    asked = job.question(confidence=confidence)
    if answered(key_of(job, asked)):
        return
    shown = tokens(asked.system) + tokens(asked.user) + 2 * AROUND_MESSAGE
    scores = len(asked.asked) + asked.confidence
    words = ANSWER_TOKENS + ANSWER_TOKENS_A_SCORE * scores
    yield shown, scores if job.judge.form == "digits" else words


def _cost(name: str, usage: Usage, known: Mapping[str, Price]) -> float | None:
    return known[name].cost(usage) if name in known else None
