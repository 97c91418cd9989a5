"""The numbers that a training is done with."""

import pytest
from pydantic import ValidationError

from palate.simulators.precision import has_bfloat16
from palate.simulators.training_settings import TrainingSettings, evaluation_steps, rate_at


def test_a_small_base_takes_the_higher_rate():
    assert TrainingSettings().rate(135_000_000) == 5e-4
    assert TrainingSettings().rate(35_000_000_000) == 2e-4
    assert TrainingSettings(learning_rate=1e-3).rate(35_000_000_000) == 1e-3


def test_alpha_is_twice_the_rank():
    assert TrainingSettings(rank=4).alpha == 8


@pytest.mark.parametrize("bad", [{"epochs": 0}, {"rank": 0}, {"learning_rate": 2}, {"seed": -1}])
def test_values_out_of_range_are_refused(bad):
    with pytest.raises(ValidationError):
        TrainingSettings(**bad)


def test_the_rate_rises_in_a_line_and_falls_as_half_a_cosine():
    """20 steps, a tenth of them rising; half-way down it is 0.05 + 0.95 / 2 of the highest."""
    rates = [rate_at(step, steps=20, warm_up=0.1, highest=1.0) for step in range(20)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[11] == pytest.approx(0.525)
    assert rates == [*rates[:2], *sorted(rates[2:], reverse=True)]
    assert rates[-1] > 0.05


def test_a_single_step_has_the_highest_rate():
    assert rate_at(0, steps=1, warm_up=0.05, highest=3e-4) == 3e-4


def test_evaluations_are_spread_over_an_epoch():
    assert evaluation_steps(30, 2) == 15
    assert evaluation_steps(1, 2) == 1


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 amx_tile\n", True),
        ("flags\t\t: fpu amx_bf16\n", True),
        ("flags\t\t: fpu avx2 avx512f\n", False),
        ("Features\t: fp asimd bf16 i8mm\n", True),
        ("Features\t: fp asimd\nmodel name\t: bf16 machine\n", False),
        ("", False),
    ],
)
def test_bfloat16_is_used_where_the_processor_has_it(description, expected):
    assert has_bfloat16(description) is expected
