"""What a candidate is asked, how fast is too fast, and that both languages say everything."""

import asyncio
import json
import re
import string
import subprocess
import sys

import pytest
from starlette.requests import Request as HttpRequest

from palate.annotate import invitations, starting
from palate.annotate.acting import act
from palate.annotate.actions import Say, Start
from palate.annotate.characters import Characters
from palate.annotate.chats import Alternate, Chat, ChatTurn, load
from palate.annotate.database import open_database
from palate.annotate.desk import Desk
from palate.annotate.guard import Bucket, Rate, Refused, body, token
from palate.annotate.pages import Visitor, home
from palate.annotate.replies import Failed, Replies, Written
from palate.annotate.words import SCRIPT_WORDS, language_of, words
from palate.config import load_study
from palate.errors import InputError, ModelError
from palate.models.client import Completion
from worlds import Listed, card, write_study


class Opening:
    """Gives every candidate the same model, and keeps how it was opened."""

    def __init__(self, model):
        self.model = model
        self.opened = {}

    def open(self, spec, **how):
        self.opened[spec] = how
        return self.model

    def width(self):
        return 1


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path, candidates=("A",), model="local:smollm2-135m")
    return folder


def characters(folder, *lines):
    model = Listed(list(lines))
    return Characters(load_study(folder), Opening(model)), model


def chat(*texts, alternates=(), person="u1", candidate="A", card_id="k1"):
    turns = tuple(
        ChatTurn(n, n, ("character", "user")[n % 2], text, "ok", None, None)
        for n, text in enumerate(("The gate is shut.", *texts))
    )
    return Chat(
        id="c1",
        person_id=person,
        session_id="c1",
        card_id=card_id,
        candidate=candidate,
        number=1,
        language="en",
        ended_by="unknown",
        extra={},
        version=1,
        created_at=0,
        closed_at=None,
        turns=turns,
        alternates=alternates,
    )


def nothing(text):
    pass


async def test_a_candidate_is_asked_as_in_a_run(study):
    everybody, model = characters(study, "Why?")
    await everybody.reply(chat("Let me in."), nothing)
    (request,) = model.requests
    system, *said = request.messages
    assert system.role == "system"
    assert "k1 keeps the gate of k1" in system.text
    assert [(m.role, m.text) for m in said] == [
        ("assistant", "The gate is shut."),
        ("user", "Let me in."),
    ]
    assert request.purpose == ("candidate", "u1/k1/A/1", 0, None, 0)
    assert request.sampling.temperature == 0.01
    assert request.sampling.seed is not None


async def test_a_reply_written_anew_draws_another_seed(study):
    everybody, model = characters(study, "Why?", "Come in.")
    await everybody.reply(chat("Let me in."), nothing)
    rejected = Alternate(2, "character", "Why?", 2, None, "regenerated")
    await everybody.reply(chat("Let me in.", alternates=(rejected,)), nothing)
    first, second = (request.sampling.seed for request in model.requests)
    assert first != second
    assert model.requests[1].purpose.attempt == 3


async def test_an_empty_reply_is_asked_for_three_times_and_a_block_once(study):
    everybody, model = characters(study, "", " ", "")
    completion = await everybody.reply(chat("Hi"), nothing)
    assert (completion.text, len(model.requests)) == ("", 3)
    everybody, model = characters(study, ("", "refused"))
    assert (await everybody.reply(chat("Hi"), nothing)).status == "refused"
    assert len(model.requests) == 1


async def test_what_the_model_says_is_shown(study):
    everybody, _ = characters(study, "Why?")
    shown = []
    assert isinstance(await everybody.reply(chat("Hi"), shown.append), Completion)
    assert shown == ["Why?"]


def test_a_person_of_the_study_is_called_by_name_and_others_neutrally(study):
    everybody, _ = characters(study)
    assert everybody.faces("u1")[0].scenario == "A gate at dusk; u1 by name wants in."
    assert everybody.faces("ada")[0].scenario == "A gate at dusk; Alex wants in."


def test_the_opening_calls_a_person_by_name(study):
    greets = json.dumps(card("k1", opening="You again, {{user}}."))
    (study / "cards" / "k1.json").write_text(greets, "utf-8")
    everybody, _ = characters(study)
    assert everybody.begin("k1", "u1", "A", 1).opening == "You again, u1 by name."
    assert everybody.begin("k1", "ada", "A", 1).opening == "You again, Alex."


def test_a_face_is_what_a_user_sees_and_no_more(study):
    everybody, _ = characters(study)
    assert "trusts nobody" not in json.dumps(everybody.faces("u1"))


def test_a_service_that_keeps_the_chat_itself_takes_nothing_back(study):
    toml = study / "study.toml"
    text = toml.read_text("utf-8").replace('name = "A"', 'name = "A"\nprompt = "none"')
    toml.write_text(text, "utf-8")
    everybody, _ = characters(study, "Why?")
    assert not everybody.can_rewind(chat("Hi"))
    assert everybody.can_reply(chat("Hi"))


async def test_a_service_learns_the_chat_by_a_digest_alone(study):
    toml = study / "study.toml"
    text = toml.read_text("utf-8").replace('name = "A"', 'name = "A"\nprompt = "none"')
    toml.write_text(text, "utf-8")
    everybody, model = characters(study, "Why?")
    await everybody.reply(chat("Hi", "No.", "Please."), nothing)
    (request,) = model.requests
    assert re.fullmatch("[0-9a-f]{32}", request.session)
    assert [m.text for m in request.messages] == ["Please."]


def test_a_chat_whose_card_or_candidate_is_gone_cannot_go_on(study):
    everybody, _ = characters(study)
    assert not everybody.can_reply(chat("Hi", candidate="B"))
    assert not everybody.can_reply(chat("Hi", card_id="../k1"))


def test_a_card_without_an_opening_is_refused_before_anybody_is_invited(study):
    blank = json.dumps(card("k1", opening="  "))
    (study / "cards" / "k1.json").write_text(blank, "utf-8")
    with pytest.raises(InputError, match="no opening"):
        characters(study)


# --- replies -------------------------------------------------------------------------------------


def asked(folder, everybody):
    """A database with a chat whose last message awaits its reply, and that chat."""
    database = open_database(folder, None, study="tiny")
    invitations.invite(database, "ada", now=0, days=1)
    wanted = Start(key="start-0001", card="k1")

    def begin(candidate, number):
        return everybody.begin("k1", "ada", candidate, number)

    done = starting.start(database, "ada", wanted, everybody.candidates, begin, now=0)
    say = Say(key="said-00001", version=1, text="Let me in.")
    act(database, "ada", done.chat, say, now=0)
    with database.reading() as connection:
        return database, load(connection, done.chat, "ada")


@pytest.mark.parametrize(
    ("lines", "end", "finish"),
    [
        (["Why?"], False, "ok"),
        ([("Because the", "length")], True, "length"),
        ([("", "refused")], "blocked", None),
        (["", " ", "\n"], "empty", None),
        ([], "model", None),
    ],
)
async def test_how_a_reply_ended_is_told_and_kept(study, lines, end, finish):
    everybody, _ = characters(study, *lines)
    database, chat = asked(study, everybody)
    *_, last = [event async for event in Replies(Desk(database), everybody).follow(chat)]
    assert (last.cut if finish else last.fault) == end
    with database.reading() as connection:
        kept = load(connection, chat.id, "ada").turns[2:]
    assert [turn.finish for turn in kept] == ([finish] if finish else [])
    database.close()


async def test_a_line_on_which_nothing_comes_is_kept_open(study, monkeypatch):
    monkeypatch.setattr("palate.annotate.replies.HEARTBEAT_S", 0.001)
    everybody, model = characters(study, "Why?")
    goes_on, complete = asyncio.Event(), model.complete

    async def slow(request):
        await goes_on.wait()
        return await complete(request)

    model.complete = slow
    database, chat = asked(study, everybody)
    events = Replies(Desk(database), everybody).follow(chat)
    assert await anext(events) is None
    goes_on.set()
    assert isinstance([event async for event in events][-1], Written)
    database.close()


async def test_what_a_model_s_server_says_turns_no_terminal_around(study, caplog):
    everybody, model = characters(study)

    async def fail(request):
        raise ModelError("\x1b[31m\u202ered")

    model.complete = fail
    database, chat = asked(study, everybody)
    events = [event async for event in Replies(Desk(database), everybody).follow(chat)]
    assert events == [Failed("model")]
    assert caplog.messages == ["no reply in ada/k1/A/1: red"]
    database.close()


def test_characters_who_speak_the_visitor_s_language_come_first(study):
    (study / "cards" / "k2.json").write_text(json.dumps(card("k2", language="zh")), "utf-8")
    everybody, _ = characters(study)
    for language, first in (("en", "k1"), ("zh", "k2")):
        page = home(Visitor("ada", "t", language), everybody.faces("ada"), (), everybody)
        assert re.findall('data-card="(k.)"', page)[0] == first


# --- rates ---------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def refuses(bucket, key):
    try:
        bucket.take(key)
    except Refused as refused:
        return refused.status == 429
    return False


def test_a_bucket_empties_and_fills_again():
    """Three at once; half a one a second after that."""
    clock = Clock()
    bucket = Bucket(Rate(3, 0.5), clock)
    assert [refuses(bucket, "ada") for _ in range(4)] == [False, False, False, True]
    assert not refuses(bucket, "ben")
    clock.now = 1.9
    assert refuses(bucket, "ada")
    clock.now = 2.0
    assert not refuses(bucket, "ada")
    assert refuses(bucket, "ada")
    clock.now = 1000.0
    assert [refuses(bucket, "ada") for _ in range(4)] == [False, False, False, True]


def test_a_bucket_forgets_whom_it_need_not_remember():
    clock = Clock()
    bucket = Bucket(Rate(2, 1), clock)
    for number in range(10_000):
        bucket.take(str(number))
    clock.now = 10.0
    bucket.take("one more")
    assert list(bucket._left) == ["one more"]


def test_the_token_tells_nothing_of_the_secret():
    assert re.fullmatch("[0-9a-f]{64}", token("secret"))
    assert token("secret") != token("Secret")


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("palate.annotate.guard.BODY_S", 0.01)

    async def silence():
        await asyncio.Event().wait()

    scope = {"type": "http", "headers": [(b"content-type", b"application/json")]}
    with pytest.raises(Refused) as refused:
        await body(HttpRequest(scope, silence), Start)
    assert refused.value.status == 408


# --- words ---------------------------------------------------------------------------------------


def test_both_languages_say_everything_with_the_same_names_in_it():
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    assert set(SCRIPT_WORDS) <= english.keys()
    names = lambda text: {name for _, name, _, _ in string.Formatter().parse(text) if name}  # noqa: E731
    for key, text in english.items():
        assert text.strip()
        assert chinese[key].strip()
        assert names(text) == names(chinese[key]), key


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, "de,en;q=0.5", "en"),
        (None, "fr-FR", "en"),
        ("zh", "en", "zh"),
        ("en", "zh", "en"),
        ("xx", "zh", "zh"),
    ],
)
def test_a_visitor_s_choice_wins_over_their_browser_s(chosen, accepted, language):
    assert language_of(chosen, accepted) == language


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['sqlalchemy'] = None; sys.argv = ['palate', 'annotate', '.'];"
        "from palate.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "pip install 'palate[annotate]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
