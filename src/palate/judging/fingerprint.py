"""All that this version says to a judge around a card and a chat, as one hash.

A prompt file has its SHA-256, but half of what a judge reads is said by code: the names of the
speakers, the headings, the form to fill in, which fields of a card are shown, which replies are
drawn. `fingerprint` writes a made-up chat out in every way and hashes that, so that a run is not
gone on with under other words than it was begun with.
"""

from __future__ import annotations

from palate.judging.asking import AGAIN
from palate.judging.questions import (
    schema,
    session_question,
    summary_question,
    turn_question,
    whole_transcript,
)
from palate.judging.sampling import sample_replies
from palate.judging.sessions import CLOSE_UP, PART_TURNS
from palate.judging.subject import Rubrics, Subject
from palate.judging.transcript import Form, part_heading
from palate.prompts.rubric_text import Language
from palate.types import (
    Card,
    Cell,
    Dimension,
    Evidence,
    Message,
    PersonalRubric,
    Provenance,
    Reaction,
    SharedRubric,
    Trajectory,
    digest,
)

_TURNS = 12  # enough that the draw has a choice in every third


def fingerprint(language: Language, form: Form) -> str:
    """SHA-256 of what a judge asked in `language` and `form` is told besides the material."""
    subject = _specimen(language)
    dimensions = subject.rubrics.session.dimensions
    transcript = whole_transcript(subject, form)
    last = _TURNS - 1
    questions = [
        turn_question(subject, "personal", 0, form, reaction_shown=True),
        turn_question(subject, "personal", last, form, reaction_shown=True),
        turn_question(subject, "generic", last, form, reaction_shown=False),
        session_question(subject, dimensions, transcript, form),
        summary_question(subject, transcript, form),
    ]
    headings = [part_heading(1, 2, language, summary=summary) for summary in (True, False)]
    draws = [sample_replies(subject.trajectory, count=count, seed=7) for count in (1, 2, 4)]
    texts = [[q.system, q.user, q.unasked, schema(q.asked)] for q in questions]
    return digest([texts, headings, AGAIN[language], draws, PART_TURNS, sorted(CLOSE_UP)])


def _specimen(language: Language) -> Subject:
    """A chat with a card and rubrics in which every part that can be shown is there."""
    card = Card(
        id="k",
        language=language,
        name="name",
        persona="persona",
        personality="personality",
        scenario="scenario",
        opening="opening",
        example_dialogue="example",
    )
    messages = [
        Message(speaker=speaker, text=f"{speaker} {turn}\nand on")
        for turn in range(_TURNS)
        for speaker in ("user", "character")
    ]
    trajectory = Trajectory(
        cell=Cell("u", "k", "c", 1), opening="opening", messages=tuple(messages), ended_by="quit"
    )
    shared = (_dimension("G1", sparse=False), _dimension("G2", sparse=True))
    rubrics = Rubrics(
        _personal(),
        SharedRubric(track="generic", version="", dimensions=shared),
        SharedRubric(track="session", version="", dimensions=shared),
    )
    return Subject(trajectory, card, rubrics)


def _dimension(identity: str, *, sparse: bool) -> Dimension:
    both = {"en": identity, "zh": identity}
    anchors = {language: {"1": "low", "3": "middle", "5": "high"} for language in both}
    return Dimension(id=identity, label=both, definition=both, anchors=anchors, sparse=sparse)


def _personal() -> PersonalRubric:
    return PersonalRubric(
        schema_="palate.rubric/1",
        track="personal",
        user_id="u",
        language="en",
        summary="summary",
        rewards=(Evidence(id="r", rule="reward", weight="major"),),
        penalties=(Evidence(id="p", rule="penalty", weight="minor"),),
        reactions=(
            Reaction(pattern="a", meaning="displeased", direction=-1),
            Reaction(pattern="b", meaning="neutral", direction=0),
            Reaction(pattern="c", meaning="pleased", direction=1),
        ),
        anchors={"1": "low", "5": "high"},
        provenance=Provenance(author="hand"),
        sha256="",
    )
