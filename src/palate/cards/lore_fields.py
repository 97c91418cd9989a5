"""Fields of a lorebook as people's cards have them: numbers as text, texts with commas, nulls.

Each function takes the fields and the names that one of them may have, the first that is there
counting. What has one reading is read; the rest is refused in a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from palate.errors import InputError

_LONGEST_SHOWN = 40  # characters of a faulty value in a sentence
_FLAGS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of a lorebook's JSON; `where` names it in sentences."""

    values: Mapping[str, object]
    where: str

    def value(self, *names: str) -> object:
        """The first of these fields that is there and not empty, else None."""
        found = (self.values.get(name) for name in names)
        return next((value for value in found if value is not None and value != ""), None)

    def within(self, name: str) -> Fields:
        """The object under `name`; without fields where there is none."""
        value = self.values.get(name)
        return Fields(value if isinstance(value, dict) else {}, self.where)

    def number(self, *names: str) -> float | None:
        """A finite number, also where it is written as text.

        Raises:
            InputError: it is none.
        """
        value = self.value(*names)
        if value is None:
            return None
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            try:
                found = float(value)
            except (ValueError, OverflowError):
                found = math.nan
            if math.isfinite(found):
                return found
        raise self._refused(names, value, "a number")

    def count(self, *names: str) -> int | None:
        """A whole number, at least 0: a lower one counts as 0.

        Raises:
            InputError: it is no number.
        """
        found = self.number(*names)
        return None if found is None else max(int(found), 0)

    def flag(self, *names: str, default: bool = False) -> bool:
        """True or false, also where it is written as 0, 1 or text.

        Raises:
            InputError: it is neither.
        """
        value = self.value(*names)
        if value is None:
            return default
        if isinstance(value, (bool, int, float, str)):
            found = _FLAGS.get(str(value).strip().lower())
            if found is not None:
                return found
        raise self._refused(names, value, "true or false")

    def text(self, name: str) -> str:
        """A text; of a list of texts, its lines.

        Raises:
            InputError: it is neither.
        """
        value = self.values.get(name)
        if value is None:
            return ""
        lines = value if isinstance(value, list) else [value]
        if not all(_is_plain(line) for line in lines):
            raise self._refused((name,), value, "text")
        return "\n".join(str(line) for line in lines)

    def texts(self, *names: str, splits: bool = True) -> tuple[str, ...]:
        """A list of texts, or one text with commas between them; `splits` False: one text is one.

        Raises:
            InputError: it is neither.
        """
        value = self.value(*names)
        if value is None:
            return ()
        if isinstance(value, list):
            listed: Sequence[object] = [item for item in value if item is not None]
        else:
            listed = split(value) if isinstance(value, str) and splits else [value]
        if not all(_is_plain(item) for item in listed):
            raise self._refused(names, value, "a list of texts")
        return tuple(str(item) for item in listed)

    def _refused(self, names: Sequence[str], value: object, wanted: str) -> InputError:
        name = next(name for name in names if self.values.get(name) is value)
        shown = repr(value)
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN]}…"
        return InputError(f"{self.where}: {name} is {shown} and not {wanted}; mend the card")


def split(text: str) -> tuple[str, ...]:
    """The values between commas, white space around them dropped, blank ones left out."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
