"""The app over HTTP: who is let in, what is refused, and that hostile text stays text."""

import asyncio
import contextlib
import json
import re
import signal

import aiohttp
import pytest
from rating_app import Rater, invited, serving, start, state_of, turns_of
from sqlalchemy import text as sql

from palate.annotate import invitations
from palate.annotate.command import Options, annotate
from palate.annotate.database import open_database
from palate.errors import InputError, StoreError
from palate.histories import read
from worlds import card, palate, pure_server, write_study

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}\u202e"
# A person a test, so that no test is too fast for another's rate.
PEOPLE = ("ada", "ben", *(f"p{number}" for number in range(90)))
UNUSED = iter(PEOPLE[2:])
EVERY_HEADER = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A study on a server of pure answers, with a hostile card, and its server."""
    folder = tmp_path_factory.mktemp("annotate")
    with pure_server(folder) as models:
        study = write_study(folder, model=models.models.format("m"), candidates=("secret-name",))
        hostile = card(HOSTILE, opening=f"{HOSTILE} opens")
        (study / "cards" / "k2.json").write_text(json.dumps(hostile), "utf-8")
        with serving(study, *invited(*PEOPLE, "<b>eve<b>")) as served:
            yield study, served


@pytest.fixture
async def http():
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of a bare address
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        yield session


@pytest.fixture
async def ada(world, http):
    """Somebody who has just followed their link."""
    rater = Rater(http, world[1].url)
    rater.name = next(UNUSED)
    await rater.enter(world[1].links[rater.name])
    return rater


async def begun(rater, card="k1"):
    return (await rater.do("/chats", card=card))["chat"]


async def talked(rater, chat, said="Let me in."):
    """The version and the reply's turn after one exchange."""
    version = state_of(await rater.page(f"/chats/{chat}"))["version"]
    await rater.do(f"/chats/{chat}/say", version=version, text=said)
    return (await rater.reply(chat))["done"]


async def test_a_whole_visit_over_http(ada, world):
    chat = await begun(ada)
    done = await talked(ada, chat)
    rated = await ada.do(
        f"/chats/{chat}/rate", version=done["version"], turn=done["turn"], satisfaction=4
    )
    await ada.do(f"/chats/{chat}/leave", version=rated["version"], farewell="Night.")
    study, _ = world
    written = await asyncio.to_thread(palate, "annotate", study, "--export")
    assert written.returncode == 0, written.stderr
    found = {one.session_id: one for one in read(study / "annotations" / f"{ada.name}.jsonl")}
    assert [turn.satisfaction for turn in found[chat].turns] == [None, None, 4, None]
    assert found[chat].ended_by == "quit"
    assert found[chat].extra["candidate"] == "secret-name"


async def test_the_reply_comes_in_pieces_that_make_the_stored_text(ada):
    chat = await begun(ada)
    await ada.do(f"/chats/{chat}/say", version=1, text="Hi")
    status, events = await ada.events(chat)
    assert status == 200
    text = ""
    for event in events:
        text = event["text"] if event.get("anew") else text + event.get("text", "")
    assert text in await ada.page(f"/chats/{chat}")
    assert set(events[-1]) == {"done", "cut"}


async def test_two_windows_that_wait_for_one_reply_get_the_same_one(ada):
    chat = await begun(ada)
    await ada.do(f"/chats/{chat}/say", version=1, text="Hi")
    ends = await asyncio.gather(ada.reply(chat), ada.reply(chat))
    assert ends[0]["done"]["turn"] == ends[1]["done"]["turn"]
    assert len(turns_of(await ada.page(f"/chats/{chat}"))) == 3


async def test_every_answer_has_the_headers(ada, world):
    url = world[1].url
    pages = ["/", "/i/wrong", "/nowhere", "/static/chat.js", "/static/none", "/chats/none"]
    for path in pages:
        async with ada.http.get(url + path) as response:
            for name, value in EVERY_HEADER.items():
                assert response.headers[name].startswith(value), (path, name)
            assert "server" not in {name.lower() for name in response.headers}


async def test_no_answer_leads_to_the_host_that_a_request_names(world, http):
    """A proxy may pass its own; and the address of a link would go there over plain HTTP."""
    secret = world[1].links["ben"].rpartition("/")[2]
    for path in ("/chats/", f"/i/{secret}/", f"/i/{secret}", "/language/en", "/language/en/"):
        headers = {"Host": "elsewhere.example"}
        url = world[1].url + path
        async with http.get(url, headers=headers, allow_redirects=False) as response:
            assert response.headers.get("Location", "/") == "/"


async def test_pages_hold_no_script_of_their_own(ada):
    page = await ada.page(f"/chats/{await begun(ada)}") + await ada.page("/")
    scripts = re.findall(r"<script([^>]*)>", page)
    assert all('src="/static/' in one or 'type="application/json"' in one for one in scripts)
    assert not re.search(r'\son\w+="|\sstyle="|javascript:', page)


async def test_the_cookie_is_out_of_reach_of_scripts(world, http):
    link = world[1].links["ben"]
    async with http.get(link, allow_redirects=False) as response:
        cookie = response.headers["Set-Cookie"]
        assert response.status == 303
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()


async def test_behind_a_server_that_speaks_https_all_is_https_alone(world, http):
    passed_on = {"X-Forwarded-Proto": "https"}
    link = world[1].links["ben"]
    async with http.get(link, headers=passed_on, allow_redirects=False) as response:
        assert "Secure" in response.headers["Set-Cookie"]
        assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
    async with http.get(link, allow_redirects=False) as response:
        assert "Strict-Transport-Security" not in response.headers


async def test_who_guesses_links_waits_and_nobody_else_at_that_address(world, http):
    url = world[1].url
    there = {"X-Forwarded-For": "203.0.113.9"}
    seen = []
    for number in range(25):
        async with http.get(f"{url}/i/{number:043}", headers=there) as response:
            seen.append(response.status)
    assert (seen[0], seen[-1]) == (403, 429)
    async with http.get(f"{url}/i/{0:043}", headers={"X-Forwarded-For": "203.0.113.10"}) as other:
        assert other.status == 403
    async with http.get(world[1].links["ben"], headers=there) as response:
        assert response.status == 200


async def test_what_the_server_prints_holds_no_secret(tmp_path, http):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    served = start(study, *invited("ada"))
    try:
        rater = Rater(http, served.url)
        await rater.enter(served.links["ada"])
        await rater.page(f"/i/{'x' * 43}")
    finally:
        served.process.send_signal(signal.SIGINT)
        said, _ = served.process.communicate(timeout=30)
    assert said.strip() == ""


@pytest.mark.parametrize(
    "secret", ["x" * 43, "", "../../etc/passwd", "%2e%2e%2f", "x" * 5000, "%00", "%ff" * 43]
)
async def test_a_wrong_link_lets_nobody_in(world, http, secret):
    async with http.get(f"{world[1].url}/i/{secret}") as response:
        assert response.status in (403, 404, 429)
        assert "Set-Cookie" not in response.headers
    async with http.get(f"{world[1].url}/") as response:
        assert response.status == 403


async def test_expired_and_revoked_links_say_so_and_end_a_visit(world, http):
    study, served = world
    database = open_database(study, None, study="tiny")
    old = invitations.invite(database, "old", now=1_000_000_000, days=1)
    secret = invitations.invite(database, "fay", now=1_900_000_000, days=1)
    database.close()
    async with http.get(f"{served.url}/i/{old}") as response:
        assert (response.status, "expired" in await response.text()) == (403, True)
    rater = Rater(http, served.url)
    await rater.enter(f"/i/{secret}")
    chat = await begun(rater)
    revoked = await asyncio.to_thread(palate, "annotate", study, "--revoke", "fay")
    assert revoked.stdout == "Revoked 1 link of fay.\n"
    status, answer = await rater.post(
        f"/chats/{chat}/say", {"key": "after-0001", "version": 1, "text": "Hi"}
    )
    assert (status, answer["problem"]) == (403, "revoked")


async def test_another_person_s_chat_is_not_there(ada, world):
    chat = await begun(ada)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        ben = Rater(other, world[1].url)
        await ben.enter(world[1].links["ben"])
        async with other.get(f"{world[1].url}/chats/{chat}") as response:
            assert response.status == 404
        for kind, fields in {
            "say": {"text": "Hi"},
            "rate": {"turn": 1, "satisfaction": 1},
            "leave": {},
            "regenerate": {"turn": 1},
            "edit": {"turn": 1, "text": "x"},
        }.items():
            body = {"key": f"theft-{kind}-1", "version": 1, **fields}
            assert (await ben.post(f"/chats/{chat}/{kind}", body))[0] == 404
        assert (await ben.events(chat))[0] == 404
    assert state_of(await ada.page(f"/chats/{chat}"))["version"] == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Palate-Token": ""},
        {"X-Palate-Token": "0" * 64},
        {"X-Palate-Token": "é"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_forged_request_changes_nothing(ada, headers):
    status, answer = await ada.post("/chats", {"key": "forged-001", "card": "k1"}, **headers)
    assert (status, answer["problem"]) == (403, "forged")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[]", 422),
        (b"null", 422),
        (b"\xff\xfe", 422),
        (b"[" * 60_000, 422),
        (b'{"key": "k", "version": 1, "text": "x"}', 422),
        ({"key": "short-0001", "version": "1", "text": "x"}, 422),
        ({"key": "short-0001", "version": 1, "text": "  \n"}, 422),
        ({"key": "short-0001", "version": 1, "text": "a\0b"}, 422),
        (b'{"key": "short-0001", "version": 1, "text": "\\ud83d"}', 422),
        ({"key": "short-0001", "version": 1, "text": "x", "more": 1}, 422),
        ({"key": "short-0001", "version": 1, "text": "x" * 8001}, 422),
        ({"key": "short-0001", "version": 2**40, "text": "x"}, 422),
        ({"key": "short-0001", "version": 1, "text": "x" * 70_000}, 413),
    ],
)
async def test_a_malformed_or_oversized_body_is_refused(ada, body, status):
    chat = await begun(ada)
    assert (await ada.post(f"/chats/{chat}/say", body))[0] == status
    assert turns_of(await ada.page(f"/chats/{chat}")) == turns_of(await ada.page(f"/chats/{chat}"))
    assert state_of(await ada.page(f"/chats/{chat}"))["version"] == 1


async def test_a_body_without_end_is_cut_off(ada, world):
    host, port = world[1].url.removeprefix("http://").split(":")
    secret = world[1].links[ada.name].rpartition("/")[2]
    reader, writer = await asyncio.open_connection(host, int(port))
    head = [
        *("POST /chats HTTP/1.1", "Host: x", f"Cookie: palate_rater={secret}"),
        *(f"X-Palate-Token: {ada.token}", "Content-Type: application/json"),
        "Transfer-Encoding: chunked\r\n\r\n",
    ]
    writer.write("\r\n".join(head).encode() + b"10000\r\n" + b"x" * 65_536 + b"\r\n1\r\nx\r\n")
    assert (await reader.readline()).split()[1] == b"413"
    writer.transport.abort()


async def test_a_form_of_another_kind_is_refused(ada):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await ada.post("/chats", b"key=form-00001&card=k1", **headers))[0] == 415


@pytest.mark.parametrize("score", [0, 6, -1, 4.5, "4", True, None])
async def test_a_rating_off_the_scale_is_no_rating(ada, score):
    chat = await begun(ada)
    done = await talked(ada, chat)
    status, _ = await ada.post(
        f"/chats/{chat}/rate",
        {
            "key": "scale-0001" + str(score).replace(".", "-"),
            "version": done["version"],
            "turn": done["turn"],
            "satisfaction": score,
        },
    )
    assert status == (200 if score is None else 422)
    assert 'aria-pressed="true"' not in await ada.page(f"/chats/{chat}")


@pytest.mark.parametrize(
    "name", ["../k1", "/etc/passwd", "k1.json", "..\\k1", "k1\u0000", "", "k" * 300, "K1"]
)
async def test_a_card_is_looked_up_and_never_opened_as_a_path(ada, name):
    status, _ = await ada.post("/chats", {"key": "path-00001", "card": name})
    assert status in (404, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/",
        "/chats/..%2f..%2fstudy.toml",
        "/language/../../x",
    ],
)
async def test_no_path_leads_out_of_the_app(ada, world, path):
    host, port = world[1].url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.split()[1] in (b"403", b"404", b"400", b"303")
    assert b"import" not in answer
    assert b"root:" not in answer


async def test_hostile_names_and_messages_are_text_everywhere(world, http):
    study, served = world
    rater = Rater(http, served.url)
    home = await rater.enter(served.links["<b>eve<b>"])
    assert "<b>eve" not in home
    assert "&lt;b&gt;eve" in home
    chat = await begun(rater, "k2")
    done = await talked(rater, chat, HOSTILE)
    await rater.do(f"/chats/{chat}/rate", version=done["version"], turn=done["turn"], note=HOSTILE)
    page = await rater.page(f"/chats/{chat}")
    for text in (home, page):
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "{{7*7}}" in text
    assert state_of(page)["name"] == HOSTILE
    listed = await asyncio.to_thread(palate, "annotate", study, "--list")
    assert "\u202e" not in listed.stdout


async def test_which_candidate_plays_is_not_shown(ada):
    chat = await begun(ada)
    await talked(ada, chat)
    assert "secret-name" not in await ada.page(f"/chats/{chat}") + await ada.page("/")


async def test_the_language_is_the_browser_s_until_the_visitor_chooses(ada):
    async with ada.http.get(f"{ada.url}/", headers={"Accept-Language": "zh-CN,en;q=0.8"}) as r:
        assert 'lang="zh-CN"' in (await r.text())[:60]
    async with ada.http.get(f"{ada.url}/language/en") as r:
        assert 'lang="en"' in (await r.text())[:60]
    async with ada.http.get(f"{ada.url}/", headers={"Accept-Language": "zh-CN"}) as r:
        assert 'lang="en"' in (await r.text())[:60]


async def test_who_is_too_fast_waits_and_nobody_else(world, http):
    rater = Rater(http, world[1].url)
    await rater.enter(world[1].links["ben"])
    seen = [(await rater.post("/chats", {"key": "same-00001", "card": "k1"}))[0] for _ in range(80)]
    assert seen[0] == 200
    assert 429 in seen
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        ada = Rater(other, world[1].url)
        await ada.enter(world[1].links["ada"])


async def test_a_service_that_keeps_the_chat_itself_is_asked_to_take_nothing_back(tmp_path, http):
    with pure_server(tmp_path) as models:
        study = write_study(tmp_path, candidates=("A",), model=models.models.format("m"))
        toml = (study / "study.toml").read_text("utf-8")
        changed = toml.replace('name = "A"', 'name = "A"\nprompt = "none"')
        (study / "study.toml").write_text(changed, "utf-8")
        with serving(study, *invited("ada")) as served:
            rater = Rater(http, served.url)
            await rater.enter(served.links["ada"])
            chat = await begun(rater)
            done = await talked(rater, chat)
            own = turns_of(await rater.page(f"/chats/{chat}"))[1]
            for kind, fields in {
                "regenerate": {"turn": done["turn"]},
                "edit": {"turn": own, "text": "Please."},
            }.items():
                body = {"key": f"back-{kind}", "version": done["version"], **fields}
                status, answer = await rater.post(f"/chats/{chat}/{kind}", body)
                assert (status, answer["problem"]) == (409, "fixed")


async def test_who_asks_for_replies_too_fast_waits(ada):
    chat = await begun(ada)
    asked = [(await ada.events(chat))[0] for _ in range(14)]
    assert (asked[0], asked[-1]) == (409, 429)


async def test_replies_are_not_collected_on_their_way(ada):
    chat = await begun(ada)
    await ada.do(f"/chats/{chat}/say", version=1, text="Hi")
    headers = {"X-Palate-Token": ada.token}
    async with ada.http.post(f"{ada.url}/chats/{chat}/reply", headers=headers) as response:
        assert response.headers["X-Accel-Buffering"] == "no"
        await response.read()


async def test_a_model_that_fails_says_nothing_of_itself_to_a_browser(tmp_path, http, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-1234")
    endpoint = '[endpoints."http://127.0.0.1:1/v1"]\nkey_env = "MY_KEY"\nmax_attempts = 1\n'
    study = write_study(tmp_path, model="openai:m@http://127.0.0.1:1/v1", extra=endpoint)
    with serving(study, *invited("ada")) as served:
        rater = Rater(http, served.url)
        await rater.enter(served.links["ada"])
        chat = await begun(rater)
        await rater.do(f"/chats/{chat}/say", version=1, text="Hi")
        _, events = await rater.events(chat)
        said = json.dumps(events) + await rater.page(f"/chats/{chat}")
    assert events[-1]["problem"] == "model"
    assert "127.0.0.1:1" not in said
    assert "sk-very-secret" not in said


def test_listening_beyond_this_machine_is_said(tmp_path):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    with serving(study, "--host", "0.0.0.0") as served:
        assert "0.0.0.0 can be reached from other machines" in served.said
    with serving(study) as served:
        assert "other machines" not in served.said


@pytest.mark.parametrize(
    "where",
    [
        {"host": "0.0.0.0"},
        {"host": "::"},
        {"port": 0},
        {"url": "rate.example"},
        {"url": "javascript:alert(1)"},
        {"url": "http://rate.example:99999"},
        {"url": "http://rate.example:port"},
        {"url": "http://[::1"},
        {"url": "https://rate.example/app"},
        {"url": "https://rate.example/?a=b"},
        {"url": "https://rate.example/#a"},
        {"url": "https://rate.example/?"},
        {"url": "https://me:word@rate.example"},
        {"url": "https://rate example"},
        {"url": "https://rate.example\n"},
    ],
)
def test_a_link_that_nobody_could_open_is_not_made(tmp_path, where):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    with pytest.raises(InputError, match="--url"):
        annotate(study, asked(invite=("ada",), show=True, **where))
    database = open_database(study, None, study="tiny")
    assert invitations.progress(database, now=0) == ()
    database.close()


@pytest.mark.parametrize("url", ["https://rate.example", "https://rate.example/", "http://[::1]:9"])
def test_a_link_begins_with_the_address_that_was_named(tmp_path, capsys, url):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    annotate(study, asked(invite=("ada",), show=True, url=url))
    assert f"Link for ada: {url.rstrip('/')}/i/" in capsys.readouterr().out


def test_a_database_that_refuses_a_change_is_one_sentence(tmp_path):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    database = open_database(study, None, study="tiny")
    with database.writing() as connection:
        full = "CREATE TRIGGER t BEFORE INSERT ON people BEGIN SELECT RAISE(ABORT, 'full'); END"
        connection.execute(sql(full))
    database.close()
    with pytest.raises(StoreError, match=r"the database refused \(full\); make room"):
        annotate(study, asked(invite=("ada",), show=True))


def test_what_an_export_prints_turns_no_terminal_around(tmp_path, capsys):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    (study / "h.jsonl").write_text(
        '{"session_id": "s1", "user_id": "a\u202eb", "card_id": "k1", "language": "en", '
        '"ended_by": "quit", "turns": [{"speaker": "character", "text": "Hi", "satisfaction": 3}]}',
        "utf-8",
    )
    chats, out = study / "h.jsonl", study / "elsewhere"
    annotate(study, asked(invite=("a\u202eb",), chats=(chats,), export=True, out=out))
    said = capsys.readouterr().out
    assert [one.session_id for one in read(out / "a\u202eb.jsonl")] == ["s1"]
    assert "ab.jsonl: 1 sessions, 1 ratings" in said
    assert "\u202e" not in said


def asked(**given):
    """The command's options, as they are unless given."""
    usual = {
        **{"host": "127.0.0.1", "port": 8765, "url": None, "database": None, "days": 30},
        **{"invite": (), "revoke": (), "chats": (), "show": False, "export": False, "out": None},
    }
    return Options.model_validate({**usual, **given})


async def test_a_reply_is_written_to_its_end_when_nobody_listens_any_more(tmp_path, http):
    """The model takes half a second; the listener hangs up at once."""
    with pure_server(tmp_path, delay=0.5) as models:
        study = write_study(tmp_path, model=models.models.format("m"))
        with serving(study, *invited("ada")) as served:
            rater = Rater(http, served.url)
            await rater.enter(served.links["ada"])
            chat = await begun(rater)
            await rater.do(f"/chats/{chat}/say", version=1, text="Hi")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(rater.events(chat), 0.2)
            await rater.reply(chat)
            assert len(turns_of(await rater.page(f"/chats/{chat}"))) == 3
            assert models.requests() == 1


def test_a_port_that_is_taken_is_one_sentence(tmp_path):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    with serving(study) as served:
        port = served.url.rpartition(":")[2]
        refused = palate("annotate", study, "--port", port)
    assert refused.returncode == 2
    assert f"port {port}" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_stopping_is_no_failure(tmp_path):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    with serving(study) as served:
        pass
    assert served.process.returncode == 0


def test_list_and_export_work_without_a_server(tmp_path):
    study = write_study(tmp_path)
    (study / "replies.json").write_text("[]", "utf-8")
    invite = palate("annotate", study, "--invite", "ada", "--list", "--url", "https://rate.example")
    assert re.search(r"^Link for ada: https://rate\.example/i/[\w-]{43}$", invite.stdout, re.M)
    assert "ada: link until" in invite.stdout
    assert "0 of 0 replies rated" in invite.stdout
    assert "nothing to export" in palate("annotate", study, "--export").stdout
