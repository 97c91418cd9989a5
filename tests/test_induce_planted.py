"""A planted world: is the taste that nobody told found, and does the rubric score as its person?"""

import asyncio
import random

import pytest

from lexical import Lexical
from palate.errors import InputError
from palate.histories import split
from palate.judging.tracks import Judge, Rubrics, Subject, judge_reply
from palate.models.client import Sampling
from palate.rubrics.freeze import refuse_if_built_from
from palate.rubrics.induce import induce
from palate.rubrics.shared import load_shared
from palate.studies.agreement_rows import ConditionScore, LabelRow
from palate.studies.human_agreement import agreement
from palate.types import Card, Cell, Message, TrainingSession, Trajectory
from planted import TASTES, history

SAMPLING = Sampling(temperature=0.0, max_tokens=800)
CARD = Card(id="k", language="en", name="Wren")
PARTS = {user: split(history(user), seed=1) for user in TASTES}


@pytest.fixture(scope="module")
def rubrics():
    async def all_of_them():
        return {
            user: (await induce(parts.training, Lexical(), sampling=SAMPLING)).rubric
            for user, parts in PARTS.items()
        }

    return asyncio.run(all_of_them())


def words_of(rules):
    return " ".join(rule.rule for rule in rules)


def test_what_each_person_likes_and_dislikes_is_found(rubrics):
    for user, (likes, dislikes) in TASTES.items():
        found = words_of(rubrics[user].rewards), words_of(rubrics[user].penalties)
        assert any(word in found[0] for word in likes)
        assert any(word in found[1] for word in dislikes)
        assert not any(word in found[0] for word in dislikes)
        assert not any(word in found[1] for word in likes)


def test_the_same_answer_means_pleasure_in_one_person_and_not_in_another(rubrics):
    meant = {
        user: {r.pattern.split()[-1]: r.direction for r in rubrics[user].reactions}
        for user in TASTES
    }
    assert (meant["ada"]["wonderful"], meant["cyd"]["wonderful"]) == (1, -1)
    assert (meant["cyd"]["haha"], meant["ben"]["haha"]) == (1, -1)


def subject(session, rubric):
    opening, *turns = session.turns
    trajectory = Trajectory(
        cell=Cell(session.user_id, session.card_id, "history", 1),
        opening=opening.text,
        messages=tuple(Message(speaker=turn.speaker, text=turn.text) for turn in turns),
        ended_by="depth_limit",
    )
    shared = Rubrics(rubric, load_shared("generic"), load_shared("session"))
    return Subject(trajectory, CARD, shared)


def labels(shuffled=False):
    """The held-out ratings; shuffled within each session, they say nothing."""
    dice, rows = random.Random(5), []
    for user, parts in PARTS.items():
        for item in parts.held_out:
            replies = range(1, len(item.session.turns) // 2 + 1)
            given = [parts.labels.satisfaction(item.session.session_id, 2 * n) for n in replies]
            if shuffled:
                dice.shuffle(given)
            rows += [
                LabelRow(user, item.session.session_id, n, label)
                for n, label in enumerate(given)
                if label is not None
            ]
    return rows


@pytest.fixture(scope="module")
def scores(rubrics):
    """Every held-out reply scored by the person's own rubric and by the next person's."""

    async def scored():
        judge, rows, users = Judge(Lexical()), [], list(TASTES)
        for user, parts in PARTS.items():
            other = users[(users.index(user) + 1) % len(users)]
            for item in parts.held_out:
                for condition, rubric in (("own", rubrics[user]), ("other", rubrics[other])):
                    refuse_if_built_from(rubric, [item.session])
                    about = subject(item.session, rubric)
                    for n in range(len(about.trajectory.replies())):
                        found = await judge_reply("personal", n, about, judge, reaction_shown=False)
                        name = item.session.session_id
                        rows.append(ConditionScore(condition, user, name, n, found.overall))
        return rows

    return asyncio.run(scored())


def test_the_own_rubric_agrees_with_its_person_and_another_persons_does_not(scores):
    found = agreement(labels(), scores)
    own, other = found.conditions["own"], found.conditions["other"]
    assert (own.missing, other.missing) == (0, 0)
    assert own.macro > 0.7
    assert own.low > 0.6
    assert own.low > other.high
    (test,) = found.tests
    assert test.p < 0.05
    for user in TASTES:
        assert own.users[user].agreement > 0.6
        assert own.users[user].agreement > other.users[user].agreement


def test_shuffled_labels_give_chance(scores):
    own = agreement(labels(shuffled=True), scores).conditions["own"]
    assert own.low < 0.5 < own.high
    assert abs(own.macro - 0.5) < 0.08


@pytest.mark.parametrize("user", TASTES)
async def test_ratings_that_say_nothing_end_in_a_refusal(user):
    """Shuffled within each session, they leave no rule that separates the validation slice."""
    dice = random.Random(0)
    training = [TrainingSession(_shuffled(item.session, dice)) for item in PARTS[user].training]
    with pytest.raises(InputError, match=f"no rubric was induced for {user}: no "):
        await induce(training, Lexical(), sampling=SAMPLING)


def _shuffled(session, dice):
    ratings = [turn.satisfaction for turn in session.turns if turn.satisfaction is not None]
    dice.shuffle(ratings)
    left = iter(ratings)
    turns = tuple(
        turn if turn.satisfaction is None else turn.model_copy(update={"satisfaction": next(left)})
        for turn in session.turns
    )
    return session.model_copy(update={"turns": turns})
