"""A server's prompt held against that of training: nothing of torch is needed for it."""

import pytest

from palate.simulators.prompt_form import (
    differing_form,
    differing_text,
    differing_tokens,
    first_difference,
)
from palate.simulators.trained import PromptForm

FORM = PromptForm(
    template_sha256="0" * 64,
    end_of_turn="<|eot|>",
    probe="<s><|head|>user\nWell?<|eot|><|head|>assistant\n",
    probe_tokens=(1, 4, 9, 5, 4, 8),
    one_pass=True,
)


def test_equal_texts_are_no_difference():
    assert differing_form(FORM, FORM.probe) is None
    assert differing_text("", "") is None


def test_an_empty_think_block_in_serving_is_refused_by_its_name():
    said = differing_text(
        "<|im_start|>user\nWell?<|im_end|>\n<|im_start|>assistant\n",
        "<|im_start|>user\nWell?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    )
    assert said == (
        "the prompt forms of training and serving differ before the user's message by an empty "
        "think block, which only serving has: after '…>\\n<|im_start|>assistant\\n' training has "
        "nothing more and serving '<think>\\n\\n</think>\\n\\n'; serve the adapter with the chat "
        "template and the template arguments that it was trained with"
    )


def test_an_empty_think_block_in_training_is_refused_by_its_name():
    said = differing_text("a\n<think>\n\n</think>\n\n", "a\n")
    assert "an empty think block, which only training has: after 'a\\n'" in said


@pytest.mark.parametrize(
    ("served", "told"),
    [
        ("", "after the beginning training has '<s><|head|>user"),
        ("<s><|head|>user\nWell?", "after '<s><|head|>user\\nWell?' training has '<|eot|>"),
        (FORM.probe + " ", "training has nothing more and serving ' '"),
        (FORM.probe.replace("user", "User"), "after '<s><|head|>' training has 'user"),
        (FORM.probe + "\x1b[2J", "serving '\\x1b[2J'"),
    ],
)
def test_any_other_difference_is_shown_with_its_place(served, told):
    assert told in differing_form(FORM, served)


def test_a_server_that_adds_the_first_token_to_the_tokens_says_the_same():
    assert differing_form(FORM, "<|head|>user\nWell?<|eot|><|head|>assistant\n") is None


def test_no_other_missing_beginning_is_excused():
    assert differing_form(FORM, "user\nWell?<|eot|><|head|>assistant\n") is not None


def test_a_doubled_first_token_is_found_in_the_tokens():
    assert differing_tokens(FORM, [1, 4, 9, 5, 4, 8]) is None
    assert "token 2 is 4 in training and 1 in serving" in differing_tokens(
        FORM, [1, 1, 4, 9, 5, 4, 8]
    )
    assert "token 6 is 8 in training and missing in serving" in differing_tokens(
        FORM, [1, 4, 9, 5, 4]
    )


def test_the_first_difference_of_a_beginning_is_its_length():
    assert first_difference("abc", "abcd") == 3
    assert first_difference("abc", "abX") == 2
