"""A study made ready: cards, rubrics and simulators read and checked, before any call is made.

Everything that can be wrong with a study is found here: a run that begins has all that it needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from palate import cards
from palate.config import (
    EVERY_MODEL,
    Decoding,
    Study,
    UserSection,
    load_study,
)
from palate.errors import InputError, RubricError
from palate.histories import Split, split, write_split
from palate.histories import read as read_history
from palate.judging.transcript import Form
from palate.models.client import Role, Sampling
from palate.models.spec import LOCAL_MODELS, ModelSpec, Price, settings_for
from palate.prompts import Prompt, from_text
from palate.rubrics.freeze import read as read_rubric
from palate.rubrics.freeze import verify_evidence
from palate.simulators import Profile, Simulator, read_profile, same_adapters
from palate.simulators.trained import Trained, read_trained
from palate.types import Card, Cell, PersonalRubric, Session

DEFAULT_MAX_TOKENS: dict[Role, int] = {"simulator": 300, "candidate": 600, "judge": 2000}
PROFILE = "profile.json"  # in the folder of a simulator
FREE = Price(input=0, output=0, cached_input=0)


@dataclass(frozen=True)
class Prepared:
    """Everything that cells are played and judged with, apart from the models themselves.

    `rubrics`, `simulators` and `sessions` are by user (those without a history have no sessions);
    `own_prompts` are the prompt files of candidates, by candidate.
    """

    study: Study
    cards: Mapping[str, Card]
    rubrics: Mapping[str, PersonalRubric]
    simulators: Mapping[str, Simulator]
    sessions: Mapping[str, tuple[Session, ...]]
    own_prompts: Mapping[str, Prompt]

    @property
    def run_name(self) -> str:
        """The folder below runs/ that a run of this study is kept in, from the study's name."""
        return folder_name(self.study.content.study.name)

    def cells(self) -> Iterator[Cell]:
        """The plan (paper 3.2): candidates vary fastest, so that all their endpoints are busy."""
        content = self.study.content
        for repetition, card, user, candidate in itertools.product(
            range(1, content.protocol.repetitions + 1),
            self.cards,
            content.users,
            content.candidates,
        ):
            yield Cell(user.id, card, candidate.name, repetition)

    def warnings(self) -> Iterator[str]:
        """What flatters the scores and must be said beside them (paper 3.1)."""
        for user, sessions in self.sessions.items():
            learned = {
                "rubric": self.rubrics[user].provenance.training_sessions,
                "simulator": self.simulators[user].record().training_sessions,
            }
            for what, learned_from in learned.items():
                panel = sorted(
                    {s.card_id for s in sessions if s.session_id in learned_from} & set(self.cards)
                )
                if panel:
                    yield (
                        f"The {what} of {user} was built from sessions on panel cards "
                        f"({', '.join(panel)}), which flatters the scores on them."
                    )


def folder_name(study: str) -> str:
    """A study's name as a folder can have it."""
    name = "".join(c if c.isalnum() or c in "-_ " else "-" for c in study)
    return name.strip(" -")[:60] or "run"


def prepare(path: Path, *, keys: Collection[str] = EVERY_MODEL) -> Prepared:
    """Read a study and all that it names, and check it; no model is called.

    `keys` as in `palate.config.load_study`.

    Raises:
        InputError: anything that the run would need is missing or wrong.
    """
    study = load_study(path, keys=keys)
    sessions = {
        user.id: read_history(study.path(user.history), user_id=user.id)
        for user in study.content.users
        if user.history is not None
    }
    rubrics = {user.id: rubric_of(study, user) for user in study.content.users}
    for user_id, history in sessions.items():
        verify_evidence(rubrics[user_id], history)
    simulators = {user.id: simulator_of(study, user) for user in study.content.users}
    same = same_adapters(simulators)
    if same is not None:
        raise InputError(f"{study.file}: {same}")
    prepared = Prepared(
        study=study,
        cards={card.stem: cards.read(card) for card in study.panel_files()},
        rubrics=rubrics,
        simulators=simulators,
        sessions=sessions,
        own_prompts=dict(own_prompts(study)),
    )
    for card in prepared.cards.values():
        cards.opening(card)
        cards.known_lore(card)
        for prompt in prepared.own_prompts.values():
            cards.candidate_prompt(card, prompt=prompt)
    return prepared


def sampling(role: Role, decoding: Decoding) -> Sampling:
    """A role's decoding with its defaults; a judge's temperature is 0 unless set."""
    cold = 0.0 if role == "judge" else None
    return Sampling(
        temperature=cold if decoding.temperature is None else decoding.temperature,
        top_p=decoding.top_p,
        max_tokens=decoding.max_tokens or DEFAULT_MAX_TOKENS[role],
        stop=decoding.stop,
        body=dict(decoding.body),
    )


def prices(study: Study) -> dict[str, Price]:
    """Prices by model as written: those of the study; what runs on this machine is free."""
    free = {
        named.model: FREE
        for named in study.content.models()
        if ModelSpec.parse(named.model).provider in ("local", "scripted")
    }
    if any(u.simulator.kind == "lora" and not u.simulator.model for u in study.content.users):
        free |= {f"local:{name}": FREE for name in LOCAL_MODELS}
    return {**free, **study.content.prices}


def judge_form(study: Study) -> Form:
    """The form of verdicts: as the study says, else digits for the embedded model, else json."""
    judge = study.content.judge
    if judge.form != "auto":
        return judge.form
    return "digits" if ModelSpec.parse(judge.model).provider == "local" else "json"


def user_section(study: Study, user: str) -> UserSection:
    """The study's entry for `user`.

    Raises:
        InputError: there is none.
    """
    section = next((u for u in study.content.users if u.id == user), None)
    if section is None:
        known = ", ".join(u.id for u in study.content.users)
        raise InputError(f"{study.file} has no user {user!r}; its users are {known}")
    return section


def split_of(study: Study, user: UserSection) -> tuple[tuple[Session, ...], Split]:
    """A user's sessions and their split, which is recorded below splits/ (paper 3.1).

    Raises:
        InputError: no history, too few sessions, or the record is of another history or seed.
    """
    if user.history is None:
        raise InputError(
            f'{study.file}: user {user.id} has no history; add history = "histories/….jsonl"'
        )
    sessions = read_history(study.path(user.history), user_id=user.id)
    parts = split(
        sessions,
        seed=study.content.protocol.seed,
        panel_cards=tuple(path.stem for path in study.panel_files()),
    )
    write_split(parts, split_file(study, user.id))
    return sessions, parts


def split_file(study: Study, user: str) -> Path:
    """Where a user's split is recorded."""
    return study.folder / "splits" / f"{user}.json"


def simulator_folder(study: Study, user: UserSection) -> Path:
    """Where a user's simulator is kept: as the study says, else simulators/USER."""
    return study.path(user.simulator.path or f"simulators/{user.id}")


def rubric_of(study: Study, user: UserSection) -> PersonalRubric:
    """A user's frozen rubric, verified; raises `RubricError` for one that is not theirs."""
    rubric = read_rubric(study.path(user.rubric))
    if rubric.user_id != user.id:
        raise RubricError(
            f"{study.path(user.rubric)} is the rubric of {rubric.user_id!r}, but the study gives "
            f"it to user {user.id!r}; a rubric serves the person it was made from"
        )
    return rubric


def simulator_of(study: Study, user: UserSection) -> Simulator:
    """A user's simulator as the study describes it; raises `InputError` for one not to be had."""
    section = user.simulator
    if section.kind == "lora":
        return _trained_simulator(study, user)
    if section.model is None:
        raise InputError(f"{study.file}: user {user.id}: simulator.model is missing; add it")
    profile: Profile | None = None
    if section.kind == "profile":
        profile = read_profile(simulator_folder(study, user) / PROFILE)
    return Simulator(
        user_id=user.id,
        kind=section.kind,
        model=section.model,
        sampling=sampling("simulator", section),
        profile=profile,
    )


def _trained_simulator(study: Study, user: UserSection) -> Simulator:
    section, place = user.simulator, f"{study.file}: user {user.id}"
    trained = read_trained(simulator_folder(study, user), user_id=user.id)
    base = trained.record.base.name
    model = section.model or (base if base.startswith("local:") else None)
    if model is None:
        raise InputError(
            f"{place}: simulator.model is missing: the adapter belongs to {base}, which a server "
            f"must hold; start one with `palate simulator serve {study.folder}` and name the "
            'adapter as it says, for example model = "openai:u1@http://127.0.0.1:8000/v1"'
        )
    try:
        _check_server(study, ModelSpec.parse(model), trained)
    except InputError as error:
        raise InputError(f"{place}: simulator.model: {error}") from None
    return Simulator(
        user_id=user.id,
        kind="lora",
        model=model,
        sampling=sampling("simulator", section),
        trained=trained,
    )


def _check_server(study: Study, spec: ModelSpec, trained: Trained) -> None:
    """Refuse a model that cannot hold the adapter, or that is told another prompt form."""
    base, form = trained.record.base, trained.record.prompt_form
    if spec.provider == "scripted":  # plays any part of a rehearsal
        return
    if spec.provider not in ("local", "openai"):
        raise InputError(
            f"{spec} cannot hold an adapter; name an OpenAI-compatible server that does"
        )
    if spec.provider == "local" and str(spec) != base.name:
        raise InputError(
            f"{spec} is another base than the adapter's, {base.name} at {base.revision}; an "
            "adapter means nothing on another base: leave model out, or train again"
        )
    if spec.provider == "local" and trained.gguf is None:
        raise InputError(f"{spec} cannot hold this adapter: {trained.record.gguf}; train it again")
    settings = settings_for(spec, study.content.endpoints)
    told = (settings.system_role, settings.first_role, settings.max_system)
    if told not in ((True, form.first_role, None), (True, form.first_role, 1)):
        raise InputError(
            f'the adapter was trained with system messages and first_role = "{form.first_role}": '
            f'set just these in [endpoints."{spec.endpoint}"]'
        )


def own_prompts(study: Study) -> Iterator[tuple[str, Prompt]]:
    """The prompt files of candidates, by candidate; raises `InputError` for one not to be read."""
    for candidate in study.content.candidates:
        if candidate.prompt in ("card", "none"):
            continue
        path = study.path(candidate.prompt)
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{study.file}: candidates.{candidate.name}.prompt: {path} cannot be read "
                f'({error}); write it, or use "card" or "none"'
            ) from None
        yield candidate.name, from_text(candidate.prompt, text)
