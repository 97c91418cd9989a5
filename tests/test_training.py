"""The training loop: it learns, stops, resumes to the byte, and never calls a failure finished."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from palate.errors import InputError, Stopped, StoreError
from palate.simulators.checkpoints import Checkpoints
from palate.simulators.finishing import finish
from palate.simulators.loss import nll, pooled
from palate.simulators.new_adapter import new_adapter
from palate.simulators.training import Data, Training
from palate.simulators.training_settings import TrainingSettings
from tiny_base import example, tiny_base

pytestmark = pytest.mark.train

# A person who always answers n with n + 1, n + 2.
EXAMPLES = [example(f"s{n}", [1, n, 2], [n + 1, n + 2, 63], [2], [5, 63]) for n in range(10, 40)]
HELD_OUT = [example(f"v{n}", [1, n, 2], [n + 1, n + 2, 63], [2], [5, 63]) for n in (12, 25, 38)]
SETTINGS = TrainingSettings(
    epochs=8,
    rank=4,
    learning_rate=0.03,
    batch_tokens=64,
    step_tokens=64,
    dropout=0.1,
    patience=20,
    seed=7,
)


def trained(folder, *, settings=SETTINGS, training=EXAMPLES, validation=HELD_OUT, **asked):
    adapter = new_adapter(tiny_base(), settings)
    work = Training(
        adapter.model, Data(training, validation, "f"), settings, Checkpoints(folder), **asked
    )
    with Checkpoints(folder).alone():
        return adapter.model, work.run()


def weights(model):
    return {
        name: p.detach().numpy().tobytes()
        for name, p in model.named_parameters()
        if p.requires_grad
    }


def curve(folder):
    lines = (folder / ".training/training.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_it_learns_what_the_person_answers(tmp_path):
    """Half of the surprise is gone, on sessions that were held out too, and only LoRA moved."""
    import torch

    model, losses = trained(tmp_path)
    assert losses.last < 0.5 * losses.first
    assert losses.validation_best < 0.5 * losses.validation_before
    assert losses.validation_best == pytest.approx(pooled(nll(model, HELD_OUT)), abs=1e-5)
    before, after = tiny_base().model.state_dict(), model.unload().state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_curve_has_a_line_before_the_first_step_and_one_after_each(tmp_path):
    _, losses = trained(tmp_path, settings=SETTINGS.model_copy(update={"max_steps": 5}))
    lines = curve(tmp_path)
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4, 5]
    assert lines[0]["validation"] == losses.validation_before
    assert lines[1]["loss"] == losses.first
    assert lines[5]["loss"] == losses.last
    assert lines[5]["validation"] is not None
    assert (losses.steps, losses.stopped) == (5, "step_limit")


def test_without_held_out_sessions_it_trains_to_the_end(tmp_path):
    _, losses = trained(tmp_path, validation=[])
    assert losses.validation_best is None
    assert losses.best_step == losses.steps
    assert losses.epochs == 8
    assert losses.tokens_processed == 8 * 30 * 9
    assert losses.stopped == "finished"


def test_it_stops_early_and_goes_back_to_the_best(tmp_path):
    """Held out are answers that training makes ever less likely."""
    wrong = [example("v", [1, n, 2], [3, 4, 6]) for n in range(10, 40)]
    settings = SETTINGS.model_copy(update={"patience": 2, "evaluations": 1})
    model, losses = trained(tmp_path, settings=settings, validation=wrong)
    assert losses.stopped == "early"
    assert losses.best_step < losses.steps
    assert losses.validation_best == pytest.approx(pooled(nll(model, wrong)), abs=1e-5)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    settings = SETTINGS.model_copy(update={"max_steps": 4})
    one, _ = trained(tmp_path / "1", settings=settings)
    two, _ = trained(tmp_path / "2", settings=settings)
    other, _ = trained(tmp_path / "3", settings=settings.model_copy(update={"seed": 8}))
    assert weights(one) == weights(two)
    assert weights(one) != weights(other)


def test_asked_to_stop_it_finishes_the_step_and_goes_on_from_there(tmp_path):
    whole, all_losses = trained(tmp_path / "whole")
    seen = []
    with pytest.raises(Stopped, match="after step 3 of"):
        trained(
            tmp_path / "cut",
            observe=lambda one: seen.append(one.step),
            should_stop=lambda: seen[-1] == 3,
        )
    resumed, losses = trained(tmp_path / "cut")
    assert weights(resumed) == weights(whole)
    assert losses == all_losses
    times = {"seconds": 0}
    assert [{**line, **times} for line in curve(tmp_path / "cut")] == [
        {**line, **times} for line in curve(tmp_path / "whole")
    ]


def test_a_torn_line_of_the_curve_is_dropped_when_it_resumes(tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path, should_stop=lambda: True)
    with (tmp_path / ".training/training.jsonl").open("a") as lines:
        lines.write('{"step":2,"lo')
    trained(tmp_path, settings=SETTINGS)
    assert [line["step"] for line in curve(tmp_path)][:4] == [0, 1, 2, 3]


def test_other_settings_or_data_are_not_mixed_in(tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path, should_stop=lambda: True)
    adapter = new_adapter(tiny_base(), SETTINGS)
    other = Data(EXAMPLES, HELD_OUT, "another fingerprint")
    checkpoints = Checkpoints(tmp_path)
    with pytest.raises(InputError, match=r"other settings, sessions or weights.*--force"):
        Training(adapter.model, other, SETTINGS, checkpoints).run()
    checkpoints.keep_only("another fingerprint")
    assert checkpoints.load() is None


def test_a_damaged_checkpoint_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path, should_stop=lambda: True)
    file = Checkpoints(tmp_path).file
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"checkpoint\.pt is damaged.*--force"):
        trained(tmp_path)


def test_one_process_at_a_time(tmp_path):
    with (
        Checkpoints(tmp_path).alone(),
        pytest.raises(StoreError, match="in use by another process"),
        Checkpoints(tmp_path).alone(),
    ):
        pass


def test_what_is_refused_before_a_checkpoint_leaves_nothing_behind(tmp_path):
    (tmp_path / "study").mkdir()
    folder = tmp_path / "study/simulators/u1"
    settings = SETTINGS.model_copy(update={"learning_rate": 1e30, "warm_up": 0.0})
    with pytest.raises(InputError, match="not a number"):
        trained(folder, settings=settings)
    assert list((tmp_path / "study").iterdir()) == []


def test_what_is_refused_with_a_checkpoint_or_beside_other_files_leaves_them(tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path / "begun", should_stop=lambda: True)
    with pytest.raises(InputError, match="refused"), Checkpoints(tmp_path / "begun").alone():
        raise InputError("refused")
    assert Checkpoints(tmp_path / "begun").load().progress.step == 1
    assert len(curve(tmp_path / "begun")) == 2
    (tmp_path / "used").mkdir()
    (tmp_path / "used/profile.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match="refused"), Checkpoints(tmp_path / "used").alone():
        raise InputError("refused")
    assert [file.name for file in (tmp_path / "used").iterdir()] == ["profile.json"]


def test_a_loss_that_is_no_number_stops_and_nothing_is_left_to_resume(tmp_path):
    """Case 26.6: an adapter full of NaN must not look finished."""
    import torch

    adapter = new_adapter(tiny_base(), SETTINGS)
    with torch.no_grad():
        for parameter in adapter.model.parameters():
            if parameter.requires_grad:
                parameter.fill_(float("nan"))
    checkpoints = Checkpoints(tmp_path)
    with checkpoints.alone(), pytest.raises(InputError, match="loss of step 1 is not a number"):
        Training(adapter.model, Data(EXAMPLES, [], "f"), SETTINGS, checkpoints).run()
    assert checkpoints.load() is None


def test_a_held_out_loss_that_is_no_number_stops_and_is_never_the_best(tmp_path):
    """The steps' losses are numbers: what overflows is an example that is not learned from."""
    import torch

    adapter = new_adapter(tiny_base(), SETTINGS)
    with torch.no_grad():
        adapter.model.get_input_embeddings().weight[61] = float("inf")
    broken = [example("v", [1, 61, 2], [3])]
    checkpoints = Checkpoints(tmp_path)
    with checkpoints.alone(), pytest.raises(InputError, match="held-out loss after step 0 is not"):
        Training(adapter.model, Data(EXAMPLES, broken, "f"), SETTINGS, checkpoints).run()
    assert checkpoints.load() is None


def test_an_adapter_of_no_numbers_is_finished_on_no_architecture(tmp_path):
    import torch

    base = tiny_base()
    unknown = base.record.model_copy(update={"architecture": "UnheardOfForCausalLM"})
    base = base._replace(record=unknown)
    adapter = new_adapter(base, SETTINGS)
    with torch.no_grad():
        for parameter in adapter.model.parameters():
            if parameter.requires_grad:
                parameter.fill_(float("nan"))
    checkpoints = Checkpoints(tmp_path)
    with checkpoints.alone(), pytest.raises(InputError, match="values that are no numbers"):
        finish(adapter.model, base, None, checkpoints, tmp_path)
    assert not (tmp_path / "simulator.json").exists()
    assert not checkpoints.finished.exists()


def test_a_rate_that_blows_up_is_told_with_its_value(tmp_path):
    settings = SETTINGS.model_copy(update={"learning_rate": 1e30, "warm_up": 0.0})
    with pytest.raises(
        InputError, match=r"not a number: .*lower --learning-rate \(it was 1e\+30\)"
    ):
        trained(tmp_path, settings=settings)


def test_a_loss_of_exactly_nothing_stops(tmp_path):
    """Case 26.6: it means that nothing is supervised, not that all is known."""
    import torch

    adapter = new_adapter(tiny_base(), SETTINGS)
    head = adapter.model.get_output_embeddings()
    with torch.no_grad():
        head.weight.zero_()
    head.bias = torch.nn.Parameter(torch.zeros(64), requires_grad=False)
    with torch.no_grad():
        head.bias[3] = 1e4
    only_three = Data([example("s", [1, 2], [3, 3])], [], "f")
    checkpoints = Checkpoints(tmp_path)
    with checkpoints.alone(), pytest.raises(InputError, match="loss of step 1 is exactly 0"):
        Training(adapter.model, only_three, SETTINGS, checkpoints).run()


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import torch
torch.set_num_threads(1)
from pathlib import Path
import test_training as t
from palate.simulators import training
training.CHECKPOINT_EVERY_S = 0.0
{before}
try:
    model, losses = t.trained(Path(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
    raise SystemExit(3)
import hashlib
names = sorted(t.weights(model).items())
print(hashlib.sha256(b"".join(values for _, values in names)).hexdigest(), losses.steps)
"""


def process(folder, before=""):
    script = textwrap.dedent(SCRIPT).format(tests=str(Path(__file__).parent), before=before)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a process says that nothing happens to: a hash of its weights, and its steps."""
    return process(tmp_path_factory.mktemp("whole")).communicate()[0]


@pytest.mark.slow
@pytest.mark.parametrize("lines", [4, 17])
def test_a_killed_training_ends_with_the_same_bytes(tmp_path, undisturbed, lines):
    """kill -9 at whatever it is doing then: stepping, evaluating or writing a checkpoint."""
    running = process(tmp_path / "killed")
    file = tmp_path / "killed/.training/training.jsonl"
    deadline = time.monotonic() + 60
    while not file.exists() or file.read_bytes().count(b"\n") < lines:
        assert time.monotonic() < deadline
        assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert Checkpoints(tmp_path / "killed").load().progress.stopped == ""
    assert process(tmp_path / "killed").communicate()[0] == undisturbed


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path, undisturbed):
    """No file may grow beyond what the third checkpoint needs: a write stops half-way."""
    full = """
    import resource
    from palate.simulators.checkpoints import Checkpoints
    save, count = Checkpoints.save, []
    def limited(self, state):
        count.append(1)
        if len(count) == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
        save(self, state)
    Checkpoints.save = limited
    """
    stopped = process(tmp_path / "full", before=textwrap.dedent(full))
    said = stopped.communicate()[0]
    assert said.startswith("StoreError cannot write to")
    assert stopped.returncode == 3
    assert Checkpoints(tmp_path / "full").load().progress.step == 2
    assert not list((tmp_path / "full/.training").glob(".*.part"))
    assert process(tmp_path / "full").communicate()[0] == undisturbed
