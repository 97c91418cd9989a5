"""The shared rubrics: 12 generic dimensions of a reply, 11 of a whole session (paper 3.3).

They are data (`data/generic.toml`, `data/session.toml`), each text in English and Chinese. Names
and wording are this project's own; the paper's are not public. A verdict carries the digest of
the rubric that it was made with.
"""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from importlib import resources
from typing import Literal

from pydantic import ValidationError

from palate.errors import RubricError
from palate.types import Dimension, SharedRubric

LANGUAGES = frozenset({"en", "zh"})
ANCHORS = frozenset({"1", "3", "5"})


@functools.cache
def load_shared(track: Literal["generic", "session"]) -> SharedRubric:
    """The rubric of `track` that comes with palate."""
    file = resources.files(__package__).joinpath("data", f"{track}.toml")
    return parse_shared(file.read_text("utf-8"), source=f"{track}.toml")


def parse_shared(text: str, *, source: str) -> SharedRubric:
    """A shared rubric from TOML text; `source` names it in errors.

    Raises:
        RubricError: no valid TOML, a field missing or unknown, an id or label twice, or a text
            missing in one of the two languages.
    """
    try:
        rubric = SharedRubric.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise RubricError(f"{source} is not valid TOML ({error}); correct that place") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RubricError(f"{source}: {place}: {first['msg']}; correct that field") from error
    _check_unique(rubric, source)
    for dimension in rubric.dimensions:
        _check_texts(dimension, source)
    return rubric


def _check_unique(rubric: SharedRubric, source: str) -> None:
    """Ids and labels name a dimension in a verdict, so no two may share one."""
    if not rubric.dimensions:
        raise RubricError(f"{source} has no dimensions; add at least one")
    names = Counter(d.id for d in rubric.dimensions)
    names += Counter(label for d in rubric.dimensions for label in d.label.values())
    doubled = sorted(name for name, times in names.items() if times > 1)
    if doubled:
        raise RubricError(f"{source}: {doubled[0]!r} names two dimensions; rename one of them")


def _check_texts(dimension: Dimension, source: str) -> None:
    for field in ("label", "definition", "anchors"):
        found = set(getattr(dimension, field))
        if found != LANGUAGES:
            raise RubricError(
                f"{source}: {dimension.id}.{field} has {sorted(found)} where en and zh are needed;"
                " write both"
            )
    texts = [*dimension.label.values(), *dimension.definition.values()]
    for language, anchors in dimension.anchors.items():
        if set(anchors) != ANCHORS:
            raise RubricError(
                f"{source}: {dimension.id}.anchors.{language} has {sorted(anchors)} where 1, 3 and"
                " 5 are needed; write these three"
            )
        texts += anchors.values()
    if not all(text.strip() for text in texts):
        raise RubricError(f"{source}: {dimension.id} has an empty text; write it")
