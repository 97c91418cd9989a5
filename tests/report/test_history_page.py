"""The page of histories: its numbers, its policy, and text from chats that stays text."""

import base64
import hashlib

import pytest
from hostile import CARD_NAMES, MESSAGES
from reading import Page

from palate.errors import StoreError
from palate.histories.figures import figures, ratings
from palate.histories.findings import Finding
from palate.report.history import UserHistory, write_history_page
from palate.report.history_charts import course, leaving_bars, rating_bars, segments, time
from palate.types import Session, Turn


def session(name, labels, *, card="ash", user="u1", ended_by="quit"):
    turns = [Turn(speaker="character", text="Yes?")]
    for label in labels:
        turns.append(Turn(speaker="user", text="go on then"))
        turns.append(Turn(speaker="character", text="No.", satisfaction=label))
    return Session(
        session_id=name, user_id=user, card_id=card, ended_by=ended_by, turns=tuple(turns)
    )


def page(tmp_path, *histories, title="my study"):
    return Page(write_history_page(histories, tmp_path / "page.html", title=title))


def told(*sessions, findings=()):
    return UserHistory(figures(sessions), findings)


def test_the_page_shows_each_persons_numbers(tmp_path):
    text = page(tmp_path, told(session("a", [1, 5]), session("b", [5, 5]))).text
    assert "1 person, 2 sessions, 4 rated replies." in text
    assert "4 of 4" in text  # rated of all replies
    assert "1 of 2" in text  # pairs with different ratings
    assert "4.00" in text
    assert "0.81" in text  # entropy of 1:3
    assert "3 (75%)" in text


def test_findings_stand_with_their_person(tmp_path):
    finding = Finding(level="stop", kind="no-spread", text="All 4 ratings are 4.")
    made = page(tmp_path, told(session("a", [4] * 4), findings=(finding,)))
    assert "All 4 ratings are 4." in made.text
    assert ("li", "class", "stop") in made.attributes
    assert "nothing to remark" in page(tmp_path, told(session("a", [1, 5]))).text


def test_the_page_runs_nothing_and_loads_nothing(tmp_path):
    made = page(tmp_path, told(session("a", [1, 5])))
    [style] = made.styles
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = made.policy()
    assert (policy["default-src"], policy["script-src"]) == ("'none'", "'none'")
    assert policy["style-src"] == f"'sha256-{digest}'"
    assert made.scripts == []
    assert not {"src", "style"} & {name for _, name, _ in made.attributes}
    assert all(value.startswith("#") for _, name, value in made.attributes if name == "href")


@pytest.mark.parametrize("text", [*CARD_NAMES, *MESSAGES])
def test_hostile_text_in_names_stays_text(tmp_path, text):
    finding = Finding(level="weak", kind="x", text=f"Said: {text}")
    plain = page(tmp_path, told(session("a", [1, 5]), findings=(finding,)))
    hostile = page(
        tmp_path,
        told(session("a", [1, 5], card=text or "x", user=text or "x"), findings=(finding,)),
        title=text,
    )
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert hostile.comments == []


def test_an_empty_history_of_ratings_has_no_lines_and_says_n_a(tmp_path):
    made = page(tmp_path, told(session("a", [None])))
    assert ("figure", ("class",)) not in made.elements
    assert "n/a" in made.text


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_history_page([told(session("a", [1]))], tmp_path / "file" / "x.html", title="t")


def test_bars_are_shares_of_all_ratings():
    bars = rating_bars(ratings([1, 4, 4, 4]))
    assert [(bar.label, bar.width, bar.text) for bar in bars] == [
        ("1", "25.00%", "1 (25%)"),
        ("2", "0.00%", "0 (0%)"),
        ("3", "0.00%", "0 (0%)"),
        ("4", "75.00%", "3 (75%)"),
        ("5", "0.00%", "0 (0%)"),
    ]


def test_segments_lie_side_by_side_and_leave_out_what_was_not_given():
    found = [(s.label, s.x, s.width) for s in segments(ratings([1, 4, 4, 4]))]
    assert found == [(1, "0.00%", "25.00%"), (4, "25.00%", "75.00%")]
    assert segments(ratings([])) == ()


def test_a_point_of_the_course_is_the_mean_at_that_reply():
    """First replies 1 and 5: 3; second 5: at the top; nothing at the third; fourth 2."""
    points = course(figures([session("a", [1, 5, None, 2]), session("b", [5])]))
    assert [(p.label, p.x, p.y, p.number, p.mean) for p in points] == [
        ("1", "0.00%", "50.00%", 2, 3.0),
        ("2", "33.33%", "0.00%", 1, 5.0),
        ("3", "66.67%", None, 0, None),
        ("4", "100.00%", "75.00%", 1, 2.0),
    ]


def test_long_courses_are_drawn_by_stretches_weighed_by_their_ratings():
    """50 sessions in stretches of three; the last has two."""
    sessions = [session(f"s{n}", [1, 1, 1] if n == 0 else [5]) for n in range(50)]
    points = time(figures(sessions))
    assert len(points) == 17
    assert (points[0].label, points[0].number, points[0].mean) == ("1–3", 5, 13 / 5)
    assert points[-1].label == "49–50"


def test_one_session_stands_in_the_middle():
    [point] = time(figures([session("a", [3])]))
    assert (point.x, point.y) == ("50.00%", "50.00%")


def test_leaving_is_drawn_from_the_shortest_to_the_longest():
    bars = leaving_bars(figures([session("a", [1]), session("b", [1]), session("c", [1, 1, 1])]))
    assert [(bar.label, bar.width, bar.text) for bar in bars] == [
        ("1", "100.00%", "2 sessions"),
        ("2", "0.00%", "0 sessions"),
        ("3", "50.00%", "1 session"),
    ]
    assert leaving_bars(figures([session("a", [1], ended_by="limit")])) == ()


def test_of_many_cards_the_first_forty_are_shown(tmp_path):
    sessions = [session(f"s{n}", [1], card=f"card-{n:02}") for n in range(42)]
    text = page(tmp_path, told(*sessions)).text
    assert "card-39" in text
    assert "card-40" not in text


def test_half_an_emoji_in_a_name_is_written_as_its_number(tmp_path):
    assert "u\\ud83d" in page(tmp_path, told(session("s", [1], user="u\ud83d"))).text
