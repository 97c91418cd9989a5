"""The command line of `palate study`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

import math
from pathlib import Path

import click


def _finite(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.", context, parameter)
    return value


@click.group(name="study")
def study_group() -> None:
    """Studies of the method itself: do its scores agree with people?"""


@study_group.command("agreement")
@click.option("--labels", type=click.Path(path_type=Path), required=True, help="The ratings.")
@click.option("--scores", type=click.Path(path_type=Path), required=True, help="The scores.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--out", type=click.Path(path_type=Path), help="HTML file to draw the figures into.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--resamples",
    type=click.IntRange(min=2, max=1_000_000),
    default=2000,
    show_default=True,
    help="Draws of the intervals and of the tests.",
)
@click.option(
    "--confidence",
    type=float,
    callback=_finite,
    help="From which on a score counts as confident [default: the median of its condition].",
)
def study_agreement(
    labels: Path,
    scores: Path,
    as_json: bool,
    out: Path | None,
    seed: int,
    resamples: int,
    confidence: float | None,
) -> None:
    """How often scores order two replies of a session as the person who rated them did.

    \b
    palate study agreement --labels labels.csv --scores scores.csv --out agreement.html

    \b
    LABELS  user,session,reply,label
      reply       a whole number from 0, the same in both files
      label       1..5
      occasion    optional: 2 for a second rating of the same reply, which gives the ceiling
    SCORES  condition,user,session,reply,score
      score       any number, higher is better; empty for a missing one
      confidence  optional: any number, higher is surer
      length      optional: of the reply, in any unit

    A pair of replies with different labels counts 1 if the scores order it the same way, 0.5 if
    they are equal, 0 otherwise; 0.5 is chance.
    """
    from palate.agreement_commands import Settings, show_agreement

    show_agreement(
        labels, scores, Settings(as_json, out, seed, resamples=resamples, confidence=confidence)
    )
