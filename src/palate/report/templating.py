"""The template environment: autoescape everywhere, and the words and numbers templates print."""

from __future__ import annotations

import functools
import json
from importlib import resources
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

NOT_MEASURED = "n/a"


def strict_environment(package: str) -> Environment:
    """An environment for the templates of `package`: all is escaped, a missing name is an error."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def environment() -> Environment:
    """The environment of the reports' templates."""
    made = strict_environment("palate.report")
    made.filters |= {
        "number": number,
        "interval": interval,
        "at": position,
        "step": step,
        "count": count,
        "money": money,
        "words": words,
        "pretty": pretty,
    }
    made.globals |= {"cells_link": cells_link, "cell_link": cell_link}
    return made


def asset(name: str) -> str:
    """The text of a style sheet or script, with the line ends that a browser hashes."""
    file = resources.files("palate.report").joinpath("templates", name)
    return file.read_text("utf-8").replace("\r\n", "\n")


def visible(value: object) -> object:
    """A value as it goes into HTML.

    NUL is dropped by HTML parsers and a bare carriage return becomes a line feed: one is shown by
    its picture, the other written as a reference, so that the reader sees what was there.
    """
    if (
        isinstance(value, str)
        and not isinstance(value, Markup)
        and ("\0" in value or "\r" in value)
    ):
        return Markup(  # noqa: S704 - escaped before
            str(escape(value.replace("\0", "␀"))).replace("\r", "&#13;")
        )
    return value


def number(value: float | None, digits: int = 2) -> str:
    """A score or index; "n/a" where it was not measured."""
    return NOT_MEASURED if value is None else f"{value:.{digits}f}"


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """A 95 % interval; "no interval" where there is none."""
    if low is None or high is None:
        return "no interval"
    return f"{low:.{digits}f} – {high:.{digits}f}"


def position(value: float, low: float, high: float) -> str:
    """Where `value` lies on an axis from `low` to `high`, as a percentage of its length."""
    share = (value - low) / (high - low)
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def step(value: float | None, low: float, high: float, steps: int = 16) -> int:
    """The nearest of `steps` + 1 even steps of an axis, for a tint; -1 for no value."""
    if value is None:
        return -1
    share = (value - low) / (high - low)
    return round(steps * min(max(share, 0.0), 1.0))


def count(value: int) -> str:
    """A count with thousands set apart."""
    return f"{value:,}"


def money(value: float | None, currency: str) -> str:
    """A cost; "n/a" where a price is not known."""
    if value is None:
        return NOT_MEASURED
    return f"{value:,.4f} {currency}" if 0 < value < 1 else f"{value:,.2f} {currency}"


def words(identifier: str) -> str:
    """An identifier of ours as words: "depth_limit" is "depth limit"."""
    return identifier.replace("_", " ")


def pretty(value: object) -> str:
    """JSON for a reader."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def cells_link(**names: str) -> str:
    """The list of conversations, narrowed to a user, candidate or card."""
    return "#cells?" + urlencode(names, errors="replace")


def cell_link(key: str) -> str:
    """The conversation of a cell."""
    return "#cell=" + quote(key, safe="/", errors="replace")
