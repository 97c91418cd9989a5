"""Single dimensions: the same means, n/a counted, and their correlations."""

import pytest

from palate.aggregate import (
    DimensionRow,
    aggregate,
    dimension_correlations,
    dimension_table,
    with_dimensions,
)
from palate.errors import InputError
from palate.types import ScoreRow


def answers(dimension, values, candidate="A", user="u1", card="k1", repetition=1):
    return [
        DimensionRow(candidate, user, card, repetition, "generic", reply, dimension, value)
        for reply, value in enumerate(values)
    ]


def test_a_dimension_is_a_mean_over_trajectories_and_users():
    """u1: ((5 + 3)/2 + 2)/2 = 3, u2: 5; mean 4 over 4 answers, and one n/a."""
    rows = [
        *answers("G5", [5, 3, None]),
        *answers("G5", [2], card="k2"),
        *answers("G5", [5], user="u2"),
    ]
    score = dimension_table(rows)["A"]["G5"]
    assert (score.mean, score.n, score.na) == (4.0, 4, 1)


def test_a_dimension_is_no_surer_than_the_user_with_the_fewest_cards():
    rows = [*answers("G5", [4], user="u2")]
    for number in (1, 2, 3):
        rows += answers("G5", [number], card=f"k{number}")
    score = dimension_table(rows)["A"]["G5"]
    assert (score.mean, score.low, score.high) == (3.0, None, None)
    assert score.reason == "no interval: the number rests on one card"


def test_a_dimension_that_a_user_never_answered_has_no_mean():
    rows = [*answers("G5", [5, 3]), *answers("G5", [None], user="u2")]
    score = dimension_table(rows)["A"]["G5"]
    assert (score.mean, score.low, score.n, score.na) == (None, None, 2, 1)
    assert score.reason == "no answer for user u2"


def test_a_dimension_has_the_interval_of_its_cards():
    """Cards 1..5: sd sqrt(2.5), t(4) = 2.776445: 3 ± 2.776445 * sqrt(2.5 / 5) = 3 ± 1.963."""
    rows = [row for k in range(1, 6) for row in answers("G1", [k], card=f"k{k}")]
    score = dimension_table(rows)["A"]["G1"]
    assert score.mean == 3.0
    assert score.high - 3 == pytest.approx(1.963, rel=0.05)
    assert 3 - score.low == pytest.approx(1.963, rel=0.05)


def test_an_overall_and_its_only_dimension_have_the_same_interval():
    values = [2, 5, 3, 4]
    scores = [ScoreRow("u1", f"k{k}", "A", 1, "generic", 0, v) for k, v in enumerate(values)]
    rows = [row for k, v in enumerate(values) for row in answers("G1", [v], card=f"k{k}")]
    generic = aggregate(scores, seed=5).candidates[0].generic
    score = dimension_table(rows, seed=5)["A"]["G1"]
    assert (score.mean, score.low, score.high) == (generic.mean, generic.low, generic.high)


def test_dimensions_are_listed_by_number_for_each_candidate():
    rows = [*answers("G10", [3]), *answers("G2", [3]), *answers("G2", [4], candidate="B")]
    table = dimension_table(rows)
    assert list(table["A"]) == ["G2", "G10"]
    assert list(table["B"]) == ["G2"]
    assert dimension_table([]) == {}


def test_a_value_off_the_scale_is_refused():
    with pytest.raises(InputError, match=r"dimension G1 of candidate A .* the value 7 is not in"):
        dimension_table(answers("G1", [7]))


def test_dimensions_join_the_results():
    results = aggregate([ScoreRow("u1", "k1", "A", 1, "generic", 0, 3)])
    joined = with_dimensions(results, dimension_table(answers("G1", [3])))
    assert joined.candidates[0].dimensions["G1"].mean == 3.0
    assert results.candidates[0].dimensions == {}


def test_correlations_pair_the_answers_of_a_verdict():
    """G1 (1, 2, 3, 4), G2 twice that where answered, G3 falls: 1, -1; G4 never varies: None."""
    rows = [
        *answers("G1", [1, 2, 3, 4]),
        *answers("G2", [2, None, 3, 4]),
        *answers("G3", [5, 4, 3, 2]),
        *answers("G4", [3, 3, 3, 3]),
    ]
    found = dimension_correlations(rows)["generic"]
    assert found.dimensions == ("G1", "G2", "G3", "G4")
    assert found.matrix[0][2] == pytest.approx(-1)
    # (1, 2), (3, 3), (4, 4): centred products 3, squares 14/3 and 2.
    assert found.matrix[0][1] == pytest.approx(3 / (14 / 3 * 2) ** 0.5)
    assert found.pairs[0][1] == 3
    assert found.matrix[0][3] is None


def test_tracks_have_correlations_of_their_own():
    session = [row._replace(track="session", reply=None) for row in answers("S1", [3])]
    found = dimension_correlations([*answers("G1", [3]), *session])
    assert {track: matrix.dimensions for track, matrix in found.items()} == {
        "generic": ("G1",),
        "session": ("S1",),
    }
