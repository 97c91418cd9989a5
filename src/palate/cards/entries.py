"""One lorebook entry: what its fields and decorators say, in the spelling of any of its makers.

SillyTavern's own spellings are read too (`key`, `keysecondary`, `order`, `disable`, a number as
`position`), as are the settings that it puts under `extensions`. Its exports set `use_regex` on
every entry while their keys are plain words, so an entry with its marks is read as it reads it:
`/…/flags` is a pattern, all else is words. A decorator counts before a field, and an extension
before the field that says less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

from palate.cards import decorators, patterns
from palate.cards.lore_fields import Fields, split

Position = Literal[
    "before_char",
    "after_char",
    "before_desc",
    "after_desc",
    "personality",
    "scenario",
    "before_examples",
    "after_examples",
    "depth",
    "reverse_depth",
]
Role = Literal["system", "user", "assistant"]
SecondaryRule = Literal["any", "not_all", "not_any", "all"]

POSITIONS: tuple[Position, ...] = get_args(Position)
_ROLES: tuple[Role, ...] = get_args(Role)
_SECONDARY_RULES: tuple[SecondaryRule, ...] = get_args(SecondaryRule)  # in SillyTavern's numbers
# SillyTavern's numbers. Its author's note (2, 3) stands in the chat; 4 is a depth of choice.
_NUMBERED: tuple[Position, ...] = (
    "before_char",
    "after_char",
    "depth",
    "depth",
    "depth",
    "before_examples",
    "after_examples",
)
_AT_DEPTH, _OUTLET = 4, 7
_DEFAULT_DEPTH = 4
_DEFAULT_ORDER = 100.0
_TAVERN_MARKS = frozenset({"display_index", "selectiveLogic", "exclude_recursion"})
_DELAYS = ("delay_until_recursion", "delayUntilRecursion")
_UNUSED = ("group", "sticky", "cooldown", "delay", "vectorized", *_DELAYS)


class Key(NamedTuple):
    """What is sought in a chat: words, or a pattern as written."""

    text: str
    is_pattern: bool = False

    @property
    def can_be_found(self) -> bool:
        """Whether it is words, or a pattern that can be read."""
        return not self.is_pattern or patterns.compiled(self.text) is not None


class Search(NamedTuple):
    """What must stand in the chat for the entry to match.

    One of `keys`, unless it is `constant`; of `secondary`, if there are any, what their rule says;
    one of each group of `additional`; none of `excluded`. `case_sensitive` None: not said.
    `scan_depth` counts messages from the newest; None: as the lorebook says.
    """

    keys: tuple[Key, ...] = ()
    secondary: tuple[Key, ...] = ()
    secondary_rule: SecondaryRule = "any"
    additional: tuple[tuple[Key, ...], ...] = ()
    excluded: tuple[Key, ...] = ()
    constant: bool = False
    case_sensitive: bool | None = None
    whole_words: bool = False
    scan_depth: int | None = None

    def all_keys(self) -> Iterable[Key]:
        """Every key of any kind."""
        for group in (self.keys, self.secondary, self.excluded, *self.additional):
            yield from group


class When(NamedTuple):
    """The decorators that switch an entry on or off, whatever stands in the chat.

    `after` and `every` count messages of the character, the opening among them; `greeting` 0 is
    first_mes, n the n-th alternate greeting.
    """

    greeting: int | None = None
    after: int | None = None
    every: int | None = None
    activate: bool = False
    dont_activate: bool = False
    keep_after_match: bool = False
    dont_after_match: bool = False


class Place(NamedTuple):
    """Where an entry goes; `depth` counts messages from the newest ("depth") or the oldest."""

    position: Position = "after_char"
    depth: int = 0
    role: Role = "system"


class Entry(NamedTuple):
    """One enabled entry with text, its decorators read; `number` counts all entries from 1.

    `content` goes to the prompt. Where entries bring in entries, keys are sought in `scanned` if
    the entry `spreads`, and it may be brought in so if it `is_found_by_entries`.
    """

    number: int
    content: str
    scanned: str
    search: Search = Search()
    when: When = When()
    place: Place = Place()
    order: float = _DEFAULT_ORDER
    priority: float | None = None
    is_found_by_entries: bool = True
    spreads: bool = True

    @property
    def can_match(self) -> bool:
        """Whether any chat can bring it in."""
        if self.when.activate or self.when.dont_activate:
            return self.when.activate
        return self.search.constant or any(key.can_be_found for key in self.search.keys)


class Read(NamedTuple):
    """An entry, or None where it is disabled or blank; and its settings without effect here."""

    entry: Entry | None
    without_effect: tuple[str, ...]


def read(
    number: int, values: Mapping[str, object], *, where: str, positions: frozenset[str]
) -> Read:
    """Read one entry; `positions` are those that @@position may name on this card.

    Raises:
        InputError: a field has a type that cannot be read as meant; `where` names the entry.
    """
    fields = Fields(values, where)
    more = fields.within("extensions")
    decorated = decorators.read(fields.text("content"), positions=positions)
    enabled = fields.flag("enabled", default=True) and not fields.flag("disable")
    outlet = _tavern_number("position", fields, more) == _OUTLET
    without = tuple(_without_effect(decorated, fields, more, outlet=outlet))
    if not enabled or outlet or not decorated.content.strip():
        return Read(None, without if enabled else ())
    order = fields.number("insertion_order", "order")
    entry = Entry(
        number=number,
        content=decorated.content,
        scanned=decorated.content,
        search=_search(decorated, fields, more),
        when=_when(decorated),
        place=_place(decorated, fields, more),
        order=_DEFAULT_ORDER if order is None else order,
        priority=fields.number("priority"),
        is_found_by_entries=not _either_flag("exclude_recursion", "excludeRecursion", fields, more),
        spreads=not _either_flag("prevent_recursion", "preventRecursion", fields, more),
    )
    return Read(entry, without)


def _search(decorated: decorators.Decorated, fields: Fields, more: Fields) -> Search:
    tavern = _is_tavern(fields, more)
    by_pattern = fields.flag("use_regex") and not tavern

    def keys(texts: Iterable[str]) -> tuple[Key, ...]:
        return tuple(_key(text, by_pattern, tavern) for text in texts if text.strip())

    own = keys(fields.texts("keys", "key", splits=not by_pattern))
    additional = tuple(keys(split(value)) for value in decorated.values.get("additional_keys", ()))
    depth = decorated.number("scan_depth")
    found = Search(
        keys=own,
        case_sensitive=_case_sensitive(fields, more),
        whole_words=_either_flag("match_whole_words", "matchWholeWords", fields, more),
        scan_depth=_scan_depth(fields, more) if depth is None else max(depth, 0),
    )
    if by_pattern:  # other keys and "constant" are ignored; additional patterns are alternatives
        return found._replace(keys=sum(additional, own))
    excluded = decorated.values.get("exclude_keys", ())
    secondary = fields.texts("secondary_keys", "keysecondary") if fields.flag("selective") else ()
    return found._replace(
        secondary=keys(secondary),
        secondary_rule=_secondary_rule(fields, more),
        additional=additional,
        excluded=keys(text for value in excluded for text in split(value)),
        constant=fields.flag("constant"),
    )


def _key(text: str, by_pattern: bool, tavern: bool) -> Key:
    if by_pattern:  # white space may be part of a pattern
        return Key(text, True)
    return Key(text.strip(), tavern and patterns.is_written_as_pattern(text.strip()))


def _is_tavern(fields: Fields, more: Fields) -> bool:
    return "key" in fields.values or bool(_TAVERN_MARKS & set(more.values))


def _when(decorated: decorators.Decorated) -> When:
    return When(
        greeting=decorated.number("is_greeting"),
        after=decorated.number("activate_only_after"),
        every=decorated.number("activate_only_every"),
        activate="activate" in decorated.values,
        dont_activate="dont_activate" in decorated.values,
        keep_after_match="keep_activate_after_match" in decorated.values,
        dont_after_match="dont_activate_after_match" in decorated.values,
    )


def _place(decorated: decorators.Decorated, fields: Fields, more: Fields) -> Place:
    role = _role(decorated, fields, more)
    named = decorated.values.get("position")
    for position in POSITIONS:
        if named == (position,):
            return Place(position, 0, role)
    depth, from_start = decorated.number("depth"), decorated.number("reverse_depth")
    if depth is not None and "after" not in decorated.values:
        return Place("depth", depth, role)
    if from_start is not None and depth is None:
        return Place("reverse_depth", from_start, role)
    number = _tavern_number("position", fields, more)
    if number is not None and 0 <= number < len(_NUMBERED):
        own = (more.count("depth"), fields.count("depth")) if number == _AT_DEPTH else ()
        at = next((depth for depth in own if depth is not None), _DEFAULT_DEPTH)
        return Place(_NUMBERED[number], at if _NUMBERED[number] == "depth" else 0, role)
    before = fields.values.get("position") == "before_char"
    return Place("before_char" if before else "after_char", 0, role)


def _role(decorated: decorators.Decorated, fields: Fields, more: Fields) -> Role:
    named = decorated.values.get("role")
    number = _tavern_number("role", fields, more)
    for place, role in enumerate(_ROLES):
        if named == (role,) or (named is None and number == place):
            return role
    return "system"


def _secondary_rule(fields: Fields, more: Fields) -> SecondaryRule:
    number = _tavern_number("selectiveLogic", fields, more)
    known = number is not None and 0 <= number < len(_SECONDARY_RULES)
    return _SECONDARY_RULES[number] if known and number is not None else "any"


def _case_sensitive(fields: Fields, more: Fields) -> bool | None:
    for source in (fields, more):
        if source.value("case_sensitive", "caseSensitive") is not None:
            return source.flag("case_sensitive", "caseSensitive")
    return None


def _scan_depth(fields: Fields, more: Fields) -> int | None:
    own = fields.count("scanDepth")
    return more.count("scan_depth") if own is None else own


def _either_flag(name: str, tavern_name: str, fields: Fields, more: Fields) -> bool:
    return more.flag(name) or fields.flag(tavern_name)


def _tavern_number(name: str, fields: Fields, more: Fields) -> int | None:
    """A number that SillyTavern writes, under extensions or at the top; a word there is no fault:
    the specification has one as `position`."""
    for source in (more, fields):
        value = source.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _without_effect(
    decorated: decorators.Decorated, fields: Fields, more: Fields, *, outlet: bool
) -> Iterable[str]:
    yield from (f"@@{name}" for name in decorated.without_effect)
    yield from (name for name in _UNUSED if more.values.get(name) or fields.values.get(name))
    for source in (more, fields):
        chance = source.values.get("probability")
        if chance not in (None, 100) and source.values.get("useProbability") is not False:
            yield "probability"
    if outlet:
        yield "outlet"
