"""Tables and JSON of any shape, read as a mapping file says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from palate.errors import InputError
from palate.histories.formats import fields
from palate.histories.formats.normal import Chat, Notes, Record, Spoken, Thumb
from palate.histories.mapping import HistoryMap, at, plain
from palate.types import SessionEnd

NAME = "mapped"


def chats(records: Iterable[Record], mapping: HistoryMap, notes: Notes) -> Iterator[Chat]:
    """The chats of a file: a row each, or the rows of one session together, in the file's order."""
    reader = _Reader(mapping, notes)
    if mapping.fields.turns is not None:
        for record in records:
            if isinstance(record.value, dict):
                yield reader.of_session(record.value, record.place)
            else:
                notes.add("torn", record.place, "no object")
        reader.note_absent()
        return
    rows: dict[tuple[str, str], list[tuple[Mapping[str, object], str]]] = {}
    for value, place in records:
        if not isinstance(value, dict):
            notes.add("torn", place, "no object")
            continue
        key = (plain(at(value, mapping.fields.user)), plain(at(value, mapping.fields.session)))
        if mapping.fields.session is not None and not key[1]:
            notes.add("torn", place, "no session id")
            continue
        rows.setdefault(key, []).append((value, place))
    for together in rows.values():
        yield reader.of_rows(together)
    reader.note_absent()


def check(values: Sequence[object], mapping: HistoryMap, where: str) -> None:
    """Refuse a mapping whose text, speaker or (of rows) session none of the first rows has.

    Raises:
        InputError: with the fields that the file does have.
    """
    rows = [value for value in values if isinstance(value, dict)]
    names = mapping.fields
    if names.turns is not None:
        turns = [turn for row in rows for turn in fields.objects(at(row, names.turns))]
        if not turns:
            raise _absent(where, names.turns, "a list of turns", rows)
        rows = [dict(turn) for turn in turns]
    wanted = [(names.speaker, "the speaker"), (names.text, "the text")]
    if names.session is not None and names.turns is None:
        wanted.append((names.session, "the session id"))
    for path, what in wanted:
        if all(at(row, path) is None for row in rows):
            raise _absent(where, path, what, rows)


def _absent(where: str, path: str, what: str, rows: Sequence[Mapping[str, object]]) -> InputError:
    found = ", ".join(dict.fromkeys(str(key)[:40] for row in rows for key in row)) or "none"
    return InputError(
        f"{where}: the mapping says that {path!r} holds {what}, but no row has it; its fields are: "
        f"{found[:400]}"
    )


class _Reader:
    """One mapping at work."""

    def __init__(self, mapping: HistoryMap, notes: Notes) -> None:
        self._map = mapping
        self._notes = notes
        self._seen: set[str] = set()
        self._speakers = {
            plain(value): speaker
            for speaker, values in (
                ("character", mapping.speakers.character),
                ("user", mapping.speakers.user),
                ("system", mapping.speakers.system),
            )
            for value in values
        }
        self._thumbs: dict[str, Thumb] = {
            **dict.fromkeys(map(plain, mapping.thumbs.up), "up"),
            **dict.fromkeys(map(plain, mapping.thumbs.down), "down"),
        }
        self._ends: dict[str, SessionEnd] = {
            **dict.fromkeys(map(plain, mapping.ends.quit), "quit"),
            **dict.fromkeys(map(plain, mapping.ends.limit), "limit"),
        }

    def note_absent(self) -> None:
        """Name the fields of the mapping that no row had: a slip of spelling loses all ratings."""
        for setting, path in self._map.fields:
            if path is not None and path not in self._seen:
                self._notes.add("absent", "", f"{setting} = {path!r}")

    def of_session(self, row: Mapping[str, object], place: str) -> Chat:
        """The chat of a row that holds a list of turns; fields not named go to its extra."""
        turns = self._at(row, self._map.fields.turns)
        before = f"{place}, " if place else ""
        spoken = []
        for number, turn in enumerate(turns if isinstance(turns, list) else ()):
            if isinstance(turn, dict):
                spoken.append(self._spoken(turn, f"{before}turn {number}"))
            else:
                self._notes.add("torn", f"{before}turn {number}", "no object")
        return self._chat(row, place, tuple(spoken), self._unnamed(row))

    def of_rows(self, rows: Sequence[tuple[Mapping[str, object], str]]) -> Chat:
        """The chat of rows that are a message each; what concerns the whole is in any of them."""
        spoken = tuple(self._spoken(row, place) for row, place in rows)
        about: dict[str, object] = {}
        for row, _ in rows:
            about |= {key: value for key, value in row.items() if value not in (None, "")}
        return self._chat(about, rows[0][1], spoken, {})

    def _chat(
        self,
        row: Mapping[str, object],
        place: str,
        spoken: tuple[Spoken, ...],
        extra: dict[str, object],
    ) -> Chat:
        names = self._map.fields
        rating = self._at(row, names.session_rating)
        return Chat(
            spoken,
            place=place,
            own_id=fields.label(self._at(row, names.session)),
            user=fields.label(self._at(row, names.user)),
            character=fields.label(self._at(row, names.character)),
            card_id=fields.label(self._at(row, names.card)),
            language=fields.label(self._at(row, names.language)),
            ended_by=self._end(self._at(row, names.end), place),
            scale=self._map.scale or None,
            # Of the whole chat: spread over the turns it would be a rating that nobody gave.
            extra=extra | ({} if rating is None else {"session_rating": rating}),
        )

    def _spoken(self, row: Mapping[str, object], place: str) -> Spoken:
        names = self._map.fields
        swipes = self._at(row, names.swipes)
        text = fields.text(self._at(row, names.text), place, self._notes)
        listed = swipes if isinstance(swipes, list) else []
        offered = (one for one in listed if isinstance(one, str))
        return Spoken(
            speaker=self._speaker(self._at(row, names.speaker)),
            text=text,
            place=place,
            name=fields.label(self._at(row, names.name)),
            rating=self._at(row, names.rating),
            thumb=self._thumb(self._at(row, names.thumb), place),
            note=fields.comment(self._at(row, names.note)),
            date=fields.date(self._at(row, names.date), place, self._notes),
            alternates=tuple(dict.fromkeys(one for one in offered if one.strip() and one != text)),
        )

    def _speaker(self, value: object) -> str:
        told = self._speakers.get(plain(value))
        return told if told is not None else fields.speaker(value)

    def _thumb(self, value: object, place: str) -> Thumb | None:
        if value is None or plain(value) == "":
            return None
        thumb = self._thumbs.get(plain(value))
        if thumb is None:
            self._notes.add("scale", place, f"thumb {value!r}"[:60])
        return thumb

    def _end(self, value: object, place: str) -> SessionEnd:
        text = plain(value)
        if text and text not in self._ends and text != "unknown":
            self._notes.add("end", place, text[:60])
        return self._ends.get(text, "unknown")

    def _at(self, row: Mapping[str, object], path: str | None) -> object:
        value = at(row, path)
        if path is not None and value is not None:
            self._seen.add(path)
        return value

    def _unnamed(self, row: Mapping[str, object]) -> dict[str, object]:
        names = self._map.fields
        paths = (
            names.session,
            names.user,
            names.card,
            names.language,
            names.end,
            names.turns,
            names.session_rating,
        )
        return {key: value for key, value in row.items() if key not in paths}
