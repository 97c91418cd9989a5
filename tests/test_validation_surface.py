"""How messages look, by hand."""

import pytest

from palate.simulators.validation.speaking import Pair
from palate.simulators.validation.surface import LENGTH_EDGES, marks, surface


def of(*texts):
    """Pairs of one session each: (human, simulated)."""
    return [Pair(f"s{n}", 0, human, simulated) for n, (human, simulated) in enumerate(texts)]


def measure(found, name):
    return next(one for one in found.distributions if one.name == name)


def habit(found, name):
    return next(one for one in found.habits if one.name == name)


FOUR = of(("a", "a b c"), ("a b", "a b c d"), ("a b c", "a b c d e"), ("a b c d", "a b c d e f"))


def test_distances_of_two_distributions_by_hand():
    """Words 1, 2, 3, 4 against 3, 4, 5, 6: up to 2, half of the first and none of the second.

    Each value moves by 2.
    """
    words = measure(surface(FOUR, seed=1), "words")
    assert words.ks == 0.5
    assert words.wasserstein == pytest.approx(2.0)
    assert (words.human.median, words.simulated.median) == (2.0, 4.0)
    assert (words.human.mean, words.simulated.mean) == (2.5, 4.5)


def test_alike_distributions_have_no_distance():
    same = measure(surface(of(("a b", "c d"), ("hm", "so")), seed=1), "words")
    assert (same.ks, same.wasserstein) == (0.0, 0.0)


def test_bars_hold_every_message_once():
    """Words 1, 2, 3, 4: bars [0, 2), [2, 3), [3, 5), …"""
    words = measure(surface(FOUR, seed=1), "words")
    assert words.bars.human[:4] == (1, 1, 2, 0)
    assert sum(words.bars.human) == sum(words.bars.simulated) == 4
    assert len(words.bars.edges) == len(words.bars.human) == len(LENGTH_EDGES)


def test_a_message_longer_than_every_edge_is_in_the_last_bar():
    bars = measure(surface(of(("a " * 500, "a")), seed=1), "words").bars
    assert bars.human[-1] == 1


def test_chinese_is_counted_by_signs():
    found = surface(of(("今晚去哪？", "好")), seed=1)
    assert measure(found, "characters").human.median == 5.0
    assert measure(found, "words").human.median == 4.0


def test_marks_are_a_share_of_the_characters_that_can_be_seen():
    """Five characters of which two are marks; in Chinese one of five."""
    assert marks("a, b c!") == pytest.approx(2 / 5)
    assert marks("今晚去哪？") == pytest.approx(0.2)
    assert marks("ok") == marks("") == 0.0


def test_a_habit_is_compared_as_simulated_less_human():
    """Questions: 1 of 4 human messages, 3 of 4 simulated ones."""
    found = surface(
        of(("why?", "why?"), ("ok", "really?"), ("ok", "and you?"), ("ok", "fine")), seed=1
    )
    question = habit(found, "question")
    assert (question.human, question.simulated) == (0.25, 0.75)
    assert question.difference.value == 0.5
    assert question.difference.low < 0.5 < question.difference.high


def test_case_is_told_only_where_there_are_latin_letters():
    found = surface(of(("好的", "fine"), ("嗯", "Yes")), seed=1)
    lower = habit(found, "lower_case")
    assert (lower.human, lower.simulated) == (None, 0.5)
    assert "Latin" in lower.difference.reason


def test_a_spread_has_values_that_occur():
    """Of 1 to 10 words: the first, third, fifth, eighth and ninth of the ten."""
    ten = surface(of(*(("a " * n, "a") for n in range(1, 11))), seed=1)
    human = measure(ten, "words").human
    assert (human.p10, human.p25, human.median, human.p75, human.p90) == (1, 3, 5, 8, 9)


def test_the_simulators_bars_are_of_its_own_messages():
    """Words 3, 4, 5, 6 in the bars [0, 2), [2, 3), [3, 5), [5, 8)."""
    words = measure(surface(FOUR, seed=1), "words")
    assert words.bars.simulated[:4] == (0, 0, 2, 2)


def test_smileys_and_signs_of_arithmetic_are_no_marks():
    assert marks("a+b=c 🙂") == 0.0


def test_a_habit_that_some_sessions_do_not_show_on_one_side_is_compared_over_the_others():
    """Human: one of two without a capital; simulated: two of three. 2/3 less 1/2."""
    found = surface(of(("嗯", "fine"), ("ok", "Yes"), ("Hm", "so")), seed=1)
    lower = habit(found, "lower_case")
    assert (lower.human, lower.simulated) == (0.5, pytest.approx(2 / 3))
    assert lower.difference.value == pytest.approx(1 / 6)
