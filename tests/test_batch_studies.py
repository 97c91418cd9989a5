"""Induction and the agreement study by way of batch files: rounds that end where calls end."""

import asyncio
import json

import pytest
from aiohttp import web

from lexical import answer
from models.loopback import Loopback, said
from palate.agreement_setup import StudyOptions
from palate.agreement_study_commands import study_agreement
from palate.errors import Stopped
from palate.induce_commands import induce_rubric
from palate.rubrics.freeze import read
from palate.studies.conditions import conditions_named
from test_induce_command import study

ROUNDS = 12


def reply_to(body):
    messages = body["messages"]
    return said(answer(messages[0]["content"], messages[-1]["content"]))


async def over_http(request):
    return web.json_response(reply_to(await request.json()))


def serve(folder, number):
    """A batch service: every request of the folder answered in a new file, the last first."""
    requests = [
        json.loads(line)
        for file in folder.glob("palate-requests-*.jsonl")
        for line in file.read_text("utf-8").splitlines()
    ]
    answers = [
        {
            "custom_id": one["custom_id"],
            "response": {"status_code": 200, "body": reply_to(one["body"])},
            "error": None,
        }
        for one in reversed(requests)
    ]
    lines = "".join(json.dumps(one) + "\n" for one in answers)
    (folder / f"answers-{number}.jsonl").write_text(lines, "utf-8")
    return len(requests)


def in_rounds(folder, command):
    """Give the command until it is through; how many requests each round left."""
    left = []
    for number in range(ROUNDS):
        try:
            command()
        except Stopped as stopped:
            if "requests left to a batch" not in str(stopped):
                raise
            left.append(serve(folder, number))
        else:
            return left
    raise AssertionError(f"not through after {ROUNDS} rounds: {left}")


def induce(folder, **more):
    induce_rubric(folder, user="ada", model=None, seed=None, force=False, **more)


async def test_a_rubric_by_batch_is_the_rubric_by_calls(tmp_path):
    async with Loopback([over_http]) as server:
        direct = study(tmp_path / "direct", server.url)
        await asyncio.to_thread(induce, direct)
        by_file = study(tmp_path / "by-file", server.url)
    batch = tmp_path / "batch"
    left = await asyncio.to_thread(in_rounds, batch, lambda: induce(by_file, batch=batch))
    assert len(left) > 1  # rules must be proposed before they can be tested
    assert sum(left) == len(server.bodies)
    assert read(by_file / "rubrics" / "ada.json") == read(direct / "rubrics" / "ada.json")


@pytest.mark.parametrize("names", ["generic,examples"])
async def test_the_agreement_study_by_batch_gives_the_scores_by_calls(tmp_path, names):
    async with Loopback([over_http]) as server:
        direct = study(tmp_path / "direct", server.url)
        by_file = study(tmp_path / "by-file", server.url)
        options = StudyOptions(conditions=conditions_named(names), resamples=50)
        code = await asyncio.to_thread(judged, direct, options)
    assert code == 0
    batch = tmp_path / "batch"
    later = StudyOptions(conditions=options.conditions, resamples=50, batch=batch)
    left = await asyncio.to_thread(in_rounds, batch, lambda: judged(by_file, later))
    assert left
    scores = ("studies", "agreement", "scores.csv")
    assert by_file.joinpath(*scores).read_bytes() == direct.joinpath(*scores).read_bytes()


def judged(folder, options):
    return study_agreement(folder, options, plan=False, as_json=False)
