"""The results as tables: numbers with their intervals, and every mark where a rank is shown."""

import io

from rich.console import Console

from palate.aggregate import aggregate
from palate.report.terminal import print_results
from palate.types import ScoreRow


def printed(rows):
    console = Console(file=io.StringIO(), width=160, force_terminal=True, color_system=None)
    print_results(aggregate(rows), console)
    return console.file.getvalue()


def scores(name, values, track="personal"):
    return [
        ScoreRow("u1", f"k{i}", name, 1, track, 0, value) for i, value in enumerate(values, start=1)
    ]


def line(text, start):
    return next(line.strip() for line in text.splitlines() if line.strip().startswith(start))


def test_indices_stand_with_interval_and_coverage():
    text = printed(scores("A", [3, 3, 3, 3, 3]))
    assert line(text, "A").split() == ["A", "1", "60.0", "n/a", "n/a", "n/a", "n/a"]
    assert line(text, "60.0–60.0") == "60.0–60.0"
    assert line(text, "A: 5") == "A: 5 of 5 replies, 5 of 5 sessions"


def test_a_candidate_with_gaps_is_marked_wherever_it_is_ranked():
    text = printed([*scores("A", [3, 3, None]), *scores("B", [2, 2, 2])])
    assert "u1: A †" in text
    assert "A: low coverage: 2 of 3 replies scored, 2 of 3 sessions scored (limit 90 %)" in text
    assert "B †" not in text


def test_few_cards_are_marked_beside_the_interval():
    assert line(printed(scores("A", [3, 3])), "60.0–") == "60.0–60.0°"
    assert line(printed(scores("A", [3])), "no interval") == "no interval"


def test_undefined_values_are_printed_with_their_reason():
    text = printed(scores("A", [3, 3]))
    assert "U-Score: n/a (one repetition: nothing to compare)" in text
    assert "all: Generic: generic: no scores at all" in text


def test_the_scale_and_the_formula_are_said():
    text = printed(scores("A", [3, 3]))
    assert "mean over trajectories of the mean over their scored replies" in text
    assert "u_score, g_score and overall in 20..100" in text


def test_names_cannot_steer_the_terminal():
    text = printed(scores("[bold]A[/]\x1b[2J\n", [3, 3]))
    assert "[bold]A[/]\ufffd[2J" in text
    assert "\x1b[2J" not in text


def test_no_digit_of_a_score_is_cut_off_at_80_columns():
    rows = [*scores("a name of some twenty-odd", [3, None]), *scores("B", [2, 2])]
    console = Console(width=80, file=io.StringIO())
    print_results(aggregate(rows), console)
    lines = console.file.getvalue().splitlines()
    assert any("Session" in line for line in lines)
    assert max(map(len, lines)) <= 80
