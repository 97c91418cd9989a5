"""When a user has left, and who sees what (paper 3.1, 3.2)."""

import pytest

from palate.chat import as_seen_by, read_user
from palate.types import Message

LEAVES = [
    ("[QUIT]", ""),
    ("  [QUIT]\n", ""),
    ("[quit]", ""),
    ("[Quit]", ""),
    ("[ QUIT ]", ""),
    ("【QUIT】", ""),
    ("［QUIT］", ""),
    ("[ＱＵＩＴ]", ""),
    ("[ｑｕｉｔ]", ""),
    ("[QUIT]。", ""),
    ("[QUIT].", ""),
    ("[QUIT]!!", ""),
    ("**[QUIT]**", ""),
    ("`[QUIT]`", ""),
    ("**[QUIT]**.", ""),
    ("\\[QUIT\\]", ""),
    ("\u200b[QUIT]\ufeff", ""),
    ("[QUIT][QUIT]", ""),
    ("[QUIT]\n[QUIT]", ""),
    ('"[QUIT]"', ""),
    ("```\n[QUIT]\n```", ""),
    ("Night, then. [QUIT]", "Night, then."),
    ("我先走了。【QUIT】", "我先走了。"),
    ("我先走了。[QUIT]。", "我先走了。"),
    ("Bye!\n\n[QUIT]\n", "Bye!"),
    ("*waves* [quit].", "*waves*"),
    ("*waves* **[QUIT]**", "*waves*"),
    ("Look: ```code``` and bye [QUIT]", "Look: ```code``` and bye"),
    ("<think>leave? yes</think>[QUIT]", ""),
    ("[QUIT] wait, one more thing", ""),
]

STAYS = [
    ("<think>should I say [QUIT]? no</think>Let us go on.", "Let us go on."),
    ("The terminal shows [QUIT] and I press enter, waiting.", None),
    ('"[QUIT]" is what the sign says, right?', None),
    ("```\n[QUIT]\n```\nWhat does this line do?", None),
    ("What does this do?\n```\nprint()\n[QUIT]\n```", None),
    ("I quit this job.", None),
    ("[QUITE] a view.", None),
    ("I said quit. I mean it.", None),
    ("[QUIT]ting is not for me.", None),
    ("", ""),
    ("QUIT", None),
    ("[QUIT", None),
    ("[退出]", None),
]


@pytest.mark.parametrize(("raw", "kept"), LEAVES)
def test_a_final_token_ends_the_session_and_the_farewell_is_kept(raw, kept):
    assert read_user(raw) == (kept, True)


@pytest.mark.parametrize(("raw", "kept"), STAYS)
def test_a_token_inside_a_sentence_is_text(raw, kept):
    assert read_user(raw) == (raw if kept is None else kept, False)


def test_roles_flip_with_the_side_that_looks():
    messages = [Message(speaker="user", text="u1"), Message(speaker="character", text="c1")]
    assert [m.role for m in as_seen_by("character", "O", messages)] == [
        "assistant",
        "user",
        "assistant",
    ]
    assert as_seen_by("user", "O", messages) == (("user", "O"), ("assistant", "u1"), ("user", "c1"))


def test_a_card_without_an_opening_starts_with_the_user():
    messages = [Message(speaker="user", text="u1")]
    assert as_seen_by("character", "", messages) == (("user", "u1"),)


@pytest.mark.parametrize(
    "text",
    ["*" * 300000 + "x", "[QUIT]" * 50000 + "x", "[ " * 150000, "a" + "[QUIT] ** " * 30000 + "x"],
    ids=["markup", "tokens", "brackets", "tokens and markup"],
)
def test_a_hostile_message_is_read_in_one_pass(text):
    """Each took minutes where the last token was sought from every place on."""
    assert not read_user(text).quit


def test_of_many_tokens_at_the_end_all_that_touch_belong_to_the_leaving():
    assert read_user("Bye. [QUIT] **[QUIT] [QUIT]** ") == ("Bye. [QUIT]", True)
