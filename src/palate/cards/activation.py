"""Which lorebook entries a chat brings in, and where they go: functions of the chat alone.

What matched before is found by replaying the chat from its beginning, so that a resumed run agrees
with one that was never stopped. By the V3 specification; our choices where it leaves one:

- The chat is the opening and the messages as they were sent, without names before them. A lorebook
  without `scan_depth` is sought for in all of it.
- Words are found anywhere, in any case, unless the entry says otherwise: SillyTavern's defaults. An
  entry that asks for whole words gets them where words have borders; Chinese, Japanese and Thai
  have none. A bare pattern minds case unless the entry says otherwise.
- `@@is_greeting` goes before `@@activate`, that before `@@dont_activate` and
  `@@dont_activate_after_match`, that before `@@keep_activate_after_match`. The last two hold from
  the reply after the first match: "more than once" is read as "at least once", as elsewhere.
- Entries that bring in entries do so only where the lorebook says so, in at most 10 rounds; keys
  that exclude are sought in the chat alone.
- Over the token budget, entries go by `priority`, else by `insertion_order`, lowest first, of
  equals the later one; tokens are estimated (`palate.language.tokens`).
- `@@reverse_depth` is followed in a chat, as its definition by `@@depth` says.
- Of a message or an entry the first 20,000 characters are searched, and 200,000 of all entries that
  bring in others: no real card comes near, and a hostile one cannot hold up a run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from palate.cards.entries import Entry, Key, Search
from palate.cards.lorebook import Lorebook
from palate.cards.patterns import compiled
from palate.language import tokens
from palate.types import Message, Speaker

_MOST_ROUNDS = 10
_MOST_OF_ONE = 20_000  # characters of a message or an entry that keys are sought in
_MOST_OF_ENTRIES = 200_000  # of all entries that bring in entries
# Scripts that put no space between words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = rf"[^\W{_UNSPACED}]"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Said(NamedTuple):
    """A message of the chat, the opening among them."""

    speaker: Speaker
    text: str


def chat(opening: str, messages: Sequence[Message]) -> tuple[Said, ...]:
    """The chat as keys are sought in it: the opening, if there is one, and the messages."""
    said = tuple(Said(message.speaker, message.text) for message in messages)
    return (Said("character", opening), *said) if opening else said


def active(book: Lorebook, said: Sequence[Said], *, greeting: int) -> tuple[Entry, ...]:
    """The entries that the next reply is given, in their order in the prompt.

    `said` is the chat so far; `greeting` the number of its opening (0: first_mes). The lorebook's
    macros are replaced already.
    """
    found = _matching(book, said, greeting, _matched_before(book, said, greeting))
    return tuple(sorted(_within_budget(found, book.token_budget), key=lambda entry: entry.order))


def _matched_before(book: Lorebook, said: Sequence[Said], greeting: int) -> frozenset[int]:
    """The entries that matched for an earlier reply, of those for which it matters."""
    matters = {e.number for e in book.entries if e.when.keep_after_match or e.when.dont_after_match}
    matched: frozenset[int] = frozenset()
    if not matters:
        return matched
    for end in range(1, len(said)):
        if said[end - 1].speaker == "user":
            found = _matching(book, said[:end], greeting, matched)
            matched |= {entry.number for entry in found} & matters
    return matched


def _matching(
    book: Lorebook, said: Sequence[Said], greeting: int, before: Collection[int]
) -> list[Entry]:
    """The entries that match, in the lorebook's order."""
    moment = _Moment(said, greeting, before, book.scan_depth)
    found = {entry.number for entry in book.entries if moment.has(entry, "")}
    fresh, more = found, ""
    for _ in range(_MOST_ROUNDS if book.recursive else 0):
        spreading = [e for e in book.entries if e.number in fresh and e.spreads]
        if not spreading or len(more) >= _MOST_OF_ENTRIES:
            break
        texts = (entry.scanned[:_MOST_OF_ONE] for entry in spreading)
        more = "\n".join([more, *texts])[:_MOST_OF_ENTRIES]
        fresh = {
            entry.number
            for entry in book.entries
            if entry.number not in found and entry.is_found_by_entries and moment.has(entry, more)
        }
        found |= fresh
    return [entry for entry in book.entries if entry.number in found and entry.content]


class _Moment:
    """A chat at the time of one reply, as entries are held against it."""

    def __init__(
        self,
        said: Sequence[Said],
        greeting: int,
        before: Collection[int],
        scan_depth: int | None,
    ) -> None:
        self._said = said
        self._replies = sum(message.speaker == "character" for message in said)
        self._greeting = greeting
        self._before = before
        self._scan_depth = scan_depth
        self._recent: dict[int, _Text] = {}
        self._more = _Text("")

    def has(self, entry: Entry, more: str) -> bool:
        """Whether the entry matches; `more` is text of entries that do."""
        decided = self._decided(entry)
        if decided is not None:
            return decided
        when = entry.when
        early = when.after is not None and self._replies < when.after
        between = when.every is not None and self._replies % when.every != 0
        return not early and not between and self._finds(entry.search, more)

    def _decided(self, entry: Entry) -> bool | None:
        """What decorators say "in any case"; None where the chat decides."""
        when, matched = entry.when, entry.number in self._before
        if when.greeting is not None and when.greeting != self._greeting:
            return False
        if when.activate:
            return True
        if when.dont_activate or (when.dont_after_match and matched):
            return False
        return True if when.keep_after_match and matched else None

    def _finds(self, search: Search, more: str) -> bool:
        if more != self._more.whole:
            self._more = _Text(more)
        texts = (self._within(search.scan_depth), self._more)

        def there(key: Key) -> bool:
            return any(text.has(key, search) for text in texts)

        if any(texts[0].has(key, search) for key in search.excluded):
            return False
        if not all(any(map(there, group)) for group in search.additional):
            return False
        if search.constant:
            return True
        return any(map(there, search.keys)) and _secondary(search, [*map(there, search.secondary)])

    def _within(self, own_depth: int | None) -> _Text:
        depth = self._scan_depth if own_depth is None else own_depth
        count = len(self._said) if depth is None else min(depth, len(self._said))
        if count not in self._recent:
            recent = self._said[len(self._said) - count :]
            texts = (message.text[:_MOST_OF_ONE] for message in recent)
            self._recent[count] = _Text("\n".join(texts))
        return self._recent[count]


def _secondary(search: Search, there: Sequence[bool]) -> bool:
    if not there:
        return True
    match search.secondary_rule:
        case "any":
            return any(there)
        case "all":
            return all(there)
        case "not_any":
            return not any(there)
        case "not_all":
            return not all(there)


class _Text:
    """A text that keys are sought in; its lower case is made once."""

    def __init__(self, whole: str) -> None:
        # Half a character cannot be given to a pattern, and no key holds one.
        self.whole = whole
        self._safe = _SURROGATE.sub("?", whole)
        self._folded = self._safe.casefold()

    def has(self, key: Key, search: Search) -> bool:
        """Whether the key is in the text, as its entry wants it sought."""
        if key.is_pattern:
            pattern = compiled(key.text, ignores_case=search.case_sensitive is False)
            return pattern is not None and pattern.search(self._safe) is not None
        text, sought = self._folded, key.text.casefold()
        if search.case_sensitive:
            text, sought = self._safe, key.text
        if not sought or sought not in text:
            return False
        return not search.whole_words or _whole(sought).search(text) is not None


def _whole(sought: str) -> re.Pattern[str]:
    """`sought` with no letter or digit right beside it, where its script has borders of words."""
    start = rf"(?<!{_WORD})" if re.match(_WORD, sought) else ""
    end = rf"(?!{_WORD})" if re.match(_WORD, sought[-1]) else ""
    return re.compile(start + re.escape(sought) + end)


def _within_budget(found: Sequence[Entry], budget: float | None) -> list[Entry]:
    if budget is None:
        return list(found)
    sizes = {entry.number: tokens(entry.content) for entry in found}
    total, dropped = sum(sizes.values()), set()
    for entry in sorted(found, key=_worth):
        if total <= budget:
            break
        total -= sizes[entry.number]
        dropped.add(entry.number)
    return [entry for entry in found if entry.number not in dropped]


def _worth(entry: Entry) -> tuple[float, int]:
    return (entry.order if entry.priority is None else entry.priority, -entry.number)
