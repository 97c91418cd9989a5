"""Paths as a validation's report shows them: of the study's folder on, and no home folder.

A report is passed on; the folders of the machine that made it are nobody's business, and say
nothing to whoever reads it. Every text of the result is gone through, whatever part it comes from:
a reason, a model that is a folder, what a failed call said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from palate.config import Study
from palate.simulators.validation.records import Validation

_STARTS = r"(?<![A-Za-z0-9_.~-])"  # a path may follow a Chinese character at once
_ENDS = r"(?![\w-]|\.\w)"
_HOME = "~"


def without_machine_folders(found: Validation, study: Study) -> Validation:
    """The same result with the study's folder and the home folder taken out of all its texts."""
    return Validation.model_validate(_changed(found.model_dump(by_alias=True), shortened(study)))


def shortened(study: Study) -> Callable[[str], str]:
    """What a text of this study reads as without the folders of the machine."""
    rules = [(re.compile(pattern), name) for pattern, name in (*_of_study(study), *_of_home())]

    def short(text: str) -> str:
        for pattern, name in rules:
            text = pattern.sub(name.replace("\\", r"\\"), text)
        return text

    return short


def _of_study(study: Study) -> Iterator[tuple[str, str]]:
    """What lies in the study reads from its folder on; the folder itself is its name."""
    for folder in dict.fromkeys((study.folder, study.folder.resolve())):
        if folder.name:
            written = re.escape(str(folder))
            yield rf"{_STARTS}{written}[/\\]", ""
            yield rf"{_STARTS}{written}{_ENDS}", folder.name


def _of_home() -> Iterator[tuple[str, str]]:
    try:
        home = Path.home()
    except RuntimeError:  # nobody's: there is none to tell
        return
    for folder in dict.fromkeys((home, home.resolve())):
        if folder.name:
            yield rf"{_STARTS}{re.escape(str(folder))}{_ENDS}", _HOME


def _changed(value: object, short: Callable[[str], str]) -> object:
    """`value` with its texts changed; names that things are kept under stay."""
    if isinstance(value, str):
        return short(value)
    if isinstance(value, dict):
        return {key: _changed(one, short) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_changed(one, short) for one in value)
    return value
