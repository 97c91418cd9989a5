"""The verdict on a simulator: each rule with a value on either side of its threshold."""

import pytest

from palate.simulators.validation.measures import (
    Bars,
    Distribution,
    Estimate,
    Leaving,
    Likelihood,
    OwnAgainstOthers,
    Row,
    Spoken,
    Spread,
    Surface,
    TwoSample,
)
from palate.simulators.validation.records import ConditionResult, Consistency, Fooling
from palate.simulators.validation.verdict import verdict

MEASURES = ("likelihood", "two_sample", "surface", "leaving", "fooling", "consistency")


def estimate(value, low=None, high=None, reason="no interval"):
    return Estimate(
        value=value,
        low=low,
        high=high,
        n=40,
        sessions=8,
        reason=reason if low is None else None,
    )


def likelihood(value, low, high, *, prompted=(-0.9, -1.0, -0.8)):
    return Likelihood(
        messages=estimate(3.0, 2.8, 3.2),
        leaving=estimate(None),
        over_prompted=estimate(*prompted),
        over_profile=estimate(value, low, high),
    )


def two_sample(value, low=None, high=None):
    return TwoSample(
        auc=estimate(value, low, high), p=0.5, permutations=99, human=40, simulated=40, folds=5
    )


def fooling(value, low, high, *, flips=0.1, counts=True):
    return Fooling(
        judge="openai:j" if counts else "local:smollm2-135m",
        counts_toward_verdict=counts,
        form="json",
        prompts={},
        rate=estimate(value, low, high),
        distance=abs(value - 0.5),
        flips=estimate(flips, 0.0, 1.0),
        cannot_tell=0,
        pairs=40,
        unscored=0,
        length_matched=estimate(None),
        length_matched_flips=estimate(None),
        length_rule="",
    )


def consistency(over, *, apart=True, counts=True, control=(40.0, 30.0, 50.0)):
    return Consistency(
        judge="openai:j" if counts else "local:smollm2-135m",
        counts_toward_verdict=counts,
        form="json",
        prompts={},
        shown_messages=12,
        own=estimate(70.0, 60.0, 80.0),
        control=estimate(*control),
        ceiling=estimate(90.0, 80.0, 100.0),
        over_control=estimate(*over),
        tells_people_apart=apart,
        unscored=0,
    )


def leaving(*, hits=5, misses=5, recall=(0.5, 0.2, 0.8), false=(0.0, 0.0, 0.05)):
    return Leaving(
        hits=hits,
        misses=misses,
        false=0,
        stayed=30,
        precision=estimate(None),
        recall=estimate(*recall),
        f1=estimate(None),
        false_quit_rate=estimate(*false),
        real_rate=0.25,
        by_turn=(),
    )


def surface(human, simulated):
    def spread(median):
        return Spread(mean=median, p10=1, p25=1, median=median, p75=median, p90=median)

    lengths = Distribution(
        name="characters",
        unit="characters",
        human=spread(human),
        simulated=spread(simulated),
        ks=0.1,
        wasserstein=1,
        bars=Bars(edges=(0,), human=(1,), simulated=(1,)),
    )
    return Surface(messages=40, distributions=(lengths,), habits=())


def matrix(own_is_lowest, margin, *, reason=None):
    row = Row(
        user_id="u1",
        nll=(3.0, 3.2),
        tokens=900,
        own_is_lowest=own_is_lowest,
        nearest="u2",
        margin=estimate(*margin),
    )
    return OwnAgainstOthers(
        persons=("u1", "u2"), rows=(row,), diagonal_wins=own_is_lowest, reason=reason
    )


GOOD = {
    "likelihood": likelihood(-0.3, -0.4, -0.2),
    "two_sample": two_sample(0.55, 0.45, 0.65),
    "fooling": fooling(0.48, 0.38, 0.58),
    "consistency": consistency((30.0, 20.0, 40.0)),
    "leaving": leaving(),
    "surface": surface(20, 25),
}
WINS = matrix(True, (0.2, 0.1, 0.3))


def told(over_matrix=WINS, *, condition="lora", contexts=40, spoken=None, absent=None, **measures):
    found = {name: value for name, value in measures.items() if value is not None}
    missing = {name: "why" for name in MEASURES if name not in found} | (absent or {})
    result = ConditionResult(
        condition=condition,
        model="openai:m",
        spoken=spoken or Spoken(contexts=contexts, said=contexts, left=0, silent=0, cut=0),
        absent={**missing, "verdict": "not yet"},
        **found,
    )
    return verdict(result, "u1", over_matrix)


def said(found):
    return " ".join(found.reasons)


def test_everything_for_it_is_fit_to_use():
    found = told(**GOOD)
    assert found.level == "fit"
    assert found.missing == ()
    assert "No other person's adapter fits this person as well" in said(found)


def test_what_is_missing_is_named_and_counts_for_nothing():
    found = told(**{**GOOD, "fooling": None, "consistency": None})
    assert found.level == "fit"
    assert found.missing == ("fooling", "consistency")


def test_a_measure_without_its_number_is_missing_too():
    assert told(**{**GOOD, "two_sample": two_sample(None)}).missing == ("two_sample",)


def test_one_kind_of_proof_is_not_enough():
    found = told(two_sample=GOOD["two_sample"], over_matrix=None, condition="prompted")
    assert found.level == "cannot be told"
    assert "the classifier alone speaks for it" in found.reasons[0]
    assert told(over_matrix=None, condition="raw").reasons[0].startswith("Nothing speaks against")


def test_too_few_contexts_say_nothing_whatever_was_measured():
    assert told(**GOOD, contexts=19).level == "cannot be told"
    assert told(**GOOD, contexts=20).level == "fit"


def test_a_condition_that_could_not_be_asked_says_why():
    result = ConditionResult(
        condition="lora",
        model=None,
        absent={**dict.fromkeys(MEASURES, "why"), "verdict": "It was never trained."},
    )
    found = verdict(result, "u1", None)
    assert found.level == "cannot be told"
    assert found.reasons == ("It was never trained.",)


@pytest.mark.parametrize(
    ("gap", "level", "words"),
    [
        ((0.1, 0.0, 0.2), "weak", "no better than a description"),
        ((-0.1, -0.3, 0.1), "weak", "not surely better"),
        ((-0.1, None, None), "weak", "not surely better"),
        ((-0.1, -0.2, -0.01), "fit", "better than a description"),
    ],
)
def test_an_adapter_must_surely_beat_a_description(gap, level, words):
    found = told(**{**GOOD, "likelihood": likelihood(*gap)})
    assert found.level == level
    assert words in said(found)


def test_an_adapter_is_held_to_the_better_of_the_two_prompts():
    beats_profile = likelihood(-0.5, -0.6, -0.4, prompted=(0.02, -0.1, 0.1))
    found = told(**{**GOOD, "likelihood": beats_profile})
    assert found.level == "weak"
    assert "no better than being told to write as a human" in said(found)


def test_a_prompted_condition_is_not_held_to_likelihood():
    worse = {**GOOD, "likelihood": likelihood(0.5, 0.4, 0.6)}
    assert told(**worse, condition="prompted").level == "fit"


@pytest.mark.parametrize(
    ("own", "margin", "level"),
    [
        (True, (0.2, 0.1, 0.3), "fit"),
        (True, (0.2, -0.1, 0.5), "weak"),
        (False, (-0.1, -0.3, 0.1), "weak"),
        (False, (-0.2, -0.3, -0.1), "unusable"),
        (False, (-0.2, None, None), "unusable"),
    ],
)
def test_another_persons_adapter_must_not_fit_as_well(own, margin, level):
    found = told(**GOOD, over_matrix=matrix(own, margin))
    assert found.level == level
    if level == "unusable":
        assert "it is not this person" in found.reasons[0]


def test_one_person_alone_is_said():
    alone = OwnAgainstOthers(persons=("u1",), rows=(), diagonal_wins=None, reason="only one")
    assert "Own against others' adapters: only one." in told(**GOOD, over_matrix=alone).reasons


def test_calls_that_did_not_come_back_are_no_contexts():
    def spoken(failed, silent=0):
        return Spoken(contexts=60, said=10, left=0, silent=silent, cut=0, failed=failed)

    assert told(**GOOD, spoken=spoken(40)).level == "fit"
    few = told(**GOOD, spoken=spoken(41))
    assert few.level == "cannot be told"
    assert few.reasons[0] == "Held-out contexts with an answer: 19; at least 20 are needed."
    # Eleven of the twenty that came back: over half.
    assert told(**GOOD, spoken=spoken(40, silent=11)).level == "unusable"


def test_a_bad_number_in_a_wide_interval_is_no_proof_for_a_simulator():
    unsure = {"two_sample": two_sample(0.95, 0.45, 1.0), "fooling": fooling(0.0, 0.0, 0.66)}
    found = told(**unsure, condition="prompted")
    assert found.level == "cannot be told"
    assert "Too few pairs to say how often the judge is fooled" in said(found)
    assert "Too few messages to say how a classifier does" in said(found)
    assert told(**{**GOOD, **unsure}).level == "fit"  # by likelihood and consistency


@pytest.mark.parametrize(
    ("auc", "proof"),
    [((0.67, 0.40, 0.94), False), ((0.67, 0.40, 0.90), True), ((0.80, 0.72, 0.88), True)],
)
def test_a_classifier_that_might_tell_easily_is_no_proof(auc, proof):
    """Too few messages to tell is not "cannot be told apart"."""
    found = told(two_sample=two_sample(*auc), over_matrix=None, condition="prompted")
    assert ("the classifier alone speaks for it" in found.reasons[0]) is proof
    assert ("Too few messages to say" in said(found)) is not proof


@pytest.mark.parametrize(
    ("auc", "level"),
    [
        ((0.95, 0.91, 0.99), "weak"),
        ((0.95, 0.89, 1.0), "fit"),
        ((0.95, None, None), "fit"),
    ],
)
def test_a_classifier_that_surely_tells_easily_makes_it_weak(auc, level):
    assert told(**{**GOOD, "two_sample": two_sample(*auc)}).level == level


@pytest.mark.parametrize(
    ("rate", "level", "words"),
    [
        ((0.02, 0.0, 0.09), "unusable", "nearly always finds"),
        ((0.18, 0.05, 0.3), "weak", "far too often"),
        ((0.24, 0.1, 0.36), "fit", "Too few pairs to say"),
        ((0.36, 0.2, 0.5), "fit", "does not reliably find"),
        ((0.56, 0.46, 0.66), "fit", "does not reliably find"),
        ((0.8, 0.7, 0.9), "weak", "caricature"),
    ],
)
def test_the_fooling_rate_is_read_by_its_interval(rate, level, words):
    found = told(**{**GOOD, "fooling": fooling(*rate)})
    assert found.level == level
    assert words in said(found)


def test_the_embedded_judge_and_one_that_turns_with_the_order_do_not_count():
    for judge in (
        fooling(0.0, 0.0, 0.05, counts=False),
        fooling(0.0, 0.0, 0.05, flips=0.51),
    ):
        found = told(**{**GOOD, "fooling": judge})
        assert found.level == "fit"
        assert "do not count here" in said(found)


def test_a_judge_that_cannot_tell_people_apart_does_not_count():
    found = told(**{**GOOD, "consistency": consistency((-5.0, -9.0, -1.0), apart=False)})
    assert found.level == "fit"
    assert "cannot tell people apart" in said(found)


@pytest.mark.parametrize(
    ("over", "level"),
    [
        ((-5.0, -9.0, -1.0), "unusable"),
        ((5.0, -1.0, 9.0), "weak"),
        ((5.0, 1.0, 9.0), "fit"),
    ],
)
def test_it_must_sound_more_like_the_person_than_another_does(over, level):
    assert told(**{**GOOD, "consistency": consistency(over)}).level == level


@pytest.mark.parametrize(
    ("found", "level"),
    [
        (leaving(false=(0.4, 0.26, 0.5)), "unusable"),
        (leaving(false=(0.2, 0.11, 0.3)), "weak"),
        (leaving(false=(0.2, 0.09, 0.3)), "fit"),
        (leaving(hits=1, misses=19, recall=(0.05, 0.0, 0.19)), "weak"),
        (leaving(hits=0, misses=6, recall=(0.0, 0.0, 0.4)), "weak"),
        (leaving(hits=0, misses=4, recall=(0.0, 0.0, 0.1)), "fit"),
    ],
)
def test_leaving_is_held_to_where_the_person_left(found, level):
    assert told(**{**GOOD, "leaving": found}).level == level


@pytest.mark.parametrize(("simulated", "level"), [(39, "fit"), (40, "weak"), (10, "weak")])
def test_messages_twice_as_long_or_half_as_long_are_weak(simulated, level):
    assert told(**{**GOOD, "surface": surface(20, simulated)}).level == level


@pytest.mark.parametrize(("silent", "level"), [(4, "fit"), (5, "weak"), (21, "unusable")])
def test_silence_counts_against_it(silent, level):
    spoken = Spoken(contexts=40, said=40 - silent, left=0, silent=silent, cut=0)
    assert told(**GOOD, spoken=spoken).level == level


def test_what_speaks_against_it_comes_first():
    found = told(**{**GOOD, "fooling": fooling(0.02, 0.0, 0.05), "surface": surface(20, 60)})
    assert "nearly always finds" in found.reasons[0]
    assert "3.0 times as long" in found.reasons[1]


@pytest.mark.parametrize(
    ("measures", "level"),
    [
        ({"likelihood": likelihood(-0.1, -0.2, 0.0)}, "weak"),
        ({"two_sample": two_sample(0.95, 0.9, 1.0)}, "fit"),
        ({"fooling": fooling(0.02, 0.0, 0.1)}, "weak"),
        ({"fooling": fooling(0.02, 0.0, 0.05, flips=0.5)}, "unusable"),
        ({"fooling": fooling(0.2, 0.1, 0.35)}, "fit"),
        ({"fooling": fooling(0.8, 0.65, 0.9)}, "fit"),
        ({"consistency": consistency((-5.0, -9.0, 0.0))}, "unusable"),
        ({"consistency": consistency((5.0, 0.0, 9.0))}, "weak"),
        ({"leaving": leaving(false=(0.2, 0.1, 0.3))}, "fit"),
        ({"leaving": leaving(false=(0.4, 0.25, 0.5))}, "weak"),
        ({"leaving": leaving(hits=1, misses=19, recall=(0.05, 0.0, 0.2))}, "fit"),
        ({"leaving": leaving(hits=0, misses=5, recall=(0.0, 0.0, 0.4))}, "weak"),
    ],
)
def test_an_interval_that_ends_at_a_threshold(measures, level):
    assert told(**{**GOOD, **measures}).level == level


def test_a_lead_whose_interval_touches_0_could_be_chance():
    assert told(**GOOD, over_matrix=matrix(True, (0.2, 0.0, 0.4))).level == "weak"


def test_the_interval_and_not_its_number_makes_a_caricature():
    found = told(**{**GOOD, "fooling": fooling(0.8, 0.6, 1.0)})
    assert found.level == "fit"
    assert "Too few pairs to say how often the judge is fooled" in said(found)


def test_the_embedded_judges_scores_of_identity_do_not_count():
    """Neither against a simulator nor for it: with likelihood alone nothing is proven."""
    against = consistency((-5.0, -9.0, -1.0), counts=False)
    assert told(**{**GOOD, "consistency": against}).level == "fit"
    only = {"likelihood": GOOD["likelihood"]}
    for counts, level in ((True, "fit"), (False, "cannot be told")):
        score = consistency((30.0, 20.0, 40.0), counts=counts)
        assert told(**only, consistency=score).level == level


def test_identity_without_a_control_says_why_it_does_not_count():
    alone = consistency((None,), apart=None, control=(None, None, None, "nobody else is validated"))
    found = told(**{**GOOD, "consistency": alone})
    assert "has no control (nobody else is validated) and does not count" in said(found)


def test_a_persons_own_row_of_the_matrix_is_read():
    lost = matrix(False, (-0.2, -0.3, -0.1)).rows[0].model_copy(update={"user_id": "u2"})
    both = WINS.model_copy(update={"rows": (lost, *WINS.rows)})
    assert told(**GOOD, over_matrix=both).level == "fit"


def test_length_is_judged_by_characters_alone():
    """Three times the words, each a third as long."""
    characters = surface(20, 25).distributions[0]
    words = surface(5, 15).distributions[0].model_copy(update={"name": "words"})
    both = Surface(messages=40, distributions=(characters, words), habits=())
    assert told(**{**GOOD, "surface": both}).level == "fit"
