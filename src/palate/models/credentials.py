"""Keys and headers from the environment. No error here ever quotes a value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from palate.errors import InputError
from palate.models.spec import EndpointSettings, ModelSpec, missing_key

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_VALUE = re.compile(r"[\x20-\x7e]*\Z")
_LEAST_WORD = 8  # of a header's value; shorter words ("Bearer") are no secrets of their own


@dataclass(frozen=True, slots=True)
class Headers:
    """A study's own headers, and the texts among them that must not be shown."""

    values: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def resolved(model: str, headers: Mapping[str, str]) -> Headers:
    """`headers` with every value "env:NAME" read from the environment.

    Raises:
        InputError: a variable is unset, or a name or value cannot be sent.
    """
    values: dict[str, str] = {}
    secrets: list[str] = []
    for name, written in headers.items():
        check_header_name(model, name)
        if written.startswith("env:"):
            variable = written.removeprefix("env:").strip()
            value = _variable(model, variable, f"the header {name}")
            # An error may quote the token without its "Bearer".
            secrets += [value, *(word for word in value.split() if len(word) >= _LEAST_WORD)]
        elif _VALUE.match(written):
            value = written
        else:
            raise InputError(
                f"model {model}: the header {name} holds characters that cannot be sent; "
                "use printable ASCII"
            )
        values[name] = value
    return Headers(values, tuple(secrets))


def check_written(name: str, value: str) -> None:
    """Refuse a header that no study could mean, whatever the environment holds.

    Raises:
        ValueError: its name or its value cannot be sent, or "env:" names no variable.
    """
    if not _NAME.match(name):
        raise ValueError(f"{name!r} cannot be the name of a header; rename it")
    if value.startswith("env:") and not value.removeprefix("env:").strip():
        raise ValueError(f'the header {name} names no variable; write {name} = "env:NAME"')
    if not value.startswith("env:") and not _VALUE.match(value):
        raise ValueError(f"the header {name} holds characters that cannot be sent")


def check_header_name(model: str, name: str) -> None:
    """Refuse what cannot be the name of a header.

    Raises:
        InputError: it cannot.
    """
    if not _NAME.match(name):
        raise InputError(f"model {model}: {name!r} cannot be the name of a header; rename it")


def key_of(model: str, spec: ModelSpec, settings: EndpointSettings) -> str | None:
    """The key of an endpoint, or None where it takes none.

    Raises:
        InputError: its environment variable is unset or holds no key.
    """
    unset = missing_key(spec, settings)
    if unset is None and settings.key_env is None:
        return None
    return _variable(model, unset or settings.key_env or "", "its key")


def _variable(model: str, variable: str, purpose: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(
            f"model {model} needs the environment variable {variable} for {purpose}; set it"
        )
    if not _VALUE.match(value):
        raise InputError(
            f"model {model}: the environment variable {variable} holds characters that cannot be "
            f"sent in a header; check that it holds {purpose} alone"
        )
    return value
