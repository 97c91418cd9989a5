"""Personal rubrics: frozen once, then read and verified before every use (paper 3.3).

A frozen rubric carries the SHA-256 of its own canonical JSON (all fields but `sha256`) and the
digests of the training sessions that it was made from. A rubric that was changed, that cites
turns which do not exist, or that would score a session which built it, is refused.

    freeze      draft -> frozen rubric
    read        file  -> verified rubric
    verify_evidence, refuse_if_built_from     checks against a user's sessions
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from palate.errors import RubricError
from palate.prompts.rubric_text import Language, personal_text
from palate.types import PersonalRubric, Session, digest

SCHEMA = "palate.rubric/1"
ANCHORS = ("1", "2", "3", "4", "5")
_CITATION = re.compile(r"(?P<session>.+)#(?P<turn>0|[1-9][0-9]*)", re.DOTALL)


class Citation(NamedTuple):
    """One turn of a training session: "SESSION#TURN", TURN being its index in `turns` from 0."""

    session: str
    turn: int


def freeze(draft: Mapping[str, object]) -> PersonalRubric:
    """The draft as a frozen rubric: checked, with its SHA-256 filled in (one given is replaced).

    Raises:
        RubricError: the draft breaks the schema or one of its rules.
    """
    unsigned = {key: value for key, value in draft.items() if key != "sha256"}
    rubric = _validated({**unsigned, "sha256": ""}, "the draft")
    return rubric.model_copy(update={"sha256": _signature(_as_dict(rubric))})


def read(path: Path) -> PersonalRubric:
    """The rubric in the file `path`, with its schema and hash verified.

    Raises:
        RubricError: the file is missing, malformed, or was changed after it was frozen.
    """
    content = _load(path)
    rubric = _validated(content, str(path))
    if rubric.sha256 != _signature(content):
        raise RubricError(
            f"{path} was changed after it was frozen (its sha256 does not fit its content);"
            " restore it, or freeze it anew as another rubric"
        )
    return rubric


def as_json(rubric: PersonalRubric) -> str:
    """The file content of a frozen rubric."""
    return json.dumps(_as_dict(rubric), ensure_ascii=False, indent=2) + "\n"


def render(rubric: PersonalRubric, language: Language, *, cited: bool = False) -> str:
    """The rubric as text, for a judge or (`cited`: with the turns behind each rule) a reader."""
    return personal_text(rubric, language, cited=cited)


def verify_evidence(rubric: PersonalRubric, sessions: Iterable[Session]) -> None:
    """Check every cited turn against the user's sessions.

    Raises:
        RubricError: a cited session is not among `sessions`, belongs to someone else or changed
            since, or has no such turn.
    """
    by_id = {session.session_id: session for session in sessions}
    for session_id, sha256 in rubric.provenance.training_sessions.items():
        session = by_id.get(session_id)
        if session is not None and session.digest() != sha256:
            raise RubricError(
                f"rubric of {rubric.user_id}: session {session_id!r} differs from the one that"
                " the rubric was made from; restore the history or induce the rubric anew"
            )
    for name, evidence in _cited(rubric):
        for text in evidence:
            _check_turn(rubric, name, _citation(text, f"rubric of {rubric.user_id}"), by_id)


def refuse_if_built_from(rubric: PersonalRubric, sessions: Iterable[Session]) -> None:
    """Refuse to score sessions that the rubric was made from: that would flatter it (paper 3.1).

    Raises:
        RubricError: a session is one of the rubric's training sessions, by id or by content.
    """
    ids = set(rubric.provenance.training_sessions)
    digests = set(rubric.provenance.training_sessions.values())
    for session in sessions:
        if session.session_id in ids or session.digest() in digests:
            raise RubricError(
                f"rubric of {rubric.user_id}: session {session.session_id!r} built it, so it"
                " cannot score that session; use held-out sessions"
            )


def _load(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise RubricError(
            f"{path} cannot be read ({error.strerror}); check `rubric` in the study, or write one"
            " (docs/rubrics.md shows how)"
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a key twice
        raise RubricError(f"{path} is not valid JSON ({error}); correct that place") from error
    if not isinstance(content, dict):
        raise RubricError(f"{path} holds no JSON object; a rubric is one object")
    return content


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # A repeated key would let the reader and the hash see different rubrics.
    doubled = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
    if doubled:
        raise ValueError(f"the key {doubled[0]!r} stands twice in one object")
    return dict(pairs)


def _validated(content: Mapping[str, object], source: str) -> PersonalRubric:
    if content.get("schema") != SCHEMA:
        raise RubricError(
            f"{source}: schema is {content.get('schema')!r} where {SCHEMA!r} is needed; use a"
            " rubric file of this version"
        )
    if content.get("track") != "personal":
        raise RubricError(
            f"{source}: track is {content.get('track')!r} where 'personal' is needed; only"
            " personal rubrics are frozen files"
        )
    if "sha256" not in content:
        raise RubricError(
            f"{source} is a draft that was not frozen yet; freeze it with `palate rubric freeze`"
        )
    try:
        rubric = PersonalRubric.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RubricError(f"{source}: {place}: {first['msg']}; correct that field") from error
    _check_anchors(rubric, source)
    _check_rules(rubric, source)
    _check_citations(rubric, source)
    return rubric


def _check_anchors(rubric: PersonalRubric, source: str) -> None:
    if set(rubric.anchors) != set(ANCHORS):
        odd = sorted(set(rubric.anchors) ^ set(ANCHORS))
        raise RubricError(
            f"{source}: anchors must be exactly 1 to 5, and differ in {', '.join(odd)}; describe"
            " each of the five scores once"
        )


def _check_rules(rubric: PersonalRubric, source: str) -> None:
    rules = [*rubric.rewards, *rubric.penalties]
    if not rules:
        raise RubricError(f"{source} has neither rewards nor penalties; state at least one rule")
    doubled = [key for key, times in Counter(rule.id for rule in rules).items() if times > 1]
    if doubled:
        raise RubricError(f"{source}: two rules have the id {doubled[0]!r}; give each its own")
    texts = {"user_id": rubric.user_id, "summary": rubric.summary}
    texts |= {f"anchors.{key}": text for key, text in rubric.anchors.items()}
    for rule in rules:
        texts |= {f"rule {rule.id!r}": rule.rule, f"the id of rule {rule.rule!r}": rule.id}
    for at, reaction in enumerate(rubric.reactions):
        texts |= {f"reactions.{at}.pattern": reaction.pattern}
        texts |= {f"reactions.{at}.meaning": reaction.meaning}
    for place, text in texts.items():
        if not text.strip():
            raise RubricError(f"{source}: {place} is empty; write it or remove its entry")


def _check_citations(rubric: PersonalRubric, source: str) -> None:
    """Citations name training sessions, and a model's rules all have one."""
    known = rubric.provenance.training_sessions
    for name, evidence in _cited(rubric):
        if not evidence and rubric.provenance.author != "hand":
            raise RubricError(f"{source}: {name} cites no turn; a model's rules need evidence")
        for text in evidence:
            if (session := _citation(text, source).session) not in known:
                raise RubricError(
                    f"{source}: {name} cites session {session!r}, which is not among"
                    " provenance.training_sessions; add it there or correct the citation"
                )


def _cited(rubric: PersonalRubric) -> list[tuple[str, tuple[str, ...]]]:
    """Each rule and reaction, named for a message, with its evidence."""
    rules = [(f"rule {r.id!r}", r.evidence) for r in (*rubric.rewards, *rubric.penalties)]
    return rules + [(f"reaction {r.pattern!r}", r.evidence) for r in rubric.reactions]


def _citation(text: str, source: str) -> Citation:
    match = _CITATION.fullmatch(text)
    if match is None:
        raise RubricError(
            f"{source}: the citation {text!r} is not of the form SESSION#TURN, with turns counted"
            " from 0; correct it"
        )
    return Citation(match["session"], int(match["turn"]))


def _check_turn(
    rubric: PersonalRubric, name: str, citation: Citation, sessions: Mapping[str, Session]
) -> None:
    session = sessions.get(citation.session)
    if session is None:
        problem = "which is not in the history"
    elif session.user_id != rubric.user_id:
        problem = f"which belongs to {session.user_id}"
    elif citation.turn >= len(session.turns):
        problem = f"which has only {len(session.turns)} turns, counted from 0"
    else:
        return
    raise RubricError(
        f"rubric of {rubric.user_id}: {name} cites turn {citation.turn} of session"
        f" {citation.session!r}, {problem}; correct or remove the citation"
    )


def _as_dict(rubric: PersonalRubric) -> dict[str, object]:
    return rubric.model_dump(mode="json", by_alias=True)


def _signature(content: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON without the field that holds it."""
    return digest({key: value for key, value in content.items() if key != "sha256"})
