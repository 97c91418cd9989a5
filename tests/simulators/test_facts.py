"""What is counted of a person's messages, on histories small enough to count by hand."""

import pytest

from palate.errors import InputError
from palate.simulators import measured
from palate.simulators.facts import language_of, quantile
from palate.types import Session, TrainingSession, Turn


def trained(*chats, language="en"):
    return [
        TrainingSession(
            Session(
                session_id=f"s{number}",
                user_id="u1",
                card_id="ash",
                language=language,
                ended_by=ended_by,
                turns=tuple(Turn(speaker=speaker, text=text) for speaker, text in turns),
            )
        )
        for number, (ended_by, turns) in enumerate(chats)
    ]


FOUR = trained(
    (
        "quit",
        [("character", "Yes?"), ("user", "hi there :)"), ("character", "Hm."), ("user", "bye")],
    ),
    ("limit", [("user", "*sits down* What now?!"), ("character", "Tea."), ("user", "ok…")]),
)


def test_shares_are_counted_over_the_users_messages_alone():
    """Four messages; each of these marks stands in one of them, a final mark in two."""
    facts = measured(FOUR, "en")
    assert (facts.sessions, facts.messages) == (2, 4)
    assert (facts.emoji, facts.actions, facts.exclamation) == (0.25, 0.25, 0.25)
    assert (facts.question, facts.ellipsis) == (0.25, 0.25)
    # "hi there :)" ends with a bracket and no mark before it; "bye" with a letter.
    assert facts.no_final_mark == 0.5
    assert facts.lower_case == 0.75


def test_lengths_are_words_in_english_and_characters_in_chinese():
    """Words: 3, 1, 4, 1. Characters without white space: 4 and 2."""
    english = measured(FOUR, "en")
    assert (english.length_p10, english.length_median, english.length_p90) == (1, 1, 4)
    chinese = measured(trained(("quit", [("user", "今晚 去哪"), ("user", "好。")])), "zh")
    assert (chinese.length_p10, chinese.length_median, chinese.length_p90) == (2, 2, 4)


def test_leaving_is_counted_over_the_sessions_that_the_user_left():
    left = measured(
        trained(
            ("quit", [("user", "a"), ("character", "b"), ("user", "c")]),
            ("quit", [("user", "a"), ("character", "b")]),
            ("limit", [("user", "a")] * 9),
        ),
        "en",
    )
    assert (left.left, left.messages_before_leaving, left.farewell) == (2, 1, 0.5)


def test_what_could_not_be_counted_is_none_and_is_not_told():
    facts = measured(trained(("limit", [("user", "好的")])), "zh")
    assert (facts.lower_case, facts.messages_before_leaving, facts.farewell) == (None, None, None)
    assert "英文" not in facts.shown("zh")
    assert "道别" not in facts.shown("zh")
    assert "1 次聊天里有 0 次是你自己离开的" in facts.shown("zh")


def test_the_facts_are_told_in_sentences():
    assert measured(FOUR, "en").shown("en") == (
        "Counted in 4 of your messages: usual length in words 1, mostly 1 to 4. Emoji in "
        '25%, acted-out gestures in 25%, "!" in 25%, "?" in 25%, "…" in 25%; 50% end '
        "without a mark.\n\n"
        "Without a capital letter: 75%.\n\n"
        "You left by choice in 1 of 2 chats.\n\n"
        "You leave after about 2 messages, with a goodbye in 100% of cases."
    )


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("nice 🦊", 1), ("🇫🇷", 1), ("❤️", 1), (":-D", 1), ("^_^", 1),
        ("see http://x.org", 0), ("at 8) sharp", 0), ("ratio 1:3", 0), ("好！", 0), ("…", 0),
    ],
)  # fmt: skip
def test_emoji_and_smileys_are_told_from_other_signs(text, share):
    assert measured(trained(("limit", [("user", text)])), "en").emoji == share


def test_a_quantile_is_a_value_that_was_seen():
    assert [quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], q) for q in (0.1, 0.5, 0.9)] == [1, 5, 9]
    assert quantile([7], 0.1) == 7


def test_the_language_is_that_of_most_sessions():
    chat = ("limit", [("user", "今晚去哪里")])
    assert language_of(trained(chat, language="zh-CN")) == "zh"
    assert language_of(trained(chat, language="fr")) == "zh"
    assert language_of([*trained(chat, chat, language="en"), *trained(chat, language="zh")]) == "en"


def test_a_history_without_a_message_of_the_user_is_refused():
    with pytest.raises(InputError, match="hold no message of the user"):
        measured(trained(("limit", [("character", "Yes?")])), "en")
