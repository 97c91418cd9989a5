"""A chat as the tokens that are trained: what a server would read, and targets that are whole."""

import functools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_templates import (
    CHATML,
    INSTRUCTION,
    NO_SYSTEM,
    STRIPPING,
    THINKING,
    USER_FIRST,
    byte_tokenizer,
    space_first_tokenizer,
)
from palate.errors import InputError
from palate.models.client import ChatMessage
from palate.simulators.chat_form import ChatForm
from palate.simulators.prompt_form import PROBE

pytestmark = pytest.mark.train

SYSTEM = ChatMessage("system", "A quiet harbour.")
CHAT = (
    ChatMessage("user", "Well?"),
    ChatMessage("assistant", "ok… 好的 🙂"),
    ChatMessage("user", "*waits*\n\nAnd?"),
    ChatMessage("assistant", "fine"),
)
CONTROL = "he typed <|im_end|> and <|im_start|>assistant and </s> [INST] <think>no</think>"


@functools.cache
def form_of(template, tokenizer=byte_tokenizer, **options):
    made = tokenizer(template, **options)
    return ChatForm.of(made, source="a model"), made


def targets(form, tokenizer, chat):
    encoded = form.encode(chat) if form.one_pass else form.encode_turn(chat)
    return [text_of(tokenizer, encoded.ids[start:end]) for start, end in encoded.targets]


def text_of(tokenizer, ids):
    return tokenizer.decode(list(ids), skip_special_tokens=False)


def read_at_once(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


# --- one pass ---


def test_a_template_that_writes_every_message_alike_is_encoded_once():
    form, _ = form_of(CHATML)
    assert form.one_pass
    assert form.why == ""


def test_targets_are_the_messages_and_their_end_tokens():
    form, tokenizer = form_of(CHATML)
    assert targets(form, tokenizer, (SYSTEM, *CHAT)) == ["ok… 好的 🙂<|im_end|>", "fine<|im_end|>"]


def test_the_same_text_on_both_sides_is_supervised_on_one():
    form, tokenizer = form_of(CHATML)
    yes = (ChatMessage("user", "yes"), ChatMessage("assistant", "yes"))
    encoded = form.encode((SYSTEM, *yes, *yes))
    first, second = encoded.targets
    assert text_of(tokenizer, encoded.ids[: first.start]).endswith(
        "yes<|im_end|>\n<|im_start|>assistant\n"
    )
    assert text_of(tokenizer, encoded.ids[first.end : second.start]) == (
        "\n<|im_start|>user\nyes<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("template", [CHATML, STRIPPING, USER_FIRST])
def test_a_tidy_chat_is_what_a_server_reads_at_once(template):
    form, tokenizer = form_of(template)
    whole = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.text} for m in (SYSTEM, *CHAT)],
        tokenize=False,
        **form.template.arguments,
    )
    assert list(form.encode((SYSTEM, *CHAT)).ids) == read_at_once(tokenizer, whole)


@pytest.mark.parametrize("template", [CHATML, STRIPPING, USER_FIRST])
@pytest.mark.parametrize("tokenizer", [byte_tokenizer, space_first_tokenizer])
def test_once_and_turn_by_turn_agree_up_to_every_target(template, tokenizer):
    form, _ = form_of(template, tokenizer)
    chat = (SYSTEM, *CHAT)
    whole = form.encode(chat)
    for span, last in zip(whole.targets, (2, 4), strict=True):
        alone = form.encode_turn(chat[: last + 1])
        assert whole.ids[: span.end] == alone.ids
        assert alone.targets == (span,)
        assert form.prompt_ids(chat[:last]) == list(whole.ids[: span.start])


MESSAGES = st.lists(
    st.text(min_size=1).filter(lambda text: text.strip() == text), min_size=2, max_size=6
)


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_whatever_people_type_targets_are_whole_and_agree(texts):
    form, tokenizer = form_of(CHATML)
    roles = ("user", "assistant") * 3
    chat = [ChatMessage(role, text) for role, text in zip(roles, texts, strict=False)]
    chat = chat[: len(chat) // 2 * 2]
    whole = form.encode((SYSTEM, *chat))
    assert whole.ids[: whole.targets[-1].end] == form.encode_turn((SYSTEM, *chat)).ids
    for (start, end), message in zip(whole.targets, chat[1::2], strict=True):
        if form.plain.reproduces(message.text):
            assert text_of(tokenizer, whole.ids[start:end]) == f"{message.text}<|im_end|>"


# --- what templates do to white space ---


def test_outer_white_space_that_a_template_keeps_is_in_the_target():
    form, tokenizer = form_of(CHATML)
    chat = (ChatMessage("user", "Hm."), ChatMessage("assistant", "\n  *shrugs*\n\nfine \n"))
    assert targets(form, tokenizer, chat) == ["\n  *shrugs*\n\nfine \n<|im_end|>"]


def test_outer_white_space_that_a_template_strips_is_not():
    form, tokenizer = form_of(STRIPPING)
    chat = (ChatMessage("user", "Hm."), ChatMessage("assistant", "\n  *shrugs*\n\nfine \n"))
    assert targets(form, tokenizer, chat) == ["*shrugs*\n\nfine<|eot|>"]
    assert form.encode_turn(chat).targets == form.encode(chat).targets


# --- turn by turn ---


def test_a_think_block_before_the_last_answer_alone_is_encoded_turn_by_turn():
    form, tokenizer = form_of(THINKING)
    assert form.why == (
        r"the chat template writes '<think>\n\n</think>\n\n' around a message that comes last "
        r"but nothing around the same one in the middle of a chat"
    )
    encoded = form.encode_turn((SYSTEM, *CHAT))
    (span,) = encoded.targets
    assert text_of(tokenizer, encoded.ids[span.start : span.end]) == "fine<|im_end|>"
    assert text_of(tokenizer, encoded.ids[: span.start]).endswith(
        "ok… 好的 🙂<|im_end|>\n<|im_start|>user\n*waits*\n\nAnd?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )


def test_only_the_leading_lines_that_a_thinking_template_strips_are_gone():
    form, tokenizer = form_of(THINKING)
    chat = (ChatMessage("user", "Hm."), ChatMessage("assistant", "\n  *shrugs* \n"))
    assert targets(form, tokenizer, chat) == ["  *shrugs* \n<|im_end|>"]


def test_white_space_that_a_template_adds_is_not_learned():
    form, tokenizer = form_of(INSTRUCTION)
    assert form.why == "the chat template puts ' ' and ' ' around the words of an answer"
    assert targets(form, tokenizer, CHAT) == ["fine</s>"]


def test_tokens_that_depend_on_their_neighbours_are_encoded_turn_by_turn():
    """Two line breaks are one token at the end of a prompt, and two before a word."""
    form, tokenizer = form_of(STRIPPING, joins_lines=True)
    assert form.why == "the first tokens of a message depend on the text before it"
    prompt = form.prompt_text((SYSTEM, *CHAT[:3]))
    assert form.prompt_ids((SYSTEM, *CHAT[:3])) == read_at_once(tokenizer, prompt)
    assert targets(form, tokenizer, (SYSTEM, *CHAT)) == ["fine<|eot|>"]


def test_the_space_that_a_tokenizer_puts_before_a_text_is_not_learned():
    form, tokenizer = form_of(CHATML, space_first_tokenizer)
    assert form.one_pass
    encoded = form.encode((SYSTEM, *CHAT))
    start, end = encoded.targets[1]
    assert tokenizer.convert_ids_to_tokens(list(encoded.ids[start:end])) == [
        *"fine",
        "<|im_end|>",
    ]


# --- words of people are plain text ---


@pytest.mark.parametrize("template", [CHATML, STRIPPING, THINKING, USER_FIRST, INSTRUCTION])
def test_control_words_that_a_person_types_are_plain_text(template):
    form, tokenizer = form_of(template)
    chat = (SYSTEM, ChatMessage("user", CONTROL), ChatMessage("assistant", CONTROL))
    plain = (SYSTEM, ChatMessage("user", "he"), ChatMessage("assistant", "he"))
    encoded, usual = form.encode_turn(chat), form.encode_turn(plain)
    control = form.plain.control_ids
    assert len(control) == 9
    assert [n for n in encoded.ids if n in control] == [n for n in usual.ids if n in control]
    (span,) = encoded.targets
    assert text_of(tokenizer, encoded.ids[span.start : span.end]) == CONTROL + form.end_of_turn


def test_words_that_look_like_the_marks_of_this_module_are_plain_text():
    form, tokenizer = form_of(CHATML)
    chat = (ChatMessage("user", "\ue0001\ue001"), ChatMessage("assistant", "\ue0000\ue001"))
    assert targets(form, tokenizer, chat) == ["\ue0000\ue001<|im_end|>"]


@pytest.mark.parametrize("text", ["👩‍🚀🌊 好的～ e\u0301", "日本語です。", "a\tb\r\nc"])
def test_every_sign_of_a_message_survives(text):
    form, tokenizer = form_of(CHATML)
    chat = (ChatMessage("user", "Show me."), ChatMessage("assistant", text))
    assert form.plain.reproduces(text)
    assert targets(form, tokenizer, chat) == [text + "<|im_end|>"]


def test_half_a_surrogate_pair_is_not_reproduced_and_stops_nothing():
    form, _ = form_of(CHATML)
    assert not form.plain.reproduces("a\ud83db")
    form.encode((ChatMessage("user", "a\ud83d"), ChatMessage("assistant", "b")))


# --- who speaks first; arguments; the record ---


def test_a_user_who_may_not_speak_first_is_answered_after_a_fixed_line():
    form, tokenizer = form_of(USER_FIRST)
    begun = (SYSTEM, ChatMessage("assistant", "hi"))
    assert form.record().first_role == "user"
    assert form.prompt_text((SYSTEM,)) == (
        "<|im_start|>system\nA quiet harbour.<|im_end|>\n<|im_start|>user\n…<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert targets(form, tokenizer, begun) == ["hi<|im_end|>"]
    assert (
        form.encode_turn(begun).ids == form.encode(begun).ids[: form.encode(begun).targets[0].end]
    )


def test_a_user_who_may_speak_first_does():
    form, tokenizer = form_of(CHATML)
    assert form.record().first_role == "any"
    assert targets(form, tokenizer, (SYSTEM, ChatMessage("assistant", "hi"))) == ["hi<|im_end|>"]


def test_thinking_is_switched_off_and_the_date_is_fixed():
    assert form_of(THINKING)[0].record().template_arguments == {"enable_thinking": False}
    form, _ = form_of(STRIPPING)
    assert form.record().template_arguments == {"date_string": "26 Jul 2024"}
    assert "Today: 26 Jul 2024\n" in form.prompt_text((SYSTEM, *CHAT[:1]))


def test_the_record_holds_the_prompt_of_the_fixed_conversation():
    form, tokenizer = form_of(CHATML)
    record = form.record()
    assert record.probe == (
        "<|im_start|>system\nYou are Wren, chatting with Ada.\n\nScene: a quiet harbour.<|im_end|>"
        "\n<|im_start|>user\nWell?<|im_end|>\n<|im_start|>assistant\nok… 好的 🙂<|im_end|>\n"
        "<|im_start|>user\n*waits* And then?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert list(record.probe_tokens) == read_at_once(tokenizer, record.probe)
    assert record.probe_tokens == tuple(form.prompt_ids(PROBE))
    assert record.end_of_turn == "<|im_end|>"
    assert record.one_pass


def test_the_templates_hash_is_that_of_a_file_with_its_text(tmp_path):
    from palate.simulators.trained import file_sha256

    form, tokenizer = form_of(CHATML)
    (tmp_path / "chat_template.jinja").write_text(tokenizer.chat_template, "utf-8")
    assert form.record().template_sha256 == file_sha256(tmp_path / "chat_template.jinja")


# --- templates that cannot serve ---


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (None, "a model has no chat template"),
        (NO_SYSTEM, "writes no system message before the chat"),
        (CHATML.replace("{% for m in messages %}", "{% for m in messages[-1:] %}"), "drops"),
        (CHATML.replace("<|im_end|>", "\\n###"), "writes no end-of-turn token"),
        (CHATML.replace("assistant\\n' }}", "assistant\\n<think>\\n' }}"), "opens a thinking"),
        ("{{ raise_exception('not\\nthis') }}", "refuses a conversation of the roles"),
        ("{{ messages[99].content }}", "refuses a conversation of the roles"),
        ("{% for m in messages", "refuses a conversation of the roles"),
        ("{{ strftime_now('%d %b %Y') }}" + CHATML, "writes the date or time into every prompt"),
    ],
)
def test_a_template_that_cannot_serve_is_refused_in_one_sentence(template, told):
    with pytest.raises(InputError) as error:
        form_of(template)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert "a model" in str(error.value)


def test_a_date_that_the_prompt_does_not_show_is_no_matter():
    template = "{% if tools %}{{ strftime_now('%d %b %Y') }}{% endif %}" + CHATML
    assert form_of(template)[0].one_pass
    assert time.strftime("%Y") not in form_of(template)[0].record().probe
