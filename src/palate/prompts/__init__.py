"""Prompts are files, filled in one pass; what fills them is data.

A prompt file is Markdown named `NAME.LANGUAGE.md`. `<<name>>` is a placeholder: single pass, so a
value that itself looks like a placeholder stays as it is, and braces mean nothing. An unknown or
unused name is an error. The file's SHA-256 is stored with every result made from it.

Text that came from a model, a card or a log is put between fixed marks by `fenced`, and the marks
are escaped inside it, so that no text can end its own region (random marks would break prefix
caching and repeatability).
"""

from __future__ import annotations

import functools
import hashlib
import re
from importlib import resources
from typing import NamedTuple

_DIVIDER = "\n=====\n"
_PLACEHOLDER = re.compile(r"<<([a-z_]+)>>")

BEGIN = "⟦{name}⟧"
END = "⟦/{name}⟧"


class Prompt(NamedTuple):
    """A prompt file: its name, text and SHA-256."""

    name: str
    text: str
    sha256: str

    def fill(self, **values: str) -> str:
        """The text with every `<<name>>` replaced, in one pass.

        Raises:
            KeyError: a placeholder has no value, or a value no placeholder.
        """
        wanted = set(_PLACEHOLDER.findall(self.text))
        if wanted != set(values):
            odd = sorted(wanted.symmetric_difference(values))
            raise KeyError(f"prompt {self.name}: placeholders and values differ in {odd}")
        return _PLACEHOLDER.sub(lambda match: values[match.group(1)], self.text)

    def fill_present(self, **values: str) -> str:
        """Like `fill`, without the paragraphs that hold a placeholder whose value is blank.

        So that a card without a scenario has no heading for one.

        Raises:
            KeyError: as `fill`.
        """
        self.fill(**values)
        paragraphs = [
            part
            for part in self.text.split("\n\n")
            if all(values[name].strip() for name in _PLACEHOLDER.findall(part))
        ]
        joined = "\n\n".join(paragraphs)
        return _PLACEHOLDER.sub(lambda match: values[match.group(1)], joined)


def placeholders(prompt: Prompt) -> frozenset[str]:
    """The names that `fill` needs."""
    return frozenset(_PLACEHOLDER.findall(prompt.text))


@functools.cache
def load(name: str, language: str) -> Prompt:
    """The prompt file `NAME.LANGUAGE.md` of this package."""
    file = f"{name}.{language}.md"
    return from_text(file, resources.files(__name__).joinpath(file).read_text("utf-8"))


def from_text(name: str, text: str) -> Prompt:
    """A prompt from text (a candidate's own prompt file, a test)."""
    return Prompt(name, text.strip(), hashlib.sha256(text.encode()).hexdigest())


class Sheet(NamedTuple):
    """A prompt file in two halves: what instructs a judge, and what it is shown."""

    system: Prompt
    user: Prompt
    sha256: str


@functools.cache
def sheet(name: str, language: str) -> Sheet:
    """The prompt file `NAME.LANGUAGE.md`, split at its line of equals signs.

    Split before it is filled, so that no text can move the split.
    """
    whole = load(name, language)
    system, user = whole.text.split(_DIVIDER)
    return Sheet(
        from_text(f"{whole.name} (system)", system),
        from_text(f"{whole.name} (user)", user),
        whole.sha256,
    )


def fenced(name: str, text: str) -> str:
    """`text` as data: between ⟦name⟧ and ⟦/name⟧, with both brackets escaped inside it."""
    safe = text.replace("⟦", "[[").replace("⟧", "]]")
    return f"{BEGIN.format(name=name)}\n{safe}\n{END.format(name=name)}"
