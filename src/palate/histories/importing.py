"""Sessions from people's chat files: the format told by content, every loss noted."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from palate.errors import InputError
from palate.histories.card_choice import CardChoice
from palate.histories.files import too_deep
from palate.histories.formats import FORMATS, MAPPED, NAMES, PALATE, lines, mapped
from palate.histories.formats.normal import Chat, Found, Notes
from palate.histories.formats.records import Records, records
from palate.histories.formats.tables import rows
from palate.histories.mapping import HistoryMap
from palate.histories.sessions import Reading, Turns, language_of, safe_id, turns_of
from palate.study_rules import fault_of_id
from palate.types import Session

_LOOKED_AT = 20  # records that a format is told from
_ENDINGS = (".gz", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Options:
    """What the person who imports says.

    `user` None: each session is of the user that the file names. `cards` are the study's card ids
    by `folded` name.
    """

    user: str | None = None
    card: str | None = None
    format: str | None = None
    mapping: HistoryMap | None = None
    reading: Reading = field(default_factory=Reading)
    cards: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Item(NamedTuple):
    """A session found in a file; `has_own_id`: its id is the file's, not made from a file name."""

    session: Session
    place: str
    has_own_id: bool


class Imported(NamedTuple):
    """What one file holds."""

    path: Path
    format: str
    items: tuple[Item, ...]
    notes: Notes


def read_file(path: Path, options: Options) -> Imported:
    """The sessions of one chat file and what was left out of them.

    Raises:
        InputError: the file cannot be read, is of no known format, or holds no turn.
    """
    notes = Notes(str(path))
    form, found = _found(path, options, notes)
    listed = _of_users(list(found), path, options, notes)
    items = tuple(_items(listed, path, form, options, notes))
    if not items:
        counted = notes.counts()
        left = ", ".join(f"{kind} {number}" for kind, number in counted.items() if kind != "turns")
        why = next((note for note in notes.listed if note.kind in ("refused", "torn")), None)
        raise InputError(
            f"{path}: no turns found (read as {form}{'; left out: ' + left if left else ''}"
            f"{'; ' + why.detail if why else ''}); "
            "check that it is the right file"
        )
    return Imported(path, form, items, notes)


def _found(path: Path, options: Options, notes: Notes) -> tuple[str, Iterator[Found]]:
    read = records(path, notes)
    if options.mapping is not None:
        return MAPPED, _mapped(path, read, options.mapping, notes)
    if read.shape == "table":
        raise InputError(
            f"{path} is no chat that palate knows by itself; if it is a table, say with --map "
            "which columns hold what"
        )
    first = list(itertools.islice(read.items, _LOOKED_AT))
    form = options.format or _format(path, [record.value for record in first])
    together = itertools.chain(first, read.items)
    if form == PALATE:
        return form, lines.sessions(together, notes)
    return form, FORMATS[form].chats(together, notes)


def _format(path: Path, values: Sequence[object]) -> str:
    if lines.matches(values):
        return PALATE
    for name, form in FORMATS.items():
        if form.matches(values):
            return name
    raise InputError(
        f"{path} is no chat that palate knows by itself: no turns found under {_keys(values)}; say "
        f"with --map which fields hold what (formats known: {', '.join(NAMES)})"
    )


def _keys(values: Sequence[object]) -> str:
    """The keys of the first values and of what is inside their lists, for a sentence."""
    found: dict[str, None] = {}
    for value in values:
        for inside in value if isinstance(value, list) else [value]:
            for key, item in inside.items() if isinstance(inside, dict) else ():
                found[str(key)[:30]] = None
                for one in item[:3] if isinstance(item, list) else ():
                    found |= (
                        dict.fromkeys(str(k)[:30] for k in one) if isinstance(one, dict) else {}
                    )
    named = [f'"{key}"' for key in itertools.islice(found, 12)]
    return f"the keys {', '.join(named)}" if named else "any key"


def _mapped(path: Path, read: Records, mapping: HistoryMap, notes: Notes) -> Iterator[Found]:
    items = read.items
    if read.shape == "table":
        items = rows(path, mapping.table.delimiter)
    first = list(itertools.islice(items, _LOOKED_AT))
    mapped.check([record.value for record in first], mapping, str(path))
    return mapped.chats(itertools.chain(first, items), mapping, notes)


def _of_users(
    found: Sequence[Found], path: Path, options: Options, notes: Notes
) -> list[tuple[Found, str]]:
    """What is of the wanted user, each with the user id that it gets."""
    counted = Counter(user for one in found if (user := _user(one)))
    wanted = options.user
    if wanted is None:
        if any(not _user(one) for one in found):
            raise InputError(f"{path} does not say whose chats it holds; name the user with --user")
        return [(one, _checked(_user(one), path)) for one in found]
    if len(counted) == 1 and wanted not in counted:
        notes.add("user", "", f"the file calls the user {next(iter(counted))!r}")
        counted.clear()
    if counted and wanted not in counted:
        listed = ", ".join(user[:60] for user in itertools.islice(counted, 10))
        raise InputError(
            f"{path} holds sessions of {len(counted)} users, none of them {wanted!r}: {listed}; "
            "leave --user out to import each under their own id"
        )
    others = sum(counted.values()) - counted[wanted]
    if others:
        notes.add("user", "", f"{others} sessions of {len(counted) - 1} other users left out")
    return [(one, wanted) for one in found if not counted or _user(one) in ("", wanted)]


def _user(found: Found) -> str:
    return found.user if isinstance(found, Chat) else found[0].user_id


def _checked(user: str, path: Path) -> str:
    fault = fault_of_id(user)
    if fault:
        raise InputError(f"{path}: the user id {user[:60]!r} cannot be used: {fault}")
    return user


def _items(
    listed: Sequence[tuple[Found, str]], path: Path, form: str, options: Options, notes: Notes
) -> Iterator[Item]:
    cards = CardChoice(options.card, options.cards, notes)
    ids = _session_ids([found for found, _ in listed], path)
    for (found, user), session_id in zip(listed, ids, strict=True):
        if not isinstance(found, Chat):
            session, place = found
            about = {"user_id": user, "card_id": cards.stated(session.card_id, place)}
            yield Item(session.model_copy(update=about), place, True)
            continue
        turns = turns_of(found, options.reading, notes)
        extra = _extra(found, turns, path, form)
        if not turns.turns:
            notes.add("turns", found.place)
        elif too_deep(extra):
            notes.add("refused", found.place, "a field that is not mapped is nested too deeply")
        else:
            session = Session(
                session_id=session_id,
                user_id=user,
                card_id=cards.of(found.card_id, turns.character, found.place),
                language=language_of(found, turns.turns),
                ended_by=found.ended_by,
                turns=turns.turns,
                extra=extra,
            )
            yield Item(session, found.place, bool(safe_id(found.own_id)))


def _extra(chat: Chat, turns: Turns, path: Path, form: str) -> dict[str, object]:
    """What is kept beside the turns (`palate.histories.sessions` says what)."""
    # A name that is no UTF-8 comes with surrogates, which no file can hold.
    name = path.name.encode("utf-8", "replace").decode()
    source = {"file": name, "format": form, "place": chat.place, "id": chat.own_id}
    extra: dict[str, object] = {**chat.extra}
    extra["source"] = {key: value for key, value in source.items() if value}
    extra |= {"turns": turns.of_turns} if turns.of_turns else {}
    return extra | ({"aside": list(turns.aside)} if turns.aside else {})


def _session_ids(listed: Sequence[Found], path: Path) -> Iterator[str]:
    """An id for each: its own, else the file's name, with a number where there are several."""
    own = [safe_id(one.own_id) if isinstance(one, Chat) else one[0].session_id for one in listed]
    stem, several, number = _stem(path), own.count("") > 1, 0
    for name in own:
        number += not name
        yield name or (f"{stem}-{number}" if several else stem)


def _stem(path: Path) -> str:
    name = path.name
    while (ending := Path(name).suffix.lower()) in _ENDINGS:
        name = name[: -len(ending)]
    return safe_id(name) or "session"
