"""A split told session by session: where each went, why, and how even the parts are."""

from palate.histories import split
from palate.histories.explained import explained
from palate.histories.split import parts

from .chats import chat, rated

SAID = ("Yes?", "I have walked nine miles in the rain and I can pay you in silver.")


def why(sessions, made):
    told = explained(sessions, made)
    return {one.session_id: (one.part, one.why) for one in told.sessions}


def test_panel_cards_branches_and_the_draw_are_told_apart():
    sessions = [
        *(rated(f"s{n}", 3) for n in range(4)),
        rated("p", 3, card="harbour"),
        chat("q1", *SAID, "Come in.", card="harbour"),
        chat("q2", *SAID, "Go away.", card="copy"),
    ]
    reasons = why(sessions, split(sessions, seed=7, panel_cards={"harbour"}))
    assert reasons["p"] == ("held_out", "panel card")
    assert reasons["q1"] == ("held_out", "panel card")
    assert reasons["q2"] == ("held_out", "branch of q1 (panel card)")
    assert sorted(reasons[f"s{n}"] for n in range(4)) == [
        ("held_out", "drawn"),
        *[("training", "not drawn")] * 3,
    ]


def test_a_branch_names_the_session_that_it_stays_with():
    sessions = [
        *(rated(f"s{n}", 3) for n in range(3)),
        chat("a1", *SAID, "Come in."),
        chat("a2", *SAID, "Go away."),
    ]
    reasons = why(sessions, split(sessions, seed=7))
    assert reasons["a2"] == (reasons["a1"][0], "branch of a1")


def test_panel_sessions_that_had_to_be_learned_from_say_so():
    sessions = [rated("s0", 3), *(rated(f"p{n}", 3, card="harbour") for n in range(4))]
    reasons = why(sessions, split(sessions, seed=7, panel_cards={"harbour"}))
    assert ("training", "panel card, too few others") in reasons.values()


def test_the_strata_count_cards_and_endings():
    sessions = [rated(f"s{n}", 3) for n in range(4)] + [rated("b", 3, card="bo", ended_by="limit")]
    made = parts(sessions, {"s0", "s1", "b"}, seed=0, panel_cards=(), held_out_share=0.2)
    strata = explained(sessions, made).strata
    assert [(s.card_id, s.ended_by, s.training, s.held_out) for s in strata] == [
        ("ash", "quit", 2, 2),
        ("bo", "limit", 1, 0),
    ]


def test_a_record_that_tears_branches_apart_is_told():
    sessions = [
        *(rated(f"s{n}", 3) for n in range(3)),
        chat("a1", *SAID, "Come in."),
        chat("a2", *SAID, "Go away."),
    ]
    torn = parts(sessions, {"s0", "s1", "a1"}, seed=0, panel_cards=(), held_out_share=0.2)
    assert explained(sessions, torn).torn == (("a1", "a2"),)
    assert explained(sessions, split(sessions, seed=0)).torn == ()


def test_no_word_and_no_rating_is_in_what_is_told():
    sessions = [rated(f"s{n}", 3) for n in range(4)]
    told = explained(sessions, split(sessions, seed=7)).model_dump_json()
    assert "I ask" not in told
    assert "satisfaction" not in told
