"""The page in a real browser, full of hostile text: nothing runs, nothing loads, all is shown."""

import pytest
from hostile import CARD_NAMES, ERRORS, FILE_NAMES, MESSAGES, MODEL_IDS, REASONS
from report_world import Words, report_data

from contrast import CONTRAST
from palate.report.page import write_report
from watched import watched

pytestmark = pytest.mark.browser

WORDS = Words(
    message="\n".join(MESSAGES),
    reason="\n".join(REASONS),
    error="\n".join(ERRORS),
    card_name=CARD_NAMES[0],
    file=FILE_NAMES[0],
    model=MODEL_IDS[0],
    study=CARD_NAMES[3],
    candidate=CARD_NAMES[1],
    raw=MESSAGES[0],
)


@pytest.fixture
def seen(browser, tmp_path):
    """A hostile report, opened; `page.incidents` lists whatever happened that should not."""
    path = write_report(report_data(WORDS), tmp_path / "report.html")
    page = watched(browser, path)
    yield page
    page.close()


def open_first_cell(page):
    page.locator("#rows a").first.click()
    page.locator("#transcript[open] .turn").first.wait_for()


def test_hostile_text_runs_nothing_and_loads_nothing(seen):
    open_first_cell(seen)
    for link in seen.locator("#transcript summary").all():
        link.click()
    assert seen.incidents == []
    assert seen.title() == f"{CARD_NAMES[3]} · palate report"
    assert seen.locator("h1").count() == 1
    assert seen.locator("img, svg[onload], #transcript script, #transcript style").count() == 0


def test_the_reader_sees_every_word_of_a_conversation(seen):
    open_first_cell(seen)
    said = seen.locator("#transcript .message .said").evaluate_all(
        "all => all.map(one => one.textContent)"
    )
    assert said[0] == f"The lamp is lit. {WORDS.message}"
    assert said[2].startswith(f"{WORDS.message} ")
    assert (
        seen.locator("#transcript .reason").first.evaluate("one => one.textContent") == WORDS.reason
    )
    assert (
        seen.locator("#transcript pre.said").first.evaluate("one => one.textContent") == WORDS.raw
    )
    assert (
        seen.locator("#transcript .speaker").first.evaluate("one => one.firstChild.textContent")
        == CARD_NAMES[0]
    )


def test_where_the_user_left_the_page_says_so(seen):
    open_first_cell(seen)
    assert seen.locator("#transcript .ending").inner_text() == "The user left here."


def test_every_verdict_stands_beside_its_reply(seen):
    open_first_cell(seen)
    assert seen.locator(".turn.character .verdict.personal").count() == 4
    assert seen.locator(".turn.character .verdict.generic").count() == 4
    assert seen.locator("#transcript-body > .verdict.session").count() == 1


def test_a_verdict_for_no_reply_is_not_lost(seen):
    """The cell whose candidate was blocked has no reply; what was said of it still shows."""
    seen.locator("select[name=end]").select_option("candidate_blocked")
    open_first_cell(seen)
    assert "blocked the reply" in seen.locator("#transcript .ending").inner_text()
    assert seen.locator("#transcript h3", has_text="Verdicts without a reply").count() == 1
    assert "no reply to score" in seen.locator("#transcript-body > .verdict").first.inner_text()


def test_a_number_of_the_heat_map_narrows_the_list_to_its_cells(seen):
    seen.locator("#people td a").first.click()
    seen.wait_for_function("document.getElementById('found').textContent.startsWith('6 of')")
    assert seen.locator("#rows tr").count() == 6
    assert seen.locator("select[name=user]").input_value() == "ada"


def test_the_list_is_filtered_and_ordered(seen):
    seen.locator("select[name=card]").select_option("archive")
    assert seen.locator("#found").inner_text() == "12 of 36 conversations"
    seen.locator("select[name=order]").select_option("personal")
    shown = seen.locator("#rows td:nth-child(4)").all_inner_texts()
    assert shown == sorted(shown)
    assert shown[-1] == "n/a"


def test_a_failure_leads_to_its_open_conversation(seen):
    seen.locator(".failures a").first.click()
    assert "ben × harbour × rambler, repetition 2" in seen.locator("#transcript-title").inner_text()
    told = seen.locator("#transcript .failures li").evaluate("one => one.textContent")
    assert told == f"candidate: {WORDS.error}"
    assert "is open" in seen.locator("#transcript .ending").inner_text()


def test_the_keyboard_is_enough(seen):
    seen.locator("#rows a").first.focus()
    seen.keyboard.press("Enter")
    title = seen.locator("#transcript-title")
    seen.wait_for_function("document.activeElement.id === 'transcript-title'")
    first = title.inner_text()
    seen.keyboard.press("ArrowRight")
    seen.wait_for_function(
        "before => document.getElementById('transcript-title').innerText !== before", arg=first
    )
    seen.keyboard.press("Escape")
    seen.wait_for_function("!document.getElementById('transcript').open")
    assert seen.evaluate("document.activeElement.closest('#rows') !== null")


def test_a_script_that_is_not_ours_is_refused(seen):
    seen.evaluate(
        "() => { const one = document.createElement('div'); document.body.append(one);"
        " try { one.innerHTML = '<img src=x onerror=\"document.title=1\">'; }"
        " catch { one.textContent = 'refused'; } }"
    )
    assert seen.locator("body > div").last.inner_text() == "refused"
    assert seen.title() != "1"


@pytest.mark.parametrize(("width", "height"), [(1360, 900), (390, 844)])
def test_nothing_is_wider_than_the_window(seen, width, height):
    seen.set_viewport_size({"width": width, "height": height})
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    open_first_cell(seen)
    assert seen.evaluate("document.getElementById('transcript').scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(seen, scheme):
    """WCAG 2: at least 4.5:1 for every text that is set on the page, on the strongest tint too."""
    seen.emulate_media(color_scheme=scheme)
    seen.evaluate(
        "document.querySelectorAll('[class*=q]').forEach(one =>"
        " { one.className = one.className.replace(/\\bq\\d+/, 'q16'); })"
    )
    seen.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    low = seen.evaluate(CONTRAST)
    assert low == []
