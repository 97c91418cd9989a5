"""The pages as HTML: every text from people, cards and models is escaped, none is removed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from palate.annotate.actions import MOST_MESSAGE, MOST_NOTE
from palate.annotate.characters import Characters, Face
from palate.annotate.chats import Chat, Summary
from palate.annotate.words import SCRIPT_WORDS, words
from palate.language import Language
from palate.report.safe import script_json
from palate.report.templating import strict_environment


class Visitor(NamedTuple):
    """For whom a page is written; `token` goes back with every change."""

    person_id: str
    token: str
    language: Language


class Listed(NamedTuple):
    """A chat in the list, with the name of its character."""

    summary: Summary
    name: str


@functools.cache
def _environment() -> Environment:
    made = strict_environment("palate.annotate")
    made.filters["data"] = _data
    return made


def _data(value: object) -> Markup:
    """`value` for a data block."""
    return Markup(script_json(value))  # noqa: S704 - script_json escapes what HTML acts on


def home(
    visitor: Visitor, faces: Sequence[Face], mine: Sequence[Summary], characters: Characters
) -> str:
    """Where a visit begins: what there is to rate, what goes on, whom one can talk to."""
    listed = [Listed(one, characters.name_of(one.card_id)) for one in mine]
    return _render(
        "home.html",
        visitor.language,
        visitor=visitor,
        # Characters who speak the visitor's language come first.
        faces=sorted(faces, key=lambda face: face.language != visitor.language),
        to_rate=[one for one in listed if one.summary.imported and not one.summary.closed],
        going_on=[one for one in listed if not (one.summary.imported or one.summary.closed)],
        finished=[one for one in listed if one.summary.closed],
        script_data={"token": visitor.token},
    )


def chat(visitor: Visitor, shown: Chat, characters: Characters) -> str:
    """A chat, to go on with or to rate."""
    name = characters.name_of(shown.card_id)
    said = words(visitor.language)
    can_reply = shown.candidate is not None and characters.can_reply(shown)
    state = {
        "token": visitor.token,
        "chat": shown.id,
        "version": shown.version,
        "name": name,
        "awaits": shown.awaits_reply and can_reply,
        "open": shown.closed_at is None and can_reply,
        "rewind": shown.candidate is not None and characters.can_rewind(shown),
        "most": {"message": MOST_MESSAGE, "note": MOST_NOTE},
        "words": {key: said[key] for key in SCRIPT_WORDS},
    }
    return _render(
        "chat.html",
        visitor.language,
        visitor=visitor,
        chat=shown,
        name=name,
        scenario=characters.scenario_of(shown),
        rateable={turn.id for turn in shown.rateable()},
        can_reply=can_reply,
        most_message=MOST_MESSAGE,
        most_note=MOST_NOTE,
        script_data=state,
    )


def notice(word: str, language: Language) -> str:
    """One sentence for somebody who is not let in, or who looked for what is not there."""
    return _render("notice.html", language, sentence=words(language)[word])


def _render(template: str, language: Language, **values: object) -> str:
    said: Mapping[str, str] = words(language)
    return _environment().get_template(template).render(w=said, language=language, **values)
