"""One conversation, written as each back end accepts it.

Role-play opens with the character's line, which many back ends refuse in some way: no system
role, no assistant message first, no two messages of one role in a row, no blank content. The
rules of an endpoint are known from its settings, before the first call. Nothing is dropped:
system text moves to the top field or into the first user message, and an opening that may not
come first gets a short fixed user line before it. That line exists in the call alone, never in a
stored conversation. The form of an endpoint has a name, which runs record per candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from palate.models.client import ChatMessage
from palate.models.spec import EndpointSettings, Provider
from palate.models.thinking import is_blank

# Not words: it must suit every language, and give no candidate a hint.
HELPER_USER_LINE = "…"
_JOINT = "\n\n"


@dataclass(frozen=True, slots=True)
class ShapeRules:
    """What a back end accepts.

    `system`: "role" takes system messages (at most `max_system`), "top" has one field beside the
    messages, "none" takes neither.
    """

    system: Literal["role", "top", "none"] = "role"
    first_role: Literal["any", "user"] = "any"
    alternate: bool = False
    max_system: int | None = None
    no_blank: bool = False
    no_trailing_space: bool = False

    @classmethod
    def of(cls, settings: EndpointSettings, provider: Provider) -> ShapeRules:
        """The rules of an endpoint."""
        top = provider == "anthropic"
        return cls(
            system="top" if top else "role" if settings.system_role else "none",
            first_role=settings.first_role,
            alternate=settings.alternate,
            # A system message in mid-chat would break the alternation.
            max_system=settings.max_system or (1 if settings.alternate else None),
            no_blank=top,
            no_trailing_space=top,
        )

    @property
    def form(self) -> str:
        """The rules' name, for example "system-in-user+helper-user-line+merged"."""
        parts = (
            ("top-system", self.system == "top"),
            ("system-in-user", self.system == "none"),
            (f"at-most-{self.max_system}-system", self.system == "role" and self.max_system),
            ("helper-user-line", self.first_role == "user"),
            ("merged", self.alternate),
        )
        return "+".join(name for name, holds in parts if holds) or "as-it-stands"


class Shaped(NamedTuple):
    """The outgoing messages, and the text of the top-level system field, "" if there is none."""

    messages: Sequence[ChatMessage]
    system: str


_FREE = ShapeRules()


def form(settings: EndpointSettings, provider: Provider) -> str:
    """The name of the form in which an endpoint gets its conversations."""
    return ShapeRules.of(settings, provider).form


def shape(messages: Sequence[ChatMessage], rules: ShapeRules) -> Shaped:
    """`messages` as `rules` want them; a message that needs no change stays the same object."""
    if rules == _FREE:
        return Shaped(messages, "")
    placed, top = _with_system_placed(messages, rules)
    if rules.no_blank:
        placed = [m for m in placed if not is_blank(m.text)]
    if rules.first_role == "user":
        placed = _beginning_with_user(placed)
    if rules.alternate:
        placed = _merged(placed)
    if rules.no_trailing_space and placed and placed[-1].role == "assistant":
        placed[-1] = placed[-1]._replace(text=placed[-1].text.rstrip())
    return Shaped(placed, top)


def _with_system_placed(
    messages: Sequence[ChatMessage], rules: ShapeRules
) -> tuple[list[ChatMessage], str]:
    if rules.system == "role":
        return _with_fewer_systems(messages, rules.max_system), ""
    spoken = [m for m in messages if m.role != "system"]
    text = _JOINT.join(m.text for m in messages if m.role == "system" and not is_blank(m.text))
    if rules.system == "top":
        return spoken, text
    if text and spoken and spoken[0].role == "user":
        spoken[0] = spoken[0]._replace(text=text + _JOINT + spoken[0].text)
    elif text:
        # Not into the user's message after the opening: the instructions come before the story.
        spoken.insert(0, ChatMessage("user", text))
    return spoken, ""


def _with_fewer_systems(messages: Sequence[ChatMessage], limit: int | None) -> list[ChatMessage]:
    """System messages beyond `limit` are joined to the last one that is allowed."""
    systems = [i for i, m in enumerate(messages) if m.role == "system"]
    if limit is None or len(systems) <= limit:
        return list(messages)
    home, *extra = systems[limit - 1 :]
    kept = list(messages)
    kept[home] = kept[home]._replace(text=_JOINT.join(messages[i].text for i in (home, *extra)))
    return [m for i, m in enumerate(kept) if i not in extra]


def _beginning_with_user(messages: list[ChatMessage]) -> list[ChatMessage]:
    at = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    if at < len(messages) and messages[at].role == "user":
        return messages
    return [*messages[:at], ChatMessage("user", HELPER_USER_LINE), *messages[at:]]


def _merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    merged: list[ChatMessage] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            merged[-1] = message._replace(text=merged[-1].text + _JOINT + message.text)
        else:
            merged.append(message)
    return merged
