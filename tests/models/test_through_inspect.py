"""Models of Inspect AI, an extra: without the package only its absence can be tested."""

import asyncio
from importlib import util

import pytest
from loopback import request

from palate.errors import InputError, TransportError
from palate.models.client import Sampling
from palate.models.pool import Models
from palate.models.through_inspect import InspectModel

INSTALLED = util.find_spec("inspect_ai") is not None
needs_inspect = pytest.mark.skipif(not INSTALLED, reason="inspect_ai is not installed")


@pytest.mark.skipif(INSTALLED, reason="inspect_ai is installed")
def test_without_the_package_the_extra_is_named(tmp_path):
    with pytest.raises(InputError, match=r"pip install 'palate\[inspect\]'"):
        Models({}, study_dir=tmp_path).open("inspect:mockllm/model")


def opened(outputs):
    from inspect_ai.model import get_model

    model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
    return InspectModel("inspect:mockllm/model", model, asyncio.Semaphore(1), 5.0)


def output(text, stop_reason="stop", **more):
    """An output with a count of tokens, which Inspect would otherwise fetch a tokenizer for."""
    from inspect_ai.model import ModelOutput, ModelUsage

    made = ModelOutput.from_content("mockllm/model", text, stop_reason=stop_reason, **more)
    made.usage = ModelUsage(input_tokens=5, output_tokens=4, input_tokens_cache_read=64)
    return made


@needs_inspect
async def test_an_answer_of_inspect_is_read_as_any_other():
    sampling = Sampling(temperature=0.5, max_tokens=9, stop=("\n",))
    model = opened(
        [
            output("<think>plan</think>Come in."),
            output("She", "max_tokens"),
            output("", "content_filter"),
        ]
    )
    asked = request(("system", "SYS"), ("assistant", "O"), ("user", "u"), sampling=sampling)
    first = await model.complete(asked)
    assert (first.text, first.reasoning, first.status) == ("Come in.", "plan", "ok")
    assert (first.usage, first.model) == ((69, 4, 64), "mockllm/model")
    assert (await model.complete(asked)).status == "length"
    assert (await model.complete(asked)).status == "refused"


@needs_inspect
async def test_an_error_in_place_of_an_answer_is_one():
    with pytest.raises(TransportError, match="quota"):
        await opened([output("", "unknown", error="out of quota")]).complete(request())


@needs_inspect
async def test_the_pool_opens_and_closes_it(tmp_path):
    async with Models({}, study_dir=tmp_path) as models:
        model = models.open("inspect:mockllm/model")
        assert (model.name, model.reads_digits) == ("inspect:mockllm/model", False)


@needs_inspect
async def test_a_failure_of_inspect_is_a_transport_error():
    with pytest.raises(TransportError, match="inspect:mockllm/model"):
        await opened([]).complete(request())


@needs_inspect
def test_an_unknown_provider_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be set up"):
        Models({}, study_dir=tmp_path).open("inspect:nobody/model")
