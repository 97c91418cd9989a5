"""A page as a parser sees it: elements, attributes, text, and what is in its scripts."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


class Page(HTMLParser):
    """Everything in a file, in order. Text of scripts and styles is kept apart."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.comments: list[str] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.styles: list[str] = []
        self.pieces: list[str] = []
        self._inside: tuple[str, dict[str, str]] | None = None
        self.source = path.read_bytes().decode("utf-8")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag in ("script", "style"):
            self._inside = (tag, {name: value or "" for name, value in attrs})
            if tag == "script":
                self.scripts.append((self._inside[1], ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = None

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[0] == tag:
            self._inside = None

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.pieces.append(data)
        elif self._inside[0] == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        else:
            self.styles.append(data)

    @property
    def text(self) -> str:
        """What a reader sees without a script, tooltips and labels included."""
        shown = [value for _, name, value in self.attributes if name in ("title", "aria-label")]
        return "\n".join(self.pieces + shown)

    @property
    def code(self) -> list[str]:
        """Scripts that a browser runs."""
        return [text for attributes, text in self.scripts if attributes.get("type") is None]

    def block(self, name: str) -> Any:
        """The value of a data block."""
        (text,) = [text for attributes, text in self.scripts if attributes.get("id") == name]
        return json.loads(text)

    def policy(self) -> dict[str, str]:
        """The Content-Security-Policy by directive."""
        at = self.attributes.index(("meta", "http-equiv", "Content-Security-Policy"))
        parts = (part.split(" ", 1) for part in self.attributes[at + 1][2].split("; "))
        return {part[0]: part[1] if len(part) > 1 else "" for part in parts}
