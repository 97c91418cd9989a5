"""The command line of `palate study`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, NamedTuple

import click

_ASK = "ask"


class _Confidence(NamedTuple):
    """Whether the judge is asked for its confidence, and from which on it is enough."""

    asked: bool
    threshold: float | None


def _confidence(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> _Confidence:
    if value is None or value == _ASK:
        return _Confidence(value == _ASK, None)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise click.BadParameter(f"{value!r} is not a finite number.", context, parameter)
    return _Confidence(True, number)


@click.group(name="study")
def study_group() -> None:
    """Studies of the method itself: do its scores agree with people?"""


@study_group.command("agreement")
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option("--labels", type=click.Path(path_type=Path), help="The ratings.")
@click.option("--scores", type=click.Path(path_type=Path), help="The scores.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="HTML file to draw the figures into; with a STUDY, the folder to write or go on with "
    "[default: studies/agreement in the study folder].",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the intervals and the tests.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=2, max=1_000_000),
    default=2000,
    show_default=True,
    help="Draws of the intervals and of the tests.",
)
@click.option(
    "--confidence",
    is_flag=False,
    flag_value=_ASK,
    callback=_confidence,
    metavar="[NUMBER]",
    help="From which on a score counts as confident [default: the median of its condition]. With a "
    "STUDY, the number or none: ask the judge how sure it is, 1 to 5; it may then abstain.",
)
@click.option("--user", "users", multiple=True, help="STUDY: this user alone; may be repeated.")
@click.option("--conditions", help="STUDY: some conditions, with commas [default: all seven].")
@click.option(
    "--limit", type=click.IntRange(min=2), help="STUDY: about so many replies a user, drawn."
)
@click.option(
    "--examples", type=click.IntRange(min=1, max=200), help="STUDY: rated examples [default: 8]."
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="STUDY: this judge in place of the study's; repeated, a panel.",
)
@click.option("--panel", type=click.Choice(["mean", "median"]), help="STUDY: a panel's score.")
@click.option("--plan", is_flag=True, help="STUDY: show calls, tokens, money; ask nothing.")
@click.option(
    "--max-concurrency", type=click.IntRange(min=1), help="STUDY: calls in flight per endpoint."
)
@click.option(
    "--batch",
    type=click.Path(path_type=Path),
    help="STUDY: ask the judge through batch files in this folder, in rounds (docs/batch.md).",
)
def study_agreement(
    study: Path | None,
    labels: Path | None,
    scores: Path | None,
    as_json: bool,
    out: Path | None,
    seed: int,
    resamples: int,
    confidence: _Confidence,
    users: tuple[str, ...],
    conditions: str | None,
    limit: int | None,
    examples: int | None,
    judges: tuple[str, ...],
    panel: Literal["mean", "median"] | None,
    plan: bool,
    max_concurrency: int | None,
    batch: Path | None,
) -> None:
    """How often scores order two replies of a session as the person who rated them did.

    \b
    palate study agreement STUDY
      has the judge score the held-out replies that each user rated, under every condition of the
      paper's Table 3 and two more, and writes labels, scores, results and a page

    \b
    palate study agreement --labels labels.csv --scores scores.csv --out agreement.html
      takes labels and scores from anywhere

    \b
    Conditions of a STUDY: personal, personal-no-reaction, generic-with-reaction, generic, baseline,
      examples, rubric+examples

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
    for_a_study = (
        *(users, conditions, limit, examples, judges),
        *(panel, plan, max_concurrency, batch),
    )
    if study is None:
        if labels is None or scores is None:
            raise click.UsageError("Name a STUDY, or give both --labels and --scores.")
        if any(for_a_study):
            raise click.UsageError("Options marked STUDY belong to a STUDY; name it.")
        if confidence.asked and confidence.threshold is None:
            raise click.UsageError("--confidence needs a number where there is no STUDY.")
        _of_files(labels, scores, as_json, out, seed, resamples, confidence.threshold)
        return
    if labels is not None or scores is not None:
        raise click.UsageError("Give a STUDY, or --labels and --scores, not both.")
    from palate.agreement_setup import StudyOptions
    from palate.agreement_study_commands import study_agreement as judged_agreement
    from palate.studies.conditions import CONDITIONS, conditions_named
    from palate.studies.rated_examples import DEFAULT_EXAMPLES

    options = StudyOptions(
        conditions=CONDITIONS if conditions is None else conditions_named(conditions),
        users=users,
        limit=limit,
        examples=examples or DEFAULT_EXAMPLES,
        judges=judges,
        panel=panel or "mean",
        confidence=confidence.asked,
        threshold=confidence.threshold,
        seed=seed,
        resamples=resamples,
        max_concurrency=max_concurrency,
        out=out,
        batch=batch,
    )
    raise SystemExit(judged_agreement(study, options, plan=plan, as_json=as_json))


def _of_files(
    labels: Path,
    scores: Path,
    as_json: bool,
    out: Path | None,
    seed: int,
    resamples: int,
    confidence: float | None,
) -> None:
    from palate.agreement_commands import Settings, show_agreement

    show_agreement(
        labels, scores, Settings(as_json, out, seed, resamples=resamples, confidence=confidence)
    )
