"""Reading what a model says of rules: the wrapper is forgiven, the content is not."""

import json
from collections import Counter

import pytest

from palate.models.client import Sampling
from palate.rubrics.asking import Asker, UnreadableError
from palate.rubrics.checking import Evidence
from palate.rubrics.choosing import best, entries
from palate.rubrics.citations import Citations
from palate.rubrics.merging import merged, read_groups
from palate.rubrics.proposing import read_proposal
from palate.rubrics.rated import rated_replies
from palate.rubrics.revising import read_revision
from palate.rubrics.rules import Rule, Separation
from palate.rubrics.showing import Room
from palate.rubrics.testing_rules import outcome_of, read_choices, separation, trials
from palate.rubrics.testing_rules import tested as put_to_the_test
from palate.rubrics.wording import read_wording
from test_contrasts import session
from worlds import Answering

NAMES = Citations(["s"])
RULE = {"rule": "Names one exact thing", "evidence": ["s#2"]}
WHOLE = json.dumps({"rewards": [RULE]})
WRAPPED = {
    "plain": WHOLE,
    "fence": f"```json\n{WHOLE}\n```",
    "fence not closed": f"```JSON\r\n{WHOLE}",
    "prose around": f"Here is what I found: {WHOLE} Hope that helps {{smile}}.",
    "thinking before": f'<think>{{"rewards": []}}?</think>{WHOLE}',
    "trailing comma": WHOLE.replace("]}", "],}"),
    "single quotes": WHOLE.replace('"', "'"),
    "byte order mark": "\ufeff" + WHOLE,
    "full-width": WHOLE.replace("{", "｛").replace("}", "｝").replace(":", "："),
    "curly quotes": "{“rewards”: [{“rule”: “Names one exact thing”, “evidence”: [“s#2”]}]}",
    "nested": json.dumps({"rubric": {"rules": {"rewards": [RULE]}}}),
    "chinese keys": json.dumps({"奖励": [{"规则": RULE["rule"], "证据": "[s#2]"}]}),
    "list form": json.dumps({"rules": [{"kind": "reward", **RULE}]}),
    "said twice": json.dumps({"rewards": [RULE, RULE]}),
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_a_rule_is_read_out_of_every_wrapper(text):
    found = read_proposal(text, NAMES, "en")
    assert set(found.rules) == {Rule("reward", "Names one exact thing", ("s#2",))}
    assert not found.dropped


@pytest.mark.parametrize("text", ["", "No.", '{"rewards": [{"rule": "a", "evi', "{}", "[1, 2]"])
def test_an_answer_without_rules_is_unreadable(text):
    with pytest.raises(UnreadableError):
        read_proposal(text, NAMES, "en")


DROPPED = {
    "no evidence": ({"rule": "Is short"}, "has no evidence"),
    "unknown session": ({"rule": "Is short", "evidence": ["t#2"]}, "has no evidence"),
    "no text": ({"evidence": ["s#2"]}, "says nothing"),
    "our form": ({"rule": "<rule>", "evidence": ["s#2"]}, "says nothing"),
    "another language": ({"rule": "喜欢简短的回复", "evidence": ["s#2"]}, "is in another language"),
    "endless": ({"rule": "word " * 99, "evidence": ["s#2"]}, "is too long"),
    "a bare text": ("Is short", "has no evidence"),
}


@pytest.mark.parametrize(("entry", "reason"), DROPPED.values(), ids=DROPPED.keys())
def test_a_rule_that_lacks_something_is_dropped_and_counted(entry, reason):
    found = read_proposal(json.dumps({"rewards": [entry]}), NAMES, "en")
    assert (found.rules, dict(found.dropped)) == ([], {reason: 1})


def test_a_rule_with_two_texts_contradicts_itself():
    text = '{"rewards": [{"rule": "Is short", "rule": "Is long", "evidence": ["s#2"]}]}'
    assert dict(read_proposal(text, NAMES, "en").dropped) == {"contradicts itself": 1}


def test_a_reaction_needs_a_direction():
    entry = {"pattern": "One word", "meaning": "Bored", "evidence": ["s#3"]}
    text = json.dumps({"reactions": [entry, {**entry, "direction": "displeased"}]})
    found = read_proposal(text, NAMES, "en")
    assert found.rules == [Rule("reaction", "One word", ("s#3",), "Bored", -1)]
    assert dict(found.dropped) == {"has no direction": 1}


def test_a_text_of_a_model_is_one_line_without_control_characters():
    text = json.dumps({"rewards": [{"rule": "Is\n short\x1b[2J", "evidence": ["s#2"]}]})
    assert read_proposal(text, NAMES, "en").rules[0].text == "Is short[2J"


def test_evidence_must_exist_and_say_so():
    """Ratings 5 1 3 (median 3): high, low, and the middle."""
    evidence = Evidence(rated_replies([session("s", 5, 1, 3)]))
    shown = {"s#2", "s#3", "s#4", "s#5", "s#6"}

    def kept(kind, *turns, direction=0):
        dropped = Counter()
        rule = Rule(kind, "x", turns, direction=direction)
        held = evidence.supporting(rule, shown, dropped)
        return (held.evidence if held else None), dict(dropped)

    assert kept("reward", "s#2", "s#4") == (("s#2",), {"was not rated high": 1})
    assert kept("penalty", "s#4", "s#6") == (("s#4",), {"was not rated low": 1})
    assert kept("reward", "s#3") == (None, {"is no rated reply": 1})
    assert kept("reward", "s#8") == (None, {"names a turn that was not shown": 1})
    assert kept("reaction", "s#3", "s#5", direction=1) == (
        ("s#3",),
        {"was rated the other way": 1},
    )
    assert kept("reaction", "s#2", direction=1) == (None, {"is no message after a rated reply": 1})
    assert kept("reaction", "s#3", "s#5") == (("s#3", "s#5"), {})


def test_separation_is_right_minus_wrong_over_asked():
    """6 right, 1 wrong, 1 neither of 8: 5/8; of 7 tosses, 6 or more: (7 + 1) / 128."""
    found = Separation(asked=8, right=6, wrong=1)
    assert found.value == 0.625
    assert found.p == 0.0625
    assert (Separation().value, Separation().p) == (0.0, 1.0)


REWARD = Rule("reward", "x", ("s#2",))


@pytest.mark.parametrize(
    ("right", "wrong", "asked", "outcome"),
    [
        (3, 0, 20, "kept"),  # 0.15
        (3, 0, 21, "does not separate"),
        (2, 0, 2, "fired too seldom"),
        (1, 4, 5, "does not separate"),
    ],
)
def test_a_rule_is_kept_where_it_separates_and_fires(right, wrong, asked, outcome):
    assert outcome_of(REWARD, Separation(asked=asked, right=right, wrong=wrong)) == outcome


def test_a_neutral_reaction_is_kept_where_it_does_not_separate():
    neutral = Rule("reaction", "x", ("s#3",), "y", 0)
    assert outcome_of(neutral, Separation(asked=10, right=3, wrong=3)) == "kept"
    assert outcome_of(neutral, Separation(asked=10, right=5, wrong=1)) == "does not separate"


@pytest.mark.parametrize(("direction", "right"), [(1, 0), (0, 0), (-1, 1)])
async def test_a_sign_of_displeasure_should_fit_what_follows_the_lower_rated_reply(
    direction, right
):
    """The model always names the message after the reply rated 1, which is "s ends"."""
    given = trials(rated_replies([session("s", 5, 1)]), most=1, seed=0)
    rule = Rule("reaction", "Ends it", ("s#5",), "Has had enough", direction)

    def the_last(request):
        _, _, second = request.messages[1].text.partition("s ends")
        return json.dumps({"1": "A" if "s asks 1" in second else "B"})

    model = Answering(the_last)
    asker = Asker("ada", "en", model, Sampling(temperature=0.0, max_tokens=100))
    found = await put_to_the_test([rule], given, asker, Room(100, 100), rules_a_call=10)
    assert separation(found[rule.key]) == Separation(asked=1, right=right, wrong=1 - right)


CHOICES = {
    '{"1": "A", "2": "neither"}': {1: "A", 2: "neither"},
    '```\n{"choices": {"rule 1": "b", "Rule 2": "Both"}}\n```': {1: "B", 2: "both"},
    '{"1": {"choice": "A", "reason": "x"}, "2": {"choice": "B"}}': {1: "A", 2: "B"},
    '[{"rule": 1, "choice": "A"}, {"rule": "2", "choice": "都不"}]': {1: "A", 2: "neither"},
    '{"1": "A", "1": "B", "2": "B"}': {2: "B"},
    '{"1": "A", "1": "A", "9": "B"}': {1: "A"},
    '{"1": "<A, B, neither or both>", "2": "B"}': {2: "B"},
    '{"1": "A"}\nOn reflection: {"1": "B", "2": "A"}': {2: "A"},
}


@pytest.mark.parametrize(("text", "choices"), CHOICES.items())
def test_choices_are_read_and_contradicted_ones_are_none(text, choices):
    assert read_choices(text, 2) == choices


@pytest.mark.parametrize("text", ["", "A", '{"1": "A", "2', '{"1": "C"}', '{"reason": "x"}'])
def test_an_answer_without_a_choice_is_unreadable(text):
    with pytest.raises(UnreadableError):
        read_choices(text, 2)


def test_groups_hold_known_rules_once():
    assert read_groups('{"same": [[1, 3], ["2", "9"], [3, 4], [5]]}', 5) == [[1, 3]]
    assert read_groups('{"same": []}', 5) == []
    assert read_groups('{"result": {"same": [["rule 2", "rule 4"]]}}', 5) == [[2, 4]]
    with pytest.raises(UnreadableError):
        read_groups('{"different": []}', 5)


async def test_what_pleases_and_what_displeases_is_never_made_one_rule():
    """The model calls all three the same: the pleased ones are one, the displeased one stays."""
    pleased = Rule("reaction", "Answers at length", ("s#3",), "Wants more", 1)
    again = Rule("reaction", "Writes long answers", ("s#7",), "Wants more", 1)
    displeased = Rule("reaction", "Answers at some length", ("s#5",), "Explains itself", -1)
    model = Answering(lambda request: '{"same": [[1, 2, 3]]}')
    asker = Asker("ada", "en", model, Sampling(temperature=0.0, max_tokens=100))
    kept = await merged([pleased, displeased, again], asker, lambda r: (r is pleased,))
    assert kept == [pleased._replace(evidence=("s#3", "s#7")), displeased]


def test_a_rule_weighs_major_from_a_separation_of_three_tenths_on():
    """3 of 10 right is 0.3, 29 of 100 is 0.29."""
    strong, weak = Rule("reward", "strong", ("s#2",)), Rule("reward", "weak", ("s#2",))
    found = {
        strong.key: Separation(asked=10, right=3),
        weak.key: Separation(asked=100, right=29),
    }
    weights = [(one.id, one.rule, one.weight) for one in entries([strong, weak], "reward", found)]
    assert weights == [("r1", "strong", "major"), ("r2", "weak", "minor")]


def test_of_each_kind_the_best_separating_rules_stay_and_no_more_than_a_few():
    rules = [Rule("penalty", f"rule {right}", ("s#4",)) for right in range(4, 10)]
    found = {
        rule.key: Separation(asked=10, right=right) for right, rule in enumerate(rules, start=4)
    }
    assert [rule.text for rule in best(rules, found)] == [f"rule {n}" for n in (9, 8, 7, 6, 5)]


def test_a_revision_is_a_new_rule_or_none():
    assert read_revision('{"action": "rewrite", "rule": "Is short"}', "en") == "Is short"
    assert read_revision('{"action": "withdraw", "rule": ""}', "en") == ""
    assert read_revision('{"result": {"动作": "撤回"}}', "zh") == ""
    for text in (
        '{"action": "rewrite", "rule": ""}',
        '{"action": "rewrite", "rule": "<the new rule>"}',
        '{"action": "rewrite", "rule": "Is short"} {"action": "withdraw", "rule": ""}',
        '{"action": "rewrite", "rule": "回复要短"}',
    ):
        with pytest.raises(UnreadableError):
            read_revision(text, "en")


ANCHORS = {str(n): f"looks like {n}" for n in range(1, 6)}


def test_summary_and_anchors_are_whole_or_unreadable():
    said = {"summary": "Wants little.", "anchors": ANCHORS}
    assert read_wording(json.dumps({"rubric": said}), "en") == ("Wants little.", ANCHORS)
    for changed in (
        {"summary": "<summary>"},
        {"summary": " "},
        {"summary": "要短。短一点，再短一点，不要再多说一句话了好不好。"},
        {"anchors": {**ANCHORS, "3": ""}},
        {"anchors": {**ANCHORS, "6": "more"}},
        {"anchors": {k: v for k, v in ANCHORS.items() if k != "5"}},
    ):
        with pytest.raises(UnreadableError):
            read_wording(json.dumps({**said, **changed}), "en")
