"""Habits of writing, counted by hand."""

from palate.habits import characters, habits, quantile, words


def test_the_shares_are_of_messages():
    counted = habits(["Hello!", "*waves* ok", "why? :)", "hm...", "你好呀～"])
    assert counted.exclamation == 1 / 5
    assert counted.actions == 1 / 5
    assert counted.question == 1 / 5
    assert counted.emoji == 1 / 5
    assert counted.ellipsis == 1 / 5
    assert counted.no_final_mark == 2 / 5  # "*waves* ok" and the smiley
    assert counted.lower_case == 3 / 4  # the Chinese message has no letter that could be a capital


def test_without_latin_letters_nothing_is_said_of_capitals():
    assert habits(["你好"]).lower_case is None


def test_a_han_character_or_kana_is_a_word_and_punctuation_is_none():
    assert words("two words") == 2
    assert words("你好，世界！") == 4
    assert words("我用 Python 写") == 4
    assert words("ありがとう。") == 5
    assert words("well...ok then") == 2
    assert characters("a b\n你 ") == 3


def test_a_quantile_is_a_value_that_occurs():
    assert [quantile([1, 2, 3, 4, 50], part) for part in (0.1, 0.5, 0.9)] == [1, 3, 50]
