"""Chats, ratings and invitations in the database: once each, in order, and told when not."""

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from postgres import postgresql
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from palate.annotate import chats, invitations, sessions, starting
from palate.annotate.acting import act, add_reply, add_turn
from palate.annotate.actions import (
    MOST_USER_TURNS,
    Edit,
    Leave,
    NotDone,
    Rate,
    Regenerate,
    Say,
    Start,
)
from palate.annotate.database import open_database
from palate.annotate.starting import Beginning
from palate.errors import InputError
from palate.histories import read
from palate.types import Session, Turn

NOW = 1_800_000_000
DAY = 86_400


@pytest.fixture(scope="session")
def server():
    """The URL of a PostgreSQL for all tests; each makes a database of its own in it."""
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request, tmp_path):
    """A database that ada and ben were invited into, of each kind."""
    url = None
    if request.param == "postgresql":
        url = emptied(request.getfixturevalue("server"))
    yield from invited_into(tmp_path, url)


@pytest.fixture
def sqlite(tmp_path):
    """The same, a file in tmp_path."""
    yield from invited_into(tmp_path, None)


def invited_into(folder, url):
    opened = open_database(folder, url, study="harbour")
    for name in ("ada", "ben"):
        invitations.invite(opened, name, now=NOW, days=30)
    yield opened
    opened.close()


def emptied(url):
    """The server's database without tables."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url


class Rater:
    """One person's chat, acted on by its newest version and keys of its own."""

    def __init__(self, database, person="ada", card="k1", candidates=("A",), visit=1):
        self.database, self.person, self.keys = database, person, 0
        wanted = Start(key=self.key(f"start-{card}-{visit}"), card=card)
        self.done = starting.start(database, person, wanted, candidates, self._begin, now=NOW)
        self.id = self.done.chat

    def _begin(self, candidate, number):
        return Beginning("The gate is shut.", "en", {"candidate": candidate})

    def key(self, name=None):
        self.keys += 1
        return f"{name or 'key'}-{self.keys:08}"

    def chat(self):
        with self.database.reading() as connection:
            return chats.load(connection, self.id, self.person)

    def do(self, kind, **fields):
        given = {"key": self.key(), "version": self.chat().version, **fields}
        return act(self.database, self.person, self.id, kind(**given), now=NOW)

    def hear(self, reply):
        return add_reply(self.database, self.chat(), reply, "ok", now=NOW)

    def talk(self, said, reply):
        """The id of the reply."""
        self.do(Say, text=said)
        return self.hear(reply).turn

    def texts(self):
        return [turn.text for turn in self.chat().turns]

    def ratings(self):
        return [turn.satisfaction for turn in self.chat().turns]


def problem(call):
    with pytest.raises(NotDone) as refused:
        call()
    return refused.value.problem


def test_a_chat_is_kept_turn_by_turn(database):
    rater = Rater(database)
    reply = rater.talk("Let me in.", "Why?")
    rater.do(Rate, turn=reply, satisfaction=4, note=" dry, good ")
    assert rater.texts() == ["The gate is shut.", "Let me in.", "Why?"]
    assert rater.ratings() == [None, None, 4]
    assert rater.chat().turns[2].note == "dry, good"


def test_the_same_action_sent_twice_counts_once_and_is_answered_alike(database):
    rater = Rater(database)
    say = Say(key="once-0001", version=1, text="Let me in.")
    first = act(database, "ada", rater.id, say, now=NOW)
    again = act(database, "ada", rater.id, say, now=NOW + 5)
    assert again == first
    assert rater.texts() == ["The gate is shut.", "Let me in."]


def test_a_repetition_that_comes_late_is_still_answered(database):
    rater = Rater(database)
    say = Say(key="once-0001", version=1, text="Let me in.")
    first = act(database, "ada", rater.id, say, now=NOW)
    rater.hear("Why?")
    rater.do(Leave)
    assert act(database, "ada", rater.id, say, now=NOW) == first
    assert rater.texts() == ["The gate is shut.", "Let me in.", "Why?"]


def test_a_key_stands_for_one_thing(database):
    rater = Rater(database)
    act(database, "ada", rater.id, Say(key="once-0001", version=1, text="A"), now=NOW)
    other = Say(key="once-0001", version=1, text="B")
    assert problem(lambda: act(database, "ada", rater.id, other, now=NOW)) == "key_used"


def test_a_double_click_begins_one_chat(database):
    wanted = Start(key="start-0001", card="k1")
    begin = lambda candidate, number: Beginning("O", "en", {})  # noqa: E731
    first = starting.start(database, "ada", wanted, ("A", "B"), begin, now=NOW)
    again = starting.start(database, "ada", wanted, ("A", "B"), begin, now=NOW)
    assert first == again
    with database.reading() as connection:
        assert len(chats.summaries(connection, "ada")) == 1


def test_the_second_of_two_windows_is_told_and_changes_nothing(database):
    rater = Rater(database)
    reply = rater.talk("Let me in.", "Why?")
    seen = rater.chat().version
    rater.do(Rate, turn=reply, satisfaction=5)
    late = Rate(key="window-2-1", version=seen, turn=reply, satisfaction=1)
    assert problem(lambda: act(database, "ada", rater.id, late, now=NOW)) == "changed"
    assert rater.ratings() == [None, None, 5]


def test_of_many_windows_at_once_one_is_first_and_the_others_are_told(database):
    rater = Rater(database)
    rater.do(Say, text="Let me in.")
    version, turn = rater.hear("Why?").version, rater.chat().turns[2].id

    def rate(number):
        wanted = Rate(
            key=f"window-{number}", version=version, turn=turn, satisfaction=number % 5 + 1
        )
        try:
            return act(database, "ada", rater.id, wanted, now=NOW).version
        except NotDone as refused:
            return refused.problem

    with ThreadPoolExecutor(16) as windows:
        told = list(windows.map(rate, range(64)))
    assert sorted(told, key=str) == [version + 1, *["changed"] * 63]


def test_a_rejected_reply_is_kept_with_its_rating_and_another_takes_its_place(database):
    rater = Rater(database)
    rejected = rater.talk("Let me in.", "Why?")
    rater.do(Rate, turn=rejected, satisfaction=2, note="Too short.")
    rater.do(Regenerate, turn=rejected)
    assert rater.chat().awaits_reply
    rater.hear("Come in.")
    assert rater.texts() == ["The gate is shut.", "Let me in.", "Come in."]
    assert rater.ratings() == [None, None, None]
    (alternate,) = rater.chat().alternates
    assert alternate == (2, "character", "Why?", 2, "Too short.", "regenerated")


def test_a_rating_of_a_rejected_reply_never_lands_on_its_successor(database):
    rater = Rater(database)
    rejected = rater.talk("Let me in.", "Why?")
    rater.do(Regenerate, turn=rejected)
    assert rater.hear("Come in.").turn != rejected
    assert problem(lambda: rater.do(Rate, turn=rejected, satisfaction=1)) == "gone"


def test_an_edited_message_keeps_what_it_and_its_reply_were(database):
    rater = Rater(database)
    rater.talk("Let me in.", "Why?")
    own = rater.chat().turns[1].id
    rater.do(Edit, turn=own, text="Please let me in.")
    rater.hear("Come in.")
    assert rater.texts() == ["The gate is shut.", "Please let me in.", "Come in."]
    assert [(a.position, a.text, a.reason) for a in rater.chat().alternates] == [
        (1, "Let me in.", "edited"),
        (2, "Why?", "edited"),
    ]


def test_only_the_last_message_of_ones_own_can_be_edited(database):
    rater = Rater(database)
    rater.talk("One.", "A.")
    first = rater.chat().turns[1].id
    rater.talk("Two.", "B.")
    assert problem(lambda: rater.do(Edit, turn=first, text="X")) == "gone"


def test_the_opening_is_neither_rated_nor_written_anew(database):
    rater = Rater(database)
    opening = rater.chat().turns[0].id
    assert problem(lambda: rater.do(Rate, turn=opening, satisfaction=3)) == "gone"
    assert problem(lambda: rater.do(Regenerate, turn=opening)) == "fixed"


def test_nobody_talks_while_a_reply_is_owed(database):
    rater = Rater(database)
    rater.do(Say, text="One.")
    assert problem(lambda: rater.do(Say, text="Two.")) == "not_now"


def test_a_reply_to_a_message_that_has_changed_is_not_stored(database):
    rater = Rater(database)
    rater.do(Say, text="One.")
    asked = rater.chat()
    rater.do(Edit, turn=asked.turns[1].id, text="Two.")
    assert add_reply(database, asked, "To one.", "ok", now=NOW) is None
    assert rater.texts() == ["The gate is shut.", "Two."]


def test_rating_an_earlier_reply_does_not_lose_the_one_on_its_way(database):
    rater = Rater(database)
    first = rater.talk("One.", "A.")
    rater.do(Say, text="Two.")
    asked = rater.chat()
    rater.do(Rate, turn=first, satisfaction=3)
    assert add_reply(database, asked, "B.", "ok", now=NOW) is not None


def test_leaving_is_recorded_as_quit_with_the_farewell_as_last_words(database):
    rater = Rater(database)
    reply = rater.talk("Let me in.", "Why?")
    rater.do(Leave, farewell=" Night, then. ")
    assert rater.chat().ended_by == "quit"
    assert rater.texts()[-1] == "Night, then."
    assert problem(lambda: rater.do(Say, text="More.")) == "closed"
    rater.do(Rate, turn=reply, satisfaction=2)
    assert rater.ratings() == [None, None, 2, None]


def test_a_chat_that_is_full_ends_by_its_limit(database):
    rater = Rater(database)
    with database.writing() as connection:
        rows = ",".join(
            f"('{rater.id}', {n}, '{('character', 'user')[n % 2]}', 't', 'ok', 0)"
            for n in range(1, 2 * MOST_USER_TURNS + 1)
        )
        columns = "chat_id, position, speaker, text, finish, created_at"
        connection.execute(text(f"INSERT INTO turns ({columns}) VALUES {rows}"))
    assert problem(lambda: rater.do(Say, text="More.")) == "full"
    rater.do(Leave)
    assert rater.chat().ended_by == "limit"


def test_the_reply_to_the_last_message_that_there_may_be_ends_the_chat(database, monkeypatch):
    monkeypatch.setattr("palate.annotate.chats.MOST_USER_TURNS", 2)
    rater = Rater(database)
    rater.talk("One.", "Why?")
    assert rater.chat().closed_at is None
    reply = rater.talk("Two.", "Then come in.")
    assert (rater.chat().ended_by, rater.chat().closed_at) == ("limit", NOW)
    rater.do(Rate, turn=reply, satisfaction=5)
    assert rater.ratings()[-1] == 5


def test_last_words_are_kept_where_a_reply_is_still_owed(database):
    """The model failed, or is still writing: its reply does not come after the farewell."""
    rater = Rater(database)
    rater.do(Say, text="Are you there?")
    asked = rater.chat()
    rater.do(Leave, farewell="Never mind.")
    assert add_reply(database, asked, "Yes.", "ok", now=NOW) is None
    assert rater.texts() == ["The gate is shut.", "Are you there?", "Never mind."]
    assert rater.chat().ended_by == "quit"


def test_nobody_turns_down_replies_and_messages_without_end(database, monkeypatch):
    monkeypatch.setattr("palate.annotate.acting.MOST_REJECTED", 2)
    rater = Rater(database)
    reply = rater.talk("One.", "A.")
    for text_ in ("B.", "C."):
        rater.do(Regenerate, turn=reply)
        reply = rater.hear(text_).turn
    assert problem(lambda: rater.do(Regenerate, turn=reply)) == "full"
    own = rater.chat().turns[1].id
    for text_ in ("Two.", "Three."):
        own = rater.do(Edit, turn=own, text=text_).turn
    assert problem(lambda: rater.do(Edit, turn=own, text="Four.")) == "full"


def test_nobody_begins_chats_without_end(database, monkeypatch):
    monkeypatch.setattr("palate.annotate.starting.MOST_CHATS", 2)
    for visit in (1, 2):
        Rater(database, visit=visit)
    assert problem(lambda: Rater(database, visit=3)) == "full"
    Rater(database, "ben")


def test_candidates_take_turns_on_a_card(database):
    met = [
        Rater(database, card=card, candidates=("A", "B", "C"), visit=visit).chat().candidate
        for card in ("k1", "k2")
        for visit in (1, 2, 3)
    ]
    assert sorted(met[:3]) == sorted(met[3:]) == ["A", "B", "C"]


def test_of_candidates_met_alike_on_a_card_the_one_met_least_at_all_is_next(database):
    cards = [f"k{number}" for number in range(12)]
    met = [Rater(database, card=card, candidates=("A", "B")).chat().candidate for card in cards]
    assert all(set(pair) == {"A", "B"} for pair in zip(met[::2], met[1::2], strict=True))


def test_people_do_not_all_begin_with_the_first_candidate(database):
    people = [f"p{number}" for number in range(12)]
    for person in people:
        invitations.invite(database, person, now=NOW, days=1)
    first = {Rater(database, person, candidates=("A", "B")).chat().candidate for person in people}
    assert first == {"A", "B"}


def test_chats_of_one_cell_are_numbered(database):
    numbers = [Rater(database, visit=visit).chat().number for visit in (1, 2)]
    assert numbers == [1, 2]


def test_a_chat_of_somebody_else_is_not_there(database):
    chat_id = Rater(database, "ada").id
    say = Say(key="other-0001", version=1, text="Hi")
    assert problem(lambda: act(database, "ben", chat_id, say, now=NOW)) == "gone"


def test_an_id_that_no_database_can_look_for_is_not_there(database):
    say = Say(key="nul-000001", version=1, text="Hi")
    assert problem(lambda: act(database, "ada", "\0", say, now=NOW)) == "gone"


def test_what_no_database_can_hold_is_replaced_in_a_model_s_words(database):
    rater = Rater(database)
    rater.do(Say, text="One.")
    rater.hear("a\0b\ud83dc")
    assert rater.texts()[-1] == "a\ufffdb?c"


# --- invitations ---------------------------------------------------------------------------------


def test_a_link_works_until_it_expires_or_is_revoked(database):
    secret = invitations.invite(database, "cleo", now=NOW, days=2)
    assert invitations.guest(database, secret, now=NOW) == invitations.Guest("cleo")
    assert invitations.guest(database, secret, now=NOW + 2 * DAY) == "expired"
    assert invitations.revoke(database, "cleo", now=NOW) == 1
    assert invitations.guest(database, secret, now=NOW) == "revoked"
    again = invitations.invite(database, "cleo", now=NOW, days=2)
    assert invitations.guest(database, again, now=NOW) == invitations.Guest("cleo")


@pytest.mark.parametrize("secret", ["", "x" * 43, "x" * 10_000, "é" * 43, "\ud83d" * 43])
def test_a_made_up_link_is_unknown(database, secret):
    assert invitations.guest(database, secret, now=NOW) == "unknown"


def test_a_visit_is_noted_once_a_minute(database):
    secret = invitations.invite(database, "ada", now=NOW, days=1)
    seen = []
    for later in (0, 59, 60):
        invitations.guest(database, secret, now=NOW + later)
        seen.append(invitations.progress(database, now=NOW)[0].seen_at)
    assert seen == [NOW, NOW, NOW + 60]


def test_a_full_disk_turns_nobody_away(sqlite):
    """That somebody was here cannot be noted; their chats can still be read."""
    secret = invitations.invite(sqlite, "ada", now=NOW, days=1)
    with sqlite.writing() as connection:
        full = "CREATE TRIGGER full BEFORE UPDATE ON people BEGIN SELECT RAISE(ABORT, 'full'); END"
        connection.execute(text(full))
    assert invitations.guest(sqlite, secret, now=NOW) == ("ada",)


def test_the_database_does_not_hold_the_secret(sqlite, tmp_path):
    secret = invitations.invite(sqlite, "cleo", now=NOW, days=2)
    sqlite.close()
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"cleo" in held
    assert secret.encode() not in held


def test_the_database_is_for_its_owner_alone(sqlite, tmp_path):
    mode = (tmp_path / "annotations.sqlite3").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\\b", "x" * 101, "a\nb", " a"])
def test_a_name_that_could_leave_its_folder_is_refused(database, name):
    with pytest.raises(InputError, match="--invite"):
        invitations.invite(database, name, now=NOW, days=1)


def test_two_names_that_some_disks_cannot_tell_apart_are_not_both_invited(database):
    with pytest.raises(InputError, match="'ada' was invited"):
        invitations.invite(database, "Ada", now=NOW, days=1)
    invitations.invite(database, "Zoë", now=NOW, days=1)
    with pytest.raises(InputError, match="was invited"):
        invitations.invite(database, "Zoe\u0308", now=NOW, days=1)


def test_progress_counts_replies_and_ratings_of_each(database):
    rater = Rater(database)
    first = rater.talk("One.", "A.")
    rater.talk("Two.", "B.")
    rater.do(Rate, turn=first, satisfaction=5)
    rater.do(Leave)
    ada, ben = invitations.progress(database, now=NOW)
    assert (ada.person_id, ada.closed_chats, ada.open_chats) == ("ada", 1, 0)
    assert (ada.replies, ada.rated) == (2, 1)
    assert (ben.links, ben.replies, ben.seen_at) == (1, 0, None)


# --- sessions ------------------------------------------------------------------------------------


def test_an_export_reads_back_as_the_identical_sessions(database, tmp_path):
    rater = Rater(database)
    reply = rater.talk("让我进去。\u2028</script>", "Why?\r\n🐈")
    rater.do(Rate, turn=reply, satisfaction=4, note='"dry", good')
    rejected = rater.talk("Two.", "B.")
    rater.do(Regenerate, turn=rejected)
    rater.hear("C.")
    rater.do(Leave)
    Rater(database, "ben")  # only opened: nothing to export
    (written,) = sessions.export(database, tmp_path / "out")
    assert (written.path.name, written.sessions, written.ratings) == ("ada.jsonl", 1, 1)
    held = sessions.sessions_of(database, "ada")
    assert read(written.path, user_id="ada") == held
    assert held[0].extra["turned_down"][0]["text"] == "B."
    assert held[0].extra["turns"] == {"4": {"alternates": ["B."]}}
    assert held[0].ended_by == "quit"


def test_a_reply_to_a_message_that_was_changed_is_no_choice_against_the_new_one(database):
    rater = Rater(database)
    rejected = rater.talk("One.", "A.")
    rater.do(Regenerate, turn=rejected)
    rater.hear("B.")
    rater.do(Edit, turn=rater.chat().turns[1].id, text="Two.")
    other = rater.hear("C.").turn
    rater.do(Regenerate, turn=other)
    rater.hear("D.")
    (session,) = sessions.sessions_of(database, "ada")
    assert session.extra["turns"] == {"2": {"alternates": ["C."]}}
    assert [one["text"] for one in session.extra["turned_down"]] == ["A.", "One.", "B.", "C."]


def test_nor_is_one_that_was_turned_down_before_the_message_was_changed(database):
    rater = Rater(database)
    rater.do(Regenerate, turn=rater.talk("One.", "A."))
    rater.do(Edit, turn=rater.chat().turns[1].id, text="Two.")
    rater.hear("B.")
    (session,) = sessions.sessions_of(database, "ada")
    assert "turns" not in session.extra
    assert [one["text"] for one in session.extra["turned_down"]] == ["A.", "One."]


def history(*satisfactions, user="ada", session="s1"):
    turns = []
    for number, value in enumerate(satisfactions):
        turns.append(Turn(speaker="character", text=f"C{number}", satisfaction=value))
        turns.append(Turn(speaker="user", text=f"U{number}"))
    return Session(
        session_id=session,
        user_id=user,
        card_id="../../etc/passwd",
        ended_by="limit",
        turns=tuple(turns),
        extra={"source": "elsewhere"},
    )


def test_an_imported_chat_is_rated_turn_by_turn_and_ends_as_it_ended(database):
    assert sessions.take_in(database, [history(None, None)], now=NOW) == 1
    with database.reading() as connection:
        (chat,) = chats.of_person(connection, "ada")
    for version, (turn, score) in enumerate(zip(chat.rateable(), (2, 5), strict=True), 1):
        rate = Rate(key=f"rating-{turn.id}", version=version, turn=turn.id, satisfaction=score)
        act(database, "ada", chat.id, rate, now=NOW)
    act(database, "ada", chat.id, Leave(key="leave-0001", version=3), now=NOW)
    assert sessions.sessions_of(database, "ada") == (history(2, 5),)


def test_an_imported_chat_is_not_talked_in(database):
    sessions.take_in(database, [history(None)], now=NOW)
    with database.reading() as connection:
        (chat,) = chats.of_person(connection, "ada")
    say = Say(key="saying-0001", version=1, text="Hi")
    assert problem(lambda: act(database, "ada", chat.id, say, now=NOW)) == "fixed"


def test_taking_chats_in_twice_changes_nothing(database):
    sessions.take_in(database, [history(None)], now=NOW)
    assert sessions.take_in(database, [history(3), history(None, session="s2")], now=NOW) == 1
    assert sessions.sessions_of(database, "ada") == ()


def test_what_no_database_can_hold_is_replaced_in_imported_chats(database):
    turns = (Turn(speaker="character", text="a\0\ud83d", satisfaction=2, note="n\0\ud83d"),)
    odd = Session(
        session_id="s\0", user_id="ada", card_id="k\0", language="en\0", turns=turns, extra={}
    )
    assert [sessions.take_in(database, [odd], now=NOW) for _ in range(2)] == [1, 0]
    (kept,) = sessions.sessions_of(database, "ada")
    assert (kept.session_id, kept.card_id, kept.language) == ("s\ufffd", "k\ufffd", "en\ufffd")
    assert (kept.turns[0].text, kept.turns[0].note) == ("a\ufffd?", "n\ufffd?")


def test_chats_of_a_stranger_are_refused_whole(database):
    with pytest.raises(InputError, match="--invite zoe"):
        sessions.take_in(database, [history(None), history(None, user="zoe")], now=NOW)
    with database.reading() as connection:
        assert chats.of_person(connection, "ada") == ()


# --- the database --------------------------------------------------------------------------------


def test_it_is_in_wal_mode_and_opens_again_with_what_it_holds(sqlite, tmp_path):
    Rater(sqlite).talk("One.", "A.")
    again = open_database(tmp_path, None, study="harbour")
    with again.reading() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # full
        assert len(chats.of_person(connection, "ada")) == 1
    again.close()


def test_the_database_of_another_study_is_refused(sqlite, tmp_path):
    with pytest.raises(InputError, match="'harbour', not of 'lighthouse'"):
        open_database(tmp_path, None, study="lighthouse")


def test_a_database_of_a_newer_palate_is_refused(sqlite, tmp_path):
    with sqlite.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match="newer palate"):
        open_database(tmp_path, None, study="harbour")


def test_an_error_of_the_database_does_not_quote_what_people_said(database):
    """There is a turn at that place."""
    chat = Rater(database).id
    with pytest.raises(SQLAlchemyError) as refused, database.writing() as connection:
        add_turn(connection, chat, 0, "user", "My secret.", now=NOW)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "annotations.sqlite3").write_text("my notes " * 1000, "utf-8")
    with pytest.raises(InputError, match="cannot be opened"):
        open_database(tmp_path, None, study="harbour")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hunter2@h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "hunter2",
        "",
        "postgresql://u:hunter2@127.0.0.1:1/d",
        "postgresql://u:hunter2@127.0.0.1:notaport/d",
    ],
)
def test_a_wrong_url_is_one_sentence_without_its_password(tmp_path, url):
    with pytest.raises(InputError) as refused:
        open_database(tmp_path, url, study="harbour")
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_tables_that_queries_use_are_those_that_migrations_make(sqlite, tmp_path):
    """Column by column: a migration that was forgotten shows here."""
    from palate.annotate.schema import metadata

    sqlite.close()
    with sqlite3.connect(tmp_path / "annotations.sqlite3") as plain:
        for table in metadata.sorted_tables:
            made = plain.execute(f"PRAGMA table_info({table.name})").fetchall()
            assert [(row[1], bool(row[3])) for row in made] == [
                (column.name, not column.nullable) for column in table.columns
            ]
    plain.close()
