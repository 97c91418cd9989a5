"""A chat at the terminal: what is said, as it grows, and what the person types.

Everything that a model, a card or a study wrote is shown without what would steer the terminal.
Standard output has the conversation alone; remarks of palate's own go to standard error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click

from palate.chat import USER_LEFT
from palate.errors import InputError
from palate.report.safe import terminal_safe

NO_TEXT = "standard input is no UTF-8 text; type or pipe text"
_SURROGATES = re.compile("[\ud800-\udfff]")


class Screen:
    """Standard input and output.

    `live`: messages are shown while they are written, on a terminal. `has_person`: somebody types,
    and is prompted; else lines are read as they come.
    """

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self.has_person = sys.stdin.isatty()
        if self.has_person:
            # Imported for what it does to `input`: arrow keys, and a history of lines.
            import readline  # noqa: F401

    def say(self, name: str, text: str) -> None:
        """A whole message."""
        self.speech(name).end(text)

    def speech(self, name: str) -> Speech:
        """A message that is on its way."""
        return Speech(name, live=self.live)

    def flagged(self, kinds: Sequence[str]) -> None:
        """What is odd about the message above."""
        if kinds:
            named = ", ".join(kind.replace("_", " ") for kind in kinds)
            _print(click.style(f"  ({named})", dim=True))

    def user_left(self) -> None:
        """The end of a chat."""
        _print(USER_LEFT["en"])

    def note(self, text: str) -> None:
        """A remark of palate's own."""
        click.secho(terminal_safe(text), dim=True, err=True)

    def typed(self, name: str) -> str | None:
        """What the person types next, lines that end with a backslash joined; None at the end.

        Raises:
            InputError: it is no text.
        """
        prompt = f"\n{terminal_safe(name)}> " if self.has_person else ""
        lines: list[str] = []
        try:
            lines.append(input(prompt))
            while lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1]
                lines.append(input("… " if prompt else ""))
        except EOFError:
            return "\n".join(lines) if lines else None
        except UnicodeDecodeError:
            raise InputError(NO_TEXT) from None
        typed = "\n".join(lines)
        if _SURROGATES.search(typed):  # in a C locale, a byte that is no text
            raise InputError(NO_TEXT)
        return typed


class Speech:
    """One message while it is written; what was shown may be taken back."""

    def __init__(self, name: str, *, live: bool) -> None:
        self._live = live
        self._shown = ""
        self._head = f"\n{terminal_safe(name)}: "
        if live:
            click.echo(self._head, nl=False)

    def show(self, text: str) -> None:
        """All of the message so far; on a terminal what is new of it is printed."""
        if not self._live:
            return
        safe = terminal_safe(text, lines=True)
        if not safe.startswith(self._shown):
            click.echo(f"{click.style(' (anew)', dim=True)}{self._head}", nl=False)
            self._shown = ""
        click.echo(safe.removeprefix(self._shown), nl=False)
        self._shown = safe

    def end(self, text: str) -> None:
        """The message is whole."""
        if self._live:
            self.show(text)
            click.echo()
        else:
            _print(f"{self._head.lstrip()}{terminal_safe(text, lines=True)}")

    def give_up(self) -> None:
        """Nothing more comes."""
        if self._live:
            click.echo()


def _print(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()  # the person, or who reads the pipe, waits for it
