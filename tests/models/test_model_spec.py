"""How a study names models and describes endpoints."""

import pytest
from pydantic import ValidationError

from palate.errors import InputError
from palate.models.spec import EndpointSettings, ModelSpec, Price, missing_key, settings_for
from palate.types import Usage


@pytest.mark.parametrize(
    ("text", "provider", "model", "base_url"),
    [
        ("openai:gpt-5.4", "openai", "gpt-5.4", None),
        ("openai:my-rpa@http://127.0.0.1:8000/v1", "openai", "my-rpa", "http://127.0.0.1:8000/v1"),
        (
            "openai:org/name:free@https://X.example/v1/",
            "openai",
            "org/name:free",
            "https://x.example/v1",
        ),
        (
            "openai:@cf/meta/llama@https://x.example/v1",
            "openai",
            "@cf/meta/llama",
            "https://x.example/v1",
        ),
        ("anthropic:claude@20250514", "anthropic", "claude@20250514", None),
        ("local:smollm2-135m", "local", "smollm2-135m", None),
        ("scripted:my replies.json", "scripted", "my replies.json", None),
        ("inspect:google/gemini-3-pro", "inspect", "google/gemini-3-pro", None),
        ("openai:m@http://[::1]:8000/v1", "openai", "m", "http://[::1]:8000/v1"),
    ],
)
def test_a_model_is_read(text, provider, model, base_url):
    spec = ModelSpec.parse(text)
    assert (spec.provider, spec.model, spec.base_url) == (provider, model, base_url)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpt-5.4", "names no provider"),
        ("opnai:gpt-5.4", "provider must be one of openai, anthropic, local, scripted, inspect"),
        ("openai:", "has no name"),
        ("openai:@http://127.0.0.1/v1", "has no name"),
        ("openai:m@localhost:8000/v1", "must begin with http:// or https://"),
        ("openai:m@example.com/v1", "must begin with http:// or https://"),
        ("openai:m@ftp://example.com", "must begin with http:// or https://"),
        ("openai:m@http://", "and a host"),
        ("openai:m@http://host:port/v1", "is not a web address"),
        ("openai:m@http://host/v1/chat/completions", "leave out /chat/completions"),
        ("openai:two words", "no white space"),
        ("local:llama-70b", "the embedded models are: local:smollm2-135m"),
        ("local:smollm2-135m@http://127.0.0.1", "take no base URL"),
        ("inspect:gemini", "inspect:provider/model"),
    ],
)
def test_a_wrong_model_is_refused_in_a_sentence(text, says):
    with pytest.raises(InputError, match=says) as refused:
        ModelSpec.parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "openai:m@http://user:s3cret@host/v1",
        "openai:m@http://host/v1?api_key=s3cret",
        "openai:m@http://s3cret@host:port/v1",
    ],
)
def test_a_key_in_a_base_url_is_refused_and_not_quoted(text):
    with pytest.raises(InputError) as refused:
        ModelSpec.parse(text)
    assert "s3cret" not in str(refused.value)


def test_a_key_pasted_as_its_variables_name_is_not_quoted():
    with pytest.raises(ValidationError) as refused:
        EndpointSettings(key_env="sk-live-12345")
    assert "sk-live" not in str(refused.value)


def test_a_study_table_goes_over_the_defaults_of_its_provider():
    tables = {"https://api.anthropic.com/": EndpointSettings(max_concurrency=3)}
    settings = settings_for(ModelSpec.parse("anthropic:claude"), tables)
    assert settings.max_concurrency == 3
    assert settings.first_role == "user"
    assert settings.key_env == "ANTHROPIC_API_KEY"


def test_own_keys_go_to_the_official_hosts_only():
    for text in ("openai:m@http://elsewhere.example/v1", "anthropic:m@http://elsewhere.example"):
        assert settings_for(ModelSpec.parse(text), {}).key_env is None
    assert settings_for(ModelSpec.parse("openai:m"), {}).key_env == "OPENAI_API_KEY"


def test_what_an_api_does_not_have_is_refused():
    tables = {"https://api.anthropic.com": EndpointSettings(digits="logprobs")}
    with pytest.raises(InputError, match="leave them out"):
        settings_for(ModelSpec.parse("anthropic:claude"), tables)


def test_an_unset_or_blank_key_is_named(monkeypatch):
    spec = ModelSpec.parse("openai:gpt-5.4")
    settings = settings_for(spec, {})
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert missing_key(spec, settings) == "OPENAI_API_KEY"
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert missing_key(spec, settings) is None


def test_cost_counts_cached_tokens_at_their_own_price():
    """600 × 2 + 400 × 0.5 + 100 × 10 = 2400 millionths of a dollar."""
    price = Price(input=2, output=10, cached_input=0.5)
    assert price.cost(Usage(1000, 100, 400)) == 0.0024


def test_cost_without_a_cache_price_takes_the_price_of_input():
    assert Price(input=2, output=10).cost(Usage(1000, 100, 400)) == 0.003


def test_an_unknown_price_is_none_and_not_zero():
    assert Price(input=2).cost(Usage(1000, 100)) is None
    assert Price().cost(Usage(1, 0)) is None
    assert Price(input=2).cost(Usage(1000, 0)) == 0.002
