"""What the model is shown of the replies: our words outside the marks, the chats' inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from palate.chat import USER_LEFT
from palate.fitting import cut, estimated_tokens
from palate.language import Language
from palate.rubrics.asking import quoted
from palate.rubrics.citations import Citations
from palate.rubrics.contrasts import Contrast
from palate.rubrics.rated import Rated
from palate.rubrics.rules import Rule


class Room(NamedTuple):
    """Tokens that are shown of a reply, and of a message or note of the user."""

    reply: int
    user: int


class _Words(NamedTuple):
    one_chat: str
    two_chats: str
    reply: str
    before: str
    text: str
    after: str
    after_unnamed: str
    note: str
    rule: str
    meaning: str
    nothing: str
    higher: str
    lower: str


_WORDS: dict[Language, _Words] = {
    "en": _Words(
        one_chat="Contrast {n}, within one chat:",
        two_chats="Contrast {n}, from two chats with the same character:",
        reply="Reply [{name}], rated {rating} of 5.",
        before="Before it, the user wrote:",
        text="The reply:",
        after="After it, the user wrote [{name}]:",
        after_unnamed="After it, the user wrote:",
        note="The user's note on it:",
        rule="Rule {n}:",
        meaning="Meaning:",
        nothing="(nothing)",
        higher="Rated higher:",
        lower="Rated lower:",
    ),
    "zh": _Words(
        one_chat="对照 {n}，同一次聊天：",
        two_chats="对照 {n}，与同一角色的两次聊天：",
        reply="回复 [{name}]，评分 {rating}（满分 5）。",
        before="之前用户写道：",
        text="回复内容：",
        after="之后用户写道 [{name}]：",
        after_unnamed="之后用户写道：",
        note="用户对它的备注：",
        rule="规则 {n}：",
        meaning="含义：",
        nothing="（无）",
        higher="评分较高：",
        lower="评分较低：",
    ),
}

LARGEST = Room(600, 200)
_CONTRASTS_ROOM = 14  # a contrast has two replies and six shorter texts: see `room_for`


def room_for(tokens: int) -> Room:
    """What may be shown of each text so that one contrast surely fits into `tokens`."""
    share = tokens // _CONTRASTS_ROOM
    return Room(min(LARGEST.reply, 2 * share), min(LARGEST.user, share))


def contrast_text(
    contrast: Contrast, number: int, names: Citations, room: Room, tongue: Language
) -> str:
    """One contrast: both replies with rating, context, reaction and note."""
    words = _WORDS[tongue]
    heading = words.one_chat if contrast.in_one_session else words.two_chats
    sides = (_reply(reply, names, room, tongue) for reply in contrast)
    return "\n".join([heading.format(n=number), *sides])


def _reply(reply: Rated, names: Citations, room: Room, tongue: Language) -> str:
    words = _WORDS[tongue]
    name = names.shown(reply.session_id, reply.turn)
    lines = [words.reply.format(name=name, rating=reply.rating)]
    if reply.before:
        lines += [words.before, quoted(cut(reply.before, room.user))]
    lines += [words.text, quoted(cut(reply.text, room.reply))]
    if reply.after_turn is not None:
        after = names.shown(reply.session_id, reply.after_turn)
        lines += [words.after.format(name=after), quoted(cut(reply.after, room.user))]
    if reply.left:
        lines.append(USER_LEFT[tongue])
    if reply.note:
        lines += [words.note, quoted(cut(reply.note, room.user))]
    return "\n".join(lines)


def rules_text(rules: Sequence[Rule], tongue: Language) -> str:
    """Rules with numbers from 1, each between its own marks."""
    words = _WORDS[tongue]
    return "\n".join(
        f"{words.rule.format(n=number)}\n{quoted(rule.text)}"
        for number, rule in enumerate(rules, 1)
    )


def rule_text(rule: Rule, tongue: Language) -> str:
    """One rule, of a reaction with its meaning."""
    if not rule.meaning:
        return quoted(rule.text)
    return f"{quoted(rule.text)}\n{_WORDS[tongue].meaning}\n{quoted(rule.meaning)}"


def message_text(text: str, tokens: int, tongue: Language) -> str:
    """One message as data, or our word for none."""
    return quoted(cut(text, tokens)) if text else _WORDS[tongue].nothing


def missed_text(pairs: Sequence[Contrast], kind: str, room: Room, tongue: Language) -> str:
    """Pairs on which a rule failed: the replies, or for a reaction what the user wrote after."""
    words, shown = _WORDS[tongue], []
    for number, pair in enumerate(pairs, 1):
        shown.append(words.one_chat.format(n=number))
        for label, reply in ((words.higher, pair.high), (words.lower, pair.low)):
            if kind == "reaction":
                text = f"{words.after_unnamed}\n{message_text(reply.after, room.user, tongue)}"
            else:
                text = message_text(reply.text, room.reply, tongue)
            shown.append(f"{label}\n{text}")
    return "\n".join(shown)


def chunks(texts: Sequence[str], budget: int) -> list[list[int]]:
    """Positions of neighbouring texts that fit together into `budget` tokens."""
    found: list[list[int]] = []
    room = 0
    for position, text in enumerate(texts):
        size = estimated_tokens(f"\n\n{text}")
        if found and size <= room:
            found[-1].append(position)
            room -= size
        else:
            found.append([position])
            room = budget - size
    return found
