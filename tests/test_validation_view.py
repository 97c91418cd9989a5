"""What is seen while simulators are asked and likelihoods read: by hand-driven clock."""

import io

import pytest
from rich.console import Console

from palate.validation_view import AskView, StepsView


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass where a test says so."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_off_a_terminal_a_line_comes_every_ten_seconds_with_the_time_left(clock):
    out = io.StringIO()
    with StepsView(Console(file=out), "Reading", 12, "of 12 readings of sessions") as view:
        view.begins("ada", "raw")
        for _ in range(5):
            clock[0] += 4
            view.add(1)
    # At 112 s three of twelve took 12 s, so nine take 36; at 120 s five took 20: seven take 28.
    assert out.getvalue().splitlines() == [
        "Reading: ada, raw · 0 of 12 readings of sessions",
        "Reading: ada, raw · 3 of 12 readings of sessions · 0:36 left",
        "Reading: ada, raw · 5 of 12 readings of sessions · 0:28 left",
    ]


def test_what_an_earlier_call_did_tells_nothing_of_the_pace(clock):
    out = io.StringIO()
    calls = [7]  # the probe's, before the first question
    with AskView(Console(file=out), 10, calls=lambda: calls[0]) as view:
        view.begins("ada", "raw")
        for _ in range(4):
            view.answered()
        clock[0] += 12
        calls[0] += 1
        view.answered()
    assert out.getvalue().splitlines() == [
        "Asking: ada, raw · 0 of at most 10 answers",
        "Asking: ada, raw · 5 of at most 10 answers · 1:00 left",
    ]


def test_a_hostile_name_is_shown_as_text(clock):
    out = io.StringIO()
    with StepsView(Console(file=out), "Reading", 2, "of 2") as view:
        view.begins("a\x1b[31mda", "raw")
    assert "\x1b" not in out.getvalue()
