"""The command line of `palate rubric`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path

import click

STUDY = click.argument("study", type=click.Path(path_type=Path))


@click.group(name="rubric")
def rubric_group() -> None:
    """Personal rubrics: what one person rewards and what they punish."""


@rubric_group.command("induce")
@STUDY
@click.option("--user", required=True, help="The user's id in the study.")
@click.option("--model", help="Model that finds and tests the rules [default: the study's judge].")
@click.option("--seed", type=click.IntRange(min=0), help="[default: the study's].")
@click.option("--force", is_flag=True, help="Replace a rubric that is there.")
@click.option(
    "--batch",
    type=click.Path(path_type=Path),
    help="Ask through batch files in this folder, in rounds (docs/batch.md).",
)
def rubric_induce(
    study: Path, user: str, model: str | None, seed: int | None, force: bool, batch: Path | None
) -> None:
    """Induce a user's rubric from their rated training sessions, frozen by its hash.

    Rules are proposed from one part of the training sessions and kept if they tell the replies that
    the person preferred from those they did not in another. Held-out sessions are not read. What
    was tried is written beside the rubric. Interrupted, the same command takes it up again.
    """
    from palate.induce_commands import induce_rubric

    induce_rubric(study, user=user, model=model, seed=seed, force=force, batch=batch)


@rubric_group.command("show")
@click.argument("path", type=click.Path(path_type=Path))
def rubric_show(path: Path) -> None:
    """Print a frozen rubric for a person to read."""
    from palate.rubric_commands import show_rubric

    show_rubric(path)


@rubric_group.command("freeze")
@STUDY
@click.option("--user", required=True, help="The user's id in the study.")
@click.argument("draft", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a rubric that is there.")
def rubric_freeze(study: Path, user: str, draft: Path, force: bool) -> None:
    """Freeze a DRAFT, written by hand or edited, as the rubric that STUDY names for a user.

    The user's history is split, and the draft may cite training sessions only. docs/rubrics.md
    shows what a draft looks like.
    """
    from palate.rubric_commands import freeze_rubric

    freeze_rubric(study, user=user, draft=draft, force=force)


@rubric_group.command("verify")
@STUDY
def rubric_verify(study: Path) -> None:
    """Check every rubric of a STUDY: its hash, its schema and the turns that it cites."""
    from palate.rubric_commands import verify_rubrics

    verify_rubrics(study)
