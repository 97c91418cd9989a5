"""A rater's visit in a real browser: link, chat, ratings, leaving, export."""

import contextlib
import json
import os

import pytest
from rating_app import invited, serving

from contrast import CONTRAST
from palate.histories import read
from worlds import card, palate, pure_server, write_study

pytestmark = pytest.mark.browser

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
SAID = ["Hello.", "Who are you?", "Let me in.", "It is cold.", "What is behind you?", "Please."]
SHOTS = os.environ.get("PALATE_SCREENSHOTS")  # a folder, for whoever wants to look at the pages


def opened(browser, link, size=DESKTOP, **options):
    """A fresh visitor on the page behind `link`; `page.incidents` holds what should not happen."""
    page = browser.new_context(viewport=size, **options).new_page()
    page.set_default_timeout(120_000)
    page.incidents = []
    page.on("pageerror", lambda error: page.incidents.append(str(error)))
    page.on("console", lambda said: page.incidents.append(said.text))
    page.goto(link)
    return page


def shoot(page, name):
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")
        page.screenshot(path=f"{SHOTS}/{name}-full.png", full_page=True)


def saved(page):
    page.locator("#status", has_text="Saved.").wait_for()


def replied(page, count):
    """Wait for the count-th reply to be whole: only then can it be rated."""
    rateable = page.locator("li[data-rateable][data-turn]")
    rateable.nth(count - 1).wait_for()
    assert rateable.count() == count


@contextlib.contextmanager
def replaced(page):
    """Wait until the last reply that stood before the block is gone."""
    old = page.locator("li[data-rateable]").last.get_attribute("data-turn")
    yield
    page.locator(f'li[data-turn="{old}"]').wait_for(state="detached")


@pytest.mark.local
def test_a_whole_visit_by_keyboard_alone_is_exported_and_read_back_identical(browser, tmp_path):
    pytest.importorskip("xllamacpp")
    study = write_study(tmp_path, candidates=("A",), model="local:smollm2-135m")
    toml = study / "study.toml"
    toml.write_text(toml.read_text("utf-8").replace("= 0.01", "= 0.01\nmax_tokens = 40"), "utf-8")
    with serving(study, *invited("ada")) as served:
        page = opened(browser, served.links["ada"])
        shoot(page, "home-desktop")
        page.locator("button.begin").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/chats/*")
        for number, text in enumerate(SAID, 1):
            page.keyboard.type(text)
            page.keyboard.press("Enter")
            replied(page, number)
            page.keyboard.press("123454"[number - 1])
            saved(page)
        shoot(page, "chat-desktop")
        shown = page.locator("#turns .said").all_text_contents()
        page.keyboard.type("Good night.")
        page.locator("#leave").focus()
        page.keyboard.press("Enter")
        shoot(page, "leaving-desktop")
        page.locator("#leave-yes").focus()
        page.keyboard.press("Enter")
        page.locator(".ending").wait_for()
        shoot(page, "over-desktop")
        assert page.incidents == []
        exported = palate("annotate", study, "--export")
    assert exported.returncode == 0, exported.stderr
    assert exported.stdout.endswith("1 sessions, 6 ratings\n")
    file = study / "annotations" / "ada.jsonl"
    (session,) = read(file, user_id="ada")
    assert [turn.text for turn in session.turns] == [*shown, "Good night."]
    assert [t.text for t in session.turns if t.speaker == "user"] == [*SAID, "Good night."]
    rated = [t.satisfaction for t in session.turns if t.speaker == "character"]
    assert rated == [None, 1, 2, 3, 4, 5, 4]
    assert session.ended_by == "quit"
    assert session.model_dump(mode="json") == json.loads(file.read_text("utf-8"))


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A study with an English and a Chinese card, its models a server of pure answers."""
    folder = tmp_path_factory.mktemp("annotate")
    with pure_server(folder) as models:
        study = write_study(folder, candidates=("A", "B"), model=models.models.format("m"))
        chinese = card("守门人", opening="城门已经关了。你是谁？", language="zh")
        chinese["data"]["scenario"] = "黄昏的城门；{{user}}想进城。"
        (study / "cards" / "k2.json").write_text(json.dumps(chinese), "utf-8")
        with serving(study, *invited("ada", "ben", "cai", "dora", "eli", "fay")) as served:
            yield study, served


def begin(page, number=0):
    page.locator("button.begin").nth(number).click()
    page.wait_for_url("**/chats/*")


def talk(page, text, count):
    page.locator("#message").fill(text)
    page.locator("#send").click()
    replied(page, count)


def test_on_a_phone_in_chinese_everything_fits_and_is_large_enough(browser, world):
    page = opened(
        browser, world[1].links["cai"], PHONE, locale="zh-CN", has_touch=True, is_mobile=True
    )
    assert page.locator("h1").inner_text() == "聊天与评分"
    shoot(page, "home-phone-zh")
    assert page.locator("h3").first.inner_text() == "守门人"  # their language comes first
    begin(page)
    talk(page, "我是过路的。", 1)
    page.locator("li[data-rateable] .score").nth(3).tap()
    saved_zh = page.locator("#status", has_text="已保存。")
    saved_zh.wait_for()
    shoot(page, "chat-phone-zh")
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        "[...document.querySelectorAll('button, summary, .bar a')]"
        ".filter(one => one.checkVisibility()).map(one => one.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 39
    assert page.locator(".score[aria-pressed=true]").inner_text() == "4"
    assert page.incidents == []


def test_every_control_has_a_name_that_a_screen_reader_says(browser, world):
    page = opened(browser, world[1].links["ada"])
    begin(page)
    talk(page, "Hello.", 1)
    group = page.get_by_role("group", name="Your rating of this reply, 1 to 5")
    assert group.get_by_role("button").count() == 5
    assert group.get_by_role("button", name="5: delighted me").get_attribute("aria-pressed") == (
        "false"
    )
    for role, name in (
        ("textbox", "Your message"),
        ("button", "Send"),
        ("button", "Leave the chat"),
        ("button", "Write it anew"),
        ("button", "Change my message"),
        ("log", ""),
        ("main", ""),
        ("banner", ""),
    ):
        assert page.get_by_role(role, name=name).first.is_visible(), (role, name)
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, textarea, a')].filter(one => !(one.textContent"
        ".trim() || one.ariaLabel || (one.labels && one.labels.length))).length"
    )
    assert nameless == 0


def test_notes_another_reply_and_a_changed_message_are_kept(browser, world):
    study, served = world
    page = opened(browser, served.links["ben"])
    begin(page)
    talk(page, "Hello.", 1)
    rejected = page.locator("li[data-rateable] .said").inner_text()
    page.locator(".noted summary").click()
    page.locator(".note").fill(HOSTILE)
    page.locator(".save-note").click()
    saved(page)
    with replaced(page):
        page.locator("button.regenerate:visible").click()
    replied(page, 1)
    page.locator("button.edit:visible").click()
    page.locator(".editing textarea").fill(HOSTILE)
    with replaced(page):
        page.locator(".editing button.main").click()
    replied(page, 1)
    page.locator(".score").nth(4).click()
    saved(page)
    page.reload()
    assert page.locator("li.user .said").inner_text() == HOSTILE
    assert page.locator(".score[aria-pressed=true]").inner_text() == "5"
    assert page.locator("#turns img, #turns script").count() == 0
    assert page.incidents == []
    assert palate("annotate", study, "--export").returncode == 0
    (session,) = read(study / "annotations" / "ben.jsonl")
    kept = session.extra["turned_down"]
    assert [(one["position"], one["reason"]) for one in kept] == [
        (2, "regenerated"),
        (1, "edited"),
        (2, "edited"),
    ]
    assert (kept[0]["text"], kept[0]["note"]) == (rejected, HOSTILE)


def test_the_second_of_two_windows_is_told_and_shows_what_there_is(browser, world):
    page = opened(browser, world[1].links["dora"])
    begin(page)
    talk(page, "Hello.", 1)
    other = page.context.new_page()
    other.goto(page.url)
    page.locator(".score").nth(4).click()
    saved(page)
    other.locator("#message").fill("I was about to say this.")
    other.locator("#send").click()
    other.locator("#status", has_text="changed in another window").wait_for()
    assert other.locator(".score[aria-pressed=true]").inner_text() == "5"
    assert other.locator("#message").input_value() == "I was about to say this."
    assert other.locator("li.user").count() == 1
    other.locator("#send").click()
    replied(other, 2)


def test_a_rating_without_a_network_is_sent_when_it_is_back(browser, world):
    page = opened(browser, world[1].links["eli"])
    begin(page)
    talk(page, "Hello.", 1)
    page.context.set_offline(True)
    page.locator(".score").nth(1).dblclick()
    page.locator("#status", has_text="Not saved yet").wait_for()
    page.context.set_offline(False)
    saved(page)
    page.reload()
    assert page.locator(".score[aria-pressed=true]").inner_text() == "2"


def test_what_is_not_answered_is_sent_again(browser, world):
    """A network that is gone need not say so: the request hangs."""
    page = opened(browser, world[1].links["eli"])
    page.clock.install()
    begin(page)
    talk(page, "Hello.", 1)
    sent, hangs = [], 1

    def answer(route):
        sent.append(route.request.post_data)
        if len(sent) > hangs:
            route.continue_()

    page.route("**/rate", answer)
    page.locator(".score").nth(1).click()
    page.locator("#status", has_text="Saving").wait_for()
    page.clock.fast_forward(46_000)
    saved(page)
    assert len(sent) == 2
    assert sent[0] == sent[1]


def test_an_imported_chat_is_rated_by_single_keys(browser, world, tmp_path):
    study, served = world
    turns = [
        {"speaker": ("character", "user")[n % 2], "text": f"line {n}", "satisfaction": None}
        for n in range(7)
    ]
    chat = {"session_id": "old-1", "user_id": "fay", "card_id": "elsewhere", "turns": turns}
    file = tmp_path / "fay.jsonl"
    file.write_text(json.dumps({**chat, "language": "en", "ended_by": "limit"}) + "\n", "utf-8")
    taken = palate("annotate", study, "--chats", file, "--list")
    assert taken.returncode == 0, taken.stderr
    page = opened(browser, served.links["fay"], PHONE)
    shoot(page, "to-rate-phone")
    page.locator(".chats a").click()
    page.locator("li[aria-current]").wait_for()
    for key in ("5", "4", "2", "1"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("3")
    shoot(page, "rating-phone")
    page.locator("#leave").click()
    page.locator("#leave-yes").click()
    page.get_by_text("This chat is over.").wait_for()
    assert palate("annotate", study, "--export").returncode == 0
    (session,) = read(study / "annotations" / "fay.jsonl")
    rated = [turn.satisfaction for turn in session.turns[::2]]
    assert rated == [5, 4, 3, 1]
    assert (session.session_id, session.ended_by) == ("old-1", "limit")


def test_a_key_that_is_held_down_rates_one_reply(browser, world, tmp_path):
    study, served = world
    turns = [{"speaker": "character", "text": f"line {n}"} for n in range(4)]
    chat = {"session_id": "held", "user_id": "ada", "card_id": "elsewhere", "turns": turns}
    file = tmp_path / "ada.jsonl"
    file.write_text(json.dumps({**chat, "language": "en", "ended_by": "limit"}) + "\n", "utf-8")
    assert palate("annotate", study, "--chats", file, "--list").returncode == 0
    page = opened(browser, served.links["ada"])
    page.locator(".chats a", has_text="elsewhere").click()
    page.locator("li[aria-current]").wait_for()
    for _ in range(4):
        page.keyboard.down("5")
    page.keyboard.up("5")
    saved(page)
    assert page.locator(".score[aria-pressed=true]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(browser, world, scheme):
    """WCAG 2: at least 4.5:1 for every colour of text on the surfaces it is set on."""
    page = opened(browser, world[1].links["ada"], color_scheme=scheme)
    begin(page, 1)
    talk(page, "Hello.", 1)
    page.locator(".score").nth(2).click()
    saved(page)
    shoot(page, f"chat-{scheme}")
    assert page.evaluate(CONTRAST) == []
