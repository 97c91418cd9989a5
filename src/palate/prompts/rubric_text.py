"""Rubrics as text: what a judge reads, and what `palate rubric show` prints.

Here rather than in `rubrics`, because `judging` needs it too and stages never import each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from palate.types import Dimension, Evidence, PersonalRubric, Reaction

Language = Literal["en", "zh"]


class _Words(NamedTuple):
    rewards: str
    penalties: str
    reactions: str
    scale: str
    weight: dict[str, str]
    direction: dict[int, str]
    colon: str
    open: str
    close: str


_WORDS: dict[Language, _Words] = {
    "en": _Words(
        rewards="What pleases this person:",
        penalties="What displeases this person:",
        reactions="What this person's reactions mean:",
        scale="Scale:",
        weight={"major": "major", "minor": "minor"},
        direction={-1: "displeased", 0: "neutral", 1: "pleased"},
        colon=": ",
        open=" (",
        close=")",
    ),
    "zh": _Words(
        rewards="这个人喜欢：",
        penalties="这个人不喜欢：",
        reactions="这个人的反应意味着：",
        scale="评分尺度：",
        weight={"major": "主要", "minor": "次要"},
        direction={-1: "不满", 0: "中性", 1: "满意"},
        colon="：",
        open="（",
        close="）",
    ),
}


def personal_text(rubric: PersonalRubric, language: Language, *, cited: bool = False) -> str:
    """A personal rubric with headings in `language`; `cited` adds the turns behind each rule.

    The user's id and the provenance are left out: a judge needs neither.
    """
    words = _WORDS[language]
    lines = [rubric.summary.strip()]
    lines += _rules(rubric.rewards, rubric.penalties, rubric.reactions, words, cited)
    scale = (f"{key}{words.colon}{text}" for key, text in sorted(rubric.anchors.items()))
    lines += _section(words.scale, scale)
    return "\n".join(line for line in lines if line)


def rules_as_text(
    rewards: Iterable[Evidence],
    penalties: Iterable[Evidence],
    reactions: Iterable[Reaction],
    language: Language,
) -> str:
    """The rules of a rubric alone, as its text has them."""
    return "\n".join(_rules(rewards, penalties, reactions, _WORDS[language], cited=False))


def _rules(
    rewards: Iterable[Evidence],
    penalties: Iterable[Evidence],
    reactions: Iterable[Reaction],
    words: _Words,
    cited: bool,
) -> list[str]:
    lines = _section(words.rewards, (_rule(r, words, cited) for r in rewards))
    lines += _section(words.penalties, (_rule(r, words, cited) for r in penalties))
    return lines + _section(words.reactions, (_reaction(r, words, cited) for r in reactions))


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    entries = list(lines)
    return [heading, *entries] if entries else []


def _rule(rule: Evidence, words: _Words, cited: bool) -> str:
    mark = f"{words.open}{words.weight[rule.weight]}{words.close}"
    return f"- {rule.rule}{mark}{_citation(rule.evidence, cited)}"


def _reaction(reaction: Reaction, words: _Words, cited: bool) -> str:
    mark = f"{words.open}{words.direction[reaction.direction]}{words.close}"
    return (
        f"- {reaction.pattern}{words.colon}{reaction.meaning}{mark}"
        f"{_citation(reaction.evidence, cited)}"
    )


def _citation(evidence: tuple[str, ...], cited: bool) -> str:
    return f" [{', '.join(evidence)}]" if cited and evidence else ""


def dimensions_text(dimensions: Iterable[Dimension], language: Language) -> str:
    """Dimensions with definition and anchors, each under its id."""
    return "\n".join(_dimension(dimension, language) for dimension in dimensions)


def _dimension(dimension: Dimension, language: Language) -> str:
    words = _WORDS[language]
    anchors = sorted(dimension.anchors[language].items())
    return "\n".join(
        [
            f"{dimension.id} {dimension.label[language]}{words.colon}"
            f"{dimension.definition[language]}",
            *(f"  {key}{words.colon}{text}" for key, text in anchors),
        ]
    )


def dimension_lines(dimensions: Iterable[Dimension], language: Language) -> str:
    """One short line a dimension, label and definition only: for judges that read slowly."""
    colon = _WORDS[language].colon
    return "\n".join(f"- {d.label[language]}{colon}{d.definition[language]}" for d in dimensions)
