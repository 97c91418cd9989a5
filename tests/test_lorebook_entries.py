"""What a lorebook says: fields of either format, decorators and their fallbacks, odd types."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palate import cards
from palate.cards.decorators import read as read_decorators
from palate.cards.entries import Key, Place
from palate.cards.lorebook import lorebook
from palate.errors import InputError

POSITIONS = frozenset({"before_desc", "after_desc", "personality"})


def card(*entries, book=None, **fields):
    data = {
        "name": "Ash",
        "description": "d",
        "first_mes": "Hm.",
        "character_book": {"entries": list(entries), **(book or {})},
        **fields,
    }
    value = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    return cards.from_json(value, card_id="ash", where="ash.json")


def entry(**fields):
    (found,) = lorebook(card({"content": "LORE", "keys": ["gate"], **fields})).entries
    return found


def decorated(*lines):
    found = read_decorators("\n".join(lines), positions=POSITIONS)
    return found.content, dict(found.values)


def test_an_entry_of_the_specification_is_read():
    found = entry(
        keys=["gate", " wall "],
        secondary_keys=["dusk"],
        selective=True,
        case_sensitive=True,
        constant=False,
        insertion_order=7,
        priority=3,
        position="before_char",
        enabled=True,
        use_regex=False,
    )
    assert found.search.keys == (Key("gate"), Key("wall"))
    assert found.search.secondary == (Key("dusk"),)
    assert found.search.case_sensitive is True
    assert (found.order, found.priority, found.place) == (7.0, 3.0, Place("before_char"))


def test_an_entry_of_sillytaverns_world_info_reads_the_same():
    book = {
        "entries": {
            "0": {
                "uid": 0,
                "key": ["gate"],
                "keysecondary": ["dusk"],
                "selective": True,
                "content": "LORE",
                "order": 7,
                "position": 4,
                "depth": 2,
                "role": 1,
                "disable": False,
                "caseSensitive": None,
                "scanDepth": 3,
            },
            "5": {"uid": 5, "key": ["wall"], "content": "no", "disable": True},
        }
    }
    (found,) = lorebook(card(book=book)).entries
    assert (found.search.keys, found.search.secondary) == ((Key("gate"),), (Key("dusk"),))
    assert (found.order, found.place, found.search.scan_depth) == (
        7.0,
        Place("depth", 2, "user"),
        3,
    )


def test_an_export_of_sillytavern_keeps_plain_words_and_constants_though_it_says_regex():
    extensions = {"position": 0, "display_index": 1, "selectiveLogic": 3, "depth": 4}
    found = entry(
        keys=["the gate (old)", "/wall[s]?/i"],
        secondary_keys=["dusk"],
        selective=True,
        constant=True,
        use_regex=True,
        position="before_char",
        extensions=extensions,
    )
    assert found.search.keys == (Key("the gate (old)"), Key("/wall[s]?/i", True))
    assert (found.search.constant, found.search.secondary_rule) == (True, "all")
    assert found.place.position == "before_char"


def test_with_patterns_secondary_excluded_and_constant_do_not_count_and_additional_ones_do():
    found = entry(
        keys=["gat.", "/wall/i"],
        use_regex=True,
        constant=True,
        selective=True,
        secondary_keys=["dusk"],
        content="@@additional_keys do+r\n@@exclude_keys x\nLORE",
    )
    assert found.search.keys == (Key("gat.", True), Key("/wall/i", True), Key("do+r", True))
    assert (found.search.secondary, found.search.excluded, found.search.additional) == ((), (), ())
    assert found.search.constant is False


@pytest.mark.parametrize(
    ("number", "place"),
    [
        (0, Place("before_char")),
        (1, Place("after_char")),
        (2, Place("depth", 4)),
        (3, Place("depth", 4)),
        (4, Place("depth", 9, "assistant")),
        (5, Place("before_examples")),
        (6, Place("after_examples")),
        (99, Place("after_char")),
    ],
)
def test_sillytaverns_numbers_of_positions(number, place):
    role = 2 if number == 4 else 0
    found = entry(extensions={"position": number, "depth": 9, "role": role})
    assert found.place == place


@pytest.mark.parametrize(
    ("lines", "content", "values"),
    [
        (["plain"], "plain", {}),
        (["@@depth 4", "", "LORE"], "LORE", {"depth": ("4",)}),
        (["@@depth 4"], "", {"depth": ("4",)}),
        (["One", "", "@@activate", "", "Two"], "One\nTwo", {"activate": ("",)}),
        (["@@DEPTH 4\r", "LORE"], "LORE", {"depth": ("4",)}),
        (["@@depth 4\r@@role user\rLORE"], "LORE", {"depth": ("4",), "role": ("user",)}),
        (["  @@depth 4", "LORE"], "LORE", {"depth": ("4",)}),
        (["@@depth 4.0", "LORE"], "LORE", {"depth": ("4.0",)}),
        (["@@depth four", "LORE"], "LORE", {}),
        (["@@depth 4", "@@depth 9", "LORE"], "LORE", {"depth": ("4",)}),
        (["@@depth x", "@@depth 9", "LORE"], "LORE", {"depth": ("9",)}),
        (["@@unknown 4", "@@@depth 4", "LORE"], "LORE", {"depth": ("4",)}),
        (["@@depth 5", "@@@role user", "LORE"], "LORE", {"depth": ("5",)}),
        (["@@a 1", "@@@b 2", "@@@c 3", "@@@d 4", "@@@e 5", "@@@depth 6"], "", {"depth": ("6",)}),
        (["@@instruct_depth 9", "@@@depth 2", "LORE"], "LORE", {"depth": ("2",)}),
        (["@@is_user_icon x", "@@@activate", "LORE"], "LORE", {"activate": ("",)}),
        (["@@@depth 4", "LORE"], "LORE", {}),
        (["@@role captain", "@@@role user", "LORE"], "LORE", {"role": ("user",)}),
        (["@@position moon", "@@@depth 1", "LORE"], "LORE", {"depth": ("1",)}),
        (["@@mood x", "LORE", "@@@depth 4"], "LORE", {}),
        (["@@depth 2.5", "@@scan_depth 3.0", "LORE"], "LORE", {"scan_depth": ("3.0",)}),
        (["@@position personality", "LORE"], "LORE", {"position": ("personality",)}),
        (["@@position scenario", "LORE"], "LORE", {}),  # this card has no scenario
        (["@@activate_only_every 0", "LORE"], "LORE", {}),
        (
            ["@@additional_keys a,b", "@@additional_keys c", "LORE"],
            "LORE",
            {"additional_keys": ("a,b", "c")},
        ),
        (["@@", "@@@@depth 4", "@@ !", "LORE"], "LORE", {}),
        (["LORE @@depth 4"], "LORE @@depth 4", {}),
        (["@@depth " + "9" * 5000, "LORE"], "LORE", {}),
    ],
)
def test_decorators_are_read_and_leave_the_text(lines, content, values):
    assert decorated(*lines) == (content, values)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("@@depth 2", Place("depth", 2)),
        ("@@reverse_depth 2", Place("reverse_depth", 2)),
        ("@@reverse_depth 2\n@@depth 1", Place("depth", 1)),
        ("@@position after_desc\n@@depth 1", Place("after_desc")),
        ("@@depth 1\n@@after", Place("after_char")),
        ("@@depth 1\n@@after\n@@reverse_depth 2", Place("after_char")),
        ("@@depth 1\n@@role user", Place("depth", 1, "user")),
        ("@@role user", Place("after_char", 0, "user")),
    ],
)
def test_a_position_goes_before_a_depth_and_a_depth_before_its_reverse(lines, place):
    assert entry(content=f"{lines}\nLORE").place == place


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"keys": "gate, wall"}, ("gate", "wall")),
        ({"keys": ["gate", None, "", "  ", 7]}, ("gate", "7")),
        ({"keys": None}, ()),
        ({"keys": "/a,b/i", "use_regex": True}, ("/a,b/i",)),
    ],
)
def test_keys_have_one_reading(fields, keys):
    assert tuple(key.text for key in entry(**fields).search.keys) == keys


@pytest.mark.parametrize(
    "fields",
    [
        {"enabled": False},
        {"enabled": "false"},
        {"enabled": 0},
        {"content": ""},
        {"content": None},
        {"content": "@@depth 4\n"},
    ],
)
def test_a_disabled_or_empty_entry_is_none(fields):
    assert lorebook(card({"content": "LORE", "keys": ["gate"], **fields})).entries == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"keys": {"a": 1}}, "keys is {'a': 1} and not a list of texts"),
        ({"keys": [["a"]]}, "keys is [['a']] and not a list of texts"),
        ({"content": {"a": 1}}, "content is {'a': 1} and not text"),
        ({"insertion_order": "late"}, "insertion_order is 'late' and not a number"),
        ({"insertion_order": float("inf")}, "insertion_order is inf and not a number"),
        ({"insertion_order": float("nan")}, "insertion_order is nan and not a number"),
        ({"priority": True}, "priority is True and not a number"),
        ({"enabled": "maybe"}, "enabled is 'maybe' and not true or false"),
    ],
)
def test_what_has_no_reading_is_refused_in_a_sentence(fields, message):
    odd = card({"content": "ok"}, {"content": "LORE", "keys": ["gate"], **fields})
    with pytest.raises(InputError) as raised:
        lorebook(odd)
    assert str(raised.value) == f"card ash: its lorebook's entry 2: {message}; mend the card"
    assert str(raised.value) in cards.warnings(odd)


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        (None, 0),
        ("", 0),
        ([], 0),
        ({}, 0),
        ({"entries": None}, 0),
        ([{"content": "a"}], 1),
        ({"entries": {"3": {"content": "a"}}}, 1),
        ({"spec": "lorebook_v3", "data": {"entries": [{"content": "a"}]}}, 1),
    ],
)
def test_a_lorebook_has_its_entries_in_a_list_or_an_object(value, entries):
    assert len(lorebook(card(character_book=value)).entries) == entries


@pytest.mark.parametrize("value", ["lore", 7, {"entries": "x"}, {"entries": [1]}])
def test_a_lorebook_that_is_none_is_refused(value):
    with pytest.raises(InputError, match="mend the card"):
        lorebook(card(character_book=value))


@pytest.mark.parametrize(
    ("budget", "depth", "read"),
    [(None, None, (None, None)), (0, 0, (None, 0)), ("50", "2", (50.0, 2)), (-1, -3, (None, 0))],
)
def test_the_settings_of_a_lorebook(budget, depth, read):
    found = lorebook(card(book={"token_budget": budget, "scan_depth": depth}))
    assert (found.token_budget, found.scan_depth) == read


def test_what_has_no_effect_is_warned_of_once():
    odd = card(
        {"content": "@@is_user_icon x\n@@mood 3\n{{time}}", "keys": ["(", "a"], "use_regex": True},
        {
            "content": "@@mood 4\n@@risu 1\n@@@depth 2\nb",
            "constant": True,
            "extensions": {"sticky": 3},
        },
        {"content": "c", "keys": ["c"], "extensions": {"probability": 50, "position": 7}},
        {"content": "d"},
    )
    assert cards.warnings(odd) == (
        "card ash uses macros that stay as they are: {{time}}",
        "card ash has a lorebook with settings that have no effect here: @@is_user_icon, @@mood, "
        "sticky, probability, outlet",
        "card ash has a lorebook with patterns that cannot be read and match nothing: (",
        "card ash has a lorebook with entries that no chat brings in, having no key to find or "
        "being switched off: 4",
    )


def test_an_ordinary_lorebook_is_no_reason_to_warn():
    assert cards.warnings(card({"content": "@@depth 2\na", "keys": ["a"], "enabled": True})) == ()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
_NAMES = ["keys", "key", "secondary_keys", "content", "enabled", "disable", "insertion_order"]
_NAMES += ["priority", "position", "depth", "role", "extensions", "selective", "use_regex"]
_fields = st.fixed_dictionaries({}, optional=dict.fromkeys(_NAMES, _json))


@given(_json | st.lists(_fields, max_size=3).map(lambda found: {"entries": found}))
def test_any_json_as_a_lorebook_is_read_or_refused(value):
    odd = card(character_book=value)
    cards.warnings(odd)
    with contextlib.suppress(InputError):
        lorebook(odd)


@given(st.text(alphabet="@ \n\rdepth4_9", max_size=60))
def test_no_decorator_reaches_a_prompt(text):
    content = read_decorators(text, positions=POSITIONS).content
    assert not any(line.strip(" \t").startswith("@@") for line in content.splitlines())
