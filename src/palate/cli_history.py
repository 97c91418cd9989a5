"""The command line of `palate history`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(name="history")
def history_group() -> None:
    """Histories: people's real, rated chats."""


@history_group.command(name="import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Study folder [default: the current one].",
)
@click.option("--user", help="Whose chats they are [default: as the files say].")
@click.option("--card", help="Card id of all these chats [default: by the character's name].")
@click.option(
    "--format",
    "form",
    type=click.Choice(
        ["palate", "sillytavern", "cai-tools", "oobabooga", "agnai", "openai", "sharegpt"]
    ),
    help="[default: told by content]",
)
@click.option(
    "--map",
    "mapping",
    type=click.Path(path_type=Path),
    help="TOML that says which fields of a CSV or of other JSON hold what.",
)
@click.option(
    "--ratings",
    type=click.Path(path_type=Path),
    help="CSV with the columns session,turn,satisfaction,note; turns count from 0.",
)
@click.option("--thumbs", help="What thumbs count as, for example up=5,down=2.")
@click.option("--keep-hidden", is_flag=True, help="Take messages hidden from the model as turns.")
@click.option("--dry-run", is_flag=True, help="Say what was understood; write nothing.")
def import_history(
    files: tuple[Path, ...],
    into: Path,
    user: str | None,
    card: str | None,
    form: str | None,
    mapping: Path | None,
    ratings: Path | None,
    thumbs: str | None,
    keep_hidden: bool,
    dry_run: bool,
) -> None:
    """Add the sessions in chat FILES to histories/USER.jsonl of a study.

    \b
    palate history import chats/*.jsonl --into my-study --user ines --dry-run

    Read are SillyTavern, OpenAI messages, ShareGPT, oobabooga, Agnai, CAI Tools, palate's own JSON
    Lines, and with --map any CSV or JSON. What is left out is counted and named; a session that is
    there already is not added again.
    """
    from palate.history_commands import ImportSettings
    from palate.history_commands import import_history as add

    settings = ImportSettings(
        into, user, card, form, mapping, ratings, thumbs, keep_hidden=keep_hidden, dry_run=dry_run
    )
    raise SystemExit(add(files, settings))


PLACE = click.argument("place", metavar="STUDY|FILE", type=click.Path(path_type=Path))


@history_group.command(name="check")
@PLACE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_history(place: Path, as_json: bool) -> None:
    """Say what is wrong with each user's history, or weak, for a simulator and a rubric.

    Exit code 1 if no simulator or no rubric can be made of one, 2 if one cannot be read.
    """
    from palate.history_review_commands import check_history as check

    raise SystemExit(check(place, as_json=as_json))


@history_group.command(name="stats")
@PLACE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--out", type=click.Path(path_type=Path), help="HTML file to draw them into.")
def history_stats(place: Path, as_json: bool, out: Path | None) -> None:
    """Count each user's sessions, ratings, lengths, habits and endings."""
    from palate.history_review_commands import show_stats

    show_stats(place, as_json=as_json, out=out)


@history_group.command(name="split")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--user", required=True, help="The user's id in the study.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def history_split(study: Path, user: str, as_json: bool) -> None:
    """Show which sessions train and which are held out, and why.

    The split is made and recorded below splits/ if it was not yet; a recorded one stays.
    """
    from palate.history_review_commands import show_split

    show_split(study, user=user, as_json=as_json)
