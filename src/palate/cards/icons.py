"""A card's own picture on its way from a PNG into a CHARX and back.

In a PNG the picture is the card's main icon by itself (`ccdefault:`); in a CHARX it is a member
that the card's assets name. One that is damaged, too large or no PNG stays behind, and the caller
says so.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import BinaryIO

from palate.cards import charx, png
from palate.errors import InputError

PATH = "assets/icon/images/main.png"  # where the specification wants an icon
MAX_BYTES = 16 * 1024**2  # it is held in memory

_EMBEDDED = "embeded://"  # spelt so in the specification
_DEFAULT = "ccdefault:"
_ICON = {"type": "icon", "uri": _DEFAULT, "name": "main", "ext": "png"}


def of_picture(file: BinaryIO, where: str) -> bytes | None:
    """The picture without the card's chunks; None: it cannot be taken along."""
    if file.seek(0, 2) > MAX_BYTES:
        return None
    held = io.BytesIO()
    try:
        png.write(file, held, (), where)
    except InputError:
        return None
    return held.getvalue()


def of_charx(file: BinaryIO, v3: Mapping[str, object], where: str) -> bytes | None:
    """The member that is the main icon, if it is a whole PNG."""
    path = member(v3)
    try:
        content = charx.content(file, path, where, MAX_BYTES) if path else None
        if content is None:
            return None
        png.write(io.BytesIO(content), io.BytesIO(), (), where)
    except InputError:
        return None
    return content


def member(v3: Mapping[str, object]) -> str | None:
    """The path in the zip that the main icon names."""
    for asset in _assets(v3):
        uri = asset.get("uri")
        if _is_main(asset) and isinstance(uri, str) and uri.startswith(_EMBEDDED):
            return uri.removeprefix(_EMBEDDED)
    return None


def in_charx(v3: Mapping[str, object]) -> dict[str, object]:
    """The card with its main icon named as a member; without assets it has that one (V3)."""
    return _renamed(v3, _DEFAULT, _EMBEDDED + PATH)


def in_picture(v3: Mapping[str, object]) -> dict[str, object]:
    """The card with its main icon named as the picture that it is in."""
    return _renamed(v3, _EMBEDDED + (member(v3) or PATH), _DEFAULT)


def _renamed(v3: Mapping[str, object], old: str, new: str) -> dict[str, object]:
    data = v3["data"]
    assert isinstance(data, dict)  # as_v3 made it
    assets = [
        {**asset, "uri": new, "ext": "png"}
        if isinstance(asset, dict) and _is_main(asset) and asset.get("uri") == old
        else asset
        for asset in data.get("assets") or [_ICON]
    ]
    kept = {key: value for key, value in data.items() if key != "assets"}
    # A lone default icon is what a card without assets has: then they are left out again.
    return {**v3, "data": kept if assets == [_ICON] else {**data, "assets": assets}}


def _assets(v3: Mapping[str, object]) -> list[dict[str, object]]:
    data = v3["data"]
    return objects(data.get("assets")) if isinstance(data, dict) else []


def objects(value: object) -> list[dict[str, object]]:
    """The objects of a list, whatever else is in it; none of what is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_main(asset: Mapping[str, object]) -> bool:
    return asset.get("type") == "icon" and asset.get("name") == "main"
