"""What is seen while an adapter is trained or a study runs, and Ctrl-C as a question."""

import io
import os
import signal
import threading

import pytest
from rich.console import Console

from palate.interrupts import asked_to_stop
from palate.live_line import clock
from palate.models.ledger import Ledger
from palate.progress import ProgressView
from palate.run import Progress
from palate.simulators.loss_curve import Seen
from palate.train_view import TrainView


def seen(step, *, seconds, loss=None, validation=None):
    return Seen(step, 40, step / 10, loss, validation, 1000 * step, seconds)


def test_off_a_terminal_lines_come_now_and_then_and_the_last_one_always():
    out = io.StringIO()
    with TrainView(Console(file=out, width=40), "u\x1b[31m1") as view:
        view.show(seen(0, seconds=1.0, validation=3.0))
        view.show(seen(1, seconds=5.0, loss=4.0))
        view.show(seen(2, seconds=9.0, loss=2.0))
    # Loss 0.7 * 4 + 0.3 * 2; 2,000 tokens and 2 steps in 8 s; 38 steps are 152 s.
    assert out.getvalue().splitlines() == [
        "u1: step 0/40 · epoch 0.0 · held out 3.000",
        "u1: step 2/40 · epoch 0.2 · loss 3.400 (smoothed) · held out 3.000 · 250 tokens/s · "
        "2:32 left",
    ]


def test_a_short_run_off_a_terminal_has_its_last_line_alone():
    out = io.StringIO()
    progress = Progress(planned=4)
    with ProgressView(Console(file=out, width=40), Ledger(), {}) as view:
        view.show(progress)
        progress.done, progress.failures = 3, 1
        view.show(progress)
    [line] = out.getvalue().splitlines()
    assert line.startswith("3/4 cells · 0 calls (0.0/s) · 0 + 0 tokens · $0.00 · ")
    assert line.endswith("left · 1 failed calls")


def test_on_a_terminal_the_line_that_stays_is_the_last_one_and_stands_alone():
    out = io.StringIO()
    with TrainView(Console(file=out, width=60, force_terminal=True), "u1") as view:
        view.show(seen(0, seconds=1.0, validation=3.0))
        view.show(seen(1, seconds=5.0, loss=4.0))
    # What was drawn before is taken away by the terminal's own codes; the last line follows them.
    last = out.getvalue().splitlines()[-1]
    assert last.endswith(
        "u1: step 1/40 · epoch 0.1 · loss 4.000 (smoothed) · held out 3.000 · 250 tokens/s · "
        "2:36 left"
    )


@pytest.mark.parametrize(("seconds", "told"), [(125.4, "2:05"), (59.6, "1:00"), (3725, "1:02:05")])
def test_a_duration_reads_as_on_a_clock(seconds, told):
    assert clock(seconds) == told


def test_the_first_interrupt_is_asked_for_and_the_second_is_raised():
    before = signal.getsignal(signal.SIGINT)
    with asked_to_stop("heard") as asked:
        assert not asked()
        signal.raise_signal(signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


class InterruptedWrite(io.RawIOBase):
    """Standard error to which an interrupt comes in the middle of the first write."""

    def __init__(self, descriptor):
        self.descriptor, self.written = descriptor, b""

    def writable(self):
        return True

    def fileno(self):
        return self.descriptor

    def write(self, content):
        first, self.written = not self.written, self.written + bytes(content)
        if first:
            signal.raise_signal(signal.SIGINT)
        return len(content)


def test_an_interrupt_in_the_middle_of_a_line_is_heard_and_the_line_is_whole(monkeypatch):
    """Python's buffered streams take no second write within a first one."""
    reading, writing = os.pipe()
    raw = InterruptedWrite(writing)
    stream = io.TextIOWrapper(io.BufferedWriter(raw), line_buffering=True)
    monkeypatch.setattr("sys.stderr", stream)
    with asked_to_stop("palate: stopping after this step") as asked:
        stream.write("step 1/40\n")
        assert asked()
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        assert said.read() == b"palate: stopping after this step\n"
    assert raw.written == b"step 1/40\n"


def test_on_a_terminal_what_an_interrupt_is_answered_stands_on_a_line_of_its_own(monkeypatch):
    """The line drawn there may be two lines high, and is drawn anew over the last two."""
    screen, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        with asked_to_stop("heard"):
            signal.raise_signal(signal.SIGINT)
        assert os.read(screen, 100) == b"\r\nheard\r\n\r\n"
    os.close(screen)


def test_an_interrupt_is_heard_where_there_is_no_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with asked_to_stop("nobody hears this") as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked()


def test_outside_the_main_thread_nothing_is_kept():
    found = []

    def work():
        with asked_to_stop("heard") as asked:
            found.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
