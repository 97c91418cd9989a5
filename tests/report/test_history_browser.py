"""The page of histories in a real browser: nothing runs or loads, it fits, it can be read."""

import pytest
from hostile import CARD_NAMES, MESSAGES

from contrast import CONTRAST
from palate.histories.figures import figures
from palate.histories.findings import Finding
from palate.report.history import UserHistory, write_history_page
from palate.types import Session, Turn
from watched import watched

pytestmark = pytest.mark.browser


def session(number):
    turns = [Turn(speaker="character", text="Yes?")]
    for n in range(30):
        turns.append(Turn(speaker="user", text=f"go on then {MESSAGES[0]}"))
        label = 1 + (n * number + n) % 5
        turns.append(Turn(speaker="character", text="No.", satisfaction=label))
    return Session(
        session_id=f"s{number}",
        user_id=CARD_NAMES[1],
        card_id=CARD_NAMES[number % len(CARD_NAMES)] or "x",
        ended_by=("quit", "limit", "unknown")[number % 3],
        turns=tuple(turns),
    )


@pytest.fixture
def seen(browser, tmp_path):
    """A page full of hostile names, opened; `page.incidents` lists what should not happen."""
    findings = tuple(
        Finding(level=level, kind="x", text=" ".join(MESSAGES))
        for level in ("stop", "weak", "note")
    )
    history = UserHistory(figures([session(n) for n in range(40)]), findings)
    empty = Session(
        session_id="e", user_id="e", card_id="e", turns=(Turn(speaker="user", text="hi"),)
    )
    path = write_history_page(
        [history, UserHistory(figures([empty]))], tmp_path / "page.html", title=CARD_NAMES[0]
    )
    page = watched(browser, path)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    yield page
    page.close()


def test_hostile_text_runs_nothing_and_loads_nothing(seen):
    assert seen.incidents == []
    assert seen.locator("h1").count() == 1
    assert seen.locator("img, script, svg[onload], main style").count() == 0


@pytest.mark.parametrize(("width", "height"), [(1360, 900), (390, 844)])
def test_nothing_is_wider_than_the_window(seen, width, height):
    seen.set_viewport_size({"width": width, "height": height})
    assert seen.evaluate("document.documentElement.scrollWidth") <= width


def test_every_bar_and_point_is_drawn_where_it_can_be_seen(seen):
    boxes = seen.locator(".plot circle").evaluate_all(
        "all => all.map(one => { const box = one.getBoundingClientRect();"
        " const frame = one.closest('.frame').getBoundingClientRect();"
        " return box.width > 0 && box.left >= frame.left && box.right <= frame.right + 6; })"
    )
    assert len(boxes) == 15 + 20  # 30 replies and 40 sessions, by stretches of two
    assert all(boxes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(seen, scheme):
    seen.emulate_media(color_scheme=scheme)
    assert seen.evaluate(CONTRAST) == []
