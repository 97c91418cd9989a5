"""`palate rubric induce`: forecast, answers kept, resumed, and a rubric that is never lost."""

import asyncio
import json

import pytest
from aiohttp import web
from click.testing import CliRunner

from lexical import answer
from models.loopback import Loopback, said
from palate.cli import palate
from palate.demo import write_sample
from palate.errors import InputError, ModelError, PalateError, Stopped
from palate.induce_commands import induce_rubric
from palate.rubric_commands import freeze_rubric, show_rubric, verify_rubrics
from palate.rubrics.freeze import as_json, freeze, read
from planted import history
from worlds import personal_rubric, write_study


async def lexical(request):
    """The stand-in over HTTP."""
    messages = (await request.json())["messages"]
    return web.json_response(said(answer(messages[0]["content"], messages[-1]["content"])))


def study(folder, url, *, sessions=16):
    """A study of ada, judged by the stand-in, without a rubric."""
    write_study(
        folder,
        users=("ada",),
        cards=("k1",),
        candidates=("A",),
        judge=f"openai:lexical@{url}",
        extra=f'[endpoints."{url}"]\nmax_concurrency = 8\nmax_attempts = 1\n',
    )
    (folder / "replies.json").write_text("[]", "utf-8")
    (folder / "rubrics" / "ada.json").unlink()
    lines = [session.model_dump_json() for session in history("ada", sessions=sessions)]
    (folder / "ada.jsonl").write_text("\n".join(lines), "utf-8")
    toml = (folder / "study.toml").read_text("utf-8")
    changed = toml.replace('id = "ada"', 'id = "ada"\nhistory = "ada.jsonl"')
    (folder / "study.toml").write_text(changed, "utf-8")
    return folder


async def induced(folder, **more):
    options = {"user": "ada", "model": None, "seed": None, "force": False, **more}
    await asyncio.to_thread(induce_rubric, folder, **options)


async def test_a_rubric_is_induced_from_training_sessions_and_verifies(tmp_path, capsys):
    async with Loopback([lexical]) as server:
        folder = study(tmp_path, server.url)
        await induced(folder)
    rubric = read(folder / "rubrics" / "ada.json")
    split = json.loads((folder / "splits" / "ada.json").read_text("utf-8"))
    assert rubric.provenance.training_sessions == split["training"]
    assert rubric.provenance.model == f"openai:lexical@{server.url}"
    verify_rubrics(folder)
    show_rubric(folder / "rubrics" / "ada.json")
    printed = capsys.readouterr()
    assert "calls to openai:lexical" in printed.err
    assert "no price for it" in printed.err
    assert "induced by openai:lexical" in printed.out
    record = json.loads((folder / "rubrics" / "ada.induction.json").read_text("utf-8"))
    assert record["rubric"] == rubric.sha256
    assert record["calls"] == len(server.bodies)
    assert {"kept", "withdrawn"} <= {rule["outcome"] for rule in record["rules"]}
    assert not (folder / "rubrics" / ".induction" / "ada" / "answers.jsonl").exists()


async def test_interrupted_it_asks_on_where_it_was(tmp_path):
    async def refuse(request):
        return web.json_response({"error": {"message": "no"}}, status=400)

    async with Loopback([*[lexical] * 20, refuse]) as server:
        folder = study(tmp_path, server.url)
        with pytest.raises(ModelError):
            await induced(folder)
        assert sorted(p.name for p in (folder / "rubrics").iterdir()) == [".induction"]
        answered = 20
        server.answers, asked_before = [lexical], len(server.bodies)
        await induced(folder)
        whole = json.loads((folder / "rubrics" / "ada.induction.json").read_text("utf-8"))
        assert len(server.bodies) - asked_before == whole["calls"] - answered
    assert read(folder / "rubrics" / "ada.json").sha256 == whole["rubric"]


async def test_a_rubric_that_is_there_is_replaced_by_force_alone_and_then_asked_anew(tmp_path):
    async with Loopback([lexical]) as server:
        folder = study(tmp_path, server.url)
        await induced(folder)
        first = len(server.bodies)
        with pytest.raises(InputError, match=r"ada\.json is there already; --force replaces it"):
            await induced(folder)
        assert len(server.bodies) == first
        await induced(folder, force=True)
        assert len(server.bodies) == 2 * first
    names = sorted(p.name for p in (folder / "rubrics").iterdir() if p.name[0] != ".")
    assert names == ["ada.induction.json", "ada.json"]


async def test_a_rubric_by_hand_is_kept_beside_the_new_one(tmp_path, capsys):
    by_hand = as_json(freeze(personal_rubric("ada")))
    async with Loopback([lexical]) as server:
        folder = study(tmp_path, server.url)
        (folder / "rubrics" / "ada.json").write_text(by_hand, "utf-8")
        await induced(folder, force=True)
    assert read(folder / "rubrics" / "ada.json").provenance.author == "model"
    (kept,) = [p for p in (folder / "rubrics").glob("ada.*.json") if "induction" not in p.name]
    assert kept.read_text("utf-8") == by_hand
    assert "was not made by a model; it is kept as" in capsys.readouterr().out


async def test_too_few_ratings_are_refused_before_a_call_and_without_a_file(tmp_path):
    async with Loopback([lexical]) as server:
        folder = study(tmp_path, server.url, sessions=3)
        with pytest.raises(InputError, match="no rubric can be induced for ada: 2 of 2 training"):
            await induced(folder)
        assert server.bodies == []
    assert list((folder / "rubrics").iterdir()) == []


async def test_a_refusal_after_testing_leaves_no_rubric(tmp_path):
    async def constant(request):
        return web.json_response(said('{"rewards": [], "penalties": [], "reactions": [{}]}'))

    async with Loopback([constant]) as server:
        folder = study(tmp_path, server.url)
        with pytest.raises(InputError, match="no reward and no penalty held"):
            await induced(folder)
    assert [p.name for p in (folder / "rubrics").iterdir()] == [".induction"]


async def test_an_edited_rubric_is_a_new_one_that_says_where_it_comes_from(tmp_path, capsys):
    async with Loopback([lexical]) as server:
        folder = study(tmp_path, server.url)
        await induced(folder)
    path = folder / "rubrics" / "ada.json"
    before = read(path)
    content = json.loads(path.read_text("utf-8"))
    content["summary"] = "Wants warmth, and no blades."
    draft = folder / "edited.json"
    draft.write_text(json.dumps(content), "utf-8")
    freeze_rubric(folder, user="ada", draft=draft, force=True)
    after = read(path)
    assert after.sha256 != before.sha256
    assert after.provenance == before.provenance.model_copy(update={"author": "hand"})
    show_rubric(path)
    assert "edited by hand, induced by openai:lexical" in capsys.readouterr().out
    verify_rubrics(folder)


def test_the_command_explains_itself():
    shown = CliRunner().invoke(palate, ["rubric", "induce", "--help"])
    assert shown.exit_code == 0
    assert "Held-out sessions are not read" in " ".join(shown.output.split())


async def test_a_server_that_is_away_is_work_left(tmp_path):
    async with Loopback([lexical]) as server:
        folder = study(tmp_path, server.url)
    with pytest.raises(Stopped, match="the same command takes the induction up again"):
        await induced(folder)


@pytest.mark.local
@pytest.mark.slow
def test_the_embedded_model_ends_in_a_rubric_that_verifies_or_in_a_refusal(tmp_path):
    """A 135M model is not expected to find what a person likes; it must not make it up either."""
    folder = tmp_path / "demo"
    write_sample(folder, "demo")
    before = (folder / "rubrics" / "synthetic-ines.json").read_bytes()
    try:
        induce_rubric(folder, user="synthetic-ines", model=None, seed=None, force=True)
    except PalateError as refused:
        print(f"refused: {refused}")
        assert isinstance(refused, InputError | ModelError)  # noqa: PT017 - either is right
        assert (folder / "rubrics" / "synthetic-ines.json").read_bytes() == before
    else:
        assert read(folder / "rubrics" / "synthetic-ines.json").provenance.author == "model"
        verify_rubrics(folder)
