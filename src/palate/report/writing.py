"""A page written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from palate.disk import write_atomically
from palate.errors import StoreError


def write_page(path: Path, page: str) -> Path:
    """Write the page to `path`, which is returned.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        # A lone surrogate is no text in HTML; the reader sees its number.
        write_atomically(path, page.encode("utf-8", "backslashreplace").decode())
    except OSError as error:
        raise StoreError(
            f"the page {path} cannot be written: {error.strerror}; free the disk or name another "
            "file, and give the command again"
        ) from error
    return path
