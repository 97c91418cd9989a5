"""Sessions from JSON Lines: one session a line, the form that every importer writes.

    {"session_id", "user_id", "card_id", "language", "ended_by",
     "turns": [{"speaker": "character|user", "text", "satisfaction": 1..5|null, "note"}]}

Fields that this form does not know are kept under `Session.extra` (those of turns under
`extra["turns"]`, by turn number), never read. A line that is wrong stops the reading: a history
with holes would silently become another person's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from palate import language
from palate.errors import InputError
from palate.json_input import parsed
from palate.types import Session, Turn

_SESSION_FIELDS = frozenset(Session.model_fields)
_TURN_FIELDS = frozenset(Turn.model_fields)
_IDS = ("session_id", "user_id", "card_id")
_DEEPEST = 100  # levels under `extra`; what serialises a session gives up at some 250


def read(path: Path, *, user_id: str | None = None) -> tuple[Session, ...]:
    """The sessions of a file in its order, all of `user_id` if that is given.

    Raises:
        InputError: the file cannot be read, holds no session, or a line is wrong; with its number.
    """
    lines = _lines(path)
    sessions: dict[str, Session] = {}
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path} line {number}"
        session = session_of(_object(line, where), where)
        if user_id is not None and session.user_id != user_id:
            raise InputError(
                f"{where}: the session is of user {session.user_id!r}, not of {user_id!r}; "
                "a history file holds one user's sessions"
            )
        if session.session_id in sessions:
            raise InputError(
                f"{where}: session {session.session_id!r} was already on line "
                f"{first_line[session.session_id]}; session ids must differ"
            )
        sessions[session.session_id] = session
        first_line[session.session_id] = number
    if not sessions:
        raise InputError(f"{path} holds no session; it should have one JSON object a line")
    return tuple(sessions.values())


def _lines(path: Path) -> Sequence[bytes]:
    try:
        # Split on line feeds alone: texts may hold U+2028, which str.splitlines would cut at.
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the path of the history") from None
    except OSError as error:
        reason = error.strerror or "it is not readable"
        raise InputError(f"{path} cannot be read as a history: {reason}") from None


def session_of(value: Mapping[str, object], where: str) -> Session:
    """The session that a JSON object holds; `where` begins the sentence of a fault.

    Raises:
        InputError: a field is missing or wrong.
    """
    for key in _IDS:
        if not isinstance(value.get(key), str) or not str(value[key]).strip():
            raise InputError(f"{where}: {key} must be a text that is not blank")
    listed = value.get("turns")
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{where}: turns must be a list with at least one turn")
    turns = tuple(_turn(turn, f"{where}, turn {number}") for number, turn in enumerate(listed))
    known = {key: value[key] for key in _SESSION_FIELDS & set(value) if value[key] is not None}
    if "language" not in known:
        known["language"] = language.of_text("\n".join(turn.text for turn in turns))
    try:
        return Session.model_validate(
            {**known, "turns": turns, "extra": _extra(value, listed, where)}
        )
    except ValidationError as error:
        raise InputError(f"{where}: {_first_fault(error)}") from None


def _object(line: bytes, where: str) -> Mapping[str, object]:
    value = parsed(line, where)
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a session: a JSON object is expected")
    return value


def _turn(value: object, where: str) -> Turn:
    """A turn; `where` counts turns from 0, as evidence in rubrics does."""
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a turn: a JSON object is expected")
    speaker, text = value.get("speaker"), value.get("text")
    if speaker not in ("character", "user"):
        raise InputError(f'{where}: speaker is {speaker!r}, but must be "character" or "user"')
    satisfaction = _satisfaction(value.get("satisfaction"), where)
    # A reply that said nothing and was rated for it is a measurement; any other blank is a slip.
    if not isinstance(text, str) or (satisfaction is None and not text.strip()):
        raise InputError(f"{where}: text must be a text that is not blank; leave the turn out")
    if satisfaction is not None and speaker == "user":
        raise InputError(f"{where}: a user's turn carries a satisfaction; only replies are rated")
    try:
        return Turn(speaker=speaker, text=text, satisfaction=satisfaction, note=value.get("note"))
    except ValidationError as error:
        raise InputError(f"{where}: {_first_fault(error)}") from None


def _satisfaction(value: object, where: str) -> int | None:
    """1..5, also as 4.0, which table programs write; never true, "4" or 4.5."""
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value in (1, 2, 3, 4, 5):
        return int(value)
    raise InputError(f"{where}: satisfaction is {value!r}, but must be 1, 2, 3, 4, 5 or null")


def _extra(
    value: Mapping[str, object], turns: Sequence[Mapping[str, object]], where: str
) -> dict[str, object]:
    given = value.get("extra")
    if given is not None and not isinstance(given, dict):
        raise InputError(f"{where}: extra must be a JSON object")
    extra = {**(given or {})}
    extra |= {key: value[key] for key in value if key not in _SESSION_FIELDS}
    of_turns = {
        str(number): unknown
        for number, turn in enumerate(turns)
        if (unknown := {key: turn[key] for key in turn if key not in _TURN_FIELDS})
    }
    extra |= {"turns": of_turns} if of_turns else {}
    if too_deep(extra):
        raise InputError(f"{where}: a field outside the form is nested too deeply; leave it out")
    return extra


def too_deep(extra: Mapping[str, object]) -> bool:
    """Whether `extra` is nested so deeply that no session can hold it."""
    level: list[object] = [extra]
    for _ in range(_DEEPEST):
        level = [
            inner
            for value in level
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place} is wrong: {fault['msg']}"
