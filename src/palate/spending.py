"""What a run has asked for and what that cost, by role and model, from its journals alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from palate import journal
from palate.models.client import Role
from palate.models.spec import Price
from palate.report.data import ModelUse
from palate.store import RunReader
from palate.types import Usage


def model_uses(reader: RunReader) -> tuple[ModelUse, ...]:
    """Calls, tokens and money by role and model, over all calls that the folder knows of."""
    manifest = journal.manifest(reader)
    settings = manifest["settings"]
    prices = {spec: Price.model_validate(price) for spec, price in manifest["prices"].items()}
    planned = {cell.key: cell for cell in journal.planned_cells(manifest)}
    uses: dict[tuple[Role, str], _Use] = defaultdict(_Use)
    for step in journal.steps(reader):
        cell = planned.get(step.cell)
        if cell is None:
            continue
        role: Role = "candidate" if step.speaker == "character" else "simulator"
        model = (
            settings["candidates"][cell.candidate]["model"]
            if role == "candidate"
            else settings["users"][cell.user_id]["simulator"]["model"]
        )
        uses[role, model].add(step.model, step.attempts, step.usage)
    for verdict in journal.judgements(reader):
        use = uses["judge", verdict.judge]
        use.add(verdict.judge_revision, verdict.attempts, verdict.usage)
    return tuple(
        ModelUse(
            role=role,
            model=model,
            revisions=tuple(sorted(use.revisions - {""})),
            calls=use.calls,
            usage=use.usage,
            cost=prices[model].cost(use.usage) if model in prices else None,
        )
        for (role, model), use in sorted(uses.items())
    )


@dataclass(slots=True)
class _Use:
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    revisions: set[str] = field(default_factory=set)

    def add(self, revision: str, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage += usage
        self.revisions.add(revision)
