"""What each side of a real study is shown: the simulator, the candidate, the judge."""

from __future__ import annotations

import json
import re

import pytest

from palate.judging.tracks import judge, wanted
from palate.models.client import Completion
from palate.prepare import prepare
from palate.roleplay import play
from palate.seats import Seats
from worlds import card, write_study

MODEL = "openai:m@http://127.0.0.1:9/v1"


class Recording:
    """Plays every role and keeps what it was asked; the user leaves at the third turn."""

    reads_digits = True
    enforces_schema = False

    def __init__(self, name, opened, requests):
        self.name, self.opened, self.requests = name, opened, requests

    async def complete(self, request):
        self.requests.append(request)
        match request.purpose.role:
            case "simulator":
                return Completion(
                    ("我想进去。", "为什么？", "再见。[QUIT]")[request.purpose.turn], "ok"
                )
            case "candidate":
                return Completion(f"不行，第{request.purpose.turn}次。", "ok")
        return Completion("", "refused")

    async def close(self):
        pass


class Pool:
    """Opens recording models, and keeps how each was opened."""

    def __init__(self):
        self.requests = []
        self.opened = []

    def open(self, spec, **details):
        self.opened.append((spec, details))
        return Recording(spec, details, self.requests)

    def width(self):
        return 1


async def asked(folder, run_id="run-1", cell=0):
    """Every request of one cell, by role, in order."""
    prepared = prepare(folder)
    pool = Pool()
    seats = Seats(prepared, pool, run_id=run_id)
    played = list(prepared.cells())[cell]
    trajectory = await play(seats.table(played), lambda step: None)
    for item in wanted(trajectory, count=2, seed=7):
        await judge(item, seats.subject(trajectory), seats.judge)
    by_role = {role: [] for role in ("simulator", "candidate", "judge")}
    for request in pool.requests:
        by_role[request.purpose.role].append(request)
    return by_role


def texts(requests):
    return "\n".join(message.text for request in requests for message in request.messages)


def change(folder, *pairs, file="study.toml"):
    text = (folder / file).read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    (folder / file).write_text(text, "utf-8")


def change_card(folder, language="en", **fields):
    whole = card("k1", language=language)
    whole["data"].update(fields)
    (folder / "cards" / "k1.json").write_text(json.dumps(whole), "utf-8")


@pytest.fixture
def study(tmp_path):
    folder = write_study(tmp_path, users=("u1",), cards=("k1",), candidates=("A",), model=MODEL)
    change(folder, ("depth_limit = 2", "depth_limit = 5"))
    change_card(
        folder,
        description="PERSONA of {{char}}, who calls {{user}} a thief.",
        personality="MANNER",
        scenario="SCENE: {{user}} wants in.",
        mes_example="EXAMPLE",
        system_prompt="{{original}} SYSTEM",
        post_history_instructions="AFTERWARDS",
        character_book={"entries": [{"content": "LORE"}]},
    )
    return folder


async def test_a_simulator_sees_name_scene_opening_and_messages_and_nothing_else_of_the_card(study):
    by_role = await asked(study)
    shown = texts(by_role["simulator"])
    assert "SCENE: " in shown
    assert "k1" in shown
    for hidden in ("PERSONA", "MANNER", "EXAMPLE", "SYSTEM", "AFTERWARDS", "LORE"):
        assert hidden not in shown
    assert [m.role for m in by_role["simulator"][2].messages] == [
        *("system", "user", "assistant", "user", "assistant", "user")
    ]


async def test_a_candidate_sees_its_card_and_never_how_a_user_leaves(study):
    by_role = await asked(study)
    first, second = by_role["candidate"]
    for shown in ("PERSONA of k1", "MANNER", "SCENE: ", "EXAMPLE", "SYSTEM"):
        assert shown in first.messages[0].text
    assert first.messages[-1] == ("system", "AFTERWARDS")
    assert [m.role for m in second.messages] == [
        *("system", "assistant", "user", "assistant", "user", "system")
    ]
    assert second.messages[:3] == first.messages[:3]  # a prefix that a cache can use


async def test_the_token_is_shown_to_the_simulator_alone(study):
    by_role = await asked(study)
    assert "[QUIT]" in texts(by_role["simulator"])
    assert "QUIT" not in texts(by_role["candidate"]) + texts(by_role["judge"])


async def test_the_personal_judge_knows_of_the_card_what_the_user_knew(study):
    for request in (await asked(study))["judge"]:
        shown = request.messages[1].text
        assert "SCENE: " in shown
        assert ("PERSONA" in shown) == (request.purpose.track != "personal")
        for hidden in ("SYSTEM", "AFTERWARDS", "LORE", "{{user}}", "{{char}}"):
            assert hidden not in shown


async def test_all_that_is_shown_of_a_user_is_the_name_of_the_study(study):
    change(study, ("u1 by name", "Robin"))
    by_role = await asked(study)
    for role in ("simulator", "candidate", "judge"):
        assert "Robin wants in." in texts(by_role[role])
        assert "u1" not in texts(by_role[role]).replace("u1 likes", "")


async def test_a_judge_is_cold_and_has_room_for_its_verdict_unless_the_study_says_otherwise(study):
    sampling = (await asked(study))["judge"][0].sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.0, 2000)
    change(study, ('form = "json"', 'form = "json"\ntemperature = 0.5\nmax_tokens = 77'))
    sampling = (await asked(study))["judge"][0].sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.5, 77)


async def test_seeds_go_to_our_own_server_alone(study):
    """Vendors differ in whether a seed is taken, ignored or refused."""
    by_role = await asked(study)
    assert {r.sampling.seed for role in by_role for r in by_role[role]} == {None}
    change(study, (MODEL, "local:smollm2-135m"))
    by_role = await asked(study)
    seeds = [r.sampling.seed for role in ("simulator", "candidate") for r in by_role[role]]
    assert None not in seeds
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(
    ("more", "header", "field"),
    [
        ("", "X-Session-Id", None),
        ('\nsession_header = "X-Chat"', "X-Chat", None),
        ('\nsession_field = "chat_id"', None, "chat_id"),
    ],
)
async def test_a_service_of_its_own_gets_the_new_message_and_a_session_id(
    study, more, header, field
):
    change(study, ('name = "A"', f'name = "A"\nprompt = "none"{more}'))
    first, second = (await asked(study))["candidate"]
    assert (first.messages, second.messages) == (
        (("user", "我想进去。"),),
        (("user", "为什么？"),),
    )
    assert first.session == second.session is not None
    pool = Pool()
    Seats(prepare(study), pool, run_id="r")
    details = next(d for _, d in pool.opened if "session_header" in d)
    assert (details["session_header"], details["session_field"]) == (header, field)


async def test_a_session_id_is_one_cells_of_one_run_and_tells_nothing_of_either(study):
    change(study, ('name = "A"', 'name = "A"\nprompt = "none"'))
    ids = [
        (await asked(study, run_id, cell))["candidate"][0].session
        for run_id, cell in (("run-1", 0), ("run-1", 1), ("run-2", 0))
    ]
    assert len(set(ids)) == 3
    assert ids[0] == (await asked(study, "run-1", 0))["candidate"][0].session
    assert all(re.fullmatch("[0-9a-f]{32}", session) for session in ids)


async def test_other_candidates_get_no_session_id(study):
    assert {r.session for r in (await asked(study))["candidate"]} == {None}


async def test_a_candidates_own_prompt_file_takes_the_place_of_ours(study):
    (study / "mine.md").write_text("OWN: <<name>> at <<scenario>> with <<user>>", "utf-8")
    change(study, ('name = "A"', 'name = "A"\nprompt = "mine.md"'))
    first = (await asked(study))["candidate"][0].messages[0]
    assert first.text.startswith("OWN: k1 at SCENE: ")
    assert "PERSONA" not in first.text


@pytest.mark.parametrize("kind", ["raw", "prompted"])
@pytest.mark.parametrize("form", ["json", "digits"])
async def test_on_a_chinese_card_all_that_we_say_is_chinese(study, kind, form):
    """Left in Latin letters are the token, marks, ids of dimensions, keys of the form, and AI."""
    change(study, ('kind = "prompted"', f'kind = "{kind}"'), ('form = "json"', f'form = "{form}"'))
    change_card(
        study,
        "zh",
        name="守门人",
        description="守着城门。",
        personality="冷淡",
        scenario="黄昏的城门；{{user}}想进去。",
        first_mes="门关着。",
        mes_example="不开。",
    )
    change(study, ("u1 by name", "小林"))
    rules = '[endpoints."http://127.0.0.1:9/v1"]\ndigits = "logprobs"\n'
    (study / "study.toml").write_text((study / "study.toml").read_text("utf-8") + rules, "utf-8")
    by_role = await asked(study)
    ours = re.sub(
        r"⟦quoted⟧\nu1 likes.*?⟦/quoted⟧",
        "",
        "\n".join(map(texts, by_role.values())),
        flags=re.DOTALL,
    )
    words = set(re.findall(r"[A-Za-z_]{2,}", ours))
    keys = {"reason", "scores", "satisfaction", "flags"}
    names = {"refusal_in_words", "breaks_fiction", "unsafe"}
    assert words <= {"QUIT", "quoted", "AI", "JSON"} | keys | names
