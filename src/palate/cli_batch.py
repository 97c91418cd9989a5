"""The command line of `palate batch`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path

import click

RUN = click.argument("run", type=click.Path(path_type=Path))
STUDY = click.option(
    "--study",
    type=click.Path(path_type=Path),
    help="The run's study [default: the folder that holds runs/RUN].",
)


@click.group(name="batch")
def batch_group() -> None:
    """Judging by batch files, for half-price services or any outside judge."""


@batch_group.command("export")
@RUN
@STUDY
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="Folder for the request files [default: batch in the run folder].",
)
def batch_export(run: Path, study: Path | None, to: Path | None) -> None:
    """Write the judge's requests for every verdict of a RUN that is missing.

    In OpenAI's batch form, at most 50,000 requests and 200 MB a file; what was written there
    before is replaced. The judge is the one of the study, an openai: model. Keys are not needed.

    \b
    palate run my-study --judging later
    palate batch export my-study/runs/NAME --to requests
    palate batch import my-study/runs/NAME batch_output.jsonl batch_errors.jsonl
    """
    from palate.batch_commands import export_batch

    raise SystemExit(export_batch(run, to=to or run / "batch", study=study))


@batch_group.command("import")
@RUN
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@STUDY
def batch_import(run: Path, files: tuple[Path, ...], study: Path | None) -> None:
    """Read verdicts of a RUN from batch response FILES, then write its report.

    Any order, in parts, packed with gzip or not. What failed or is missing stays open: export
    again. Importing a file twice changes nothing.
    """
    from palate.batch_commands import import_batch

    raise SystemExit(import_batch(run, files, study=study))
