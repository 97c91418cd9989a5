"""The command line of `palate simulator`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path

import click

STUDY = click.argument("study", type=click.Path(path_type=Path))


@click.group(name="simulator")
def simulator_group() -> None:
    """Simulated users: one per real person."""


@simulator_group.command("profile")
@STUDY
@click.option("--user", required=True, help="The user's id in the study.")
@click.option("--model", help="Model that writes it [default: the simulator's own model].")
@click.option("--force", is_flag=True, help="Replace a profile that is there.")
def simulator_profile(study: Path, user: str, model: str | None, force: bool) -> None:
    """Write a user's profile from their training sessions, frozen by its hash.

    Held-out sessions are not read. A simulator of kind "profile" needs it.
    """
    from palate.commands import write_user_profile

    write_user_profile(study, user=user, model=model, force=force)
