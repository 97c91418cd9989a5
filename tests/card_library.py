"""Measures of the card library's texts: overlap, openings, language. Numbers, no verdicts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from palate.cards import library
from palate.types import Card

HAN = re.compile(r"[\u4e00-\u9fff]")
# Function words: about half of any English prose, and next to none of another language's.
ENGLISH = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "do", "for", "from", "had",
    "has", "have", "he", "her", "him", "his", "i", "if", "in", "into", "is", "it", "its", "my",
    "no", "not", "of", "off", "on", "one", "or", "out", "she", "so", "than", "that", "the", "their",
    "them", "then", "there", "they", "this", "to", "up", "was", "were", "what", "when", "where",
    "which", "who", "will", "with", "would", "you", "your",
))  # fmt: skip
ACTS_FOR_THE_USER = re.compile(
    r"\byou (?:feel|nod|smile|reply|answer|decide|realise|realize|blush|gasp|shiver|"
    r"find yourself|can't help)\b",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def han(text: str) -> str:
    return "".join(HAN.findall(text))


def prose(card: Card) -> str:
    """All that was written for a card, its placeholders taken out."""
    parts = (card.persona, card.personality, card.scenario, card.opening, card.example_dialogue)
    return re.sub(r"\{\{(char|user)\}\}|<START>", " ", "\n".join(parts))


def units(card: Card, text: str) -> Sequence[str]:
    """What a text is counted in: English words, Han characters."""
    return words(text) if card.language == "en" else han(text)


def shared_phrases(cards: Iterable[Card], length: int) -> Counter[tuple[str, str]]:
    """For each pair of cards, how many runs of `length` words or characters both have."""
    holders: defaultdict[Hashable, set[str]] = defaultdict(set)
    for card in cards:
        for run in _runs(units(card, prose(card)), length):
            holders[run].add(card.id)
    pairs: Counter[tuple[str, str]] = Counter()
    for ids in holders.values():
        pairs.update(combinations(sorted(ids), 2))
    return pairs


def overused(texts: Mapping[str, Sequence[str]], length: int) -> Counter[tuple[str, ...]]:
    """In how many texts each run of `length` words or characters stands."""
    return Counter(run for text in texts.values() for run in set(_runs(text, length)))


def repeated(values: Iterable[Hashable], most: int = 1) -> dict[Hashable, int]:
    """The values that come more than `most` times."""
    return {value: count for value, count in Counter(values).items() if count > most}


def function_words(text: str) -> float:
    """The share of English function words, 0..1."""
    found = words(text)
    return sum(word in ENGLISH for word in found) / max(1, len(found))


def not_simplified(text: str) -> str:
    """The Han characters that GB 2312, the set of simplified Chinese, does not have."""
    return "".join(sorted({c for c in han(text) if not _encodes(c)}))


def narrations(opening: str) -> list[str]:
    """What an opening tells rather than says: the text between asterisks."""
    return re.findall(r"\*([^*]+)\*", opening)


def _runs(items: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(items[i : i + length]) for i in range(len(items) - length + 1))


def _encodes(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def coverage_table() -> str:
    """The library's characters counted by label, as a Markdown table for the docs."""
    lines = ["| label | characters |", "|---|---|"]
    for label, counts in library.coverage(library.characters(library.cards("*-en"))).items():
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        lines.append(f"| {label} | {', '.join(f'{name} {n}' for name, n in ordered)} |")
    return "\n".join(lines) + "\n"
