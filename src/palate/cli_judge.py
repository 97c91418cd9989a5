"""The command line of `palate judge`: parse, call, print; imports stay inside the commands."""

from __future__ import annotations

import math
from pathlib import Path

import click


def _is_a_number(
    context: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    """A gate of "nan", which no range refuses, would let every judge pass."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number.", context, parameter)
    return value


@click.group(name="judge")
def judge_group() -> None:
    """Judges: how far can one be relied on?"""


@judge_group.command("check")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--judge", metavar="SPEC", help="Another judge than the study's.")
@click.option(
    "--items",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Real replies to ask about, all users together.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--gate",
    type=click.FloatRange(min=0, max=4),
    callback=_is_a_number,
    metavar="MAX_MOVE",
    help="Exit with 1 if any score moves further on average, in points of 1..5.",
)
@click.option("--plan", is_flag=True, help="Only show calls, tokens and money.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--max-concurrency", type=click.IntRange(min=1), help="Calls in flight.")
@click.option(
    "--batch",
    type=click.Path(path_type=Path),
    help="Ask through the batch files of this folder, in rounds.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write or resume [default: judge-checks/JUDGE in the study folder].",
)
def judge_check(study: Path, *, plan: bool, as_json: bool, **options: object) -> None:
    """Show how much a judge moves where it should not, per dimension and language.

    Replies of the STUDY's training sessions are judged as in a run, then again: the same question
    twice, with the dimensions in the opposite order, with sentences added that say nothing, and
    with an instruction inside that asks for the highest score; two messages are compared in both
    orders. Interrupted, the same command takes it up again.

    \b
    palate judge check my-study --plan
    palate judge check my-study --judge openai:gpt-5.4 --gate 0.5
    """
    from palate.judge_commands import check_judge
    from palate.judge_setup import CheckOptions

    code = check_judge(study, CheckOptions(**options), plan=plan, as_json=as_json)  # type: ignore[arg-type]
    raise SystemExit(code)
