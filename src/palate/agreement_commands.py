"""`palate study agreement`: read, compute, print, draw (paper 4.3)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click

from palate.errors import InputError
from palate.report.agreement import write_agreement_page
from palate.report.agreement_terminal import agreement_console, print_agreement
from palate.report.plain import to_json
from palate.report.safe import terminal_safe
from palate.studies.agreement_files import read_condition_scores, read_labels
from palate.studies.human_agreement import agreement


class Settings(NamedTuple):
    """The options of the command, as they were given."""

    as_json: bool
    out: Path | None
    seed: int
    resamples: int
    confidence: float | None


def show_agreement(labels: Path, scores: Path, settings: Settings) -> None:
    """Print the agreement of scores with labels; draw it into the HTML file `settings.out`.

    Raises:
        InputError: a file cannot be read or a line is wrong, or `out` is one of the two
            files or a folder.
        StoreError: the page cannot be written.
    """
    out = settings.out
    if out is not None and out.resolve() in (labels.resolve(), scores.resolve()):
        raise InputError(f"--out is {out}, which the page would overwrite; name another file")
    if out is not None and out.is_dir():
        raise InputError(f"--out is {out}, which is a folder; name the HTML file to write")
    found = agreement(
        read_labels(labels),
        read_condition_scores(scores),
        seed=settings.seed,
        resamples=settings.resamples,
        confidence=settings.confidence,
    )
    if settings.as_json:
        click.echo(to_json(found))
    else:
        print_agreement(found, agreement_console())
    if out is not None:
        title = f"{scores.name} against {labels.name}"
        write_agreement_page(found, out, title=title)
        click.echo(f"Wrote {terminal_safe(str(out))}", err=settings.as_json)
