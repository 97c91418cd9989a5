"""The page of a validation: verdicts first, what is missing with its reason, text as text."""

import json

import pytest

from contrast import CONTRAST
from palate.errors import StoreError
from palate.report.validation import write_validation_page
from palate.report.validation_charts import columns, curve, heat, leaving_curve, read_curve
from palate.report.validation_rows import rows
from palate.simulators.validation.measures import (
    Attribution,
    AtTurn,
    Authors,
    Bars,
    Distribution,
    Estimate,
    Leaving,
    Likelihood,
    OwnAgainstOthers,
    Row,
    Spoken,
    Spread,
    Surface,
    TwoSample,
)
from palate.simulators.validation.records import (
    ConditionResult,
    Consistency,
    Fooling,
    PersonResult,
    Validation,
    Verdict,
)
from report.hostile import CARD_NAMES, MESSAGES
from report.reading import Page
from watched import watched

MISSING = dict.fromkeys(
    ("likelihood", "two_sample", "surface", "leaving", "fooling", "consistency"),
    "it was never trained",
)


def estimate(value, low=None, high=None, n=60):
    reason = None if low is not None else "too few sessions"
    return Estimate(value=value, low=low, high=high, n=n, sessions=9, reason=reason)


def lengths():
    spread = Spread(mean=20, p10=4, p25=9, median=18, p75=30, p90=44)
    return Distribution(
        name="characters",
        unit="characters",
        human=spread,
        simulated=spread,
        ks=0.21,
        wasserstein=4.2,
        bars=Bars(edges=(0, 2, 5, 12, 27), human=(0, 3, 6, 1, 0), simulated=(0, 1, 5, 4, 0)),
    )


def leaving():
    points = tuple(
        AtTurn(
            turn=turn,
            real=estimate(turn / 20, 0.0, 0.6, n=12 - turn),
            simulated=estimate(None) if turn == 4 else estimate(turn / 30, 0.0, 0.5, n=9),
        )
        for turn in range(1, 9)
    )
    return Leaving(
        hits=6,
        misses=4,
        false=3,
        stayed=47,
        precision=estimate(0.67, 0.4, 0.9),
        recall=estimate(0.6, 0.3, 0.8),
        f1=estimate(0.63, 0.4, 0.8),
        false_quit_rate=estimate(0.06, 0.02, 0.15),
        real_rate=0.16,
        by_turn=points,
    )


def condition(kind="lora", level="fit", reasons=("It is near.",)):
    return ConditionResult(
        condition=kind,
        model="local:smollm2-135m",
        adapter="ab" * 32 if kind == "lora" else None,
        spoken=Spoken(contexts=60, said=57, left=9, silent=3, cut=1),
        likelihood=Likelihood(
            messages=estimate(3.214, 3.1, 3.33, n=4211),
            leaving=estimate(1.2, 0.9, 1.5),
            over_prompted=estimate(-0.412, -0.5, -0.32),
            over_profile=estimate(-0.377, -0.47, -0.28),
        ),
        two_sample=TwoSample(
            auc=estimate(0.62, 0.55, 0.69), p=0.03, permutations=99, human=57, simulated=57, folds=5
        ),
        surface=Surface(messages=57, distributions=(lengths(),), habits=()),
        leaving=leaving(),
        fooling=Fooling(
            judge="openai:judge",
            counts_toward_verdict=True,
            form="json",
            prompts={},
            rate=estimate(0.44, 0.35, 0.53),
            distance=0.06,
            flips=estimate(0.2, 0.1, 0.3),
            cannot_tell=2,
            pairs=50,
            unscored=1,
            length_matched=estimate(None),
            length_matched_flips=estimate(None),
            length_rule="",
        ),
        consistency=Consistency(
            judge="openai:judge",
            counts_toward_verdict=True,
            form="json",
            prompts={},
            shown_messages=12,
            own=estimate(71.0, 65.0, 77.0),
            control=estimate(33.0, 28.0, 39.0),
            ceiling=estimate(84.0, 80.0, 88.0),
            over_control=estimate(38.0, 30.0, 46.0),
            tells_people_apart=True,
            unscored=0,
        ),
        verdict=Verdict(level=level, reasons=reasons),
    )


def absent(kind="profile"):
    verdict = Verdict(
        level="cannot be told", reasons=("No profile was written.",), missing=tuple(MISSING)
    )
    return ConditionResult(condition=kind, model=None, verdict=verdict, absent=MISSING)


def person(user="ines", *conditions):
    return PersonResult(
        user_id=user,
        language="en",
        training_sessions=40,
        held_out_sessions={f"s{n}": "0" * 64 for n in range(10)},
        held_out_messages=92,
        contexts=60,
        left_contexts=10,
        conditions=conditions
        or (
            condition("raw", "unusable", ("The judge nearly always finds the human message.",)),
            condition("prompted", "weak", ("Its messages are 3.1 times as long.",)),
            absent(),
            condition(),
        ),
    )


def matrix(first="ines", second="oskar"):
    rows_ = (
        Row(
            user_id=first,
            nll=(3.2, 3.9),
            tokens=4211,
            own_is_lowest=True,
            nearest=second,
            margin=estimate(0.7, 0.5, 0.9),
        ),
        Row(
            user_id=second,
            nll=(4.1, None),
            tokens=0,
            own_is_lowest=None,
            nearest=first,
            margin=estimate(None),
        ),
    )
    return OwnAgainstOthers(persons=(first, second), rows=rows_, diagonal_wins=None)


def attribution(*names):
    authors = tuple(
        Authors(
            source=source, accuracy=estimate(value, 0.3, 0.99, n=12), by_person={}, confusion=()
        )
        for source, value in (("human", 0.92), ("lora", 0.75))
    )
    return Attribution(
        persons=names,
        group_messages=10,
        training_groups=dict.fromkeys(names, 9),
        chance=0.5,
        authors=authors,
    )


def whole(*people, warnings=(), study="my study"):
    people = people or (person(), person("oskar"))
    names = tuple(one.user_id for one in people)
    return Validation(
        study=study,
        seed=7,
        judge="openai:judge",
        persons=people,
        own_against_others=matrix(names[0], names[-1]),
        attribution=attribution(*names),
        warnings=warnings,
        versions={"palate": "0.1.0"},
        made_at="2026-01-02T03:04:05+00:00",
    )


def training(tmp_path, *lines):
    path = tmp_path / "training.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return read_curve(path)


def seen(tmp_path, found=None, **curves):
    return Page(write_validation_page(found or whole(), tmp_path / "page.html", curves=curves))


def test_the_verdicts_stand_before_the_numbers(tmp_path):
    text = seen(tmp_path).text
    assert text.index("The judge nearly always finds the human message.") < text.index("3.214")
    assert "2 people, 120 places in held-out chats, judged by openai:judge." in text


def test_numbers_stand_with_their_intervals(tmp_path):
    text = seen(tmp_path).text
    for number in ("3.214", "3.100 – 3.330", "−0.377", "0.44", "0.35 – 0.53", "71.0", "0.75"):
        assert number in text


def test_what_is_missing_has_its_reason_once_below_the_table(tmp_path):
    text = seen(tmp_path, whole(person())).text
    assert text.count("it was never trained") == 1
    assert "too few sessions" in text


def test_a_person_without_a_single_measure_is_shown(tmp_path):
    text = seen(tmp_path, whole(person("ines", absent("raw"), absent("lora")))).text
    assert "No profile was written." in text


def test_the_loss_curve_is_drawn_where_there_is_one(tmp_path):
    found = training(
        tmp_path,
        '{"step": 0, "loss": null, "validation": 4.0}',
        '{"step": 1, "loss": 4.0, "validation": null}',
        '{"step": 2, "loss": 2.0, "validation": 3.0}',
        '{"step": 3, "lo',
    )
    assert [point.loss for point in found.training] == [4.0, 2.0]
    drawn = curve(found)
    # Losses from 2 at the bottom to 4 at the top, steps from 0 to 2 from left to right.
    assert drawn.training == "50.00,0.00 100.00,100.00"
    assert drawn.validation == "0.00,0.00 100.00,50.00"
    assert (drawn.last, drawn.best) == ("2.000", "3.000")
    assert "best held out 3.000" in seen(tmp_path, ines=found).text
    assert "Loss in training" not in seen(tmp_path).text


def test_no_curve_to_read_is_none(tmp_path):
    assert read_curve(tmp_path / "absent.jsonl") is None
    assert training(tmp_path, "[]", "null", '{"step": "x"}', '{"step": 1, "loss": "NaN"}') is None


def test_a_long_curve_is_drawn_by_stretches(tmp_path):
    lines = [json.dumps({"step": n, "loss": 1.0 + n % 2}) for n in range(1000)]
    drawn = curve(training(tmp_path, *lines))
    assert len(drawn.training.split()) == 200


def test_the_deepest_tint_of_a_row_is_its_lowest_value():
    [first, second] = heat(matrix())
    assert [(cell.tint, cell.own) for cell in first] == [(16, True), (0, False)]
    assert [(cell.tint, cell.own) for cell in second] == [(8, False), (-1, True)]


def test_bars_are_shares_of_each_side_and_empty_ends_are_left_out():
    bars = columns(lengths())
    assert [bar.label for bar in bars] == ["2–4", "5–11", "12–26"]
    assert [bar.human for bar in bars] == ["50.00%", "100.00%", "16.67%"]
    assert bars[0].told == "2–4: person 30%, simulator 10%"


def test_the_last_length_without_an_end_says_so():
    bars = Bars(edges=(0, 2, 5), human=(1, 0, 1), simulated=(0, 0, 1))
    made = columns(lengths().model_copy(update={"bars": bars}))
    assert [bar.label for bar in made] == ["0–1", "2–4", "5+"]


def test_a_turn_without_an_answer_is_a_gap_in_the_curve_of_leaving():
    points = leaving_curve(leaving())
    assert points[3].simulated_y is None
    assert points[3].real_y == "80.00%"
    assert points[0].x == "0.00%"


def test_the_rows_name_what_leads_a_measure():
    made = rows(person())
    assert [row.name for row in made if row.leads][:3] == [
        "Held-out messages, nats a token",
        "Classifier’s AUC",
        "Fooling rate",
    ]


def test_the_page_loads_and_runs_nothing(tmp_path):
    policy = seen(tmp_path).policy()
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'none'"


def test_hostile_text_is_text(tmp_path):
    nasty = " ".join(MESSAGES)
    found = whole(
        person(CARD_NAMES[1], condition("lora", "weak", (nasty,))),
        warnings=(nasty,),
        study=CARD_NAMES[0],
    )
    made = seen(tmp_path, found)
    assert not {"img", "script", "iframe"} & {tag for tag, _ in made.elements}


def test_a_page_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        seen(tmp_path)


@pytest.fixture
def opened(browser, tmp_path):
    nasty = " ".join(MESSAGES)
    people = (
        person(CARD_NAMES[1], condition("raw", "weak", (nasty,)), absent(), condition()),
        person("oskar"),
    )
    losses = [{"step": n, "loss": 4 - n / 50, "validation": 4 - n / 80} for n in range(100)]
    read = training(tmp_path, *(json.dumps(line) for line in losses))
    path = write_validation_page(
        whole(*people, warnings=(nasty,)), tmp_path / "page.html", curves={"oskar": read}
    )
    page = watched(browser, path)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    yield page
    page.close()


@pytest.mark.browser
def test_in_a_browser_nothing_runs_or_loads(opened):
    assert opened.incidents == []
    assert opened.locator("img, script, main style").count() == 0


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(1360, 900), (390, 844)])
def test_in_a_browser_nothing_is_wider_than_the_window(opened, width, height):
    opened.set_viewport_size({"width": width, "height": height})
    assert opened.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.browser
def test_in_a_narrow_window_the_table_says_that_it_goes_on_and_keeps_its_first_column(opened):
    opened.set_viewport_size({"width": 400, "height": 844})
    table = opened.locator(".scroll:has(.measures)").last
    seen = table.evaluate(
        """box => {
          const left = name => box.querySelector(name).getBoundingClientRect().left;
          const before = left("tbody th");
          box.scrollLeft = 1000;
          const caption = box.querySelector("caption");
          return {
            moved: left("tbody th") - before,
            scrolled: box.scrollLeft > 0,
            hint: getComputedStyle(caption, "::after").content,
            captionEnds: caption.getBoundingClientRect().right,
            shaded: getComputedStyle(box).backgroundAttachment,
          };
        }"""
    )
    assert seen["scrolled"]
    assert seen["moved"] == 0
    assert "scroll sideways for all conditions" in seen["hint"]
    assert seen["captionEnds"] <= 400
    assert seen["shaded"] == "local, scroll"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser_text_stands_out(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    assert opened.evaluate(CONTRAST) == []


@pytest.mark.browser
def test_in_a_browser_every_bar_has_a_size(opened):
    sizes = opened.locator(".histogram rect").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert sizes
    assert all(width > 0 for width in sizes)
