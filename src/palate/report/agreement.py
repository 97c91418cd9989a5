"""The picture of an agreement study: one HTML file that works from disk, without network or script.

(paper 4.3, Table 3)
"""

from __future__ import annotations

from pathlib import Path

from palate.report.agreement_terminal import CEILING_NAME, panel_lines, ranked, unscored_lines
from palate.report.policy import inline, policy
from palate.report.templating import environment
from palate.report.writing import write_page
from palate.studies.agreement_results import CHANCE, Agreement
from palate.studies.held_out_results import HeldOutAgreement

MAX_USERS = 500  # rows of a table; further users are in the figures as JSON


def write_agreement_page(found: Agreement, path: Path, *, title: str) -> Path:
    """Write the page to `path`, whole or not at all.

    Raises:
        StoreError: the file cannot be written.
    """
    style = inline("report.css", "agreement.css")
    conditions = ranked(found)
    own = found if isinstance(found, HeldOutAgreement) else None
    page = (
        environment()
        .get_template("agreement.html")
        .render(
            title=title,
            found=found,
            own=own,
            unscored=list(unscored_lines(own)) if own else [],
            panel=list(panel_lines(own)) if own else [],
            conditions=conditions,
            users=list(conditions[0][1].users),
            max_users=MAX_USERS,
            ceiling_name=CEILING_NAME,
            chance=CHANCE,
            policy=policy(style),
            style=style.text,
        )
    )
    return write_page(path, page)
