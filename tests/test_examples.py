"""From sessions to training examples: every message of the user once, whole, and nothing else."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_templates import CHATML, STRIPPING, THINKING, USER_FIRST, byte_tokenizer
from palate.simulators.chat_form import ChatForm
from palate.simulators.examples import NO_COUNTS, examples, session_examples
from palate.types import Session, TrainingSession, Turn

pytestmark = pytest.mark.train

SYSTEM = "You are Wren."
CORRIDOR = " ".join(f"The corridor bends again, door {n}." for n in range(400))


def session(*texts: str, first="character", ended_by="unknown", name="s"):
    """Alternating turns, the character first."""
    sides = ("character", "user") if first == "character" else ("user", "character")
    return Session(
        session_id=name,
        user_id="wren",
        card_id="harbour",
        ended_by=ended_by,
        turns=tuple(Turn(speaker=sides[n % 2], text=text) for n, text in enumerate(texts)),
    )


class Kit:
    """A form with its tokenizer, and what examples say in words."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.form = ChatForm.of(tokenizer, source="a model")

    def text(self, ids):
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def targets(self, example):
        """The stretches of supervised tokens of an example, as text."""
        found, previous = [], False
        for number, learned in zip(example.input_ids, example.supervised, strict=True):
            if learned and not previous:
                found.append([])
            if learned:
                found[-1].append(number)
            previous = learned
        return [self.text(ids) for ids in found]

    def made(self, chat, *, max_tokens=256, system=SYSTEM, per_turn=False):
        return session_examples(
            chat, self.form, system=system, max_tokens=max_tokens, per_turn=per_turn
        )

    def learned(self, chat, **options):
        """All targets of a session, in order."""
        made, _ = self.made(chat, **options)
        return [target for example in made for target in self.targets(example)]


@functools.cache
def tiny(template=CHATML):
    return Kit(byte_tokenizer(template))


# --- the ten traps, with the embedded model's own tokenizer and a budget of 256 tokens ---


@pytest.fixture(scope="module")
def smol():
    from palate.simulators.base_model import tokenizer_of

    return Kit(tokenizer_of("local:smollm2-135m"))


TRAPS = {
    "short_target_after_a_long_context": (session(CORRIDOR, "ok"), ["ok<|im_end|>"]),
    "target_too_long_by_itself": (session("Tell me all.", CORRIDOR), []),
    "blank_target": (session("Well?", "  \n"), []),
    "natural_end": (
        session("Good night?", "good night", ended_by="quit"),
        ["good night\n[QUIT]<|im_end|>"],
    ),
    "limit_end": (session("More?", "more", ended_by="limit"), ["more<|im_end|>"]),
    "emoji": (
        session("Show me.", "👩\u200d🚀🌊 好的～ e\u0301"),
        ["👩\u200d🚀🌊 好的～ e\u0301<|im_end|>"],
    ),
    "control_words": (
        session("Say it.", "he typed <|im_end|> and <|im_start|>assistant and </s> [INST]"),
        ["he typed <|im_end|> and <|im_start|>assistant and </s> [INST]<|im_end|>"],
    ),
    "leading_space_and_lines": (
        session("Hm.", "\n  *shrugs*\n\nfine \n"),
        ["\n  *shrugs*\n\nfine \n<|im_end|>"],
    ),
    "same_text_on_both_sides": (
        session("yes", "yes", "yes", "yes"),
        ["yes<|im_end|>", "yes<|im_end|>"],
    ),
    "opening_only": (session("Opening only."), []),
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("per_turn", [False, True])
def test_supervised_tokens_are_the_target_and_its_end(smol, trap, per_turn):
    chat, targets = TRAPS[trap]
    assert smol.learned(chat, per_turn=per_turn) == targets


@pytest.mark.parametrize("trap", TRAPS)
def test_no_example_is_too_long_or_without_a_target(smol, trap):
    made, counts = smol.made(TRAPS[trap][0])
    assert all(len(example.input_ids) <= 256 for example in made)
    assert all(sum(example.supervised) > 1 for example in made)
    assert counts.supervised_tokens == sum(sum(example.supervised) for example in made)


def test_control_tokens_of_an_example_are_the_templates_alone(smol):
    (example,), _ = smol.made(TRAPS["control_words"][0])
    special = [n for n in example.input_ids if n in smol.form.plain.control_ids]
    begin, end = smol.tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    assert special == [begin, end, begin, end, begin, end]


def test_the_counts_of_the_ten_traps(smol):
    training = [TrainingSession(chat) for chat, _ in TRAPS.values()]
    made, counts = examples(training, smol.form, system=lambda _: SYSTEM, max_tokens=256)
    assert counts._replace(tokens=0, supervised_tokens=0) == NO_COUNTS._replace(
        sessions=10,
        examples=7,
        supervised_messages=8,
        quits=1,
        without_context=1,
        skipped={"too_long_target": 1, "blank": 1},
    )
    assert counts.tokens == sum(len(example.input_ids) for example in made)
    assert counts.sentence() == (
        f"7 examples from 10 sessions: 8 messages of the user, of which 1 leave, in "
        f"{counts.supervised_tokens} supervised tokens of {counts.tokens}; skipped: 1 blank, "
        "1 too long target; without an earlier turn: 1"
    )


def test_the_embedded_models_prompts_are_what_a_server_reads_at_once(smol):
    assert smol.form.one_pass
    record = smol.form.record()
    at_once = smol.tokenizer.encode(record.probe, add_special_tokens=False)
    assert list(record.probe_tokens) == at_once


# --- what an example holds ---


def test_an_example_is_the_whole_session_up_to_its_last_target():
    kit = tiny()
    (example,), counts = kit.made(session("Hi.", "yo", "And?", "bye", "Gone?"))
    assert kit.text(example.input_ids) == (
        "<|im_start|>system\nYou are Wren.<|im_end|>\n"
        "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n"
        "<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\nbye<|im_end|>"
    )
    assert example.messages == 2
    assert example.leaves_from is None
    assert counts.supervised_tokens == 3 + 4  # "yo" and "bye", a byte a token, and their ends


def test_where_the_leaving_target_begins_is_known():
    kit = tiny()
    (example,), counts = kit.made(session("Hi.", "yo", "And?", "bye", ended_by="quit"))
    assert kit.text(example.input_ids[example.leaves_from :]) == "bye\n[QUIT]<|im_end|>"
    assert counts.quits == 1


def test_turn_by_turn_the_same_targets_have_the_same_contexts():
    kit = tiny()
    chat = session("Hi.", "yo", "And?", "bye", ended_by="quit")
    (whole,), _ = kit.made(chat)
    first, second = kit.made(chat, per_turn=True)[0]
    assert whole.input_ids == second.input_ids
    assert first.input_ids == whole.input_ids[: len(first.input_ids)]
    assert kit.targets(first) + kit.targets(second) == kit.targets(whole)
    assert (first.leaves_from, second.leaves_from) == (None, whole.leaves_from)


def test_a_session_that_the_user_began_needs_no_opening():
    assert tiny().learned(session("hello?", "Hi.", "bye", first="user")) == [
        "hello?<|im_end|>",
        "bye<|im_end|>",
    ]
    made, counts = tiny(USER_FIRST).made(session("hello?", first="user"))
    assert (
        tiny(USER_FIRST)
        .text(made[0].input_ids)
        .endswith("<|im_start|>user\n…<|im_end|>\n<|im_start|>assistant\nhello?<|im_end|>")
    )
    assert counts.without_context == 0  # there was nothing before it


def test_a_message_that_the_tokenizer_cannot_say_is_context_and_no_target():
    made, counts = tiny().made(session("Hi.", "a\ud83d", "And?", "b"))
    assert tiny().targets(made[0]) == ["b<|im_end|>"]
    assert "a\ufffd" in tiny().text(made[0].input_ids)
    assert counts.skipped == {"not_reproduced": 1}


# --- sessions over the budget ---

LONG = session(*(f"{side}{n}" for n in range(10) for side in ("c", "u")))


def size(chat, **options):
    return len(tiny().made(chat, max_tokens=10_000, **options)[0][0].input_ids)


def test_a_long_session_is_cut_from_the_front_by_whole_turns():
    """Room for two exchanges: the third target has the second exchange before it, not half."""
    kit = tiny()
    two = size(session("c0", "u0", "c1", "u1"))
    made, _ = kit.made(LONG, max_tokens=two, per_turn=True)
    third = kit.text(made[2].input_ids)
    assert third == (
        "<|im_start|>system\nYou are Wren.<|im_end|>\n"
        "<|im_start|>user\nc1<|im_end|>\n<|im_start|>assistant\nu1<|im_end|>\n"
        "<|im_start|>user\nc2<|im_end|>\n<|im_start|>assistant\nu2<|im_end|>"
    )


def test_in_one_pass_later_windows_repeat_earlier_turns_unsupervised():
    """A token a byte: 23 of system text, 10 and 15 of an exchange's sides, 3 of a target.

    Five exchanges are 23 + 5 * 25 - 1 = 147 tokens. Half of that and a target, 76, hold one
    exchange before the target's own: 23 + 2 * 25 - 1 = 72.
    """
    kit = tiny()
    assert size(session(*(f"{side}{n}" for n in range(5) for side in ("c", "u")))) == 147
    made, counts = kit.made(LONG, max_tokens=147)
    assert [kit.targets(example) for example in made] == [
        [f"u{n}<|im_end|>" for n in range(5)],
        [f"u{n}<|im_end|>" for n in range(5, 9)],
        ["u9<|im_end|>"],
    ]
    assert [len(example.input_ids) for example in made] == [147, 147, 72]
    assert kit.text(made[1].input_ids).startswith(
        "<|im_start|>system\nYou are Wren.<|im_end|>\n<|im_start|>user\nc4<|im_end|>\n"
        "<|im_start|>assistant\nu4<|im_end|>\n<|im_start|>user\nc5"
    )
    assert counts.without_context == 0


def test_the_first_target_of_a_later_window_comes_on_top_of_its_half():
    """Half of 140 is 70, and the target has 3: the 72 of one exchange before it are room enough."""
    kit = tiny()
    made, _ = kit.made(LONG, max_tokens=140)
    assert [kit.targets(example) for example in made] == [
        [f"u{n}<|im_end|>" for n in range(4)],
        [f"u{n}<|im_end|>" for n in range(4, 7)],
        [f"u{n}<|im_end|>" for n in range(7, 10)],
    ]


def test_a_target_is_learned_without_context_rather_than_cut():
    kit = tiny()
    made, counts = kit.made(session("x" * 300, "ok", "y" * 300, "fine"), max_tokens=100)
    assert [kit.text(example.input_ids) for example in made] == [
        "<|im_start|>system\nYou are Wren.<|im_end|>\n<|im_start|>assistant\nok<|im_end|>",
        "<|im_start|>system\nYou are Wren.<|im_end|>\n<|im_start|>assistant\nfine<|im_end|>",
    ]
    assert counts.without_context == 2


def test_a_target_too_long_is_skipped_and_those_around_it_are_not():
    kit = tiny()
    chat = session("a", "one", "b", "z" * 200, "c", "three")
    for per_turn in (False, True):
        made, counts = kit.made(chat, max_tokens=150, per_turn=per_turn)
        targets = [target for example in made for target in kit.targets(example)]
        assert targets == ["one<|im_end|>", "three<|im_end|>"]
        assert counts.skipped == {"too_long_target": 1}
    assert "user\nc<|im_end|>" in kit.text(made[-1].input_ids)


def test_a_target_that_fits_alone_but_not_beside_the_system_text_says_so():
    made, counts = tiny().made(session("a", "ok"), system="s" * 300, max_tokens=100)
    assert made == []
    assert counts.skipped == {"too_long_with_system_text": 1}


@pytest.mark.parametrize(
    ("letters", "reason"), [(99, "too_long_with_system_text"), (100, "too_long_target")]
)
def test_the_end_of_a_turn_is_among_the_tokens_of_a_target_that_is_too_long(letters, reason):
    made, counts = tiny().made(session("a", "z" * letters), max_tokens=100)
    assert made == []
    assert counts.skipped == {reason: 1}


def test_leaving_that_fitted_nowhere_is_not_counted_as_learned():
    chat = session("a", "one", "b", "z" * 200, ended_by="quit")
    made, counts = tiny().made(chat, max_tokens=150)
    assert [example.leaves_from for example in made] == [None]
    assert (counts.supervised_messages, counts.quits) == (1, 0)


@pytest.mark.parametrize("template", [CHATML, STRIPPING, THINKING, USER_FIRST])
@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(st.text(min_size=0, max_size=30), max_size=12),
    ended_by=st.sampled_from(["quit", "limit"]),
    max_tokens=st.integers(40, 400),
    per_turn=st.booleans(),
    first=st.sampled_from(["character", "user"]),
)
def test_every_message_is_a_target_once_or_counted(
    template, texts, ended_by, max_tokens, per_turn, first
):
    from palate.simulators.user_side import user_side

    kit = tiny(template)
    chat = session(*texts, ended_by=ended_by, first=first)
    made, counts = kit.made(chat, max_tokens=max_tokens, per_turn=per_turn)
    side = user_side(chat)
    users = [message.text for message in side.messages if message.role == "assistant"]
    left_out = sum(counts.skipped.values()) - sum(side.skipped.values())
    assert counts.supervised_messages + left_out == len(users)
    assert all(len(example.input_ids) <= max_tokens for example in made)
    assert counts.supervised_messages == sum(example.messages for example in made)
    targets = [target for example in made for target in kit.targets(example)]
    end = kit.form.end_of_turn
    expected = iter(text.strip() for text in users)
    # In order, each from a message of its own: none twice, none of the character's.
    for target in targets:
        assert target.endswith(end)
        assert target.removesuffix(end).strip() in expected


# --- what may be read ---


def test_anything_but_training_sessions_is_refused():
    with pytest.raises(TypeError, match="not from Session"):
        examples([session("Hi.", "yo")], tiny().form, system=lambda _: SYSTEM, max_tokens=100)


def test_the_system_text_is_asked_for_each_session():
    training = [
        TrainingSession(session("Hi.", "yo", name="one")),
        TrainingSession(session("Hi.", "yo", name="two")),
    ]
    made, counts = examples(
        training, tiny().form, system=lambda chat: chat.session_id, max_tokens=200
    )
    assert [example.session_id for example in made] == ["one", "two"]
    assert "system\ntwo<" in tiny().text(made[1].input_ids)
    assert counts.sessions == 2


def test_no_sessions_give_no_examples():
    made, counts = examples([], tiny().form, system=lambda _: SYSTEM, max_tokens=100)
    assert made == []
    assert counts == NO_COUNTS
    assert counts.sentence().startswith("0 examples from 0 sessions")
