"""The five synthetic users' whole histories: what tests of rubrics and simulators rely on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from statistics import correlation, mean

import pytest

from palate import histories, language
from palate.cards import library, panel
from palate.cards.prompts import NEUTRAL_NAME
from palate.config import load_study
from palate.demo import SAMPLES, SAMPLES_FOLDER, write_sample
from palate.prepare import prepare, split_of, user_section
from palate.rubrics import freeze
from palate.types import Session, Turn

LANGUAGES = {
    "synthetic-ines": "en",
    "synthetic-oskar": "en",
    "synthetic-tamsin": "en",
    "synthetic-doudou": "zh",
    "synthetic-zhenru": "zh",
}
EMOJI = re.compile("[\U0001f300-\U0001faff]")


@cache
def sessions(user: str) -> tuple[Session, ...]:
    return histories.read(SAMPLES_FOLDER / "histories" / f"{user}.jsonl", user_id=user)


def rated(user: str) -> list[Turn]:
    return [t for s in sessions(user) for t in s.turns if t.satisfaction is not None]


def messages(user: str) -> list[str]:
    return [turn.text for s in sessions(user) for turn in s.turns if turn.speaker == "user"]


def share(user: str, holds: Callable[[str], object]) -> float:
    return mean(bool(holds(text)) for text in messages(user))


def answered(user: str) -> Iterator[tuple[Turn, str]]:
    """Each rated reply with the message that answers it."""
    for session in sessions(user):
        for reply, answer in zip(session.turns, session.turns[1:], strict=False):
            if reply.satisfaction is not None:
                yield reply, answer.text


def size(text: str) -> int:
    """Characters: comparable within one person."""
    return len(text)


# Form


@pytest.mark.parametrize("user", LANGUAGES)
def test_a_history_has_sixteen_sessions_over_eight_cards_and_160_ratings_of_all_values(user):
    labels = Counter(turn.satisfaction for turn in rated(user))
    assert len(sessions(user)) >= 16
    assert len({session.card_id for session in sessions(user)}) >= 8
    assert labels.total() >= 160
    assert all(labels[score] >= 0.05 * labels.total() for score in (1, 2, 3, 4, 5))
    assert sum(turn.note is not None for turn in rated(user)) >= 15


@pytest.mark.parametrize("user", LANGUAGES)
def test_sessions_are_on_library_cards_in_the_users_language_and_none_on_the_panel(user):
    found = {session.card_id for session in sessions(user)}
    assert found <= {path.stem for path in library.paths()}
    assert not {library.labels(library.cards(name)[0]).character for name in found} & set(
        panel.panel().characters
    )
    assert {session.language for session in sessions(user)} == {LANGUAGES[user]}
    text = "\n".join(turn.text for session in sessions(user) for turn in session.turns)
    assert language.of_text(text) == LANGUAGES[user]


@pytest.mark.parametrize("user", LANGUAGES)
def test_a_session_begins_with_the_cards_opening_and_alternates(user):
    for session in sessions(user):
        opening, *rest = session.turns
        card = library.cards(session.card_id)[0]
        assert opening.text == card.opening.replace("{{user}}", NEUTRAL_NAME[card.language])
        assert opening.satisfaction is None
        expected = ["user", "character"] * len(rest)
        assert [turn.speaker for turn in rest] == expected[: len(rest)], session.session_id


@pytest.mark.parametrize("user", LANGUAGES)
def test_some_sessions_end_by_choice_and_some_do_not(user):
    ends = Counter(session.ended_by for session in sessions(user))
    assert set(ends) == {"quit", "limit"}
    assert min(ends.values()) >= 4


@pytest.mark.parametrize("user", LANGUAGES)
def test_no_message_is_written_twice(user):
    texts = [turn.text for session in sessions(user) for turn in session.turns[1:]]
    assert [text for text, count in Counter(texts).items() if count > 1 and len(text) > 6] == []


@pytest.mark.parametrize("user", LANGUAGES)
def test_ratings_differ_within_sessions_and_length_does_not_give_them_away(user):
    for session in sessions(user):
        values = {t.satisfaction for t in session.turns if t.satisfaction is not None}
        assert len(values) >= 3, session.session_id
    pairs = [(size(turn.text), turn.satisfaction) for turn in rated(user)]
    assert abs(correlation(*zip(*pairs, strict=True))) < 0.35


# Different people


def test_each_user_is_recognised_by_how_they_write():
    words = {user: mean(len(text.split()) for text in messages(user)) for user in LANGUAGES}
    assert words["synthetic-ines"] < 10 < 25 < words["synthetic-oskar"]
    assert share("synthetic-tamsin", lambda text: text == text.lower()) > 0.95
    assert 0.2 < share("synthetic-tamsin", EMOJI.search) < 0.5
    assert share("synthetic-oskar", EMOJI.search) == 0
    assert share("synthetic-oskar", lambda text: "(" in text) > 0.2
    doudou, zhenru = "synthetic-doudou", "synthetic-zhenru"
    assert mean(map(len, messages(doudou))) < 20 < 40 < mean(map(len, messages(zhenru)))
    assert share(zhenru, EMOJI.search) == 0
    assert share(zhenru, lambda text: text.endswith(("。", "？", "！"))) > 0.9
    assert share(doudou, lambda text: "。" in text) < 0.1


def test_the_length_of_an_answer_means_different_things_in_different_people():
    """Mean length of the answers to replies rated 4 or 5 over that to replies rated 1 or 2."""

    def ratio(user: str) -> float:
        good = [size(answer) for reply, answer in answered(user) if reply.satisfaction >= 4]
        bad = [size(answer) for reply, answer in answered(user) if reply.satisfaction <= 2]
        return mean(good) / mean(bad)

    assert ratio("synthetic-ines") < 1
    assert ratio("synthetic-oskar") > 2
    assert ratio("synthetic-zhenru") > 1.2


@pytest.mark.parametrize(
    ("user", "sign", "pleased"),
    [
        ("synthetic-tamsin", r"omg stop|im crying|💀", True),
        ("synthetic-tamsin", r"^(ok|k)\b", False),
        ("synthetic-zhenru", r"您方才说", False),
        ("synthetic-doudou", r"^[嗯哦]", False),
    ],
)
def test_a_sign_of_pleasure_follows_good_replies_and_one_of_displeasure_bad_ones(
    user, sign, pleased
):
    after = [r.satisfaction for r, answer in answered(user) if re.search(sign, answer)]
    others = [r.satisfaction for r, answer in answered(user) if not re.search(sign, answer)]
    assert len(after) >= 5
    assert (mean(after) - mean(others) if pleased else mean(others) - mean(after)) > 0.5


# Studies


@pytest.mark.parametrize("name", ["en", "zh"])
def test_the_whole_users_make_a_study_on_the_panel_that_can_be_planned(tmp_path, name):
    write_sample(tmp_path / "study", name)
    study = load_study(tmp_path / "study")
    assert tuple(user.id for user in study.content.users) == SAMPLES[name].users
    assert len(study.panel_files()) == panel.SIZE
    prepared = prepare(tmp_path / "study")
    assert len(list(prepared.cells())) == len(SAMPLES[name].users) * panel.SIZE * 2 * 2


@pytest.mark.parametrize("user", LANGUAGES)
def test_a_rubric_by_hand_rests_on_the_training_part_alone(tmp_path, user):
    write_sample(tmp_path / "study", LANGUAGES[user])
    study = load_study(tmp_path / "study")
    section = user_section(study, user)
    whole, parts = split_of(study, section)
    rubric = freeze.read(study.path(section.rubric))
    freeze.verify_evidence(rubric, whole)
    assert rubric.provenance.author == "hand"
    assert rubric.provenance.training_sessions == parts.training_digests()
    assert rubric.language == LANGUAGES[user]
    turns = {f"{s.session_id}#{at}": turn for s in whole for at, turn in enumerate(s.turns)}
    assert all(turns[p].satisfaction >= 4 for rule in rubric.rewards for p in rule.evidence)
    assert all(turns[p].satisfaction <= 2 for rule in rubric.penalties for p in rule.evidence)
