"""study.toml: what is wrong is said in one sentence with its line."""

import textwrap

import pytest

from palate.config import load_study
from palate.errors import InputError

GOOD = textwrap.dedent(
    """\
    [study]
    name = "harbour"
    panel = ["cards/*.json"]

    [protocol]
    repetitions = 2
    seed = 7

    [judge]
    model = "openai:judge@http://127.0.0.1:1/v1"

    [[users]]
    id = "u1"
    simulator = { kind = "prompted", model = "local:smollm2-135m" }
    rubric = "rubrics/u1.json"

    [[users]]
    id = "u2"
    rubric = "rubrics/u2.json"
    [users.simulator]
    kind = "raw"
    model = "local:smollm2-135m"

    [[candidates]]
    name = "A"
    model = "openai:my-rpa@http://127.0.0.1:8000/v1"
    temperature = 0.8

    [[candidates]]
    name = "B"
    model = "openai:other@http://127.0.0.1:8000/v1"
    prompt = "none"
    headers = { Authorization = "env:RPA_TOKEN" }

    [endpoints."http://127.0.0.1:8000/v1"]
    max_concurrency = 64
    """
)


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("RPA_TOKEN", "Bearer token-of-a-test")


def written(tmp_path, text):
    (tmp_path / "cards").mkdir(exist_ok=True)
    (tmp_path / "cards" / "k1.json").write_text("{}", "utf-8")
    (tmp_path / "study.toml").write_text(text, "utf-8")
    return tmp_path


def test_a_study_is_read_from_its_folder_or_its_file(tmp_path):
    folder = written(tmp_path, GOOD)
    study = load_study(folder)
    assert study.content.study.name == "harbour"
    assert study.content.protocol.depth_limit == 20
    assert study.content.protocol.sampled_replies == 4
    assert study.content.users[1].simulator.kind == "raw"
    assert load_study(folder / "study.toml") == study
    assert [path.name for path in study.panel_files()] == ["k1.json"]


FAULTS = [
    pytest.param(
        'name = "A"', 'nmae = "A"', "line {n}: candidates.0.nmae is not", id="unknown key"
    ),
    pytest.param(
        "temperature = 0.8",
        "temprature = 0.8",
        "line {n}: candidates.0.temprature is not a setting",
        id="unknown key in a candidate",
    ),
    pytest.param(
        'prompt = "none"',
        'pormpt = "none"',
        "line {n}: candidates.1.pormpt is not a setting",
        id="unknown key in the second candidate",
    ),
    pytest.param("repetitions = 2", "repetitions = 0", "line {n}: protocol.repetitions", id="zero"),
    pytest.param(
        'kind = "raw"', 'kind = "rwa"', "line {n}: users.1.simulator.kind is wrong", id="kind"
    ),
    pytest.param(
        'kind = "prompted"',
        'kind = "guess"',
        "line {n}: users.0.simulator.kind is wrong",
        id="kind in an inline table",
    ),
    pytest.param(
        "max_concurrency = 64", "max_concurency = 64", "max_concurency is not a", id="endpoint key"
    ),
    pytest.param("[judge]", "[jugde]", "line {n}: jugde is not a setting", id="unknown table"),
    pytest.param('id = "u2"', 'id = "u1"', "two users are called 'u1'", id="same user twice"),
    pytest.param('id = "u2"', 'id = "a/b"', "the user id 'a/b' cannot be used", id="slash"),
    pytest.param('name = "B"', 'name = "A"', "two candidates are called 'A'", id="same name"),
    pytest.param(
        "openai:my-rpa@", "opneai:my-rpa@", "line {n}: candidates.A.model: model", id="provider"
    ),
    pytest.param(
        "local:smollm2-135m", "local:smollm3", "users.u1.simulator.model: model", id="local model"
    ),
    pytest.param(
        "openai:judge@http://127.0.0.1:1/v1", "openai:gpt-5.4", "OPENAI_API_KEY", id="unset key"
    ),
    pytest.param(
        "openai:judge@http://127.0.0.1:1/v1", "scripted:r.json", "r.json does not", id="no script"
    ),
    pytest.param("[protocol]", "[protocol", "is not valid TOML", id="not TOML"),
]


@pytest.mark.parametrize(("right", "wrong", "sentence"), FAULTS)
def test_a_fault_is_one_sentence_with_its_place(tmp_path, monkeypatch, right, wrong, sentence):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert right in GOOD
    folder = written(tmp_path, GOOD.replace(right, wrong, 1))
    with pytest.raises(InputError) as raised:
        load_study(folder)
    line = next((n for n, row in enumerate(GOOD.splitlines(), 1) if right in row), None)
    assert sentence.replace("{n}", str(line)) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unset_variable_of_a_header_is_named_before_any_call(tmp_path, monkeypatch):
    monkeypatch.delenv("RPA_TOKEN")
    with pytest.raises(InputError, match=r"header Authorization needs .* RPA_TOKEN"):
        load_study(written(tmp_path, GOOD))


@pytest.mark.parametrize(
    ("keys", "refusal"),
    [
        ((), None),
        (("users",), None),
        (("judge",), "judge.model: openai:gpt-5.4 needs .* OPENAI_API_KEY"),
        (("candidates",), "candidates.B.model: the header Authorization needs .* RPA_TOKEN"),
        (("users.u1.simulator",), None),
        (("users.u2.simulator",), "users.u2.simulator.model: .* ANTHROPIC_API_KEY"),
    ],
)
def test_a_key_is_needed_where_the_model_is_called(tmp_path, monkeypatch, keys, refusal):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RPA_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    text = GOOD.replace("openai:judge@http://127.0.0.1:1/v1", "openai:gpt-5.4")
    if "users" not in keys:
        before, _, after = text.rpartition('"local:smollm2-135m"')
        text = f'{before}"anthropic:claude"{after}'
    folder = written(tmp_path, text)
    if refusal is None:
        assert len(load_study(folder, keys=keys).content.users) == 2
        return
    with pytest.raises(InputError, match=refusal):
        load_study(folder, keys=keys)


def test_headers_go_to_no_other_endpoint_than_they_were_written_for(tmp_path):
    own = "openai:ada@http://127.0.0.1:8000/v1"
    before, _, after = GOOD.rpartition('"local:smollm2-135m"')
    written_for = f'{before}"{own}"\n    headers = {{ X-Token = "env:RPA_TOKEN" }}{after}'
    user = load_study(written(tmp_path, written_for)).content.users[1]
    assert user.simulated_by("raw", own).simulator.headers == {"X-Token": "env:RPA_TOKEN"}
    beside = user.simulated_by("raw", "openai:base@http://127.0.0.1:8000/v1").simulator
    assert (beside.model, len(beside.headers)) == ("openai:base@http://127.0.0.1:8000/v1", 1)
    for elsewhere in ("openai:ada@http://127.0.0.1:9000/v1", "openai:ada", None):
        assert user.simulated_by("raw", elsewhere).simulator.headers == {}


def test_a_header_without_its_variable_is_told_with_its_own_line(tmp_path, monkeypatch):
    monkeypatch.delenv("RPA_TOKEN")
    line = next(n for n, row in enumerate(GOOD.splitlines(), 1) if "env:RPA_TOKEN" in row)
    with pytest.raises(InputError, match=f"line {line}: candidates.B.model: the header"):
        load_study(written(tmp_path, GOOD))


def test_a_missing_setting_is_named(tmp_path):
    folder = written(tmp_path, GOOD.replace('rubric = "rubrics/u1.json"\n', ""))
    with pytest.raises(InputError, match=r"users\.0\.rubric is missing; add it"):
        load_study(folder)


def test_a_missing_study_says_how_to_begin_one(tmp_path):
    with pytest.raises(InputError, match="palate init"):
        load_study(tmp_path / "nowhere")


def test_a_panel_pattern_without_cards_is_refused(tmp_path):
    folder = written(tmp_path, GOOD.replace("cards/*.json", "crads/*.json"))
    with pytest.raises(InputError, match=r"study\.panel has 'crads/\*\.json'"):
        load_study(folder).panel_files()


def test_two_cards_with_one_id_are_refused(tmp_path):
    folder = written(tmp_path, GOOD.replace('["cards/*.json"]', '["cards/*.json", "more/*.json"]'))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "k1.json").write_text("{}", "utf-8")
    with pytest.raises(InputError, match="two cards with the id 'k1'"):
        load_study(folder).panel_files()
