"""What a reader must know before any number: the sentences at the top of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from palate.aggregate.results import COVERAGE_LIMIT, FEW_CARDS
from palate.report.conduct import warning
from palate.report.data import CandidateSetting, ModelUse, ReportData
from palate.report.results import CandidateScores, Results
from palate.report.tally import Tally
from palate.types import TRACKS

COPIES_NAMED = 5  # further ones are counted

EMBEDDED_JUDGE = (
    "The judge is the embedded model. A 135M judge has no judgement: these numbers show that the "
    "machinery works, not who is better."
)
EMBEDDED_PLAYER = (
    "Conversations were played by the embedded 135M model, which is far too small to play a "
    "person or a character well: read the scores as a check of the machinery."
)


class Notice(NamedTuple):
    """A sentence, and how loud it is: "banner" above all else, "warning" or "note"."""

    level: str
    text: str


def headline(data: ReportData, tally: Tally) -> str:
    """What was run, in a sentence."""
    grid = " × ".join(
        (
            _count(len(data.users), "user"),
            _count(len(data.cards), "card"),
            _count(len(data.candidates), "candidate"),
            _count(data.repetitions, "repetition"),
        )
    )
    if tally.ended == data.planned:
        state = f"all {data.planned:,} have ended" if data.planned != 1 else "it has ended"
    else:
        left = data.planned - tally.ended
        state = f"{tally.ended:,} ended, {left:,} still open"
    conversations = "conversation" if data.planned == 1 else "conversations"
    return (
        f"Simulated users chatted freely with the candidates: {grid} = {data.planned:,} "
        f"{conversations} of at most {_count(data.depth_limit, 'user turn')}; {state}."
    )


def notices(data: ReportData, results: Results, tally: Tally) -> tuple[Notice, ...]:
    """Everything that limits what the numbers mean, the loudest first."""
    found = [
        *_embedded(data.models),
        *_open_cells(data, tally),
        *_blocks(data, tally),
        *_slips(data, tally),
        *_copies(data, tally),
        *_instruments(data, tally),
        *(Notice("warning", text) for text in data.warnings),
        *_coverage(results),
        *_size_of_panel(data),
    ]
    return tuple(found)


def no_reply_sentence(tally: Tally) -> str:
    """For example "1 of 12 sessions ended before any reply."; empty when none did."""
    if not tally.without_reply:
        return ""
    return f"{tally.without_reply:,} of {tally.ended:,} sessions ended before any reply."


def low_coverage(candidate: CandidateScores) -> str:
    """What of the candidate is scored too seldom to set it beside the others; empty if nothing."""
    coverage = candidate.coverage
    parts = (
        (coverage.scored, coverage.replies, "replies"),
        (coverage.sessions_scored, coverage.sessions_planned, "sessions"),
    )
    return " and ".join(
        f"{scored:,} of {planned:,} {what}"
        for scored, planned, what in parts
        if scored < COVERAGE_LIMIT * planned
    )


def _embedded(models: tuple[ModelUse, ...]) -> Iterator[Notice]:
    roles = {use.role for use in models if use.embedded}
    if "judge" in roles:
        yield Notice("banner", EMBEDDED_JUDGE)
    elif roles:
        yield Notice("banner", EMBEDDED_PLAYER)


def _open_cells(data: ReportData, tally: Tally) -> Iterator[Notice]:
    left = data.planned - tally.ended
    if left:
        yield Notice(
            "warning",
            f"{left:,} of {data.planned:,} conversations {'is' if left == 1 else 'are'} open: the "
            "same “palate run” command takes up what is left, and until then the scores rest on "
            "the others.",
        )


def _blocks(data: ReportData, tally: Tally) -> Iterator[Notice]:
    for candidate in data.candidates:
        blocked = tally.ended_by(candidate.name, "candidate_blocked")
        if blocked:
            yield Notice(
                "warning",
                f"The provider of {candidate.name} blocked a reply and so ended "
                f"{_count(blocked, 'conversation')}; a block has no score.",
            )


def _slips(data: ReportData, tally: Tally) -> Iterator[Notice]:
    for user in data.users:
        conduct = tally.conduct.get(user.user_id)
        if conduct and conduct.slips:
            yield Notice("warning", warning(user.user_id, conduct))


def _copies(data: ReportData, tally: Tally) -> Iterator[Notice]:
    found = tally.copies({c.name: _temperature(c) for c in data.candidates})
    for copy in found[:COPIES_NAMED]:
        numbers = " and ".join(str(number) for number in copy.repetitions)
        yield Notice(
            "warning",
            f"Repetitions {numbers} of {copy.user} with {copy.candidate} on {copy.card} are equal "
            "byte for byte although the temperature is not 0: look for a cache or a fixed seed "
            "at the endpoint, because copies make the ranking look steadier than it is.",
        )
    if len(found) > COPIES_NAMED:
        more = _count(len(found) - COPIES_NAMED, "more cell")
        yield Notice("warning", f"Repetitions are equal byte for byte in {more}.")


def _temperature(candidate: CandidateSetting) -> float | None:
    """A script without a temperature says the same twice by design; an endpoint does not."""
    if candidate.temperature is None and candidate.model.startswith("scripted:"):
        return 0.0
    return candidate.temperature


def _instruments(data: ReportData, tally: Tally) -> Iterator[Notice]:
    for use in data.models:
        if len(use.revisions) > 1:
            yield Notice(
                "warning",
                f"The {use.role} {use.model} was served by {len(use.revisions)} revisions during "
                "the run, so its scores are not all made alike.",
            )
    for track in TRACKS:
        if sum(kind[0] == track for kind in tally.score_kinds) > 1:
            yield Notice(
                "warning",
                f"The {track} track mixes whole-number and expected scores; they are not "
                "comparable, so judge again with one kind.",
            )


def _coverage(results: Results) -> Iterator[Notice]:
    for candidate in results.candidates:
        low = low_coverage(candidate)
        if low:
            yield Notice(
                "warning",
                f"{low} of {candidate.name} are scored: do not rank it by these numbers.",
            )


def _size_of_panel(data: ReportData) -> Iterator[Notice]:
    if len(data.cards) < FEW_CARDS:
        yield Notice(
            "note",
            f"Few cards: {_count(len(data.cards), 'card')} on the panel. Cards are what the "
            f"intervals are drawn from, and with fewer than {FEW_CARDS} they are rough "
            "(marked †).",
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
