"""The report: one HTML file that works from disk, without a network, whatever text is in it.

Three safeguards stand one behind the other: Jinja2 escapes every value; conversations travel as
JSON in data blocks, which the script shows as text nodes only; and the Content-Security-Policy
lets nothing run or load except the one script and the one style sheet whose hashes it names.

Cells are read once and written as they come, so the page of a large run needs little memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from palate.chat import USER_LEFT
from palate.disk import replacing
from palate.errors import StoreError
from palate.report.data import CellRecord, ReportData
from palate.report.embedded import cell_block, index_line
from palate.report.notices import headline, no_reply_sentence, notices
from palate.report.policy import inline, policy
from palate.report.results import read_results
from palate.report.safe import script_json
from palate.report.tally import ENDS, Tally
from palate.report.templating import environment

SPOOL_BYTES = 16 * 2**20  # conversations above this size wait on disk, not in memory


def write_report(data: ReportData, path: Path) -> Path:
    """Write the report of a run to `path`, whole or not at all.

    Raises:
        InputError: `data.results` is not an aggregate's object.
        StoreError: the file cannot be written.
    """
    try:
        with replacing(path) as file:
            _write(data, file)
    except OSError as error:
        raise StoreError(
            f"the report {path} cannot be written: {error.strerror}; free the disk or name "
            "another folder, and run the command again"
        ) from error
    return path


def _write(data: ReportData, file: IO[bytes]) -> None:
    results = read_results(data.results)
    tally = Tally()
    style, script = inline("report.css"), inline("report.js")
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as blocks:
        index = list(_write_blocks(data, tally, blocks))
        page = (
            environment()
            .get_template("report.html")
            .render(
                data=data,
                results=results,
                tally=tally,
                ends=ENDS,
                headline=headline(data, tally),
                notices=notices(data, results, tally),
                no_reply=no_reply_sentence(tally),
                policy=policy(style, script),
                style=style.text,
            )
        )
        # A lone surrogate is no text in HTML; the reader sees its number.
        file.write(page.encode("utf-8", "backslashreplace"))
        blocks.seek(0)
        while chunk := blocks.read(2**20):
            file.write(chunk)
    file.write(_block("index", {"cells": index, "words": _words(data)}))
    file.write(f"<script>{script.text}</script>\n</body>\n</html>\n".encode())


def _write_blocks(data: ReportData, tally: Tally, blocks: IO[bytes]) -> Iterator[dict[str, Any]]:
    record: CellRecord
    for number, record in enumerate(data.cells):
        tally.add(record)
        blocks.write(_block(f"cell-{number}", cell_block(record)))
        yield index_line(record)


def _block(name: str, value: object) -> bytes:
    return f'<script type="application/json" id="{name}">{script_json(value)}</script>\n'.encode()


def _words(data: ReportData) -> dict[str, Any]:
    """What the script needs to name things."""
    return {
        "user_left": USER_LEFT["en"],
        "cards": {card.id: card.name for card in data.cards},
        "dimensions": {
            dimension.id: dimension.label.get("en", dimension.id)
            for rubric in data.rubrics
            for dimension in rubric.dimensions
        },
    }
