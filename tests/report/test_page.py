"""The page as a file: what a parser finds in it."""

import base64
import dataclasses
import hashlib
import json

import pytest
from hostile import CARD_NAMES, ERRORS, EVERYTHING, FILE_NAMES, MESSAGES, MODEL_IDS, REASONS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading import Page
from report_world import PLAIN, Words, report_data

from palate.errors import InputError, StoreError
from palate.report.data import (
    CandidateSetting,
    CardLabel,
    CellRecord,
    Failure,
    ModelUse,
    ReportData,
    UserSetting,
)
from palate.report.page import write_report
from palate.types import Cell, Judgement, Message, Trajectory

EVERY_PLACE = Words(
    message="\n".join(MESSAGES),
    reason="\n".join(REASONS),
    error="\n".join(ERRORS),
    card_name="\n".join(CARD_NAMES),
    file=FILE_NAMES[0],
    model=MODEL_IDS[0],
    study=CARD_NAMES[3],
    candidate=CARD_NAMES[1],
    raw=MESSAGES[0],
)
A_NUMBER = {"mean": 3.0, "low": 2.5, "high": 3.5}


def small(text: str) -> ReportData:
    """One cell, with `text` wherever a stranger can write."""
    cell = Cell(text, text, text, 1)
    said = (
        Message(speaker="user", text=text),
        Message(speaker="character", text=text, flags=(text,)),
    )
    verdict = Judgement(
        cell=cell.key,
        track="personal",
        reply=0,
        trajectory="0" * 64,
        rubric=text,
        prompt=text,
        judge=text,
        judge_revision=text,
        reaction_shown=True,
        scores={text: 3.0},
        overall=3.0,
        reason=text,
        raw=text,
        ignored=(text,),
    )
    gap = verdict.model_copy(update={"overall": None, "unscored": text, "reply": 1})
    failure = Failure(cell=cell.key, role="judge", error=text)
    record = CellRecord(
        cell,
        Trajectory(cell=cell, opening=text, messages=said, ended_by="quit"),
        judgements=(verdict, gap),
        failures=(failure,),
    )
    scores = {
        "name": text,
        "personal": {text: A_NUMBER},
        "u_score": {"mean": 60, "low": 50, "high": 70},
        "reasons": {"generic": text},
        "marks": [{"kind": text, "text": text}],
    }
    return ReportData(
        study_name=text,
        results={
            "candidates": [scores],
            "winners": {text: [text]},
            "mismatches": [
                {"candidate": text, "column_a": text, "rank_a": 1, "column_b": text, "rank_b": 2}
            ],
            "rank_stability": {text: {"spearman": None, "reason": text}},
        },
        cells=[record],
        cards=(CardLabel(id=text, name=text, file=text),),
        users=(UserSetting(user_id=text, simulator="raw", model=text),),
        candidates=(CandidateSetting(name=text, model=text, prompt=text, message_form=text),),
        models=(ModelUse(role="judge", model=text, revisions=(text, text + "2")),),
        repetitions=1,
        depth_limit=1,
        sampled_replies=1,
        seed=0,
        warnings=(text,),
        manifest={text: text},
        finished=text,
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Page(write_report(report_data(), tmp_path_factory.mktemp("plain") / "report.html"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    return Page(
        write_report(report_data(EVERY_PLACE), tmp_path_factory.mktemp("hostile") / "report.html")
    )


def test_the_policy_lets_nothing_run_or_load_but_the_script_and_style_that_are_there(plain):
    def source(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    (script,), (style,) = plain.code, plain.styles
    assert plain.policy() == {
        "default-src": "'none'",
        "script-src": source(script),
        "style-src": source(style),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_the_policy_stands_before_anything_that_it_governs(plain):
    tags = [tag for tag, _ in plain.elements]
    assert tags[:4] == ["html", "head", "meta", "meta"]


@pytest.mark.parametrize("which", ["plain", "hostile"])
def test_nothing_points_outside_the_file(which, request):
    page = request.getfixturevalue(which)
    assert not {"img", "link", "iframe", "object", "embed", "base", "audio", "video"} & {
        tag for tag, _ in page.elements
    }
    names = {name for _, name, _ in page.attributes}
    assert not {"src", "srcset", "action", "formaction", "data", "style", "xlink:href"} & names
    assert not [name for name in names if name.startswith("on")]
    assert all(value.startswith("#") for _, name, value in page.attributes if name == "href")
    assert "url(" not in page.styles[0]
    assert "@import" not in page.styles[0]


def test_hostile_text_adds_no_element_attribute_or_comment(plain, hostile):
    assert hostile.elements == plain.elements
    assert hostile.comments == plain.comments == []


def test_the_script_turns_no_text_into_markup(plain):
    (script,) = plain.code
    for sink in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "DOMParser",
    ):
        assert sink not in script


def test_a_reader_without_a_script_sees_names_files_models_and_errors_exactly(hostile):
    for text in (
        EVERY_PLACE.card_name,
        EVERY_PLACE.file,
        EVERY_PLACE.model,
        EVERY_PLACE.error,
        EVERY_PLACE.study,
        EVERY_PLACE.candidate,
    ):
        assert text in hostile.text


def test_conversations_parse_back_to_the_very_same_values(hostile):
    found = hostile.block("cell-0")
    assert found["messages"][1]["text"].startswith("\n".join(MESSAGES))
    assert found["judgements"][0]["reason"] == "\n".join(REASONS)
    assert found["judgements"][0]["raw"] == MESSAGES[0]
    assert found["judgements"][0]["scores"] == json.loads(
        json.dumps(found["judgements"][0]["scores"])
    )
    failed = [line["number"] for line in numbered(hostile) if line["failures"]]
    assert hostile.block(f"cell-{failed[0]}")["failures"][0]["error"] == "\n".join(ERRORS)


def numbered(page):
    return [{**line, "number": n} for n, line in enumerate(page.block("index")["cells"])]


def test_every_cell_is_in_the_index_with_its_scores(plain):
    lines = plain.block("index")["cells"]
    assert len(lines) == 36
    first = lines[0]
    verdicts = plain.block("cell-0")["judgements"]
    personal = [j["overall"] for j in verdicts if j["track"] == "personal"]
    assert first["key"] == "ada/harbour/captain/1"
    assert first["personal"] == pytest.approx(sum(personal) / 4, abs=1e-4)
    assert (first["end"], first["replies"], first["unscored"]) == ("quit", 6, 0)


def test_a_heat_map_number_leads_to_the_cells_behind_it(plain):
    links = [value for tag, name, value in plain.attributes if (tag, name) == ("a", "href")]
    assert "#cells?user=ada&candidate=captain" in links


def test_names_in_links_are_percent_encoded(tmp_path):
    page = Page(write_report(small("a&b=c #?"), tmp_path / "report.html"))
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert "#cells?user=a%26b%3Dc+%23%3F&candidate=a%26b%3Dc+%23%3F" in links


@pytest.mark.parametrize("text", EVERYTHING)
def test_each_hostile_string_is_harmless_in_every_place(text, tmp_path):
    page = Page(write_report(small(text), tmp_path / "report.html"))
    assert page.elements == Page(write_report(small("x"), tmp_path / "plain.html")).elements
    assert page.block("cell-0")["messages"][0]["text"] == text
    assert text.replace("\0", "␀") in page.text


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(codec=None), min_size=1, max_size=40))
def test_any_text_is_harmless_and_comes_back_as_it_was(text, tmp_path):
    page = Page(write_report(small(text), tmp_path / "report.html"))
    assert len(page.code) == 1
    found = page.block("cell-0")
    assert found["opening"] == text
    assert found["judgements"][0]["raw"] == text
    assert found["judgements"][1]["unscored"] == text


def test_a_lone_surrogate_is_shown_by_its_number(tmp_path):
    page = Page(write_report(small("\ud83d"), tmp_path / "report.html"))
    assert "\\ud83d" in page.text
    assert page.block("cell-0")["opening"] == "\ud83d"


def test_cells_are_read_once_and_may_be_a_generator(tmp_path):
    data = report_data()
    once = dataclasses.replace(data, cells=(record for record in list(data.cells)))
    assert len(Page(write_report(once, tmp_path / "report.html")).block("index")["cells"]) == 36


def test_the_contract_alone_is_enough_for_a_page(tmp_path):
    """Only the keys of the contract, with nulls where nothing was measured."""
    contract = {
        "candidates": [
            {
                "name": "captain",
                "personal": {"ada": A_NUMBER | {"replies": 8, "trajectories": 2}},
                "p_bar": A_NUMBER,
                "generic": None,
                "session": A_NUMBER,
                "u_score": {"mean": 60.0, "low": 50.0, "high": 70.0},
                "g_score": None,
                "overall": None,
                "coverage": {
                    "scored": 8,
                    "replies": 8,
                    "sessions_scored": 2,
                    "sessions_planned": 2,
                },
            }
        ],
        "winners": {"ada": ["captain"]},
        "mismatches": [],
        "rank_stability": {"u_score": {"spearman": None, "reason": "fewer than three candidates"}},
    }
    data = dataclasses.replace(report_data(PLAIN), results=contract)
    text = Page(write_report(data, tmp_path / "report.html")).text
    assert "60.0" in text
    assert "50.0 – 70.0" in text
    assert "fewer than three candidates" in text


def test_results_of_another_shape_are_refused_in_one_sentence(tmp_path):
    data = dataclasses.replace(report_data(), results={"candidates": [{"nam": "x"}]})
    with pytest.raises(InputError, match=r"candidates\.0\.name"):
        write_report(data, tmp_path / "report.html")


def test_a_report_that_fails_leaves_the_old_one_and_no_rest(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("the old one")

    def breaks():
        yield next(iter(report_data().cells))
        raise InputError("the journal is damaged")

    with pytest.raises(InputError):
        write_report(dataclasses.replace(report_data(), cells=breaks()), path)
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_report(report_data(), tmp_path / "file" / "report.html")


def test_the_same_run_gives_the_same_bytes(tmp_path):
    first = write_report(report_data(), tmp_path / "a.html").read_bytes()
    assert write_report(report_data(), tmp_path / "b.html").read_bytes() == first
