"""What a page may run and load: nothing but the inline assets whose hashes it names."""

from __future__ import annotations

import base64
import hashlib
from typing import NamedTuple

from markupsafe import Markup

from palate.report.templating import asset


class Asset(NamedTuple):
    """Inline code and the hash by which the policy knows it."""

    text: Markup
    source: str  # 'sha256-…', with its quotes


def inline(*names: str) -> Asset:
    """Files of the templates folder as one inline asset."""
    text = "".join(asset(name) for name in names)
    hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Asset(Markup(text), f"'sha256-{hashed}'")  # noqa: S704 - our own files


def policy(style: Asset, script: Asset | None = None) -> str:
    """The Content-Security-Policy: nothing but these, and nothing from anywhere."""
    runs = "'none'" if script is None else script.source
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {runs}",
            f"style-src {style.source}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
