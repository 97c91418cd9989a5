"""The commands about personal rubrics: show, freeze and verify (paper 3.3)."""

from __future__ import annotations

from pathlib import Path

import click

from palate.config import read_study
from palate.disk import write_atomically
from palate.errors import InputError, RubricError
from palate.histories import Split, read_split
from palate.histories import read as read_history
from palate.json_input import parsed
from palate.prepare import split_file, split_of, user_section
from palate.report.safe import terminal_safe
from palate.rubrics.freeze import as_json, freeze, read, render, verify_evidence
from palate.types import PersonalRubric


def show_rubric(path: Path) -> None:
    """Print a frozen rubric with the turns that each rule cites.

    Raises:
        RubricError: the file is not a frozen rubric, or was changed.
    """
    rubric = read(path)
    click.echo(terminal_safe(render(rubric, rubric.language, cited=True), lines=True))
    click.echo(terminal_safe(_made_by(rubric)))
    click.echo(f"sha256 {rubric.sha256}")


def verify_rubrics(study: Path) -> None:
    """Check every rubric of a study against its hash, its schema, its user's history and split.

    Raises:
        RubricError: a rubric does not hold.
        InputError: the study or a history is wrong.
    """
    loaded = read_study(study)
    for user in loaded.content.users:
        rubric = read(loaded.path(user.rubric))
        if user.history is None:
            note = "no history in the study, so its evidence was not checked"
        else:
            sessions = read_history(loaded.path(user.history), user_id=user.id)
            verify_evidence(rubric, sessions)
            if split_file(loaded, user.id).exists():
                _refuse_held_out(rubric, read_split(split_file(loaded, user.id), sessions))
            note = f"{len(rubric.provenance.training_sessions)} training sessions"
        click.echo(f"{terminal_safe(user.id)}: {rubric.sha256[:12]} holds; {note}")


def freeze_rubric(study: Path, *, user: str, draft: Path, force: bool) -> None:
    """Freeze a draft that a hand wrote or edited as the rubric that the study names for `user`.

    Its provenance is filled in: author "hand", and the training sessions of the user's split,
    which is made and recorded if it was not yet. A draft that began as a model's rubric keeps the
    model and the prompts: edited, it is a new rubric that says where it comes from.

    Raises:
        RubricError: the draft is no rubric, or cites what is not a training session.
        InputError: no such user or no history, or a rubric is there already.
    """
    loaded = read_study(study)
    section = user_section(loaded, user)
    target = loaded.path(section.rubric)
    if target.exists() and not force:
        raise InputError(f"{target} is there already; --force replaces it")
    sessions, parts = split_of(loaded, section)
    try:
        content = parsed(draft.read_bytes(), str(draft))
    except OSError as error:
        raise InputError(f"{draft} cannot be read ({error.strerror}); check its path") from None
    if not isinstance(content, dict):
        raise InputError(f"{draft} holds no JSON object; a rubric is one object")
    provenance = {
        "author": "hand",
        **_origin(content.get("provenance")),
        "training_sessions": parts.training_digests(),
    }
    rubric = freeze({**content, "user_id": user, "provenance": provenance})
    verify_evidence(rubric, sessions)
    try:
        write_atomically(target, as_json(rubric))
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror})") from None
    click.echo(f"{target}: frozen as {rubric.sha256[:12]}")


def _origin(provenance: object) -> dict[str, object]:
    """The model and the prompts of a rubric that was edited; nothing where a hand wrote it all."""
    if not isinstance(provenance, dict):
        return {}
    return {key: provenance[key] for key in ("model", "prompt_sha256") if provenance.get(key)}


def _made_by(rubric: PersonalRubric) -> str:
    made = rubric.provenance
    if made.author == "model":
        return f"induced by {made.model} from {len(made.training_sessions)} training sessions"
    return f"edited by hand, induced by {made.model}" if made.model else "written by hand"


def _refuse_held_out(rubric: PersonalRubric, parts: Split) -> None:
    others = sorted(set(rubric.provenance.training_sessions) - set(parts.training_digests()))
    if others:
        raise RubricError(
            f"the rubric of {rubric.user_id} was made from session {others[0]!r}, which is no "
            "training session of the recorded split; make it from training sessions alone"
        )
