"""A simulator's messages at held-out contexts, journalled."""

import json

import pytest

from palate.errors import ContextExceeded, StoreError, TransportError
from palate.models.client import ChatMessage, Completion, Sampling
from palate.simulators.validation.answers import Answers
from palate.simulators.validation.contexts import Context
from palate.simulators.validation.speaking import Pair, Utterance, Voice, pairs, speak
from palate.types import Message, Usage


class Answering:
    """A model that answers by a function of the request, and remembers what it was asked."""

    name = "openai:sim"
    reads_digits = False
    enforces_schema = False

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def complete(self, request):
        self.asked.append(request)
        answer = self.answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else Completion(answer, "ok", model="r1")

    async def close(self):
        pass


def context(turn, human="hm", left=False):
    history = (Message(speaker="character", text=f"reply {turn}"),)
    return Context("s1", turn, history, human, left)


def voice(model, **changes):
    def prompt(context):
        return (
            ChatMessage("system", "You chat."),
            *(ChatMessage("user", message.text) for message in context.history),
        )

    values = {
        "user_id": "u1",
        "condition": "lora",
        "identity": "adapter-1",
        "model": model,
        "sampling": Sampling(temperature=0.7, max_tokens=99),
        "prompt": prompt,
        **changes,
    }
    return Voice(**values)


async def spoken(tmp_path, model, contexts, *, samples=1, seed=5, **changes):
    with Answers(tmp_path / "said.jsonl", Utterance) as answers:
        return await speak(
            voice(model, **changes), contexts, answers=answers, seed=seed, samples=samples
        )


async def test_a_message_a_farewell_and_leaving_without_a_word(tmp_path):
    texts = {"reply 0": "sure", "reply 1": "bye\n[QUIT]", "reply 2": "[QUIT]"}
    model = Answering(lambda request: texts[request.messages[-1].text])
    said = await spoken(tmp_path, model, [context(0), context(1), context(2)])
    assert [(u.turn, u.text, u.left) for u in said.utterances] == [
        (0, "sure", False),
        (1, "bye", True),
        (2, "", True),
    ]
    counts = said.counts(3)
    assert (counts.said, counts.left, counts.silent, counts.failed) == (2, 2, 0, 0)


async def test_the_humans_answer_is_never_in_the_prompt(tmp_path):
    model = Answering(lambda request: "sure")
    await spoken(tmp_path, model, [context(0, human="a secret")])
    (request,) = model.asked
    assert [m.text for m in request.messages] == ["You chat.", "reply 0"]
    assert "a secret" not in repr(request)
    assert (request.purpose.role, request.purpose.cell) == ("simulator", "u1/s1/lora/1")


async def test_an_empty_answer_is_asked_for_three_times_and_then_silent(tmp_path):
    model = Answering(lambda request: Completion("", "empty", usage=Usage(10, 1)))
    said = await spoken(tmp_path, model, [context(0)])
    (utterance,) = said.utterances
    assert (len(model.asked), utterance.silent, utterance.usage) == (3, True, Usage(30, 3))
    assert said.counts(1).silent == 1


async def test_what_is_in_the_journal_is_not_asked_again(tmp_path):
    first = Answering(lambda request: "one")
    before = await spoken(tmp_path, first, [context(0)])
    second = Answering(lambda request: "two")
    after = await spoken(tmp_path, second, [context(0), context(1)])
    assert len(second.asked) == 1
    assert [u.text for u in after.utterances] == ["one", "two"]
    assert after.utterances[0] == before.utterances[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"identity": "adapter-2"},
        {"sampling": Sampling(temperature=0.1)},
        {"condition": "prompted"},
        {"user_id": "u2"},
        {"seed": 6},
        {"prompt": lambda context: (ChatMessage("system", "You talk."),)},
    ],
)
async def test_another_simulator_is_asked_anew(tmp_path, changes):
    await spoken(tmp_path, Answering(lambda request: "one"), [context(0)])
    said = await spoken(tmp_path, Answering(lambda request: "two"), [context(0)], **changes)
    assert said.utterances[0].text == "two"


async def test_a_failed_call_is_told_and_asked_again_the_next_time(tmp_path):
    def answer(request):
        lost = request.messages[-1].text == "reply 1"
        return TransportError("no answer from openai:sim") if lost else "sure"

    said = await spoken(tmp_path, Answering(answer), [context(0), context(1)])
    assert [u.turn for u in said.utterances] == [0]
    assert [(f.turn, f.reason) for f in said.failures] == [(1, "no answer from openai:sim")]
    assert said.counts(2).failed == 1
    again = await spoken(tmp_path, Answering(lambda request: "now"), [context(0), context(1)])
    assert [u.text for u in again.utterances] == ["sure", "now"]


async def test_several_samples_have_seeds_of_their_own_and_repeat(tmp_path):
    model = Answering(lambda request: "sure")
    await spoken(tmp_path / "a", model, [context(0)], samples=3, seeded=True)
    seeds = [request.sampling.seed for request in model.asked]
    assert len(set(seeds)) == 3
    assert all(0 <= seed < 2**31 for seed in seeds)
    again = Answering(lambda request: "sure")
    await spoken(tmp_path / "b", again, [context(0)], samples=3, seeded=True)
    assert [request.sampling.seed for request in again.asked] == seeds


async def test_an_endpoint_that_takes_no_seeds_gets_none(tmp_path):
    model = Answering(lambda request: "sure")
    await spoken(tmp_path, model, [context(0)])
    assert model.asked[0].sampling.seed is None


def test_pairs_are_the_contexts_where_both_wrote_something():
    said = [
        Utterance(
            user_id="u1",
            condition="raw",
            session_id="s1",
            turn=turn,
            sample=0,
            text=text,
            left=left,
            finish="ok",
            attempts=1,
            usage=Usage(),
            model="",
            question="q",
        )
        for turn, text, left in [(0, "a", False), (1, "", True), (2, "c", True), (3, "d", False)]
    ]
    found = pairs([context(0), context(1), context(2, human="", left=True), context(4)], said)
    assert found == [Pair("s1", 0, "hm", "a")]


def test_a_torn_line_is_cut_off_and_a_damaged_one_left_out(tmp_path):
    path = tmp_path / "said.jsonl"
    utterance = Utterance(
        user_id="u1",
        condition="raw",
        session_id="s1",
        turn=0,
        sample=0,
        text="好的\u2028🦊",
        left=False,
        finish="ok",
        attempts=1,
        usage=Usage(),
        model="",
        question="q",
    )
    with Answers(path, Utterance) as answers:
        answers.append(utterance)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"half": \n' + whole[:20])
    with Answers(path, Utterance) as answers:
        assert answers.get(utterance.key) == utterance
        assert answers.damaged == 1
        answers.append(utterance.model_copy(update={"turn": 1}))
    lines = path.read_text("utf-8").split("\n")
    assert [json.loads(line)["turn"] for line in (lines[0], lines[2])] == [0, 1]


def test_two_processes_do_not_write_to_one_journal(tmp_path):
    with (
        Answers(tmp_path / "a.jsonl", Utterance),
        pytest.raises(StoreError, match="in use by another process"),
    ):
        Answers(tmp_path / "a.jsonl", Utterance)


def said_by(speaker, text):
    """A message of about 300 tokens."""
    return Message(speaker=speaker, text=f"{text} {'word ' * 180}")


async def test_of_a_chat_longer_than_the_models_context_the_end_is_shown(tmp_path):
    speakers = ("character", "user") * 20
    history = tuple(said_by(who, f"line {n}") for n, who in enumerate(speakers))
    long = Context("s1", 20, (*history, said_by("character", "line 40")), "hm", False)

    def answer(request):
        if len(request.messages) > 12:
            return ContextExceeded("the conversation is longer than the model's context")
        return request.messages[1].text

    model = Answering(answer)
    said = await spoken(tmp_path, model, [long])
    # Three quarters are kept each time, from a message of the character's on: of 41 the last 30,
    # whose first is the user's, so 29; then 21, 15 and 11.
    assert [len(request.messages) - 1 for request in model.asked] == [41, 29, 21, 15, 11]
    (utterance,) = said.utterances
    assert (utterance.text[:7], utterance.omitted) == ("line 30", 30)
    assert all(request.messages[0].text == "You chat." for request in model.asked)
    assert said.counts(1).shortened == 1
    again = await spoken(tmp_path, Answering(lambda request: "other"), [long])
    assert again.utterances == said.utterances


async def test_a_message_that_alone_exceeds_the_context_is_a_failure(tmp_path):
    def answer(request):
        return ContextExceeded("the conversation is longer than the model's context")

    said = await spoken(tmp_path, Answering(answer), [context(0)])
    (failure,) = said.failures
    assert "longer than the model's context" in failure.reason
    assert said.counts(1).shortened == 0


async def test_another_model_under_the_same_simulator_is_asked_anew(tmp_path):
    await spoken(tmp_path, Answering(lambda request: "one"), [context(0)])
    other = Answering(lambda request: "two")
    other.name = "openai:other"
    said = await spoken(tmp_path, other, [context(0)])
    assert said.utterances[0].text == "two"


async def test_an_empty_answer_another_turn_and_another_seed_are_drawn_with_other_seeds(tmp_path):
    """Three attempts at each of two turns under two seeds of the study: twelve draws."""
    seeds = []
    for seed in (5, 6):
        model = Answering(lambda request: Completion("", "empty"))
        await spoken(tmp_path / str(seed), model, [context(0), context(1)], seed=seed, seeded=True)
        seeds += [request.sampling.seed for request in model.asked]
    assert len(seeds) == len(set(seeds)) == 12


async def test_a_refusal_is_not_asked_again_and_is_no_answer_that_was_cut(tmp_path):
    endings = {"reply 0": "refused", "reply 1": "length", "reply 2": "ok"}

    def answer(request):
        status = endings[request.messages[-1].text]
        return Completion("" if status == "refused" else "so", status)

    model = Answering(answer)
    said = await spoken(tmp_path, model, [context(0), context(1), context(2)])
    assert len(model.asked) == 3
    assert [u.finish for u in said.utterances] == ["refused", "length", "ok"]
    counts = said.counts(3)
    assert (counts.said, counts.silent, counts.cut) == (2, 1, 1)


async def test_what_an_answer_took_is_the_sum_of_its_attempts(tmp_path):
    texts = iter(("", "", "so"))

    def answer(request):
        return Completion(next(texts), "ok", usage=Usage(10, 1), attempts=2)

    said = await spoken(tmp_path, Answering(answer), [context(0)])
    [utterance] = said.utterances
    assert (utterance.text, utterance.attempts, utterance.usage) == ("so", 6, Usage(30, 3))


async def test_of_several_samples_the_first_is_counted(tmp_path):
    """Two of three come back at each of two contexts; the first of turn 1 is lost."""

    def answer(request):
        place = (request.messages[-1].text, request.purpose.cell)
        lost = place in {("reply 0", "u1/s1/lora/2"), ("reply 1", "u1/s1/lora/1")}
        return TransportError("no answer from openai:sim") if lost else "so"

    said = await spoken(tmp_path, Answering(answer), [context(0), context(1)], samples=3)
    assert [(u.turn, u.sample) for u in said.utterances] == [(0, 0), (0, 2), (1, 1), (1, 2)]
    assert [(u.turn, u.sample) for u in said.first()] == [(0, 0)]
    counts = said.counts(2)
    assert (counts.said, counts.failed) == (1, 1)


async def test_the_system_text_is_what_a_server_may_keep_for_the_next_call(tmp_path):
    model = Answering(lambda request: "so")
    await spoken(tmp_path, model, [context(0)])
    await spoken(
        tmp_path, model, [context(1)], prompt=lambda context: (ChatMessage("user", "Well?"),)
    )
    assert [request.cache_prefix for request in model.asked] == [1, 0]


async def test_a_chat_that_any_model_has_room_for_is_not_shortened(tmp_path):
    """What is too long is then the answer that the study asks for: an error of its settings."""
    asked = Answering(lambda request: ContextExceeded("60 in the messages, 5000 in the completion"))
    speakers = ("character", "user") * 4
    history = tuple(said_by(who, "line") for who in speakers)
    said = await spoken(tmp_path, asked, [Context("s1", 4, history, "hm", False)])
    # 8 messages of 302 tokens each by the upper estimate; 5 and 3 are left, and 2 would be 604.
    assert [len(request.messages) - 1 for request in asked.asked] == [8, 6, 4]
    assert len(said.failures) == 1
