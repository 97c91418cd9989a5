"""The command line: parse, call, print. What a command does lives in the module it imports.

Modules are imported inside the commands, so that `palate --help` stays fast.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Literal, NoReturn

import click

from palate import __version__
from palate.cli_batch import batch_group
from palate.cli_cards import cards_group
from palate.cli_history import history_group
from palate.cli_judge import judge_group
from palate.cli_rubric import rubric_group
from palate.cli_simulator import simulator_group
from palate.cli_study import study_group
from palate.errors import InputError, PalateError
from palate.output import make_sturdy, silence

EXIT_CODES = """
\b
Exit codes:
  0  done
  1  a gate or a check says no
  2  the input or the study is wrong (one sentence says what, where, what to do)
  3  stopped with work left: the same command takes it up again
"""

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT, epilog=EXIT_CODES)
@click.version_option(__version__, prog_name="palate")
def palate() -> None:
    """Evaluate role-playing AI characters the way the person who talks to them would.

    \b
    Begin:     palate demo                  a whole study with embedded models, no key
               palate init my-study         a study of your own to fill in
    Then:      palate plan my-study         cells, calls, tokens, money, before any is spent
               palate run my-study          play, judge, report; resumes by itself
               palate report my-study/runs/NAME
    """


palate.add_command(batch_group)
palate.add_command(cards_group)
palate.add_command(history_group)
palate.add_command(judge_group)
palate.add_command(rubric_group)
palate.add_command(simulator_group)
palate.add_command(study_group)

STUDY = click.argument("study", type=click.Path(path_type=Path))
OUT = click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Run folder to write or resume [default: runs/NAME in the study folder].",
)
LIMIT = click.option(
    "--limit", type=click.IntRange(min=1), help="Only the first N cells of the plan."
)


@palate.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the study; kept, so that it can be changed and run again.",
)
def demo(out: Path) -> None:
    """Run the sample study with embedded models: real computing, no key, a few minutes.

    Two synthetic users, three candidates made of one small model. The judge is that small model
    too, so the numbers show that the machinery works, not who is better.
    """
    from palate.demo import run_demo

    raise SystemExit(run_demo(out))


@palate.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--sample",
    type=click.Choice(["demo", "en", "zh"]),
    default="demo",
    show_default=True,
    help="demo: two users in small, as `palate demo` runs it. en, zh: all synthetic users of "
    "that language with their whole histories, on the frozen panel.",
)
def init(folder: Path, sample: str) -> None:
    """Write a study to begin with: synthetic users and a commented study.toml."""
    from palate.demo import write_sample

    write_sample(folder, sample)
    click.echo(f"Wrote {folder}/study.toml. Put in your models, then: palate plan {folder}")


@palate.command()
@STUDY
@LIMIT
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(study: Path, limit: int | None, as_json: bool) -> None:
    """Show cells, calls, tokens and money of a STUDY before any is spent."""
    from palate.plan import estimate, print_estimate
    from palate.report.plain import to_json

    forecast = estimate(study, limit=limit)
    if as_json:
        click.echo(to_json(forecast))
    else:
        print_estimate(forecast)


@palate.command()
@STUDY
@OUT
@LIMIT
@click.option(
    "--max-concurrency",
    type=click.IntRange(min=1),
    help="Calls in flight per endpoint, in place of the study's endpoint settings.",
)
@click.option(
    "--judging",
    type=click.Choice(["now", "later"]),
    default="now",
    show_default=True,
    help="later: only play; `palate batch export` then writes the judge's requests.",
)
def run(
    study: Path,
    out: Path | None,
    limit: int | None,
    max_concurrency: int | None,
    judging: Literal["now", "later"],
) -> None:
    """Play and judge every cell of a STUDY, then write its report.

    Every message and verdict is on disk before the next call is made. Interrupted, killed or
    failed in part, the same command takes the run up where it is.
    """
    from palate.commands import run_study

    code = run_study(study, out=out, limit=limit, max_concurrency=max_concurrency, judging=judging)
    raise SystemExit(code)


@palate.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def report(run: Path, as_json: bool) -> None:
    """Write the report of a RUN folder anew and print its results."""
    from palate.commands import report_run

    report_run(run, as_json=as_json)


@palate.command()
@click.argument("scores", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def aggregate(scores: Path, as_json: bool, seed: int) -> None:
    """Turn scores from anywhere into profiles: the method's formulas alone.

    \b
    SCORES is a CSV with the columns user,card,candidate,repetition,track,reply,score
      track       personal, generic or session
      repetition  from 1
      reply       from 0 over the character's replies without the opening; empty for session
      score       1..5, or empty for unscored; a planned cell without a reply is a row with
                  reply and score empty
    """
    from palate.commands import aggregate_scores

    aggregate_scores(scores, as_json=as_json, seed=seed)


@palate.command()
@STUDY
@click.option("--invite", multiple=True, metavar="NAME", help="Make a link for NAME; repeatable.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=30,
    show_default=True,
    help="How long the links of --invite work.",
)
@click.option("--revoke", multiple=True, metavar="NAME", help="Make the links of NAME useless.")
@click.option(
    "--chats",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Session JSON Lines whose people, invited by their user_id, rate them turn by turn.",
)
@click.option("--list", "show", is_flag=True, help="Show how far each person is.")
@click.option("--export", is_flag=True, help="Write one session file a person.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for --export [default: annotations in the study folder].",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen at; 0 takes a free one.",
)
@click.option("--url", help="Where people reach the app, for links, if not at host and port.")
@click.option(
    "--database",
    envvar="PALATE_DATABASE",
    metavar="URL",
    help="sqlite:///FILE or postgresql://USER@HOST/NAME; a password is better put into the "
    "environment variable PALATE_DATABASE [default: annotations.sqlite3 in the study folder].",
)
def annotate(study: Path, **options: object) -> None:
    """Serve a web page where invited people chat with a STUDY's candidates and rate replies.

    With --list, --export or --revoke nothing is served; all of them work while a server runs.

    \b
    palate annotate my-study --invite ada --invite ben
    palate annotate my-study --list
    palate annotate my-study --export
    """
    try:
        from palate.annotate.command import Options
        from palate.annotate.command import annotate as do
    except ModuleNotFoundError as error:
        raise InputError(
            f"palate annotate needs {error.name}: pip install 'palate[annotate]'"
        ) from None
    do(study, Options.model_validate(options))


def _interrupted(number: int, frame: FrameType | None) -> None:
    """A polite kill is an interrupt, also where interrupts are ignored (`nohup palate … &`)."""
    if callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)
    else:
        raise KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line; a `PalateError` is one sentence and an exit code, no traceback."""
    make_sturdy()
    # A polite kill stops like Ctrl-C: calls in flight are given up, all that came is on disk.
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        palate(standalone_mode=False)
        sys.stdout.flush()
    except PalateError as error:
        _fail(str(error), error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _stopped()
    except OSError as error:
        silence()
        place = error.filename or "the output"
        _fail(f"{place} cannot be read or written ({error.strerror}); make room or mend it", 3)
    sys.exit(0)


def _stopped() -> NoReturn:
    """Leave at once: where an interrupt came during an import, CPython would die of it later."""
    click.echo("palate: stopped; the same command takes the work up again", err=True)
    sys.stdout.flush()
    os._exit(3)


def _fail(message: str, code: int) -> NoReturn:
    """Print the sentence without the escape codes that a card or a server may have put in it."""
    clean = "".join(c if c.isprintable() else " " for c in message)
    click.echo(f"palate: {clean}", err=True)
    sys.exit(code)
