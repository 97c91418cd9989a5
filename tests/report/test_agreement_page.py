"""The page of an agreement study: its numbers, its policy, and names that stay text."""

import base64
import hashlib

import pytest
from hostile import CARD_NAMES, MESSAGES
from reading import Page

from palate.report.agreement import write_agreement_page
from palate.studies.agreement_rows import ConditionScore, LabelRow
from palate.studies.human_agreement import agreement


def page(tmp_path, found, title="scores.csv against labels.csv"):
    return Page(write_agreement_page(found, tmp_path / "page.html", title=title))


def study(user="ada", condition="personal", *, again=True, conditions=2):
    """Two sessions of one user; the first condition is right, the second always the same."""
    places = [(session, n) for session in ("a", "b") for n in range(3)]
    labels = [LabelRow(user, session, n, n + 1) for session, n in places]
    if again:
        labels += [LabelRow(user, session, n, 3 - n, 2) for session, n in places[:3]]
    scores = [
        ConditionScore(condition, user, session, n, n, confidence=n, length=10.0 * n)
        for session, n in places
    ]
    if conditions == 2:
        scores += [ConditionScore("~" + condition, user, s, n, 3.0) for s, n in places]
    return agreement(labels, scores, resamples=50)


def test_the_page_shows_the_numbers_of_every_table(tmp_path):
    text = page(tmp_path, study()).text
    assert "6 rated replies of 1 person in 2 sessions; 6 pairs with different ratings." in text
    assert "1.0000" in text  # right
    assert "0.5000" in text  # always the same
    assert "the human ceiling" in text
    assert "0.0000" in text  # the second rating turned round
    assert "all swaps" in text
    assert "0.5000" in text  # p of two sessions
    assert "no confidence is given" in text


def test_chance_ceiling_and_intervals_are_drawn_where_they_belong(tmp_path):
    made = page(tmp_path, study())
    places = [value for tag, name, value in made.attributes if (tag, name) == ("svg", "x")]
    assert places == ["100.00%", "50.00%", "0.00%"]
    assert ("line", "class", "chance") in made.attributes
    assert ("line", "class", "limit") in made.attributes
    without = page(tmp_path, study(again=False, conditions=1))
    assert ("line", "class", "limit") not in without.attributes
    assert "There is one condition alone." in without.text


def test_the_page_runs_nothing_and_loads_nothing(tmp_path):
    made = page(tmp_path, study())
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
    plain = page(tmp_path, study())
    hostile = page(tmp_path, study(text, text), title=text)
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert hostile.comments == []


def test_a_study_without_a_pair_says_why(tmp_path):
    found = agreement([LabelRow("u", "s", 0, 1)], [ConditionScore("p", "u", "s", 0, 1.0)])
    text = page(tmp_path, found).text
    assert "n/a" in text
    assert "no session has two replies" in text
