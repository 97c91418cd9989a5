"""Several people's adapters over the embedded model: none hears of another."""

import asyncio
from pathlib import Path

import pytest

from palate.adapter_probe import largest_difference, probe_adapters
from palate.errors import InputError
from palate.models import local
from palate.models.client import ChatMessage, Purpose, Request, Sampling
from palate.models.pool import Models
from palate.prepare import prepare
from palate.probed import kept
from trained_folders import random_adapter, with_adapters
from worlds import palate, write_study

needs_model = pytest.mark.local

BASE = "local:smollm2-135m"
# Computed in other batches and out of a slot's cache, one prompt was at most 0.02 nats off itself.
SAME = 0.06
LONG = "harbour lamp rope gull tide quay mist anchor oar hull mast sail " * 12


def request(text, *, system="You are Mia, chatting with Ben.", **body):
    return Request(
        messages=(ChatMessage("system", system), ChatMessage("user", text)),
        sampling=Sampling(temperature=0.0, max_tokens=8, body=body),
        purpose=Purpose("simulator", "c", 0),
        first_token=10,
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapters")
    for seed in (1, 2):
        (folder / f"{seed}.gguf").write_bytes(random_adapter(seed))
    return folder / "1.gguf", folder / "2.gguf"


async def first_token(model, asked):
    return (await model.complete(asked)).first_token


async def alone(asked, adapter):
    """What a new server says that holds this adapter alone."""
    async with Models({}, study_dir=Path()) as models:
        return await first_token(models.open(BASE, adapter=adapter), asked)


def test_every_request_names_every_adapter_with_its_scale():
    """One that is not named would keep the scale of the request before."""
    one, other = Path("/a/1.gguf"), Path("/a/2.gguf")
    running = local._Running("smollm2-135m", (one, other), None, "http://127.0.0.1:1/v1")
    server = local.LocalServer(running)
    assert server.body(other) == {
        "cache_prompt": True,
        "lora": [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 1.0}],
    }
    nothing = [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 0.0}]
    assert server.body(other, scale=0.0)["lora"] == nothing
    assert server.extra_body["lora"] == nothing
    plain = local.LocalServer(running._replace(adapters=()))
    assert plain.extra_body == {"cache_prompt": True}


async def test_an_adapter_file_is_for_the_embedded_model_alone(tmp_path):
    async with Models({}, study_dir=tmp_path) as models:
        with pytest.raises(InputError, match="takes no adapter file; its server names adapters"):
            models.open("openai:m@http://127.0.0.1:1/v1", adapter=tmp_path / "a.gguf")


@needs_model
async def test_two_adapters_and_the_base_at_once_give_what_each_gives_alone(files):
    prompts = [request(f"{n}: so what now?") for n in range(3)]
    expected = {
        (adapter, n): await alone(asked, adapter)
        for adapter in (*files, None)
        for n, asked in enumerate(prompts)
    }
    async with Models({}, study_dir=Path()) as models:
        opened = {adapter: models.open(BASE, adapter=adapter) for adapter in (*files, None)}
        places = [(adapter, n) for n in range(3) for adapter in opened]
        found = await asyncio.gather(*(first_token(opened[a], prompts[n]) for a, n in places))
    for place, answer in zip(places, found, strict=True):
        assert largest_difference(answer, expected[place]) < SAME, place
    assert largest_difference(expected[files[0], 0], expected[files[1], 0]) > 10 * SAME
    assert largest_difference(expected[files[0], 0], expected[None, 0]) > 10 * SAME


@needs_model
async def test_a_warm_slot_under_another_adapter_answers_as_a_cold_one(files):
    """A prompt computed under one adapter, pushed out by others, asked under the next.

    With the prompt cache in host memory llama.cpp gives the second what the first had computed.
    """
    asked, cold = request(LONG + "So what now?"), {"cache_prompt": False}
    others = [request(LONG[n:] + "And?", system=f"Entirely different {n}") for n in range(1, 6)]
    async with Models({}, study_dir=Path()) as models:
        one, two = (models.open(BASE, adapter=adapter) for adapter in files)
        base = models.open(BASE, adapter=files[0], scale=0.0)
        expected = {
            model: await first_token(model, request(LONG + "So what now?", **cold))
            for model in (one, two, base)
        }
        for before, after in ((one, two), (two, base), (base, one)):
            await first_token(before, asked)
            await asyncio.gather(*(first_token(after, other) for other in others))
            for _ in range(2):  # out of what another left, then out of its own
                answer = await first_token(after, asked)
                assert largest_difference(answer, expected[after]) < SAME
    assert largest_difference(expected[one], expected[two]) > 5 * SAME


@needs_model
async def test_the_base_is_asked_beside_the_adapters_and_keeps_its_cache_of_prompts(files):
    async with Models({}, study_dir=Path()) as models:
        adapted, base = models.open(BASE, adapter=files[0]), models.open(BASE)
        beside = models.open(BASE, adapter=files[0], scale=0.0)
        asked = request("So what now?")
        of_base = await first_token(base, asked)
        assert largest_difference(await first_token(beside, asked), of_base) < SAME
        assert largest_difference(await first_token(adapted, asked), of_base) > 10 * SAME
        assert len(local._shares) == 2


@needs_model
async def test_a_file_that_is_no_adapter_is_named(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no adapter")
    async with Models({}, study_dir=tmp_path) as models:
        with pytest.raises(InputError) as caught:
            await models.open(BASE, adapter=broken).complete(request("hi"))
    assert f"that its adapters are of this model ({broken})" in str(caught.value)


def study_of(folder, **adapters):
    few = {"cards": ("k1",), "candidates": ("A",), "repetitions": 1, "depth": 1, "sampled": 1}
    study = write_study(folder, users=tuple(adapters), model=BASE, **few)
    toml = (study / "study.toml").read_text("utf-8").replace('form = "json"', 'form = "digits"')
    (study / "study.toml").write_text(toml + "max_tokens = 12\n", "utf-8")
    with_adapters(study, **{user: {"gguf": content} for user, content in adapters.items()})
    return study


@needs_model
async def test_the_check_passes_an_adapter_that_works_and_rejects_one_of_zeros(tmp_path):
    study = study_of(tmp_path, u1=random_adapter(1), u2=random_adapter(2, scale=0.0))
    prepared = prepare(study)
    users = prepared.study.content.users
    async with Models({}, study_dir=study) as models:
        [found] = await probe_adapters(prepared.simulators, users[:1], models)
        assert (found.compared, found.form, found.warnings) == ("log_probabilities", "text", ())
        assert found.difference > 0.5
        with pytest.raises(InputError, match="user u2: adapter has no effect"):
            await probe_adapters(prepared.simulators, users, models)


@needs_model
@pytest.mark.slow
def test_a_study_of_two_adapters_runs_and_keeps_the_check(tmp_path):
    study = study_of(tmp_path, u1=random_adapter(1, scale=0.05), u2=random_adapter(2, scale=0.05))
    ran = palate("run", study)
    assert ran.returncode == 0, ran.stderr
    found = kept(study / "runs" / "tiny")
    assert [one.user_id for one in found] == ["u1", "u2"]
    assert {one.compared for one in found} == {"log_probabilities"}
