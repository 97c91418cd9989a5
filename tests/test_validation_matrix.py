"""Own against others, worked out by hand."""

import pytest

from palate.simulators.validation.likelihood import SessionNll, Summed
from palate.simulators.validation.matrix import own_against_others


def nlls(person, adapter, *sessions, leaving=(0.0, 0)):
    return [
        SessionNll(
            user_id=person,
            session_id=f"{person}{number}",
            adapter=adapter,
            question=f"{person}/{adapter}/{number}",
            messages=Summed(*sums),
            leaving=Summed(*leaving),
        )
        for number, sums in enumerate(sessions)
    ]


def row(person, **columns):
    return {adapter: nlls(person, adapter, *sums) for adapter, sums in columns.items()}


WORLD = {
    "ann": row("ann", ann=[(4.0, 2), (2.0, 2)], bob=[(8.0, 2), (4.0, 2)], cat=[(6.0, 2), (4.0, 2)]),
    "bob": row("bob", ann=[(9.0, 3)], bob=[(6.0, 3)], cat=[(12.0, 3)]),
    "cat": row("cat", ann=[(1.0, 1)], bob=[(2.0, 1)], cat=[(3.0, 1)]),
}


def test_values_are_nats_a_token_and_the_lowest_of_a_row_should_be_its_own():
    """Ann: 6/4, 12/4, 10/4; Bob: 3, 2, 4; Cat's own adapter is the worst of the three."""
    found = own_against_others(WORLD, seed=1)
    assert found.persons == ("ann", "bob", "cat")
    assert [r.nll for r in found.rows] == [(1.5, 3.0, 2.5), (3.0, 2.0, 4.0), (1.0, 2.0, 3.0)]
    assert [r.own_is_lowest for r in found.rows] == [True, True, False]
    assert found.diagonal_wins is False
    assert [r.tokens for r in found.rows] == [4, 3, 1]


def test_the_margin_is_to_the_nearest_other_and_paired_by_session():
    """Ann to Cat's: (6-4)/2 and (4-2)/2, a whole nat in each session, so exactly 1."""
    ann = own_against_others(WORLD, seed=1).rows[0]
    assert ann.nearest == "cat"
    assert ann.margin.value == pytest.approx(1.0)
    assert (ann.margin.low, ann.margin.high) == (pytest.approx(1.0), pytest.approx(1.0))


def test_a_lost_diagonal_has_a_margin_below_0():
    cat = own_against_others(WORLD, seed=1).rows[2]
    assert (cat.nearest, cat.margin.value) == ("ann", pytest.approx(-2.0))
    assert "one session" in cat.margin.reason


def test_two_persons_who_win_their_rows_win_the_diagonal():
    two = {p: {a: WORLD[p][a] for a in ("ann", "bob")} for p in ("ann", "bob")}
    assert own_against_others(two, seed=1).diagonal_wins is True


def test_one_adapter_has_no_other_to_be_compared_with():
    found = own_against_others({"ann": {"ann": WORLD["ann"]["ann"]}}, seed=1)
    assert (found.diagonal_wins, found.rows[0].own_is_lowest) == (None, None)
    assert "only one person" in found.reason
    assert found.rows[0].nll == (1.5,)


def test_without_tokens_nothing_is_decided():
    empty = {person: row(person, ann=[(0.0, 0)], bob=[(0.0, 0)]) for person in ("ann", "bob")}
    found = own_against_others(empty, seed=1)
    assert (found.diagonal_wins, found.rows[0].nll) == (None, (None, None))
    assert found.reason == "no held-out message was measured"


def test_a_long_session_weighs_as_much_as_its_tokens_and_leaving_nothing():
    """(4 + 2) / (2 + 6), not the mean of 2 and 1/3; leaving's 90 nats are told apart."""
    sums = nlls("ann", "ann", (4.0, 2), (2.0, 6), leaving=(90.0, 3))
    [one] = own_against_others({"ann": {"ann": sums}}, seed=1).rows
    assert (one.nll, one.tokens) == ((0.75,), 8)


def test_a_tie_with_another_is_no_win():
    world = {person: row(person, ann=[(4.0, 2)], bob=[(4.0, 2)]) for person in ("ann", "bob")}
    found = own_against_others(world, seed=1)
    assert [r.own_is_lowest for r in found.rows] == [False, False]
    assert found.diagonal_wins is False


def test_one_undecided_row_leaves_the_diagonal_undecided():
    world = {
        "ann": row("ann", ann=[(2.0, 2)], bob=[(4.0, 2)]),
        "bob": row("bob", ann=[(0.0, 0)], bob=[(0.0, 0)]),
    }
    found = own_against_others(world, seed=1)
    assert [r.own_is_lowest for r in found.rows] == [True, None]
    assert (found.diagonal_wins, found.reason) == (None, None)


def test_rows_and_columns_are_in_the_order_of_the_persons():
    world = {p: WORLD[p] for p in ("cat", "ann", "bob")}
    found = own_against_others(world, seed=1)
    assert found.persons == ("cat", "ann", "bob")
    assert [r.nll for r in found.rows] == [(3.0, 1.0, 2.0), (2.5, 1.5, 3.0), (4.0, 3.0, 2.0)]
