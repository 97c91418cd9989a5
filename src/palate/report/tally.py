"""Counts that the cells give in one pass: ends, gaps, flags, failures, suspicious copies.

They stand beside the scores, because a mean says nothing of what is missing from it
(paper 3.2, 3.3).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from palate.report.conduct import Conduct
from palate.report.data import CellRecord, Failure
from palate.types import Judgement, Track, digest

ENDS = (
    "quit",
    "depth_limit",
    "simulator_empty",
    "candidate_empty",
    "candidate_blocked",
    "open",
)
FAILURES_SHOWN = 300


class Pair(NamedTuple):
    """Whose conversations are counted."""

    user: str
    candidate: str


class Gap(NamedTuple):
    """A verdict without a score: whose, of which track, and why."""

    candidate: str
    track: Track
    reason: str


class GapCount(NamedTuple):
    """A reason and how many verdicts have it."""

    reason: str
    times: int


class Flag(NamedTuple):
    """A fact beside a text: who it was said of (user or candidate), and what."""

    kind: str  # "simulator", "candidate" or "judge"
    name: str
    flag: str


class Copy(NamedTuple):
    """Repetitions of one cell with the same text, byte for byte."""

    user: str
    card: str
    candidate: str
    repetitions: tuple[int, ...]


@dataclass(slots=True)
class Tally:
    """Sums over the cells seen so far; its size does not grow with their length."""

    cells: int = 0
    ended: int = 0
    without_reply: int = 0
    ends: dict[Pair, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    verdicts: Counter[tuple[str, Track]] = field(default_factory=Counter)
    gaps: Counter[Gap] = field(default_factory=Counter)
    flags: Counter[Flag] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    user_turns: Counter[str] = field(default_factory=Counter)
    conduct: dict[str, Conduct] = field(default_factory=lambda: defaultdict(Conduct))
    failures: list[Failure] = field(default_factory=list)
    failure_count: int = 0
    score_kinds: Counter[tuple[Track, str]] = field(default_factory=Counter)
    _texts: dict[tuple[str, str, str], dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, record: CellRecord) -> None:
        """Count one cell."""
        self.cells += 1
        self._add_end(record)
        self._add_messages(record)
        self.conduct[record.cell.user_id].add(record)
        for judgement in record.judgements:
            self._add_judgement(record.cell.candidate, judgement)
        self.failure_count += len(record.failures)
        room = FAILURES_SHOWN - len(self.failures)
        self.failures.extend(record.failures[: max(room, 0)])

    def _add_end(self, record: CellRecord) -> None:
        pair = Pair(record.cell.user_id, record.cell.candidate)
        if record.trajectory is None:
            self.ends[pair]["open"] += 1
            return
        self.ended += 1
        self.ends[pair][record.trajectory.ended_by] += 1
        if not record.trajectory.replies():
            self.without_reply += 1
            return
        cell = record.cell
        text = digest([(m.speaker, m.text) for m in record.trajectory.messages])
        copies = self._texts[cell.user_id, cell.card_id, cell.candidate]
        copies[text].append(cell.repetition)

    def _add_messages(self, record: CellRecord) -> None:
        cell = record.cell
        for message in record.messages:
            by_user = message.speaker == "user"
            kind, name = ("simulator", cell.user_id) if by_user else ("candidate", cell.candidate)
            (self.user_turns if by_user else self.replies)[name] += 1
            if message.finish != "ok":
                self.flags[Flag(kind, name, _FINISH[message.finish])] += 1
            for flag in message.flags:
                self.flags[Flag(kind, name, flag)] += 1

    def _add_judgement(self, candidate: str, judgement: Judgement) -> None:
        self.verdicts[candidate, judgement.track] += 1
        if judgement.unscored is not None:
            self.gaps[Gap(candidate, judgement.track, judgement.unscored)] += 1
        else:
            self.score_kinds[judgement.track, judgement.score_kind] += 1
        for flag in judgement.flags:
            self.flags[Flag("judge", candidate, flag)] += 1

    def ended_by(self, candidate: str, end: str) -> int:
        """Conversations with `candidate` that ended that way, over all users."""
        return sum(count[end] for pair, count in self.ends.items() if pair.candidate == candidate)

    def flagged(self, kind: str, name: str, flag: str) -> int:
        """How often `flag` was set on what `name` said."""
        return self.flags[Flag(kind, name, flag)]

    def gaps_of(self, candidate: str, track: Track) -> tuple[GapCount, ...]:
        """Reasons for unscored verdicts of one candidate and track, the most frequent first."""
        found = (
            GapCount(gap.reason, count)
            for gap, count in self.gaps.most_common()
            if (gap.candidate, gap.track) == (candidate, track)
        )
        return tuple(found)

    def flag_rows(self) -> tuple[tuple[Flag, int, int], ...]:
        """Each flag, how often it was set, and on how many texts or verdicts it could be."""
        verdicts: Counter[str] = Counter()
        for (candidate, _), count in self.verdicts.items():
            verdicts[candidate] += count
        possible = {
            "simulator": self.user_turns,
            "candidate": self.replies,
            "judge": verdicts,
        }
        return tuple((f, self.flags[f], possible[f.kind][f.name]) for f in sorted(self.flags))

    def copies(self, temperatures: Mapping[str, float | None]) -> tuple[Copy, ...]:
        """Equal repetitions of candidates that were asked to vary.

        `temperatures` by candidate; 0 makes copies expected, None is an endpoint's default, which
        is above 0 wherever we know it.
        """
        return tuple(
            Copy(user, card, candidate, tuple(sorted(repetitions)))
            for (user, card, candidate), texts in self._texts.items()
            for repetitions in texts.values()
            if len(repetitions) > 1 and temperatures.get(candidate) != 0
        )


_FINISH = {"length": "cut_at_the_token_limit", "refused": "blocked_by_the_provider"}
