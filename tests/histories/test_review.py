"""What a check says of a history: one sentence each, with its place, and what stops."""

import pytest

from palate.histories.figures import figures
from palate.histories.review import Purpose, review
from palate.types import Turn

from .chats import chat, rated

PURPOSE = Purpose(seed=7)


def found(sessions, purpose=PURPOSE):
    """Findings by kind."""
    return {one.kind: one for one in review(sessions, figures(sessions), purpose)}


def good(number=12, **of):
    """Sessions that nothing is to be said of: 12 ratings each, of 1..5 in turn."""
    return [rated(f"g{n}", *([1, 2, 3, 4, 5, 4, 3, 2, 1, 2, 3, 4]), **of) for n in range(number)]


def test_nothing_is_said_of_a_history_that_serves():
    assert found(good()) == {}


def test_too_few_sessions_stop():
    one = found(good(2))["too-few-sessions"]
    assert one.level == "stop"
    assert one.text.startswith("User u1 has too few sessions to split: 2, branches of one chat")


def test_few_sessions_and_few_ratings_are_weak():
    kinds = found([rated(f"s{n}", 1, 3, 5) for n in range(8)])
    assert kinds["few-sessions"].text == (
        "There are only 8 sessions, of which 2 would be held out; aim for 10 or more."
    )
    assert kinds["few-ratings"].text == "Only 24 replies are rated; aim for 100."
    assert kinds["few-pairs"].text.startswith(
        "Only 24 of 24 pairs of rated replies within a session have different ratings"
    )
    assert {one.level for one in kinds.values()} == {"weak"}


def test_a_person_who_always_gives_four_teaches_nothing():
    one = found([rated(f"s{n}", *[4] * 12) for n in range(12)])["no-spread"]
    assert one.level == "stop"
    assert one.text == "All 144 ratings are 4: they teach nothing, and no rubric can be made."


def test_a_person_who_nearly_always_gives_four_is_told_with_the_share():
    """120 of 144 are 4: 83 %, and 5/6 log2(6/5) + 1/6 log2(6) = 0.65 bits."""
    one = found([rated(f"s{n}", *[4] * 10, 1, 1) for n in range(12)])["little-spread"]
    assert one.level == "weak"
    assert one.text == (
        "83 % of the 144 ratings are 4 (entropy 0.65 of 2.32 bits): a person who nearly always "
        "gives 4 teaches little."
    )


def test_a_share_that_is_not_all_is_never_called_all():
    one = found([*(rated(f"s{n}", *[4] * 99) for n in range(12)), rated("t", 5)])["little-spread"]
    assert one.text.startswith("99 % of the 1,189 ratings are 4")


def test_no_rating_and_one_rating_stop():
    assert found([rated(f"s{n}", None) for n in range(4)])["no-rating"].level == "stop"
    one = found([rated("a", 4), *(rated(f"s{n}", None) for n in range(4))])["no-spread"]
    assert one.text.startswith("The only rating is 4: there is nothing to contrast")


@pytest.mark.parametrize("seed", range(4))
def test_labels_that_all_lie_in_the_held_out_part_stop(seed):
    """The one session that is rated 1 and 5 is on a panel card, so nothing is learned from it."""
    sessions = [rated(f"s{n}", None) for n in range(11)] + [rated("p", 1, 5, card="harbour")]
    kinds = found(sessions, Purpose(seed=seed, panel_cards=("harbour",)))
    assert kinds["no-spread-in-training"].level == "stop"
    assert kinds["no-spread-in-training"].text == (
        "The training sessions hold no rating, so no rubric can be made."
    )


def test_agreement_needs_pairs_in_the_held_out_part():
    """Of three sessions one is held out; only one has different labels, and seed 0 trains on it."""
    flat = [rated(f"s{n}", 3) for n in range(2)]
    one = found([*flat, rated("t", 1, 5)], Purpose(seed=0))["no-pairs-held-out"]
    assert one.text.endswith("so agreement with this user cannot be measured.")
    panel = [rated("p", 1, 5, card="harbour"), *flat, rated("t", 1, 5), rated("u", 1, 5)]
    assert "no-pairs-held-out" not in found(panel, Purpose(0, ("harbour",)))


def test_sessions_without_any_rating_are_named():
    one = found([*good(), *(rated(f"s{n}", None) for n in range(5))])["unrated-session"]
    assert one.text == (
        "5 of 17 sessions have no rated reply (s0, s1, s2 and 2 more); a rubric learns nothing "
        "there."
    )
    assert one.places == ("s0", "s1", "s2", "s3", "s4")


def test_endings_that_are_all_unknown_are_weak_and_some_are_a_note():
    kinds = found(good(ended_by="unknown"))
    assert kinds["endings-unknown"].text.startswith("No session says how it ended; a simulator")
    some = found([*good(), rated("x", 1, ended_by="unknown")])
    assert some["ending-unknown"].text == "1 of 13 sessions does not say how it ended (x)."
    assert some["ending-unknown"].level == "note"


def test_a_history_that_nobody_left_teaches_no_leaving():
    assert found(good(ended_by="limit"))["few-quits"].text == (
        "The user left no session by choice; a simulator learns leaving ([QUIT]) from sessions "
        "that the user left by choice."
    )
    two = [*good(10, ended_by="limit"), rated("x", 1), rated("y", 1)]
    assert "left only 2 sessions by choice" in found(two)["few-quits"].text


def test_mixed_unknown_and_wrong_languages_are_told():
    mixed = found([*good(9), *(rated(f"z{n}", 1, language="zh-Hans") for n in range(3))])
    assert "(en: 9, zh-Hans: 3)" in mixed["mixed-languages"].text
    assert found(good(language="ja"))["other-language"].text.startswith(
        "All 12 sessions are marked as neither English nor Chinese (g0, g1, g2 and 9 more)"
    )
    assert found(good(language="en-GB")) == {}


def test_a_session_in_other_words_than_its_tag_says_is_named():
    wrong = chat("w", "在吗？", "我在雨里走了九里路，可以付你银子，今晚给我一张床吧。", ("好。", 4))
    assert found([*good(), wrong])["language-tag"].text == (
        "1 of 13 sessions is marked with another language than the user writes (w)."
    )


def test_panel_cards_are_a_note_until_they_must_be_learned_from():
    purpose = Purpose(7, ("harbour",))
    noted = found([*good(), rated("p", 1, card="harbour")], purpose)
    assert noted["panel-card"].text == (
        "1 of 13 sessions is on panel cards (p); the split holds out such sessions."
    )
    few = found([*good(2), *(rated(f"p{n}", 1, 2, card="harbour") for n in range(10))], purpose)
    assert few["panel-in-training"].level == "weak"
    assert "which flatters the scores" in few["panel-in-training"].text


def test_cards_that_the_study_cannot_find_are_named():
    purpose = Purpose(7, (), frozenset({"ash"}))
    assert found(good(), purpose) == {}
    one = found([*good(), rated("x", 1, card="lost")], purpose)["unknown-card"]
    assert one.text.startswith("1 card id of the history has no card in the study's panel")
    assert one.places == ("x",)


def test_rated_openings_are_a_note():
    one = found([*good(), chat("o", ("Yes?", 5), "hi there", ("No.", 2))])["rated-opening"]
    assert one.text == "1 rating lies on an opening, which no candidate wrote: it is not used."


def test_a_user_who_wrote_nothing_stops():
    sessions = [chat(f"s{n}", f"Yes, {n}?") for n in range(5)]
    assert found(sessions)["no-user-message"].level == "stop"


def test_the_gravest_comes_first():
    levels = [one.level for one in review(good(2), figures(good(2)), PURPOSE)]
    assert levels == sorted(levels, key=("stop", "weak", "note").index)
    assert levels[0] == "stop"


def test_what_reads_without_an_error_may_be_blank_to_the_eye():
    blank = [
        session.model_copy(
            update={
                "turns": tuple(
                    Turn(speaker=t.speaker, text="\u200b" if t.speaker == "user" else t.text)
                    for t in session.turns
                )
            }
        )
        for session in good()
    ]
    assert found(blank)["blank-history"].level == "stop"


def test_the_thresholds_are_those_that_are_said():
    """80 % of one label is too much; 50 pairs and 10 sessions are enough."""
    of_four = found([rated(f"s{n}", 4, 4, 4, 4, 1) for n in range(12)])
    assert of_four["little-spread"].text.startswith("80 % of the 60 ratings are 4")
    assert "little-spread" not in found([rated(f"s{n}", 4, 4, 4, 1) for n in range(12)])
    ten = [rated(f"s{n}", 1, 1, 1, 1, 1, 2) for n in range(10)]
    assert not {"few-pairs", "few-sessions"} & set(found(ten))
    assert "few-pairs" in found([*ten[:9], rated("s9", 1, 1, 1, 1, 2)])
