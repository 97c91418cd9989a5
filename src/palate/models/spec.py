"""How a study names a model and describes its endpoint, read and checked before any call.

A model is written `provider:model` with an optional `@base_url`. What an endpoint can and cannot
do stands in `EndpointSettings`; `settings_for` lays what the study says over the defaults of the
provider. Keys are known by the name of an environment variable alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal, get_args
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator

from palate.errors import InputError
from palate.types import Record, Usage

Provider = Literal["openai", "anthropic", "local", "scripted", "inspect"]
PROVIDERS: tuple[str, ...] = get_args(Provider)
LOCAL_MODELS = ("smollm2-135m",)
LOCAL_SLOTS = 4  # chats that the embedded server keeps at once; measured, see ADR 0002

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"

_HOW = (
    "write provider:model, for example openai:gpt-5.4 or openai:my-model@http://127.0.0.1:8000/v1"
)
_URL_BEGINS = re.compile(r"@(?=[A-Za-z][A-Za-z0-9+.-]*://)")
_LIKE_A_HOST = re.compile(r"(localhost\b|[\w.-]+:\d+|[\w-]+(\.[\w-]+)+(/|\Z))")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CALL_PATHS = ("/chat/completions", "/completions", "/messages")


class ModelSpec(Record):
    """A model as written in the study; `base_url` is normalised (no slash at the end)."""

    provider: Provider
    model: str
    base_url: str | None = None

    @classmethod
    def parse(cls, text: str) -> ModelSpec:
        """The model that `text` names.

        Raises:
            InputError: no provider, an unknown one, no model, or a base URL that is none.
        """
        provider, colon, rest = text.strip().partition(":")
        if not colon:
            raise InputError(f"model {_shown(text)} names no provider: {_HOW}")
        if provider not in PROVIDERS:
            known = ", ".join(PROVIDERS)
            raise InputError(f"model {_shown(text)}: provider must be one of {known}")
        name, url = _split_url(rest.strip(), text)
        if not name:
            raise InputError(f"model {_shown(text)} has no name after {provider}: — {_HOW}")
        _check_name(provider, name, url, text)
        return cls.model_validate({"provider": provider, "model": name, "base_url": url})

    @property
    def endpoint(self) -> str:
        """The address that limits and settings belong to; for models without one, the name."""
        if self.provider == "openai":
            return self.base_url or OPENAI_URL
        if self.provider == "anthropic":
            return self.base_url or ANTHROPIC_URL
        return f"{self.provider}:{self.model}"

    def __str__(self) -> str:
        """The model as one writes it in a study."""
        return f"{self.provider}:{self.model}" + (f"@{self.base_url}" if self.base_url else "")


def _split_url(rest: str, text: str) -> tuple[str, str | None]:
    parts = _URL_BEGINS.split(rest, maxsplit=1)
    if len(parts) == 2:
        return parts[0].strip(), normal_url(parts[1])
    if "@" in rest and _LIKE_A_HOST.match(rest.rpartition("@")[2]):
        raise InputError(
            f"model {_shown(text)}: the base URL after @ must begin with http:// or https://"
        )
    return rest, None


def _check_name(provider: str, name: str, url: str | None, text: str) -> None:
    if url and provider not in ("openai", "anthropic"):
        raise InputError(f"model {_shown(text)}: {provider} models take no base URL; remove @…")
    if provider == "local" and name not in LOCAL_MODELS:
        known = ", ".join(f"local:{known}" for known in LOCAL_MODELS)
        raise InputError(f"model {_shown(text)} does not exist; the embedded models are: {known}")
    if provider == "inspect" and not all(name.partition("/")[::2]):
        raise InputError(f"model {_shown(text)}: write inspect:provider/model")
    if provider != "scripted" and re.search(r"\s", name):
        raise InputError(f"model {_shown(text)}: a model name holds no white space")


def normal_url(url: str) -> str:
    """`url` without a slash at the end, its host in lower case: the key of an endpoint.

    Raises:
        InputError: not an http(s) address, or one with a key, a query or a call's path in it.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise InputError(f"base URL {_shown(url)} is not a web address") from None
    if parts.username is not None or parts.query or parts.fragment:
        # Not quoted back: this is where people put keys.
        raise InputError(
            f"base URL of {parts.hostname or 'an endpoint'}: leave out user names, passwords, "
            "queries and fragments; a key is given by the name of an environment variable (key_env)"
        )
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise InputError(f"base URL {_shown(url)} must begin with http:// or https:// and a host")
    path = parts.path.rstrip("/")
    for ending in _CALL_PATHS:
        if path.endswith(ending):
            raise InputError(f"base URL {_shown(url)}: leave out {ending} at the end")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme.lower()}://{host}{'' if port is None else f':{port}'}{path}"


def _shown(text: str) -> str:
    """`text` for an error: short, printable, and without what stands before an @ in a URL."""
    safe = re.sub(r"(?<=://)[^/@]*@", "…@", text)
    return repr(safe if len(safe) <= 80 else safe[:79] + "…")


class EndpointSettings(Record):
    """What one endpoint takes and how hard it may be asked: a study's `[endpoints."URL"]`.

    `timeout_s` bounds one attempt, `deadline_s` a whole call with its retries, counted from the
    moment the call got its place among the `max_concurrency` ones. `key_env` names the
    environment variable with the key. `system_role`, `first_role`, `alternate` and `max_system`
    are the back end's rules for message lists (`palate.models.shapes`). `json_schema`: the
    endpoint enforces response_format json_schema. `digits`: how digit probabilities are read
    (`palate.models.digits`). `max_tokens_field`: what the limit of a reply is called
    (None: the newer name for OpenAI's and Azure's own hosts, the older one elsewhere).
    """

    # A mistyped setting may be a pasted key: pydantic must not quote it.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    max_concurrency: int = Field(default=16, ge=1, strict=True)
    timeout_s: float = Field(default=120.0, gt=0, allow_inf_nan=False, strict=True)
    deadline_s: float = Field(default=600.0, gt=0, allow_inf_nan=False, strict=True)
    max_attempts: int = Field(default=6, ge=1, strict=True)
    key_env: str | None = None
    system_role: bool = Field(default=True, strict=True)
    first_role: Literal["any", "user"] = "any"
    alternate: bool = Field(default=False, strict=True)
    max_system: int | None = Field(default=None, ge=1, strict=True)
    json_schema: bool = Field(default=False, strict=True)
    digits: Literal["none", "logprobs", "grammar"] = "none"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None

    @field_validator("key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not _ENV_NAME.match(value):
            raise ValueError("must be the name of an environment variable, not a key")
        return value


def settings_for(spec: ModelSpec, endpoints: Mapping[str, EndpointSettings]) -> EndpointSettings:
    """The settings of `spec`'s endpoint: what the study says over the provider's defaults.

    `endpoints` has the study's tables by URL, in any spelling of it.

    Raises:
        InputError: a URL is none, or the table asks what the provider's API does not have.
    """
    tables = {normal_url(url): table for url, table in endpoints.items()}
    if len(tables) < len(endpoints):
        raise InputError("two endpoint tables are for the same address; keep one of them")
    given = tables.get(spec.endpoint)
    defaults = _defaults(spec)
    if given is None:
        return defaults
    if spec.provider == "anthropic" and (given.digits != "none" or given.json_schema):
        raise InputError(
            f"endpoint {spec.endpoint}: digits and json_schema are for openai: models; "
            "the Anthropic messages API has neither, so leave them out"
        )
    chosen = {name: getattr(given, name) for name in given.model_fields_set}
    return defaults.model_copy(update=chosen)


def _defaults(spec: ModelSpec) -> EndpointSettings:
    """An own key goes to the official hosts only, never to a host that the study names."""
    if spec.provider == "openai" and spec.endpoint == OPENAI_URL:
        return EndpointSettings(key_env="OPENAI_API_KEY", json_schema=True)
    if spec.provider == "anthropic":
        official = spec.endpoint == ANTHROPIC_URL
        key = "ANTHROPIC_API_KEY" if official else None
        return EndpointSettings(key_env=key, first_role="user")
    if spec.provider == "local":
        return EndpointSettings(max_concurrency=LOCAL_SLOTS, json_schema=True, digits="grammar")
    return EndpointSettings()


def missing_key(spec: ModelSpec, settings: EndpointSettings) -> str | None:
    """The environment variable that `spec` needs and that is unset or blank, if any."""
    if spec.provider not in ("openai", "anthropic") or settings.key_env is None:
        return None
    return None if os.environ.get(settings.key_env, "").strip() else settings.key_env


class Price(Record):
    """USD per million tokens; None is unknown.

    Without `cached_input`, prompt tokens from the provider's cache count as `input`.
    """

    input: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    output: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)

    def cost(self, usage: Usage) -> float | None:
        """USD for `usage`, or None where a price that it needs is unknown."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        parts = (
            (usage.prompt - usage.cached, self.input),
            (usage.cached, cached_price),
            (usage.completion, self.output),
        )
        total = 0.0
        for tokens, price in parts:
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0)
        return total / 1_000_000
