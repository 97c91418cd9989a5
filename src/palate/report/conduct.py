"""How the simulated users behaved: the instrument's own faults, beside what it measured.

A simulator that slips (an assistant's phrase, its own words again, ...) is asked again, a bounded
number of times. What stayed flagged was answered and judged like any other message, so a reader
must know how often that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from palate.report.data import CellRecord
from palate.report.safe import terminal_safe

SLIPS_ABOVE = 0.1  # share of messages that stayed flagged, above which a reader is warned [choice]


@dataclass(slots=True)
class Conduct:
    """One user's simulator over all its conversations.

    `resampled` counts the messages that were asked for again, `rejected` the drafts that were not
    taken by what was wrong with them (one draft may have several faults), `flagged` the messages
    that kept a flag, `kept` those by flag.
    """

    messages: int = 0
    resampled: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    flagged: int = 0
    kept: Counter[str] = field(default_factory=Counter)

    @property
    def slips(self) -> bool:
        """Whether more messages stayed flagged than a reader should read past."""
        return self.flagged > SLIPS_ABOVE * self.messages

    def add(self, record: CellRecord) -> None:
        """Count one conversation of this simulator, ended or not."""
        self.resampled += len(record.resampled)
        self.rejected.update(kind for drafts in record.resampled for d in drafts for kind in d)
        for message in record.messages:
            if message.speaker == "user":
                self.messages += 1
                self.flagged += bool(message.flags)
                self.kept.update(message.flags)

    def sentence(self) -> str:
        """For example "9 messages; 2 drawn anew (empty 3); 1 stayed flagged (repetition 1)"."""
        parts = [f"{self.messages:,} {'message' if self.messages == 1 else 'messages'}"]
        parts.append(f"{self.resampled:,} drawn anew{_by_kind(self.rejected)}")
        parts.append(f"{self.flagged:,} stayed flagged{_by_kind(self.kept)}")
        return "; ".join(parts)


def warning(user: str, conduct: Conduct) -> str:
    """What a reader must know of a simulator that slips."""
    return (
        f"The simulator of {user} slips: {conduct.flagged:,} of {conduct.messages:,} messages "
        f"({conduct.flagged / conduct.messages:.0%}) stayed flagged, so the scores of the "
        "candidates that it talked with are less trustworthy."
    )


def print_conduct(conducts: Mapping[str, Conduct], console: Console) -> None:
    """A line for each user's simulator, and a warning beside each that slips."""
    lines = [line for user, conduct in conducts.items() for line in _lines(user, conduct)]
    if lines:
        console.print(Text("Simulated users", style="bold"))
        for line in lines:
            console.print(Text(f"  {terminal_safe(line)}"))
        console.print()


def _lines(user: str, conduct: Conduct) -> Iterator[str]:
    yield f"{user}: {conduct.sentence()}"
    if conduct.slips:
        yield warning(user, conduct)


def _by_kind(kinds: Counter[str]) -> str:
    named = ", ".join(f"{kind.replace('_', ' ')} {times:,}" for kind, times in kinds.most_common())
    return f" ({named})" if named else ""
