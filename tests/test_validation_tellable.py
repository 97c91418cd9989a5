"""What it would take to tell: so many more places and sessions, another judge, an extra."""

import pytest

from palate.simulators.validation.measures import Estimate, Likelihood, Spoken, TwoSample
from palate.simulators.validation.records import ConditionResult, Consistency, Fooling
from palate.simulators.validation.speaking import Pair
from palate.simulators.validation.two_sample import two_sample
from palate.simulators.validation.verdict import verdict

MEASURES = ("likelihood", "two_sample", "surface", "leaving", "fooling", "consistency")


def estimate(value, low=None, high=None, *, sessions=8, reason="why"):
    why = reason if low is None else None
    return Estimate(value=value, low=low, high=high, n=40, sessions=sessions, reason=why)


def pairs(sessions, places):
    return [Pair(f"s{n}", turn, "hi", "ho") for n in range(sessions) for turn in range(places)]


def fooling(rate, *, flips=0.1, counts=True):
    return Fooling(
        judge="openai:j",
        counts_toward_verdict=counts,
        form="json",
        prompts={},
        rate=rate,
        distance=None,
        flips=estimate(flips, 0.0, 1.0),
        cannot_tell=0,
        pairs=40,
        unscored=0,
        length_matched=estimate(None),
        length_matched_flips=estimate(None),
        length_rule="",
    )


def consistency(apart, *, counts=True):
    return Consistency(
        judge="openai:j",
        counts_toward_verdict=counts,
        form="json",
        prompts={},
        shown_messages=12,
        own=estimate(70.0, 60.0, 80.0),
        control=estimate(None, reason="nobody else is validated"),
        ceiling=estimate(90.0, 80.0, 100.0),
        over_control=estimate(20.0, 10.0, 30.0),
        tells_people_apart=apart,
        unscored=0,
    )


def likelihood(over_profile, over_prompted):
    return Likelihood(
        messages=estimate(3.0, 2.8, 3.2),
        leaving=estimate(None),
        over_prompted=over_prompted,
        over_profile=over_profile,
    )


def reasons(*, contexts=40, failed=0, condition="prompted", why="no judge was asked", **measures):
    result = ConditionResult(
        condition=condition,
        model="openai:m",
        spoken=Spoken(contexts=contexts, said=contexts, left=0, silent=0, cut=0, failed=failed),
        absent={name: why for name in MEASURES if name not in measures} | {"verdict": "not yet"},
        **measures,
    )
    found = verdict(result, "u1", None)
    assert found.level == "cannot be told"
    return found.reasons


def test_three_held_out_sessions_are_told_what_they_lack():
    """A sample user: six places in three sessions, where 20 places and five sessions are needed."""
    found = reasons(contexts=6, two_sample=two_sample(pairs(3, 2), seed=1))
    assert found == (
        "Held-out contexts: 6; at least 20 are needed.",
        "The classifier needs 14 more answered places and answers in 2 more held-out sessions.",
        "The fooling rate is not there: no judge was asked.",
        "Identity consistency is not there: no judge was asked.",
    )


def test_what_is_lacking_is_counted_by_the_place_and_by_the_session():
    assert reasons(contexts=30, failed=11)[0] == (
        "Held-out contexts with an answer: 19; at least 20 are needed."
    )
    enough_places = reasons(two_sample=two_sample(pairs(4, 5), seed=1))
    assert "The classifier needs answers in 1 more held-out session." in enough_places
    enough_sessions = reasons(two_sample=two_sample(pairs(6, 3), seed=1))
    assert "The classifier needs 2 more answered places." in enough_sessions


def test_what_proves_already_lacks_nothing():
    auc = TwoSample(
        auc=estimate(0.55, 0.45, 0.65), p=0.5, permutations=99, human=40, simulated=40, folds=5
    )
    found = " ".join(reasons(two_sample=auc))
    assert "the classifier alone speaks for it" in found
    assert "The classifier needs" not in found


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (fooling(estimate(0.5, sessions=1)), "needs 1 more held-out session."),
        (fooling(estimate(0.1, 0.0, 0.6)), "a narrower interval: more held-out sessions than 8."),
        (fooling(estimate(0.5, 0.4, 0.6), counts=False), "another judge than the embedded model."),
        (fooling(estimate(0.5, 0.4, 0.6), flips=0.6), "choices do not turn with the order."),
        (fooling(estimate(None, reason="no readable answer")), "it lacks (no readable answer)."),
    ],
)
def test_the_fooling_rate_says_what_it_lacks(measure, words):
    [found] = [one for one in reasons(fooling=measure) if one.startswith("The fooling rate needs")]
    assert words in found


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (consistency(None), "as a control (nobody else is validated)."),
        (consistency(False), "a judge that tells people apart"),
        (consistency(True, counts=False), "another judge than the embedded model."),
    ],
)
def test_identity_consistency_says_what_it_lacks(measure, words):
    told = reasons(consistency=measure)
    [found] = [one for one in told if one.startswith("Identity consistency needs")]
    assert words in found


def test_likelihood_is_asked_of_an_adapter_alone():
    told = " ".join(reasons(condition="lora", why="the weights are not on this machine"))
    assert "The likelihood is not there: the weights are not on this machine." in told
    assert "likelihood" not in " ".join(reasons())
    absent = estimate(None, reason="the condition profile was not measured")
    told = " ".join(reasons(condition="lora", likelihood=likelihood(absent, absent)))
    assert "The likelihood needs a number, which it lacks (the condition profile" in told
    one_session = likelihood(absent, estimate(-0.5, sessions=1))
    told = " ".join(reasons(condition="lora", contexts=6, likelihood=one_session))
    assert "The likelihood needs 1 more held-out session." in told


def test_with_few_places_no_narrower_interval_is_asked_for():
    surely_bad = likelihood(estimate(0.25, 0.15, 0.35), estimate(0.3, 0.2, 0.4))
    told = " ".join(reasons(condition="lora", contexts=15, likelihood=surely_bad))
    assert "narrower" not in told
    assert "Its weights are no better than being told to write as a human" in told
