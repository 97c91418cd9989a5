"""A study whose users are played by trained simulators: what is checked before any call."""

import json
import re
import shutil

import pytest

from palate import manifest
from palate.errors import InputError
from palate.models.client import Sampling
from palate.plan import estimate
from palate.prepare import prepare
from palate.seats import Seats
from palate.simulators import Simulator
from palate.simulators.trained import RECORD, read_trained
from palate.types import Scene
from trained_folders import HUB, with_adapters, write_trained
from worlds import write_history, write_study

SERVED = "openai:{}@http://127.0.0.1:8000/v1"


def plain_study(folder, users=("u1",), extra=""):
    study = write_study(folder, users=users, extra=extra)
    (study / "replies.json").write_text("[]", "utf-8")
    return study


def study_of(folder, *, model=None, extra="", **users):
    study = plain_study(folder, tuple(users), extra)
    with_adapters(study, model=model, **users)
    return study


def refusal(study):
    with pytest.raises(InputError) as caught:
        prepare(study)
    return str(caught.value)


class Opened:
    """Keeps how models were opened."""

    def __init__(self):
        self.calls = []

    def open(self, spec, *, headers=None, session_header=None, session_field=None, adapter=None):
        self.calls.append((spec, adapter))
        return object()

    def width(self):
        return 1


def test_the_embedded_base_is_the_model_where_the_study_names_none(tmp_path):
    prepared = prepare(study_of(tmp_path, u1={}, u2={}))
    assert [s.model for s in prepared.simulators.values()] == ["local:smollm2-135m"] * 2
    assert {s.kind for s in prepared.simulators.values()} == {"lora"}


def test_each_users_seat_goes_through_their_own_adapter_and_others_through_none(tmp_path):
    models = Opened()
    Seats(prepare(study_of(tmp_path, u1={}, u2={})), models, run_id="r")
    local = [adapter for spec, adapter in models.calls if spec.startswith("local:")]
    assert local == [tmp_path / "simulators" / user / "adapter.gguf" for user in ("u1", "u2")]
    assert {adapter for spec, adapter in models.calls if spec.startswith("scripted:")} == {None}


def test_a_trained_simulator_is_told_the_names_and_the_scene_and_nothing_of_the_person(tmp_path):
    write_trained(tmp_path, "u1")
    made = Simulator("u1", "lora", "local:smollm2-135m", Sampling(), trained=read_trained(tmp_path))
    assert made.system(Scene("en", "Ash", "A shop at dusk.", "Lin")) == (
        "You are Lin, chatting with Ash.\n\nScene: A shop at dusk."
    )


def test_the_record_names_the_adapter_and_what_it_learned_from(tmp_path):
    def record(folder, **changes):
        write_trained(folder, "u1", **changes)
        trained = read_trained(folder)
        return Simulator("u1", "lora", "local:smollm2-135m", Sampling(), trained=trained).record()

    plain = record(tmp_path / "a")
    assert plain.training_sessions == {"s1": "aa"}
    assert re.fullmatch("[0-9a-f]{64}", plain.adapter)
    assert record(tmp_path / "b").adapter == plain.adapter
    assert record(tmp_path / "c", seconds=2.0).adapter == plain.adapter
    others = [
        record(tmp_path / "d", weights=b"other"),
        record(
            tmp_path / "e",
            base={"name": "local:smollm2-135m"} | {k: HUB[k] for k in HUB if k != "name"},
        ),
        record(tmp_path / "f", form={"template_arguments": {"enable_thinking": False}}),
    ]
    assert len({plain.adapter, *(other.adapter for other in others)}) == 4


def test_the_arguments_of_the_chat_template_go_out_with_each_request(tmp_path):
    form = {"form": {"template_arguments": {"enable_thinking": False}}}
    prepared = prepare(study_of(tmp_path, u1=form))
    sent = prepared.simulators["u1"].sampling.body
    assert sent == {"chat_template_kwargs": {"enable_thinking": False}}
    described = manifest.settings(prepared)["users"]["u1"]["simulator"]
    assert described["body"] == sent
    assert described["model"] == "local:smollm2-135m"


def test_a_body_that_asks_for_another_prompt_form_is_refused(tmp_path):
    write_trained(tmp_path, "u1", form={"template_arguments": {"enable_thinking": False}})
    thinking = Sampling(body={"chat_template_kwargs": {"enable_thinking": True}})
    with pytest.raises(InputError, match="u1 was trained with chat_template_kwargs = "):
        Simulator("u1", "lora", "openai:m", thinking, trained=read_trained(tmp_path))


def test_another_adapter_is_another_run_and_other_kinds_are_described_as_before(tmp_path):
    prepared = prepare(study_of(tmp_path, u1={}))
    adapter = manifest.settings(prepared)["users"]["u1"]["simulator"]["adapter_sha256"]
    write_trained(tmp_path / "simulators" / "u1", "u1", weights=b"trained again")
    again = manifest.settings(prepare(tmp_path))["users"]["u1"]["simulator"]["adapter_sha256"]
    assert again != adapter
    prompted = manifest.settings(prepare(plain_study(tmp_path / "other")))
    assert "adapter_sha256" not in prompted["users"]["u1"]["simulator"]


def test_a_base_of_a_hub_needs_the_name_of_the_served_adapter_and_is_told_how_to_serve(tmp_path):
    said = refusal(study_of(tmp_path, u1={"base": HUB}))
    assert "simulator.model is missing: the adapter belongs to tiny-test/base" in said
    assert f"start one with `palate simulator serve {tmp_path}`" in said
    assert 'model = "openai:u1@http://127.0.0.1:8000/v1"' in said


def test_a_served_adapter_is_taken_by_its_name(tmp_path):
    prepared = prepare(study_of(tmp_path, model=SERVED, u1={"base": HUB, "gguf": None}))
    assert prepared.simulators["u1"].model == "openai:u1@http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("folder", "model", "said"),
    [
        ({"base": HUB}, "local:smollm2-135m", "is another base than the adapter's, tiny-test/base"),
        ({"gguf": None}, None, "cannot hold this adapter: its architecture has no form"),
        ({}, "inspect:google/gemini-3-pro", "cannot hold an adapter; name an OpenAI-compatible"),
        ({"prompts": {"simulator_lora.en.md": "00"}}, None, "with another text of the prompt file"),
        ({"prompts": {"no_such.en.md": "00"}}, None, "prompt file no_such.en.md"),
    ],
)
def test_an_adapter_that_cannot_be_served_as_trained_is_refused(tmp_path, folder, model, said):
    assert said in refusal(study_of(tmp_path, model=model, u1=folder))


@pytest.mark.parametrize(
    ("first_role", "extra"),
    [
        ("user", ""),
        ("any", '[endpoints."http://127.0.0.1:8000/v1"]\nfirst_role = "user"'),
        ("any", '[endpoints."http://127.0.0.1:8000/v1"]\nsystem_role = false'),
    ],
)
def test_an_endpoint_that_writes_messages_otherwise_than_training_is_refused(
    tmp_path, first_role, extra
):
    folder = {"base": HUB, "form": {"first_role": first_role}}
    said = refusal(study_of(tmp_path, model=SERVED, extra=extra, u1=folder))
    assert f'trained with system messages and first_role = "{first_role}"' in said
    assert '[endpoints."http://127.0.0.1:8000/v1"]' in said


def test_two_users_with_the_same_adapter_are_named(tmp_path):
    same = {"weights": b"the same"}
    assert "users u1 and u2 have the same adapter" in refusal(study_of(tmp_path, u1=same, u2=same))


def test_two_users_with_one_served_name_are_named(tmp_path):
    study = study_of(tmp_path, model="openai:m@http://127.0.0.1:8000/v1", u1={"base": HUB}, u2={})
    write_trained(study / "simulators" / "u2", "u2", base=HUB)
    assert "users u1 and u2 name the same served adapter, openai:m@" in refusal(study)


def test_an_unfinished_a_changed_and_anothers_folder_are_refused(tmp_path):
    study = study_of(tmp_path, u1={})
    folder = study / "simulators" / "u1"
    (folder / "adapter.gguf").write_bytes(b"changed")
    assert "adapter.gguf was changed after training" in refusal(study)
    write_trained(folder, "u9")
    assert "is the simulator of 'u9', but the study gives it to 'u1'" in refusal(study)
    (folder / "adapter.gguf").unlink()
    write_trained(folder, "u1")
    (folder / "adapter.gguf").unlink()
    assert refusal(study).endswith("cannot be read (No such file or directory); train it again")
    (folder / RECORD).write_bytes((folder / RECORD).read_bytes()[:50])
    assert "simulator.json is not JSON in UTF-8" in refusal(study)
    assert refusal(study).endswith("; train it again")
    (folder / RECORD).unlink()
    assert refusal(study).endswith(
        "holds no finished training (simulator.json is missing); train it with `palate simulator "
        "train`, which takes up what is there"
    )
    shutil.rmtree(folder)
    assert refusal(study) == (
        f"{folder} does not exist, so it holds no finished training; train one with `palate "
        "simulator train`"
    )
    folder.write_text("a file", "utf-8")
    assert refusal(study) == (
        f"{folder} is no folder, or stands in none; give the simulator another path, or move away "
        "the file that is there"
    )


@pytest.mark.parametrize("name", ["a\0b", "../out", "/etc/hostname", "a" * 5000])
def test_a_record_that_names_no_file_of_its_folder_is_a_sentence(tmp_path, name):
    record = write_trained(tmp_path, "ada")
    record = record.model_copy(update={"files": {**record.files, name: "aa"}})
    record = record.model_copy(update={"sha256": record.content_sha256()})
    (tmp_path / "simulator.json").write_text(record.model_dump_json(by_alias=True), "utf-8")
    with pytest.raises(InputError, match=r"outside its folder|cannot be read"):
        read_trained(tmp_path, user_id="ada")


def test_training_on_panel_cards_is_warned_of(tmp_path):
    study = study_of(tmp_path, u1={"sessions": {"s0": "aa"}})
    write_history(study, ["k1", "k2"])
    [warning] = prepare(study).warnings()
    assert warning == (
        "The simulator of u1 was built from sessions on panel cards (k1), which flatters the "
        "scores on them."
    )


def test_base_is_a_setting_of_adapters_alone(tmp_path):
    study = plain_study(tmp_path)
    toml = (study / "study.toml").read_text("utf-8")
    (study / "study.toml").write_text(toml.replace('kind = "prompted"', 'kind = "raw", base = "b"'))
    assert 'base belongs to kind = "lora"; remove it' in refusal(study)


def test_the_plan_prices_the_embedded_base_at_nothing_and_tells_of_the_check(tmp_path):
    forecast = estimate(study_of(tmp_path, u1={}))
    simulator = next(one for one in forecast.models if one.role == "simulator")
    assert (simulator.model, simulator.cost) == ("local:smollm2-135m", 0.0)
    assert any("every adapter is held against its base" in said for said in forecast.assumptions)
    other = estimate(plain_study(tmp_path / "other"))
    assert not any("adapter" in said for said in other.assumptions)


def test_the_record_of_an_adapter_is_json(tmp_path):
    write_trained(tmp_path, "u1")
    assert json.loads((tmp_path / RECORD).read_text("utf-8"))["schema"] == "palate.simulator/1"
