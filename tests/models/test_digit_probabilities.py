"""Digits with their probabilities, read from token log-probabilities."""

import math

import pytest

from palate.models.digits import digit_fields, read_digits


def token(text, **alternatives):
    """A token whose alternatives have these probabilities; names have "d" before a digit."""
    top = [
        {"token": name.removeprefix("d"), "logprob": math.log(p)}
        for name, p in alternatives.items()
    ]
    logprob = next((t["logprob"] for t in top if t["token"] == text), math.log(0.5))
    return {"token": text, "logprob": logprob, "top_logprobs": top}


def test_probabilities_are_renormalised_over_the_choices():
    """4 has 0.3, 5 has 0.1, the rest lies on other words: 0.75 and 0.25."""
    logprobs = {"content": [token("4", d4=0.3, d5=0.1, The=0.6)]}
    (read,) = read_digits(logprobs, 1, "12345")
    assert read == pytest.approx({"4": 0.75, "5": 0.25})


def test_each_digit_has_a_distribution_and_separators_are_passed_over():
    logprobs = {"content": [token("3", d3=0.5), token(" "), token("5", d5=0.9, d4=0.1)]}
    assert read_digits(logprobs, 2, "12345") == (
        pytest.approx({"3": 1.0}),
        pytest.approx({"5": 0.9, "4": 0.1}),
    )


def test_a_token_with_a_leading_space_is_the_same_digit():
    top = [{"token": " 4", "logprob": math.log(0.2)}, {"token": "4", "logprob": math.log(0.2)}]
    logprobs = {"content": [{"token": " 4", "logprob": math.log(0.2), "top_logprobs": top}]}
    assert read_digits(logprobs, 1, "12345") == (pytest.approx({"4": 1.0}),)


def test_a_token_of_two_digits_gives_two_distributions():
    """First: 4 by "45" and "43" 0.6, 3 by "35" 0.2. Second, after a 4: 5 has 0.4 of 0.6."""
    logprobs = {"content": [token("45", d45=0.4, d43=0.2, d35=0.2)]}
    first, second = read_digits(logprobs, 2, "12345")
    assert first == pytest.approx({"4": 0.75, "3": 0.25})
    assert second == pytest.approx({"5": 2 / 3, "3": 1 / 3})


def test_the_written_token_counts_where_the_list_lacks_it():
    logprobs = {"content": [{"token": "2", "logprob": math.log(0.1), "top_logprobs": []}]}
    assert read_digits(logprobs, 1, "12345") == (pytest.approx({"2": 1.0}),)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": [token("Score", Score=0.9), token("4", d4=0.9)]},
        {"content": [token("4", d4=0.9), token("4", d4=0.9)]},
        {"content": [token("9", d9=0.9)]},
        {"content": [{"token": 4}]},
    ],
)
def test_anything_but_the_asked_digits_gives_no_probabilities(logprobs):
    assert read_digits(logprobs, 1, "12345") == ()


def test_a_grammar_forces_exactly_the_digits():
    fields = digit_fields("grammar", 2, '1"\\')
    assert fields["grammar"] == 'root ::= digit digit\ndigit ::= "1" | "\\"" | "\\\\"'
    assert fields["max_tokens"] == 2


def test_without_a_grammar_there_is_room_for_separators():
    assert digit_fields("logprobs", 3, "12345") == {
        "logprobs": True,
        "top_logprobs": 20,
        "max_tokens": 8,
    }
