"""What is wrong with a history, or weak, for the simulator and the rubric to be made of it.

A session that reads without an error may still teach nothing: a person who always gives 4, chats
that nobody left, one chat copied ten times. Each is said in one sentence. What stops (exit code 1)
is what no simulator or no rubric can be made from; the rest is the reader's to weigh.

The thresholds are choices: the paper's users have about 1,000 rated turns each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from palate import language
from palate.errors import InputError
from palate.histories.figures import MAX_ENTROPY, Figures, differing_pairs, labels
from palate.histories.findings import LEVELS, Finding, counted, listed, of_all
from palate.histories.review_turns import turn_findings
from palate.histories.split import Split, split
from palate.types import Session

FEW_SESSIONS = 10
FEW_RATINGS = 100
FEW_PAIRS = 50
SAME_LABEL = 0.8  # share of one label from which there is no spread to learn from
FEW_QUITS = 3
LANGUAGE_TOKENS = 20  # fewer words than this do not tell a language


class Purpose(NamedTuple):
    """What the history is for: a study's seed and panel, and the cards that it can find.

    `known_cards` is None where there is no study to ask.
    """

    seed: int = 0
    panel_cards: tuple[str, ...] = ()
    known_cards: frozenset[str] | None = None


def review(sessions: Sequence[Session], numbers: Figures, purpose: Purpose) -> tuple[Finding, ...]:
    """The findings on one user's sessions, the gravest first.

    `numbers` are the figures of the same sessions.
    """
    found = [
        *_amount(sessions, numbers, purpose),
        *_spread(numbers),
        *_rated_openings(numbers.opening_ratings),
        *_unrated_sessions(sessions),
        *_endings(sessions, numbers),
        *_languages(sessions),
        *_cards(sessions, purpose),
        *turn_findings(sessions),
    ]
    return tuple(sorted(found, key=lambda finding: LEVELS.index(finding.level)))


def _amount(sessions: Sequence[Session], numbers: Figures, purpose: Purpose) -> Iterator[Finding]:
    try:
        made = split(sessions, seed=purpose.seed, panel_cards=purpose.panel_cards)
    except InputError as error:
        yield Finding(level="stop", kind="too-few-sessions", text=f"{_sentence(str(error))}.")
    else:
        yield from _parts(made, sessions, numbers)
        if numbers.sessions < FEW_SESSIONS:
            text = (
                f"There are only {counted(numbers.sessions, 'session')}, of which "
                f"{len(made.held_out)} would be held out; aim for {FEW_SESSIONS} or more."
            )
            yield Finding(level="weak", kind="few-sessions", text=text)
    if not numbers.user.messages:
        text = "The user wrote nothing in any session, so no simulator can be made."
        yield Finding(level="stop", kind="no-user-message", text=text)


def _parts(made: Split, sessions: Sequence[Session], numbers: Figures) -> Iterator[Finding]:
    """What the history has but one part of the split lacks."""
    training = [item.session for item in made.training]
    learned = {session.session_id for session in training}
    held_out = [session for session in sessions if session.session_id not in learned]
    spoken = any(turn.speaker == "user" for session in training for turn in session.turns)
    if numbers.user.messages and not spoken:
        text = "The user wrote nothing in the training sessions, so no simulator can be made."
        yield Finding(level="stop", kind="no-user-message", text=text)
    taught = {label for session in training for label in labels(session)}
    if len(taught) < 2 and _different(numbers) > 1:
        what = f"only the rating {min(taught)}" if taught else "no rating"
        text = f"The training sessions hold {what}, so no rubric can be made."
        yield Finding(level="stop", kind="no-spread-in-training", text=text)
    if numbers.pairs and not any(differing_pairs(session) for session in held_out):
        text = (
            f"The held-out sessions ({listed([s.session_id for s in held_out])}) have no two "
            "replies with different ratings, so agreement with this user cannot be measured."
        )
        yield Finding(level="weak", kind="no-pairs-held-out", text=text)
    if made.panel_in_training:
        text = (
            f"Too few sessions are on other cards than the panel's, so sessions on panel cards "
            f"are learned from ({listed(made.panel_in_training)}), which flatters the scores."
        )
        places = made.panel_in_training
        yield Finding(level="weak", kind="panel-in-training", text=text, places=places)


def _different(numbers: Figures) -> int:
    return sum(1 for number in numbers.ratings.counts if number)


def _spread(numbers: Figures) -> Iterator[Finding]:
    given = numbers.ratings.number
    if not given:
        text = "No reply is rated, so no rubric can be made."
        yield Finding(level="stop", kind="no-rating", text=text)
        return
    if given < FEW_RATINGS:
        text = f"Only {counted(given, 'reply is', 'replies are')} rated; aim for {FEW_RATINGS:,}."
        yield Finding(level="weak", kind="few-ratings", text=text)
    most = max(numbers.ratings.counts)
    label = numbers.ratings.counts.index(most) + 1
    if most == given and given > 1:
        text = f"All {given:,} ratings are {label}: they teach nothing, and no rubric can be made."
        yield Finding(level="stop", kind="no-spread", text=text)
    elif given == 1:
        text = (
            f"The only rating is {label}: there is nothing to contrast, so no rubric can be made."
        )
        yield Finding(level="stop", kind="no-spread", text=text)
    else:
        yield from _weak_spread(numbers, label, most / given)


def _weak_spread(numbers: Figures, label: int, share: float) -> Iterator[Finding]:
    """One label prevails, or few replies of one session can be set against each other."""
    entropy = numbers.ratings.entropy or 0.0
    if share >= SAME_LABEL:
        text = (
            f"{_percent(share)} of the {numbers.ratings.number:,} ratings are {label} (entropy "
            f"{entropy:.2f} of {MAX_ENTROPY:.2f} bits): a person who nearly always gives {label} "
            "teaches little."
        )
        yield Finding(level="weak", kind="little-spread", text=text)
    if numbers.pairs < FEW_PAIRS:
        text = (
            f"Only {numbers.pairs:,} of {counted(numbers.rated_pairs, 'pair')} of rated replies "
            "within a session have different ratings; the rubric and the study of agreement live "
            f"on such pairs, so aim for {FEW_PAIRS} or more."
        )
        yield Finding(level="weak", kind="few-pairs", text=text)


def _rated_openings(number: int) -> Iterator[Finding]:
    if number:
        lie = counted(number, "rating lies on an opening", "ratings lie on openings")
        are = "it is" if number == 1 else "they are"
        text = f"{lie}, which no candidate wrote: {are} not used."
        yield Finding(level="note", kind="rated-opening", text=text)


def _unrated_sessions(sessions: Sequence[Session]) -> Iterator[Finding]:
    bare = tuple(s.session_id for s in sessions if not any(labels(s)))
    if bare and len(bare) < len(sessions):
        has = of_all(len(bare), len(sessions), "session", ("has", "have"))
        text = f"{has} no rated reply ({listed(bare)}); a rubric learns nothing there."
        yield Finding(level="weak", kind="unrated-session", text=text, places=bare)


def _endings(sessions: Sequence[Session], numbers: Figures) -> Iterator[Finding]:
    unknown = tuple(s.session_id for s in sessions if s.ended_by == "unknown")
    quits = numbers.endings["quit"]
    learn = "a simulator learns leaving ([QUIT]) from sessions that the user left by choice"
    if len(unknown) == len(sessions):
        text = f'No session says how it ended; {learn}: set ended_by to "quit" where they did.'
        yield Finding(level="weak", kind="endings-unknown", text=text, places=unknown)
        return
    if quits < FEW_QUITS:
        left = f"only {counted(quits, 'session')}" if quits else "no session"
        text = f"The user left {left} by choice; {learn}."
        yield Finding(level="weak", kind="few-quits", text=text)
    if unknown:
        do = of_all(len(unknown), len(sessions), "session", ("does", "do"))
        text = f"{do} not say how it ended ({listed(unknown)})."
        yield Finding(level="note", kind="ending-unknown", text=text, places=unknown)


def _languages(sessions: Sequence[Session]) -> Iterator[Finding]:
    tags = Counter(session.language for session in sessions)
    known = {language.named(tag) or tag for tag in tags}
    if len(known) > 1:
        mixed = ", ".join(f"{tag}: {number:,}" for tag, number in tags.most_common())
        text = (
            f"The sessions are in several languages ({mixed}); rubric and profile are written in "
            "one, so keep a user for each."
        )
        yield Finding(level="weak", kind="mixed-languages", text=text)
    other = tuple(s.session_id for s in sessions if language.named(s.language) is None)
    if other:
        are = of_all(len(other), len(sessions), "session", ("is", "are"))
        text = f"{are} marked as neither English nor Chinese ({listed(other)}); no prompt fits."
        yield Finding(level="weak", kind="other-language", text=text, places=other)
    wrong = tuple(s.session_id for s in sessions if _is_mislabelled(s))
    if wrong:
        are = of_all(len(wrong), len(sessions), "session", ("is", "are"))
        text = f"{are} marked with another language than the user writes ({listed(wrong)})."
        yield Finding(level="weak", kind="language-tag", text=text, places=wrong)


def _is_mislabelled(session: Session) -> bool:
    tag = language.named(session.language)
    text = "\n".join(turn.text for turn in session.turns if turn.speaker == "user")
    enough = language.tokens(text) >= LANGUAGE_TOKENS
    return tag is not None and enough and language.of_text(text) != tag


def _cards(sessions: Sequence[Session], purpose: Purpose) -> Iterator[Finding]:
    panel = _on(sessions, purpose.panel_cards)
    if panel:
        are = of_all(len(panel), len(sessions), "session", ("is", "are"))
        text = f"{are} on panel cards ({listed(panel)}); the split holds out such sessions."
        yield Finding(level="note", kind="panel-card", text=text, places=panel)
    if purpose.known_cards is None:
        return
    missing = tuple(sorted({session.card_id for session in sessions} - purpose.known_cards))
    if missing:
        names = counted(len(missing), "card id of the history has", "card ids of the history have")
        text = (
            f"{names} no card in the study's panel or cards folder, nor in the library "
            f"({listed(missing)}); a simulator will not know the character's name and scenario."
        )
        places = _on(sessions, missing)
        yield Finding(level="weak", kind="unknown-card", text=text, places=places)


def _on(sessions: Sequence[Session], cards: Collection[str]) -> tuple[str, ...]:
    return tuple(session.session_id for session in sessions if session.card_id in cards)


def _percent(share: float) -> str:
    """Never 100 % of what is not all."""
    return f"{min(share, 0.99):.0%}".replace("%", " %")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".")
