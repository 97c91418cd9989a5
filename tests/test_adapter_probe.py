"""The check before the first call: an adapter that changes nothing, or is served otherwise."""

import asyncio
import contextlib
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from palate.adapter_probe import PROMPTS, largest_difference, probe_adapters
from palate.errors import InputError, Stopped
from palate.models.pool import Models
from palate.models.transport import Timing
from palate.prepare import prepare
from palate.probed import kept, warnings_of
from trained_folders import HUB, PROBE_TEXT, PROBE_TOKENS, with_adapters
from worlds import palate, write_study

# Case 28: the same prompts to the base and to two adapters, the first of which is not used.
SURE = 'Sure! Here is a thought about "{}".'
USER_B = dict(
    zip(PROMPTS, ("yo", "idk u tell me", "*pokes u*", "你好呀～", "nah", "k"), strict=True)
)
THINKING = "<|im_start|>user\nWell?<|im_end|>\n<|im_start|>assistant\n"


def base(prompt, model):
    return SURE.format(prompt)


def case_28(prompt, model):
    return USER_B[prompt] if model == "B" else SURE.format(prompt)


class Fake:
    """An OpenAI-style server of the base "tiny-test/base" and of adapters, without logprobs."""

    def __init__(self, answer, *, models=(), logprobs=None, paths=None):
        self.answer, self.models, self.logprobs = answer, models, logprobs
        self.paths = paths or {}
        self.asked = []
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/{path:.*}", self._other)
        self.server = TestServer(app)
        self.url = ""  # once started

    async def _models(self, request):
        if self.models is None:
            return web.Response(status=404)
        return web.json_response({"data": list(self.models)})

    async def _other(self, request):
        if request.path not in self.paths:
            return web.Response(status=404)
        body = await request.json()
        self.asked.append((request.path, body))
        return web.json_response(self.paths[request.path])

    async def _complete(self, request):
        body = await request.json()
        prompt, model = body["messages"][-1]["content"], body["model"]
        self.asked.append((model, prompt))
        if "logprobs" in body and self.logprobs is None:
            return web.json_response({"error": "logprobs are not supported"}, status=400)
        choice = {"message": {"role": "assistant", "content": self.answer(prompt, model)}}
        if "logprobs" in body:
            top = [{"token": t, "logprob": p} for t, p in self.logprobs[model].items()]
            choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        return web.json_response({"model": model, "choices": [choice]})


def vllm_list(*adapters):
    """The list of models as vLLM gives it."""
    own = [{"id": "tiny-test/base", "root": "tiny-test/base", "parent": None}]
    return own + [{"id": n, "root": f"/a/{n}", "parent": "tiny-test/base"} for n in adapters]


@contextlib.asynccontextmanager
async def served(answer, **options):
    fake = Fake(answer, **options)
    await fake.server.start_server()
    fake.url = f"http://127.0.0.1:{fake.server.port}/v1"
    try:
        yield fake
    finally:
        await fake.server.close()


def study_of(folder, url, *users, extra="", **options):
    study = write_study(folder, users=users, extra=extra)
    (study / "replies.json").write_text("[]", "utf-8")
    folders = {user: {"base": HUB, "gguf": None, **options} for user in users}
    with_adapters(study, model=f"openai:{{}}@{url}", **folders)
    return study


async def probe(study):
    prepared = prepare(study)

    async def at_once(seconds):
        pass

    content = prepared.study.content
    async with Models(content.endpoints, study_dir=study, timing=Timing(sleep=at_once)) as models:
        return await probe_adapters(prepared.simulators, content.users, models)


async def test_an_adapter_that_answers_as_its_base_is_rejected_with_user_and_server(tmp_path):
    async with served(case_28, models=vllm_list("A", "B")) as fake:
        with pytest.raises(InputError) as caught:
            await probe(study_of(tmp_path, fake.url, "A", "B"))
    said = str(caught.value)
    assert "user A: adapter has no effect: all 6 fixed prompts are answered by openai:A@" in said
    assert f"as by its base openai:tiny-test/base@{fake.url}" in said
    assert {prompt for model, prompt in fake.asked if model == "A"} == set(PROMPTS)


async def test_an_adapter_that_answers_otherwise_passes_at_the_first_difference(tmp_path):
    async with served(case_28, models=vllm_list("A", "B")) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert (found.compared, found.prompts, found.difference) == ("texts", 1, None)
    assert found.base == f"openai:tiny-test/base@{fake.url}"
    assert {prompt for _, prompt in fake.asked} == {"hi"}


async def test_one_difference_in_the_last_prompt_is_enough(tmp_path):
    def late(prompt, model):
        return "k" if (model, prompt) == ("B", "ok") else SURE.format(prompt)

    async with served(late, models=vllm_list("B")) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert (found.compared, found.prompts) == ("texts", 6)


async def test_a_base_that_does_not_repeat_itself_proves_nothing(tmp_path):
    """An unused adapter would pass by chance."""
    count = iter(range(1000))
    async with served(lambda prompt, model: f"{next(count)}", models=vllm_list("B")) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert found.prompts == 6
    assert "its base does not answer twice alike at temperature 0" in " ".join(found.warnings)


async def test_log_probabilities_are_compared_where_the_server_gives_them(tmp_path):
    """The texts are equal; "Sure" is 1.5 nats less likely under the adapter."""
    logprobs = {"tiny-test/base": {"Sure": -0.1, "yo": -3.0}, "B": {"Sure": -1.6, "yo": -2.9}}
    async with served(base, models=vllm_list("B"), logprobs=logprobs) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert (found.compared, found.prompts, found.difference) == ("log_probabilities", 1, 1.5)


async def test_noise_in_log_probabilities_is_no_effect(tmp_path):
    logprobs = {"tiny-test/base": {"Sure": -0.10, "yo": -3.0}, "B": {"Sure": -0.13, "yo": -2.95}}
    async with served(base, models=vllm_list("B"), logprobs=logprobs) as fake:
        with pytest.raises(InputError, match="adapter has no effect"):
            await probe(study_of(tmp_path, fake.url, "B"))


@pytest.mark.parametrize(
    ("some", "others", "apart"),
    [
        ([("a", -1.0), ("b", -2.0)], [("a", -1.5), ("b", -2.0)], 0.5),
        # Rare tokens are not looked at: 2 % and 1 %.
        ([("a", -1.0), ("b", -3.9)], [("a", -1.0), ("b", -4.6)], 0.0),
        # Nothing is at 5 %: the likeliest of each are looked at.
        ([("a", -3.5), ("b", -3.6)], [("a", -3.7), ("b", -3.9)], 0.2),
        # The second list lacks b, which is at most -3.0 there: at least 1.0 apart.
        ([("a", -1.0), ("b", -2.0)], [("a", -1.0), ("c", -3.0)], 1.0),
        ([("a", -1.0)], [("a", -1.0)], 0.0),
        ([("a", -1.0)], [], 0.0),
        ([("a", float("-inf"))], [("a", -51.0)], 0.0),
    ],
)
def test_the_largest_difference_of_two_lists_of_likely_tokens(some, others, apart):
    assert largest_difference(some, others) == pytest.approx(apart)
    assert largest_difference(others, some) == pytest.approx(apart)


async def test_users_of_one_base_are_held_against_the_same_answers(tmp_path):
    def differ(prompt, model):
        return f"{model}: {prompt}"

    async with served(differ, models=vllm_list("A", "B")) as fake:
        found = await probe(study_of(tmp_path, fake.url, "A", "B"))
    assert [one.user_id for one in found] == ["A", "B"]
    of_base = [prompt for model, prompt in fake.asked if model == "tiny-test/base"]
    # Refused with log-probabilities, asked without, and once more to see that it repeats itself.
    assert len(of_base) <= 6


@pytest.mark.parametrize(
    ("models", "name"),
    [
        (vllm_list("B"), "tiny-test/base"),
        ([{"id": "base-7b"}, {"id": "B"}], "base-7b"),
        ([{"id": "held", "root": "tiny-test/base"}, {"id": "x"}, {"id": "B"}], "held"),
    ],
)
async def test_the_name_of_the_base_is_found_in_the_servers_list(tmp_path, models, name):
    async with served(case_28, models=models) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert found.base == f"openai:{name}@{fake.url}"


@pytest.mark.parametrize("models", [None, [{"id": "x"}, {"id": "y"}, {"id": "B"}], [7, {}]])
async def test_where_the_base_cannot_be_named_the_run_is_warned_that_nothing_was_checked(
    tmp_path, models
):
    async with served(case_28, models=models) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert (found.compared, found.base, found.prompts) == ("nothing", None, 0)
    assert any('add base = "NAME" to the simulator' in said for said in found.warnings)


async def test_the_name_of_the_base_may_be_written_in_the_study(tmp_path):
    async with served(case_28, models=None) as fake:
        study = study_of(tmp_path, fake.url, "B")
        toml = (study / "study.toml").read_text("utf-8")
        (study / "study.toml").write_text(
            toml.replace('kind = "lora"', 'kind = "lora", base = "tiny-test/base"'), "utf-8"
        )
        [found] = await probe(study)
    assert (found.compared, found.base) == ("texts", f"openai:tiny-test/base@{fake.url}")


async def test_a_base_of_another_name_is_told(tmp_path):
    models = [{"id": "main", "root": "other/base"}, {"id": "B", "parent": "main"}]
    async with served(case_28, models=models) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert any(
        "its server names 'other/base' as the base, and it was trained on 'tiny-test/base'" in said
        for said in found.warnings
    )


async def test_a_prompt_in_another_form_is_refused_before_anything_is_asked(tmp_path):
    """Case 28: the server adds an empty think block."""
    written = PROBE_TEXT + "<think>\n\n</think>\n\n"
    async with served(case_28, paths={"/apply-template": {"prompt": written}}) as fake:
        with pytest.raises(InputError, match="prompt forms of training and serving differ") as said:
            await probe(study_of(tmp_path, fake.url, "B"))
    assert "by an empty think block, which only serving has" in str(said.value)
    assert [path for path, _ in fake.asked] == ["/apply-template"]


async def test_the_server_renders_the_fixed_conversation_with_the_templates_arguments(tmp_path):
    form = {"template_arguments": {"enable_thinking": False}}
    paths = {"/apply-template": {"prompt": PROBE_TEXT}}
    async with served(case_28, models=vllm_list("B"), paths=paths) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B", form=form))
    assert found.form == "text"
    assert found.warnings == ()
    [(_, body)] = [(path, body) for path, body in fake.asked if path == "/apply-template"]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["messages"][-1] == {"role": "user", "content": "*waits* And then?"}


async def test_tokens_are_held_against_training_where_the_server_gives_tokens(tmp_path):
    paths = {"/tokenize": {"tokens": list(PROBE_TOKENS)}}
    async with served(case_28, models=vllm_list("B"), paths=paths) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
        assert found.form == "tokens"
        fake.paths["/tokenize"] = {"tokens": [0, *PROBE_TOKENS]}
        with pytest.raises(InputError, match="token 1 is 1 in training and 0 in serving"):
            await probe(tmp_path)
        fake.paths["/detokenize"] = {"prompt": PROBE_TEXT + "<think>\n\n</think>\n\n"}
        with pytest.raises(InputError, match="by an empty think block, which only serving has"):
            await probe(tmp_path)


async def test_a_server_that_does_not_tell_its_prompt_is_warned_of(tmp_path):
    async with served(case_28, models=vllm_list("B")) as fake:
        [found] = await probe(study_of(tmp_path, fake.url, "B"))
    assert found.form == "unknown"
    assert "does not say what it makes of a conversation" in warnings_of([found])[0]


async def test_a_server_that_does_not_answer_stops_the_run_and_one_that_refuses_ends_it(tmp_path):
    nobody = "http://127.0.0.1:9/v1"
    once = f'[endpoints."{nobody}"]\nmax_attempts = 1'
    with pytest.raises(Stopped, match="the adapter of user B could not be checked"):
        await probe(study_of(tmp_path / "a", nobody, "B", extra=once))

    def unknown(prompt, model):
        raise web.HTTPNotFound(text="no such model")

    async with served(unknown, models=vllm_list("B")) as fake:
        with pytest.raises(InputError, match="see that the server has it under this name"):
            await probe(study_of(tmp_path / "b", fake.url, "B"))


async def test_a_scripted_rehearsal_has_no_adapter_to_check(tmp_path):
    study = write_study(tmp_path, users=("u1",))
    (study / "replies.json").write_text("[]", "utf-8")
    with_adapters(study, model="scripted:replies.json", u1={})
    [found] = await probe(study)
    assert (found.compared, found.prompts) == ("nothing", 0)
    assert any("scripted models have no adapter to check" in said for said in found.warnings)


async def test_a_study_without_adapters_has_nothing_to_check(tmp_path):
    study = write_study(tmp_path, users=("u1",))
    (study / "replies.json").write_text("[]", "utf-8")
    assert await probe(study) == ()


@pytest.mark.slow
async def test_a_run_keeps_what_it_found_and_refuses_an_adapter_without_effect(tmp_path):
    async with served(case_28, models=vllm_list("A", "B")) as fake:
        few = {"users": ("B",), "cards": ("k1",), "candidates": ("C",), "repetitions": 1}
        study = write_study(tmp_path, **few, depth=1, model=f"openai:any@{fake.url}")
        with_adapters(study, model=f"openai:{{}}@{fake.url}", B={"base": HUB, "gguf": None})
        fake.answer = lambda prompt, model: f"{model} says {len(prompt)}"
        ran = await in_thread(palate, "run", study)
        assert ran.returncode == 0, ran.stderr
        [found] = kept(study / "runs" / "tiny")
        assert (found.user_id, found.compared, found.prompts) == ("B", "texts", 1)
        assert "does not say what it makes of a conversation" in " ".join(ran.stderr.split())
        report = (study / "runs" / "tiny" / "report.html").read_text("utf-8")
        assert "does not say what it makes of a conversation" in report
        calls = len(fake.asked)
        again = await in_thread(palate, "run", study)
        assert (again.returncode, len(fake.asked)) == (0, calls)  # nothing left: nothing is asked
        fake.answer = lambda prompt, model: SURE.format(prompt)
        refused = await in_thread(palate, "run", study, "--out", study / "other")
    assert refused.returncode == 2
    assert "user B: adapter has no effect" in " ".join(refused.stderr.split())
    assert json.loads((study / "other" / "manifest.json").read_text("utf-8"))
    assert not (study / "other" / "adapters.json").exists()


async def in_thread(function, *arguments):

    return await asyncio.to_thread(function, *arguments)
