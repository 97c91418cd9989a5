"""The written content of the sample study: what the demo, the docs and a reader rely on."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import mean

import pytest

from palate import histories
from palate.cards import library
from palate.config import load_study
from palate.demo import SAMPLES, SAMPLES_FOLDER, write_sample
from palate.rubrics import freeze
from palate.simulators import measured, read_profile
from palate.types import Card, Session, Turn

DEMO = SAMPLES_FOLDER / "demo"
USERS = SAMPLES["demo"].users
PANEL = SAMPLES["demo"].cards
SEED = 7  # that of study.toml


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The sample study as `palate init` writes it."""
    folder = tmp_path_factory.mktemp("sample") / "study"
    write_sample(folder)
    return folder


def sessions(user: str) -> tuple[Session, ...]:
    """The part of a user's history that the demo takes."""
    path = SAMPLES_FOLDER / "histories" / f"{user}.jsonl"
    return histories.read(path, user_id=user)[: SAMPLES["demo"].sessions]


def rated(user: str) -> list[Turn]:
    return [t for s in sessions(user) for t in s.turns if t.satisfaction is not None]


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def card(name: str) -> Card:
    return library.cards(name)[0]


# Cards


@pytest.mark.parametrize("name", PANEL)
def test_a_card_is_short_enough_for_the_embedded_model(name):
    """Their 82 to 118 words were counted as 123 to 160 of its tokens; the aim is 170 at most."""
    found = card(name)
    assert len(f"{found.persona} {found.personality} {found.scenario}".split()) <= 120
    assert 30 <= len(found.opening.split()) <= 80


# Histories


@pytest.mark.parametrize("user", USERS)
def test_a_history_has_at_least_eight_sessions_and_fifty_ratings_of_all_five_values(user):
    labels = Counter(turn.satisfaction for turn in rated(user))
    assert len(sessions(user)) >= 8
    assert labels.total() >= 50
    assert min(labels[score] for score in (1, 2, 3, 4, 5)) >= 3


@pytest.mark.parametrize("user", USERS)
def test_sessions_are_on_several_cards_and_none_of_them_on_the_panel(user):
    found = {session.card_id for session in sessions(user)}
    assert len(found) >= 3
    assert found <= {path.stem for path in library.paths()}
    assert not found & set(PANEL)


@pytest.mark.parametrize("user", USERS)
def test_a_session_begins_with_the_cards_opening_and_alternates(user):
    for session in sessions(user):
        opening, *rest = session.turns
        first = ("character", card(session.card_id).opening, None)
        assert (opening.speaker, opening.text, opening.satisfaction) == first
        expected = ["user", "character"] * len(rest)
        assert [turn.speaker for turn in rest] == expected[: len(rest)]
        replies = [turn for turn in rest if turn.speaker == "character"]
        assert 5 <= len(replies) <= 9
        assert all(reply.satisfaction is not None for reply in replies)
        assert session.language == "en"


@pytest.mark.parametrize("user", USERS)
def test_some_sessions_end_by_a_farewell_and_some_at_the_limit(user):
    ends = Counter((session.ended_by, session.turns[-1].speaker) for session in sessions(user))
    assert ends["quit", "user"] >= 3
    assert ends["limit", "character"] >= 2
    assert sum(turn.note is not None for turn in rated(user)) >= 3


def test_no_two_messages_share_a_run_of_seven_words():
    texts = [
        turn.text
        for user in USERS
        for session in sessions(user)
        for turn in session.turns[1:]  # openings recur by design
    ]
    texts += [card(name).opening for name in PANEL]
    runs = [{tuple(w[i : i + 7]) for i in range(len(w) - 6)} for w in map(words, texts)]
    shared = [
        (texts[a], texts[b]) for a, b in combinations(range(len(runs)), 2) if runs[a] & runs[b]
    ]
    assert shared == []


# Tastes: one and the same feature is welcome to one person and not to the other.


def mean_rating(user: str, *, longer_than: int | None = None, up_to: int | None = None) -> float:
    return mean(
        turn.satisfaction
        for turn in rated(user)
        if (longer_than is None or len(words(turn.text)) > longer_than)
        and (up_to is None or len(words(turn.text)) <= up_to)
    )


def test_ines_prefers_short_replies_and_oskar_long_ones():
    assert (
        mean_rating("synthetic-ines", up_to=25) - mean_rating("synthetic-ines", longer_than=40) > 1
    )
    assert (
        mean_rating("synthetic-oskar", longer_than=40) - mean_rating("synthetic-oskar", up_to=25)
        > 1
    )


def test_length_alone_does_not_give_the_ratings_away():
    """Both have rated a reply of their favourite length 3 or lower, and one of the other 4 or 5."""
    ines, oskar = rated("synthetic-ines"), rated("synthetic-oskar")
    assert any(t.satisfaction <= 3 and len(words(t.text)) <= 25 for t in ines)
    assert any(t.satisfaction >= 4 and len(words(t.text)) > 30 for t in ines)
    assert any(t.satisfaction <= 3 and len(words(t.text)) > 25 for t in oskar)
    assert any(t.satisfaction >= 4 and len(words(t.text)) <= 45 for t in oskar)


def test_a_question_at_the_end_pleases_oskar_more_than_ines():
    def with_question(user: str) -> float:
        return mean(t.satisfaction for t in rated(user) if t.text.rstrip("* ").endswith("?"))

    assert with_question("synthetic-oskar") - with_question("synthetic-ines") > 1.5


def test_a_short_answer_means_pleasure_in_ines_and_disappointment_in_oskar():
    """Mean words of the answers to replies rated 4 or 5 against those rated 1 or 2."""

    def answer_length(user: str, scores: tuple[int, ...]) -> float:
        pairs = [
            (reply, answer)
            for session in sessions(user)
            for reply, answer in zip(session.turns, session.turns[1:], strict=False)
        ]
        return mean(len(words(b.text)) for a, b in pairs if a.satisfaction in scores)

    assert answer_length("synthetic-ines", (4, 5)) < answer_length("synthetic-ines", (1, 2))
    assert answer_length("synthetic-oskar", (4, 5)) > 2 * answer_length("synthetic-oskar", (1, 2))


@pytest.mark.parametrize(
    ("user", "beginning"),
    [
        ("synthetic-ines", "I understand your curiosity!"),
        ("synthetic-ines", "I hear you, and this letter"),
        ("synthetic-oskar", "As an assistant I can't"),
        ("synthetic-oskar", "Is there anything else you would like"),
    ],
)
def test_neither_likes_a_character_who_turns_into_an_assistant(user, beginning):
    [reply] = [turn for turn in rated(user) if beginning in turn.text]
    assert reply.satisfaction <= 2


# Rubrics and profiles


@pytest.mark.parametrize("user", USERS)
def test_a_rubric_is_frozen_by_hand_and_its_evidence_exists(user):
    rubric = freeze.read(DEMO / "rubrics" / f"{user}.json")
    freeze.verify_evidence(rubric, sessions(user))
    assert (rubric.user_id, rubric.language) == (user, "en")
    assert (rubric.provenance.author, rubric.provenance.model) == ("hand", None)
    assert len(freeze.render(rubric, "en").split()) <= 150


@pytest.mark.parametrize("user", USERS)
def test_a_rubric_and_a_profile_were_made_from_the_training_part_alone(user):
    parts = histories.split(sessions(user), seed=SEED, panel_cards=PANEL)
    rubric = freeze.read(DEMO / "rubrics" / f"{user}.json")
    profile = read_profile(DEMO / "simulators" / user / "profile.json")
    assert rubric.provenance.training_sessions == parts.training_digests()
    assert profile.provenance.training_sessions == parts.training_digests()
    assert profile.provenance.model == "hand"
    assert profile.facts == measured(parts.training, "en")


@pytest.mark.parametrize("user", USERS)
def test_cited_replies_were_rated_as_the_rules_say(user):
    rubric = freeze.read(DEMO / "rubrics" / f"{user}.json")
    turns = {
        f"{s.session_id}#{at}": turn for s in sessions(user) for at, turn in enumerate(s.turns)
    }
    for rule in rubric.rewards:
        assert rule.evidence
        assert all(turns[place].satisfaction >= 4 for place in rule.evidence)
    for rule in rubric.penalties:
        assert rule.evidence
        assert all(turns[place].satisfaction <= 2 for place in rule.evidence)
    for reaction in rubric.reactions:
        assert reaction.evidence
        assert all(turns[place].speaker == "user" for place in reaction.evidence)


# The study


def test_the_study_has_two_users_three_cards_and_three_different_candidates(written):
    study = load_study(written)
    content = study.content
    assert tuple(user.id for user in content.users) == USERS
    assert tuple(path.stem for path in study.panel_files()) == PANEL
    assert content.protocol.seed == SEED
    settings = [(c.prompt, c.temperature) for c in content.candidates]
    assert settings == [("card", 0.5), ("prompts/terse.md", 0.6), ("prompts/rambler.md", 1.3)]
    assert {named.model for named in content.models()} == {"local:smollm2-135m"}


def test_every_file_that_the_study_names_is_there(written):
    study = load_study(written)
    named = [user.rubric for user in study.content.users]
    named += [user.history for user in study.content.users]
    named += [c.prompt for c in study.content.candidates if c.prompt != "card"]
    assert [name for name in named if not study.path(name).is_file()] == []


def test_the_key_to_the_ratings_says_that_no_induction_may_read_it():
    text = (SAMPLES_FOLDER / "tastes.md").read_text("utf-8")
    assert "No induction, training, profile or judge may read" in " ".join(text.split())


@pytest.mark.parametrize("name", SAMPLES)
def test_no_sample_that_is_written_out_holds_the_key(tmp_path, name):
    write_sample(tmp_path / "study", name)
    assert [path for path in (tmp_path / "study").rglob("*") if "taste" in path.name.lower()] == []
