"""Results and remarks as plain output: one line for a terminal, JSON for a program."""

from __future__ import annotations

import json

from pydantic import BaseModel
from rich.console import Console

from palate.report.safe import terminal_safe


def say(text: str, console: Console) -> None:
    """Print `text` on a line of its own, whatever it holds and however long it is."""
    console.print(terminal_safe(text), markup=False, highlight=False, soft_wrap=True)


def to_json(found: BaseModel) -> str:
    """A record as indented JSON, in which its text stays readable."""
    return json.dumps(found.model_dump(mode="json"), ensure_ascii=False, indent=2)
