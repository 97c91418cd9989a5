"""One conversation for back ends with different rules."""

import itertools

import pytest

from palate.models.client import ChatMessage
from palate.models.shapes import HELPER_USER_LINE, ShapeRules, form, shape
from palate.models.spec import EndpointSettings

CONVERSATION = [
    ("system", "SYS card text"),
    ("assistant", "Opening line."),
    ("user", "u1"),
    ("assistant", "c1"),
    ("user", "u2a"),
    ("user", "u2b"),
]
TEXTS = [text for _, text in CONVERSATION]


def shaped(rules, conversation=CONVERSATION):
    return shape([ChatMessage(*m) for m in conversation], rules)


def roles(messages):
    return [m.role for m in messages]


def texts_in_order(result, texts):
    """Whether each text appears exactly once, in this order."""
    whole = "\n".join([result.system, *(m.text for m in result.messages)])
    places = [whole.find(text) for text in texts]
    return -1 not in places and places == sorted(places) and all(whole.count(t) == 1 for t in texts)


def test_a_free_back_end_gets_the_conversation_as_it_stands():
    messages = tuple(ChatMessage(*m) for m in CONVERSATION)
    assert shape(messages, ShapeRules()).messages is messages


def test_without_a_system_role_the_instructions_come_first_as_the_user():
    result = shaped(ShapeRules(system="none"))
    assert roles(result.messages) == ["user", "assistant", "user", "assistant", "user", "user"]
    assert texts_in_order(result, TEXTS)


def test_without_an_opening_the_instructions_join_the_first_user_message():
    result = shaped(ShapeRules(system="none"), [("system", "SYS"), ("user", "u1")])
    assert result.messages == [ChatMessage("user", "SYS\n\nu1")]


def test_strict_alternation_with_the_user_first_gets_a_helper_line_and_merged_runs():
    result = shaped(ShapeRules(first_role="user", alternate=True))
    assert result.messages == [
        ("system", "SYS card text"),
        ("user", HELPER_USER_LINE),
        ("assistant", "Opening line."),
        ("user", "u1"),
        ("assistant", "c1"),
        ("user", "u2a\n\nu2b"),
    ]


def test_strict_alternation_without_a_system_role_needs_no_helper_line():
    result = shaped(ShapeRules(system="none", first_role="user", alternate=True))
    assert roles(result.messages) == ["user", "assistant", "user", "assistant", "user"]
    assert texts_in_order(result, TEXTS)
    assert HELPER_USER_LINE not in [m.text for m in result.messages]


def test_a_top_field_takes_all_system_text():
    rules = ShapeRules.of(EndpointSettings(first_role="user"), "anthropic")
    conversation = [*CONVERSATION, ("system", "Reminder text"), ("assistant", "  "), ("user", "")]
    result = shaped(rules, conversation)
    assert result.system == "SYS card text\n\nReminder text"
    assert result.messages == [("user", HELPER_USER_LINE), *CONVERSATION[1:]]


def test_the_last_message_of_an_assistant_has_no_trailing_space_for_anthropic():
    rules = ShapeRules.of(EndpointSettings(first_role="user"), "anthropic")
    result = shaped(rules, [("user", "u1 "), ("assistant", "She said: \n")])
    assert result.messages == [("user", "u1 "), ("assistant", "She said:")]


@pytest.mark.parametrize("place", [1, 3, 6])
def test_one_system_message_only_takes_the_later_ones_in(place):
    conversation = list(CONVERSATION)
    conversation.insert(place, ("system", "Reminder text"))
    result = shaped(ShapeRules(max_system=1), conversation)
    assert roles(result.messages) == [role for role, _ in CONVERSATION]
    assert texts_in_order(result, ["SYS card text", "Reminder text", *TEXTS[1:]])


def test_two_system_messages_may_stay_where_two_are_allowed():
    three = [("system", "a"), ("user", "u"), ("system", "b"), ("assistant", "c"), ("system", "d")]
    result = shaped(ShapeRules(max_system=2), three)
    assert result.messages == [
        ("system", "a"),
        ("user", "u"),
        ("system", "b\n\nd"),
        ("assistant", "c"),
    ]


def test_no_helper_line_where_the_user_begins():
    conversation = [("system", "SYS"), ("user", "u1")]
    result = shaped(ShapeRules(first_role="user", alternate=True), conversation)
    assert result.messages == conversation


def test_a_chat_that_has_not_begun_gets_the_helper_line():
    result = shaped(ShapeRules(system="top", first_role="user"), [("system", "SYS")])
    assert result == ([("user", HELPER_USER_LINE)], "SYS")


def test_a_system_message_in_mid_chat_does_not_break_the_alternation():
    rules = ShapeRules.of(EndpointSettings(alternate=True, first_role="user"), "openai")
    result = shaped(rules, [("system", "SYS"), ("user", "u1"), ("system", "Reminder")])
    assert result.messages == [("system", "SYS\n\nReminder"), ("user", "u1")]


@pytest.mark.parametrize(
    ("system", "first", "alternate", "most"),
    list(itertools.product(["role", "top", "none"], ["any", "user"], [False, True], [None, 1])),
)
def test_every_combination_of_rules_is_kept_and_loses_no_text(system, first, alternate, most):
    rules = ShapeRules(system=system, first_role=first, alternate=alternate, max_system=most)
    result = shaped(rules)
    assert texts_in_order(result, TEXTS)
    spoken = [role for role in roles(result.messages) if role != "system"]
    assert system == "role" or "system" not in roles(result.messages)
    assert first == "any" or spoken[0] == "user"
    assert not alternate or all(a != b for a, b in itertools.pairwise(spoken))


@pytest.mark.parametrize(
    ("settings", "provider", "name"),
    [
        (EndpointSettings(), "openai", "as-it-stands"),
        (EndpointSettings(system_role=False), "openai", "system-in-user"),
        (EndpointSettings(first_role="user"), "anthropic", "top-system+helper-user-line"),
        (
            EndpointSettings(first_role="user", alternate=True),
            "openai",
            "at-most-1-system+helper-user-line+merged",
        ),
    ],
)
def test_the_form_has_a_stable_name(settings, provider, name):
    assert form(settings, provider) == name
