"""Nothing of a held-out session reaches a model that a rubric, a profile or an adapter is made by.

Every held-out message and note holds a word that stands nowhere else; it is searched for in all
that is sent, and in all that is trained on.
"""

import functools

import pytest

from lexical import Lexical
from palate.histories import split
from palate.models.client import Completion, Sampling
from palate.rubrics.freeze import as_json
from palate.rubrics.induce import induce
from palate.simulators import write_profile
from planted import history

WORD = "xylograph"  # in every held-out message and note
ALSO = "quixotry"  # in every training message: the search itself works


def marked(session, word):
    """The session with `word` in every message and note."""
    turns = tuple(
        turn.model_copy(update={"text": f"{turn.text} {word}", "note": f"note {word}"})
        for turn in session.turns
    )
    return session.model_copy(update={"turns": turns})


@pytest.fixture(scope="module")
def parts():
    """A history whose held-out sessions, and only they, hold the word."""
    plain = history("ada", sessions=16)
    held_out = {item.session.session_id for item in split(plain, seed=4).held_out}
    sessions = [marked(one, WORD if one.session_id in held_out else ALSO) for one in plain]
    made = split(sessions, seed=4)
    assert {item.session.session_id for item in made.held_out} == held_out
    assert all(WORD in turn.text for item in made.held_out for turn in item.session.turns)
    return made


async def test_induction_sends_no_word_of_a_held_out_session(parts):
    model = Lexical()
    rubric, record = await induce(
        parts.training, model, sampling=Sampling(temperature=0.0, max_tokens=800)
    )
    sent = "\n".join(model.asked)
    assert ALSO in sent
    assert f"note {ALSO}" in sent
    assert WORD not in sent
    assert WORD not in as_json(rubric)
    assert WORD not in record.model_dump_json()


async def test_writing_a_profile_sends_no_word_of_a_held_out_session(parts):
    class Writer(Lexical):
        async def complete(self, request):
            self.asked.append("\n".join(message.text for message in request.messages))
            return Completion("You write short.", "ok")

    model = Writer()
    profile = await write_profile(parts.training, model, sampling=Sampling(max_tokens=100))
    sent = "\n".join(model.asked)
    assert ALSO in sent
    assert WORD not in sent
    assert WORD not in profile.model_dump_json()


@pytest.mark.train
def test_training_learns_from_no_word_of_a_held_out_session(parts):
    from chat_templates import CHATML, byte_tokenizer
    from palate.simulators.chat_form import ChatForm
    from palate.simulators.examples import session_examples
    from palate.simulators.training_data import drawn, held_out

    tokenizer = byte_tokenizer(CHATML)
    form = ChatForm.of(tokenizer, source="a model")
    encode = functools.partial(_encoded, form=form, examples=session_examples)
    encoded = drawn(parts.training, encode, budget=None, seed=0)
    chats = [[item.session.session_id] for item in parts.training]
    chosen = held_out(encoded, chats, seed=0)
    made = [*chosen.training_examples, *chosen.validation_examples]
    read = "".join(tokenizer.decode(list(one.input_ids)) for one in made)
    assert ALSO in read
    assert WORD not in read


def _encoded(item, *, form, examples):
    return examples(item.session, form, system="You are Ada.", max_tokens=4096)
