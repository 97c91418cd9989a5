"""Writing cards: JSON, PNG, CHARX and YAML, told by the ending of the target's name.

What we did not make stays as it was: from a picture to a picture only the card's chunks are new,
from a CHARX to a CHARX only card.json is; between the two the picture goes along. What a target
cannot hold is named in a warning.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from palate.cards import charx, icons, oobabooga, png
from palate.cards.bounds import opened
from palate.cards.carriers import Carrier
from palate.cards.files import load
from palate.cards.versions import V1_FIELDS, Version, as_v1, as_v2, as_v3
from palate.disk import disk, replacing
from palate.errors import InputError
from palate.types import Card

ENDINGS: dict[str, Carrier] = {
    ".json": "json",
    ".png": "png",
    ".apng": "png",
    ".charx": "charx",
    ".yaml": "yaml",
    ".yml": "yaml",
}

_OWN_FIELDS = {
    "description": "persona",
    "first_mes": "opening",
    "mes_example": "example_dialogue",
}


class _Source(NamedTuple):
    card: Card
    carrier: Carrier | None
    file: BinaryIO | None
    where: str


class _Written(NamedTuple):
    """The texts to write, keyword and JSON each, the first of them the card's; what was lost;
    the picture, where it comes from another carrier."""

    texts: tuple[tuple[str, bytes], ...]
    lost: tuple[str, ...]
    icon: bytes | None = None


def export(
    source: Path | Card, target: Path, *, version: Version = 3, overwrite: bool = False
) -> tuple[str, ...]:
    """Write a card to `target`; the warnings say what it could not hold, a sentence each.

    JSON and PNG are written as V3, or as V2 or V1 by `version`; a V3 picture has a V2 copy too, as
    the specification allows. CHARX is always V3, YAML always oobabooga's.

    Raises:
        InputError: `source` is no card, the ending is unknown, the version does not exist in that
            format, the system cannot write the name, or `target` exists and `overwrite` is false.
        StoreError: the disk refuses.
    """
    kind = _kind(target, version)
    with disk(target):
        exists = target.exists()
    if exists and not overwrite:
        raise InputError(f"{target} exists; name another file, or say that it may be replaced")
    with _open(source) as found:
        icon = _icon(found, kind)
        stays = _left_behind(found, kind, icon is not None)
        written = _yaml(found.card) if kind == "yaml" else _json(found, kind, version, icon)
        with disk(target), replacing(target) as file:
            _write(found, kind, written, file)
    lost = ", ".join(written.lost)
    named = [f"{target} has no place for: {lost}"] if lost else []
    return (*named, *stays)


def _kind(target: Path, version: Version) -> Carrier:
    kind = ENDINGS.get(target.suffix.lower())
    if kind is None:
        raise InputError(f"{target} has none of the endings {', '.join(ENDINGS)}; give it one")
    if kind in {"charx", "yaml"} and version != 3:
        raise InputError(f"{target} cannot be written as V{version}; choose JSON or PNG for that")
    try:
        os.fsencode(target)
    except UnicodeEncodeError:
        raise InputError(
            f"{target} cannot be a file name where names are {sys.getfilesystemencoding()}; set "
            "the environment variable PYTHONUTF8=1"
        ) from None
    return kind


@contextlib.contextmanager
def _open(source: Path | Card) -> Iterator[_Source]:
    if isinstance(source, Card):
        yield _Source(source, None, None, source.id)
        return
    loaded = load(source)
    with opened(source) as file:
        yield _Source(loaded.card, loaded.carrier, file, str(source))


def _icon(source: _Source, kind: Carrier) -> bytes | None:
    """The card's picture, where it changes from a PNG into a CHARX or back."""
    if source.file is None:
        return None
    if (source.carrier, kind) == ("png", "charx"):
        return icons.of_picture(source.file, source.where)
    if (source.carrier, kind) == ("charx", "png"):
        return icons.of_charx(source.file, as_v3(source.card.original), source.where)
    return None


def _write(source: _Source, kind: Carrier, written: _Written, file: IO[bytes]) -> None:
    same = source.file if source.carrier == kind else None
    if kind == "png":
        picture = same or (io.BytesIO(written.icon) if written.icon else None)
        if picture is None:
            png.plain(file, written.texts)
        else:
            png.write(picture, file, written.texts, source.where)
    elif kind == "charx":
        added = [(icons.PATH, written.icon)] if written.icon else []
        charx.write(same, file, written.texts[0][1], source.where, added=added)
    else:
        file.write(written.texts[0][1])


def _json(source: _Source, kind: Carrier, version: Version, icon: bytes | None) -> _Written:
    v3 = as_v3(_original(source.card))
    if icon is not None:
        v3 = icons.in_charx(v3) if kind == "charx" else icons.in_picture(v3)
    indent = None if kind == "png" else 2
    if version < 3:
        lowered = as_v1(v3) if version == 1 else as_v2(v3)
        return _Written((("chara", _encoded(lowered.value, indent)),), lowered.lost, icon)
    texts = [("ccv3", _encoded(v3, indent))]
    if kind == "png":
        texts.append(("chara", _encoded(as_v2(v3, notice=True).value, indent)))
    return _Written(tuple(texts), (), icon)


def _yaml(card: Card) -> _Written:
    if _is_oobabooga(card.original):
        return _Written((("yaml", oobabooga.dumped(card.original)),), ())
    v1 = as_v1(as_v3(_original(card)))
    others = tuple(key for key in v1.value if key not in V1_FIELDS and v1.value[key])
    return _Written((("yaml", oobabooga.written(v1.value, card.language)),), v1.lost + others)


def _is_oobabooga(original: dict[str, object]) -> bool:
    return (
        "data" not in original
        and not any(key in original for key in V1_FIELDS[1:])
        and any(key in original for key in ("context", "greeting"))
    )


def _original(card: Card) -> dict[str, object]:
    """The card as it was read; one made in code has its own fields only."""
    if card.original:
        return card.original
    texts = ("personality", "scenario", "system_prompt", "post_history_instructions")
    fields = {"name": "name", **_OWN_FIELDS, **{key: key for key in texts}}
    own: dict[str, object] = {key: getattr(card, field) for key, field in fields.items()}
    return {"data": {**own, "extensions": {"palate": {"language": card.language}}}}


def _encoded(value: dict[str, object], indent: int | None) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode()


def _left_behind(source: _Source, kind: Carrier, icon: bool) -> tuple[str, ...]:
    """A sentence on what stays in the source: the specification wants the user alerted."""
    if source.carrier == kind:
        return ()
    if source.carrier == "png" and source.file is not None:
        named = png.assets(source.file, source.where)
        named[:0] = [] if icon else ["the picture itself"]
    elif source.carrier == "charx" and source.file is not None:
        main = icons.member(as_v3(source.card.original)) if icon else None
        named = [name for name in charx.names(source.file, source.where) if name != main]
    else:
        named = _embedded(source.card)
    if not named:
        return ()
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    shown = ", ".join(name[:60] for name in named[:5])
    return (f"{source.where}: assets that are not carried over: {shown}{more}",)


def _embedded(card: Card) -> list[str]:
    data = card.original.get("data")
    listed = data.get("assets") if isinstance(data, dict) else None
    uris = [asset.get("uri") for asset in icons.objects(listed)]
    inside = ("embeded://", "embedded://", "__asset:")
    return [uri for uri in uris if isinstance(uri, str) and uri.startswith(inside)]
