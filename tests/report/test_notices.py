"""What stands beside the numbers, so that nobody reads more into them than there is."""

import dataclasses

import pytest
from reading import Page
from report_world import GENERIC, Words, cells, record, report_data

from palate.report.data import CandidateSetting, CellRecord, ModelUse
from palate.report.notices import (
    EMBEDDED_JUDGE,
    EMBEDDED_PLAYER,
    headline,
    no_reply_sentence,
    notices,
)
from palate.report.page import write_report
from palate.report.results import read_results
from palate.report.tally import Copy, Tally
from palate.types import Cell, Message, Trajectory


def tally_of(records):
    tally = Tally()
    for found in records:
        tally.add(found)
    return tally


def sentences(data):
    records = list(data.cells)
    found = notices(data, read_results(data.results), tally_of(records))
    return [notice.text for notice in found]


def test_an_embedded_judge_is_announced_above_everything():
    data = report_data(judge="local:smollm2-135m")
    found = notices(data, read_results(data.results), tally_of(data.cells))
    assert found[0].level == "banner"
    assert found[0].text == EMBEDDED_JUDGE
    assert "135M judge has no judgement" in EMBEDDED_JUDGE


def test_an_embedded_player_under_another_judge_is_announced_too():
    models = (
        ModelUse(role="candidate", model="local:smollm2-135m"),
        ModelUse(role="judge", model="openai:gpt-5.5"),
    )
    assert sentences(dataclasses.replace(report_data(), models=models))[0] == EMBEDDED_PLAYER


def test_models_of_somebody_else_bring_no_banner():
    data = report_data()
    found = notices(data, read_results(data.results), tally_of(data.cells))
    assert "banner" not in {notice.level for notice in found}


def test_what_was_run_is_said_in_a_sentence():
    data = report_data()
    assert headline(data, tally_of(data.cells)) == (
        "Simulated users chatted freely with the candidates: 2 users × 3 cards × 3 candidates × "
        "2 repetitions = 36 conversations of at most 20 user turns; 35 ended, 1 still open."
    )


def test_sessions_without_a_reply_are_counted():
    """Of 35 that ended, the blocked one has no reply."""
    assert no_reply_sentence(tally_of(cells())) == "1 of 35 sessions ended before any reply."


def test_a_provider_block_is_a_warning_and_a_count():
    assert (
        "The provider of rambler blocked a reply and so ended 1 conversation; a block has no score."
        in sentences(report_data())
    )
    assert tally_of(cells()).ended_by("rambler", "candidate_blocked") == 1


def test_how_sessions_ended_is_counted_per_user_and_candidate():
    ends = tally_of(cells()).ends
    assert ends["ben", "rambler"] == {"quit": 4, "candidate_blocked": 1, "open": 1}
    assert ends["ada", "captain"] == {"quit": 6}


def test_unscored_verdicts_are_counted_with_their_reason():
    """terse on the archive card: 2 users × 2 repetitions."""
    tally = tally_of(cells())
    assert tally.gaps_of("terse", "session") == (("the verdict is not JSON", 4),)
    assert tally.verdicts["terse", "session"] == 12
    assert tally.gaps_of("terse", "generic") == ()


def test_flags_are_counted_beside_how_often_they_could_have_been_set():
    """rambler: 10 whole conversations of 6 replies and the open one of 1."""
    rows = {tuple(flag): (times, of) for flag, times, of in tally_of(cells()).flag_rows()}
    assert rows["candidate", "rambler", "refusal_in_words"] == (1, 61)
    assert rows["candidate", "rambler", "cut_at_the_token_limit"] == (1, 61)
    assert rows["simulator", "ben", "repetition"][0] == 1


def chat(repetition, text, *, said=True):
    cell = Cell("ada", "harbour", "captain", repetition)
    messages = (
        (Message(speaker="user", text="Hm."), Message(speaker="character", text=text))
        if said
        else ()
    )
    return CellRecord(cell, Trajectory(cell=cell, opening="", messages=messages, ended_by="quit"))


def test_repetitions_equal_byte_for_byte_are_found():
    tally = tally_of([chat(1, "Aye."), chat(2, "Aye."), chat(3, "No.")])
    assert tally.copies({"captain": 0.8}) == (Copy("ada", "harbour", "captain", (1, 2)),)
    assert tally.copies({"captain": None}) == (Copy("ada", "harbour", "captain", (1, 2)),)


def test_copies_are_expected_at_temperature_zero():
    assert tally_of([chat(1, "Aye."), chat(2, "Aye.")]).copies({"captain": 0.0}) == ()


def test_two_empty_conversations_are_no_copies():
    assert (
        tally_of([chat(1, "", said=False), chat(2, "", said=False)]).copies({"captain": 0.8}) == ()
    )


def test_copies_are_reported_to_the_reader():
    data = report_data()
    (told,) = [
        text
        for text in sentences(dataclasses.replace(data, cells=[chat(1, "Aye."), chat(2, "Aye.")]))
        if "byte for byte" in text
    ]
    assert told.startswith("Repetitions 1 and 2 of ada with captain on harbour are equal")


@pytest.mark.parametrize(("temperature", "warned"), [(None, False), (0.8, True)])
def test_a_script_may_repeat_itself_unless_it_was_asked_to_vary(temperature, warned):
    captain = CandidateSetting(name="captain", model="scripted:x.json", temperature=temperature)
    data = dataclasses.replace(
        report_data(), candidates=(captain,), cells=[chat(1, "Aye."), chat(2, "Aye.")]
    )
    assert any("byte for byte" in text for text in sentences(data)) is warned


def test_many_copies_are_named_in_part_and_counted():
    data = report_data()
    same = [
        dataclasses.replace(
            chat(n, "Aye."),
            cell=Cell("ada", f"card-{pair}", "captain", n),
        )
        for pair in range(8)
        for n in (1, 2)
    ]
    told = [t for t in sentences(dataclasses.replace(data, cells=same)) if "byte for byte" in t]
    assert len(told) == 6
    assert told[-1] == "Repetitions are equal byte for byte in 3 more cells."


def test_a_judge_that_changed_during_the_run_is_reported():
    models = (
        ModelUse(role="judge", model="openai:gpt-5.5", revisions=("2026-03-01", "2026-03-09")),
    )
    assert (
        "The judge openai:gpt-5.5 was served by 2 revisions during the run, so its scores are not "
        "all made alike." in sentences(dataclasses.replace(report_data(), models=models))
    )


def test_low_coverage_and_few_cards_are_said():
    found = sentences(report_data())
    assert "8 of 12 sessions of terse are scored: do not rank it by these numbers." in found
    assert [text for text in found if text.startswith("Few cards: 3 cards on the panel.")]


def test_ten_thousand_failures_are_counted_but_not_all_listed():
    base = list(cells())[-1]
    failing = next(found for found in cells() if found.failures)
    many = CellRecord(base.cell, base.trajectory, failures=failing.failures * 10_000)
    tally = tally_of([many])
    assert tally.failure_count == 10_000
    assert len(tally.failures) == 300


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    data = dataclasses.replace(
        report_data(),
        candidates=(
            CandidateSetting(
                name="captain", model="m", temperature=0.8, message_form="one user message"
            ),
        ),
    )
    return Page(write_report(data, tmp_path_factory.mktemp("page") / "report.html")).text


@pytest.mark.parametrize(
    "said",
    [
        "indices lie in 20..100",
        "display only",
        "1 of 35 sessions ended before any reply.",
        "one user message",
        "gpt-5.5-2026-03-01",
        "not said by the server",
        "0f0f0f0f",
        "1.23 USD",
        "HTTP 503 from http://127.0.0.1:8000/v1 after 5 attempts",
        "not told apart",
    ],
)
def test_the_page_says_it(text, said):
    assert said in text


def test_an_unknown_price_is_not_a_number(text):
    assert "n/a: the price of the model is not known." in text
    assert "0.00 USD" not in text


def test_all_23_dimensions_are_named_and_the_two_that_need_the_user_are_marked(text):
    for dimension in GENERIC.dimensions:
        assert dimension.label["en"] in text
    assert "S3 and S9" in text
    assert text.count("◇") >= 5


def test_a_judge_reason_of_thousands_of_kinds_does_not_flood_the_page(tmp_path):
    records = [record(Cell("ada", "harbour", "captain", n), Words(), 2) for n in range(1, 31)]
    odd = [
        dataclasses.replace(
            found,
            judgements=(
                found.judgements[0].model_copy(
                    update={"overall": None, "scores": {}, "unscored": f"odd reason {n}"}
                ),
            ),
        )
        for n, found in enumerate(records)
    ]
    data = dataclasses.replace(report_data(), cells=odd)
    page = Page(write_report(data, tmp_path / "report.html"))
    assert "24 other reasons" in page.text
