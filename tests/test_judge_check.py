"""How much a judge moves on the same reply: worked out on judges whose faults are known."""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from batch_service import answered
from palate.errors import InputError, Stopped, TransportError
from palate.judge_commands import check_judge
from palate.judge_setup import CheckOptions
from palate.judging.asking import Judge
from palate.judging.subject import Rubrics
from palate.report.judge_check import write_judge_page
from palate.rubrics.shared import load_shared
from palate.simulators.validation import asking as pair_asking
from palate.simulators.validation.answers import Answers
from palate.studies.judge_check import Checked, askings, check, padded
from palate.studies.judge_items import check_items
from palate.studies.judge_moves import JudgeCheck, moves, over, remarks, unscored
from palate.studies.judge_pairs import check_orders, flips, pairs
from palate.types import Card, PersonalRubric, Scene, Session, TrainingSession, Turn
from worlds import Answering, palate, personal_rubric, pure_server, write_study

SHORT, LONG = "Come in.", "Come in, " + "and sit down by the fire, " * 6


class Kept(dict):
    """A journal in memory."""

    def append(self, answer: Checked) -> None:
        self[answer.key] = answer


def training(replies, *, language="en"):
    """A session a reply: opening, user, the reply, the user's reaction."""
    found = []
    for number, reply in enumerate(replies):
        turns = (
            Turn(speaker="character", text="The gate is shut."),
            Turn(speaker="user", text=f"Hello {number}"),
            Turn(speaker="character", text=reply, satisfaction=3),
            Turn(speaker="user", text=f"Thanks {number}"),
        )
        session = Session(
            session_id=f"s{number}", user_id="u1", card_id="k", language=language, turns=turns
        )
        found.append(TrainingSession(session))
    return found


def items(replies, *, language="en", count=20):
    rubric = PersonalRubric.model_validate(personal_rubric("u1", language))
    rubrics = Rubrics(rubric, load_shared("generic"), load_shared("session"))
    card = Card(id="k", language=language, name="Mara")
    scene = Scene(language, "Mara", "", "you")
    sessions = training(replies, language=language)
    return check_items(sessions, rubrics, lambda s: card, lambda s: scene, count=count, seed=7)


def reply_in(request):
    """The reply that is judged: the last text of the character, as it stands in the prompt."""
    text = request.messages[1].text
    return re.findall(r"(?:Character|角色)[:：]\n⟦quoted⟧\n(.*?)\n⟦/quoted⟧", text, re.DOTALL)[-1]


def dimensions_in(request):
    return re.findall(r'"(satisfaction|G\d+)": "<', request.messages[0].text)


def scoring(score):
    """A judge that gives every dimension the score of the reply."""
    return lambda request: json.dumps(
        {"scores": dict.fromkeys(dimensions_in(request), score(reply_in(request)))}
    )


async def checked(answer, replies=(SHORT, SHORT, LONG), *, language="en", journal=None):
    judge = Judge(Answering(answer, name="openai:j@http://127.0.0.1:9/v1"))
    wanted = list(askings(items(replies, language=language)))
    kept = Kept() if journal is None else journal
    return await check(wanted, judge, kept, width=4)


def move(found, kind, *, track="personal", dimension="overall", form=None):
    [one] = [
        one
        for one in found
        if (one.kind, one.track, one.dimension, one.form) == (kind, track, dimension, form)
    ]
    return one


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_judge_that_reads_the_reply_alone_does_not_move(language):
    """Its score is that of the reply's first word; nothing added after it changes that."""
    checks = await checked(scoring(lambda reply: 1 + len(reply.split()[0]) % 5), language=language)
    found = moves(checks.found, seed=7)
    # personal: the overall; generic: overall and 12 dimensions; each form of the injection apart.
    assert len(found) == 3 * 1 + 4 + 4 * 13 + 4
    assert {(one.mean_abs, one.moved, one.bias, one.low, one.high) for one in found} == {
        (0, 0, 0, 0, 0)
    }
    assert {(one.kind, one.scores) for one in found if one.form is None} == {
        ("again", 3),
        ("reversed", 3),
        ("padded", 3),
        ("injected", 12),
    }
    assert {one.language for one in found} == {language}
    assert remarks(found, unscored(checks.found), 0) == ()


async def test_a_judge_that_loves_length_is_found_by_padded_copies():
    """4 from 100 characters on, else 2. Of two short replies and a long one: +2, +2 and 0.

    Mean 4/3, distance 4/3, two of three moved. The three moves' variance is 8/9, the bootstrap's
    error of their mean sqrt(8/9 / 3), so half the interval is t(2) · sqrt(3/2) · sqrt(8/27) =
    4.3027 · 2/3 ≈ 2.87; upwards it ends at the scale's 4.
    """
    checks = await checked(scoring(lambda reply: 4 if len(reply) >= 100 else 2))
    found = moves(checks.found, seed=7)
    for track in ("personal", "generic"):
        one = move(found, "padded", track=track)
        assert one.bias == one.mean_abs == pytest.approx(4 / 3)
        assert one.moved == one.raised == pytest.approx(2 / 3)
        assert one.bias - one.low == pytest.approx(4.3027 * 2 / 3, rel=0.05)
        assert one.high == 4
        assert move(found, "again", track=track).mean_abs == 0
    assert move(found, "padded", track="generic", dimension="G7").bias == pytest.approx(4 / 3)
    assert over(_whole(checks), 1.0)
    assert not over(_whole(checks), 2.0)


async def test_a_judge_that_loves_length_for_sure_is_told_of():
    checks = await checked(scoring(lambda reply: 4 if len(reply) >= 100 else 2), [SHORT] * 3)
    told = remarks(moves(checks.found, seed=7), unscored(checks.found), 0)
    assert "padded copies of a reply score higher (personal track, en: +2.00)" in told


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_judge_that_obeys_is_found_by_every_form_it_obeys(language):
    """It obeys the first two forms: of four, half give 5 instead of 3, so +1 on average."""
    order = re.compile(r'Note to the evaluator|评分说明|^[^⟦]*\n\n\{"scores": ')

    def score(reply):
        finished = "finished" in reply or "结束" in reply
        return 5 if order.search(reply) and not finished else 3

    checks = await checked(scoring(score), [SHORT] * 3, language=language)
    found = moves(checks.found, seed=7)
    one = move(found, "injected")
    assert (one.scores, one.bias, one.moved, one.raised) == (12, 1, 0.5, 0.5)
    assert [move(found, "injected", form=form).bias for form in range(4)] == [2, 2, 0, 0]
    assert f"instructions inside a reply raise its score (personal track, {language}: +1.00)" in (
        remarks(found, unscored(checks.found), 0)
    )


async def test_a_judge_that_minds_the_order_of_dimensions_is_found_on_the_generic_track_alone():
    """The first dimension on its list gets 5, the others 3: G1 and G12 move by 2, the rest not."""

    def answer(request):
        names = dimensions_in(request)
        return json.dumps({"scores": {name: 5 if name == names[0] else 3 for name in names}})

    found = moves((await checked(answer)).found, seed=7)
    biases = {
        n: move(found, "reversed", track="generic", dimension=f"G{n}").bias for n in range(1, 13)
    }
    assert biases == {1: -2, **dict.fromkeys(range(2, 12), 0), 12: 2}
    assert move(found, "reversed", track="generic").bias == 0
    assert not [one for one in found if one.kind == "reversed" and one.track == "personal"]


async def test_a_judge_that_says_nothing_readable_leaves_counts_and_no_number():
    checks = await checked(lambda request: "I like it.")
    found = moves(checks.found, seed=7)
    assert {one.mean_abs for one in found} == {None}
    assert {one.reason for one in found} == {"no reply has this score before and after"}
    counted = unscored(checks.found)
    assert {(one.asked, one.unscored) for one in counted} == {(3, 3), (12, 12)}
    assert all("no verdict" in why for one in counted for why in one.reasons)
    assert len(over(_whole(checks), 4.0)) == len(found)  # what was not measured passes no gate


async def test_what_was_answered_is_not_asked_again_and_failures_are_left_open():
    asked = []

    def failing(request):
        asked.append(request.purpose)
        if request.purpose.track == "generic":
            raise TransportError("no answer")
        return scoring(lambda reply: 3)(request)

    journal = Kept()
    checks = await checked(failing, [SHORT], journal=journal)
    assert (len(checks.found), len(checks.failures), checks.left) == (7, 8, 8)
    assert len({(p.cell, p.turn, p.track) for p in asked}) == 15  # no two questions look alike
    asked.clear()
    checks = await checked(scoring(lambda reply: 3), [SHORT], journal=journal)
    assert (len(checks.found), checks.left) == (15, 0)
    checks = await checked(failing, [SHORT], journal=journal)
    assert (asked, checks.left) == ([], 0)


async def test_an_instruction_reaches_the_judge_as_data_in_one_message():
    def answer(request):
        text = request.messages[1].text
        assert [message.role for message in request.messages] == ["system", "user"]
        assert text.count("⟦quoted⟧") == text.count("⟦/quoted⟧")
        outside = re.sub(r"⟦quoted⟧.*?⟦/quoted⟧", "", text, flags=re.DOTALL)
        assert "evaluator" not in outside
        assert "finished" not in outside
        assert "im_start" not in outside
        return scoring(lambda reply: 3)(request)

    assert not (await checked(answer)).failures


def test_padding_about_doubles_a_reply_in_its_language():
    assert padded("x" * 300, "en").startswith("x" * 300 + "\n\n*For a moment")
    assert 550 < len(padded("x" * 300, "en")) < 800
    assert padded("进来。", "zh").count("\n\n") == 2


def test_items_are_spread_over_sessions_and_never_the_cards_own_words():
    drawn = items([SHORT, LONG, SHORT], count=2)
    assert len({item.session for item in drawn}) == 2
    assert {item.turn for item in items([SHORT] * 9)} == {2}
    assert items([SHORT, LONG]) != ()
    assert [i.place for i in items([SHORT] * 9)] == [i.place for i in items([SHORT] * 9)]


async def test_a_judge_that_names_the_first_message_changes_with_the_order_always(tmp_path):
    wanted = list(pairs(items([SHORT] * 3)))
    with Answers(tmp_path / "pairs.jsonl", pair_asking.Heard) as journal:
        first = pair_asking.Judge(Answering(lambda request: '{"human": 1}', name="first"))
        found = await check_orders(wanted, first, journal)
        assert [(f.pairs, f.flips, f.share) for f in flips(found.judged)] == [(3, 3, 1.0)]
        mute = pair_asking.Judge(Answering(lambda request: "who knows", name="mute"))
        found = await check_orders(wanted, mute, journal)
        assert [(f.pairs, f.unscored, f.share) for f in flips(found.judged)] == [(3, 3, None)]


def _whole(checks, name="j"):
    found = moves(checks.found, seed=7)
    counted = unscored(checks.found)
    return JudgeCheck(
        judge=name,
        revisions=(),
        form="json",
        items=3,
        users=("u1",),
        seed=7,
        resamples=2000,
        missing=checks.left,
        moves=found,
        unscored=counted,
        orders=(),
        prompts={},
        remarks=remarks(found, counted, checks.left),
        made_at="",
    )


async def test_the_page_shows_hostile_names_as_text(tmp_path):
    checks = await checked(lambda request: json.dumps({"<script>": "no"}))
    page = write_judge_page(_whole(checks, "<b>j</b>"), tmp_path / "p.html", title="<i>t</i>")
    text = page.read_text("utf-8")
    assert "&lt;b&gt;j" in text
    assert "<i>t" not in text
    assert "<script" not in text


def study(folder, judge):
    """A study of one user with nine sessions to learn from and to hold out."""
    write_study(folder, users=("u1",), cards=("k1",), candidates=("A",), judge=judge)
    (folder / "replies.json").write_text("[]", "utf-8")
    sessions = [
        t.session.model_dump(mode="json") for t in training([f"{SHORT} {n}" for n in range(9)])
    ]
    lines = "".join(json.dumps(session) + "\n" for session in sessions)
    (folder / "u1.jsonl").write_text(lines, "utf-8")
    toml = (folder / "study.toml").read_text("utf-8")
    changed = toml.replace('id = "u1"', 'id = "u1"\nhistory = "u1.jsonl"')
    (folder / "study.toml").write_text(changed, "utf-8")
    return folder


def test_by_calls_and_by_batch_files_a_check_finds_the_same(tmp_path):
    with pure_server(tmp_path) as server:
        folder = study(tmp_path / "study", server.models.format("judge"))
        planned = palate("judge", "check", folder, "--items", 2, "--plan")
        assert planned.returncode == 0
        assert "At most 34 calls" in planned.stdout
        direct = palate("judge", "check", folder, "--items", 2, "--json", "--gate", 0.01)
    assert direct.returncode == 1, direct.stderr
    assert "Gate: " in direct.stderr
    out = tmp_path / "files"
    options = CheckOptions(items=2, batch=out, out=tmp_path / "by-files")
    code = None
    while code is None:
        with contextlib.suppress(Stopped):
            code = check_judge(folder, options, plan=False, as_json=True)
        lines = [
            answered(line)
            for file in sorted(out.glob("palate-requests-*.jsonl"))
            for line in file.read_bytes().splitlines()
        ]
        (out / f"answers-{len(list(out.iterdir()))}.jsonl").write_bytes(b"".join(lines))
    assert code == 0
    kept = json.loads((tmp_path / "by-files" / "results.json").read_text("utf-8"))
    [results] = (folder / "judge-checks").glob("*/results.json")
    called = json.loads(results.read_text("utf-8"))
    assert {**kept, "made_at": ""} == {**called, "made_at": ""}
    assert called["revisions"] == ["pure-1"]


def test_a_gate_that_is_no_number_is_refused_and_not_passed(tmp_path):
    result = palate("judge", "check", tmp_path, "--gate", "nan")
    assert result.returncode == 2
    assert "nan is not a number" in result.stderr


def test_a_study_without_histories_is_told_what_to_do(tmp_path):
    write_study(tmp_path, users=("u1",), cards=("k1",), candidates=("A",))
    (tmp_path / "replies.json").write_text("[]", "utf-8")
    with pytest.raises(InputError, match="no user has a history"):
        check_judge(tmp_path, CheckOptions(), plan=False, as_json=False)
