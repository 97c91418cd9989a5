"""Whose messages does a classifier of authors take them for? (authorship attribution)

A logistic regression on character n-grams learns the study's persons from their training messages
alone. On their held-out messages it says how attributable these people are at all: the ceiling. On
a simulator's messages it says whether they are taken for its own person's.

One message rarely gives its author away, so messages are read in groups of about ten [choice].
People are told by what they talk about as much as by how; a simulator answers in its person's own
chats, so what it has from there counts for it in every condition alike: compare the conditions.
Needs the extra train (scikit-learn).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from palate.simulators.validation.contexts import alternating
from palate.simulators.validation.estimates import missing, wilson
from palate.simulators.validation.measures import Attribution, Authors, Estimate
from palate.types import SimulatorKind, TrainingSession

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

GROUP_MESSAGES = 10
MIN_TRAINING_GROUPS = 3  # of each person
NGRAMS = (1, 4)
MAX_FEATURES = 50_000
MAX_CHARACTERS = 2000  # of a message

Source = Literal["human"] | SimulatorKind
# Source -> person -> their messages, in order.
Messages = Mapping[Source, Mapping[str, Sequence[str]]]


class _Learned(NamedTuple):
    """A classifier of authors."""

    features: TfidfVectorizer
    model: LogisticRegression

    def authors(self, groups: Sequence[str]) -> list[str]:
        rows: csr_matrix = self.features.transform(groups)
        return [str(name) for name in self.model.predict(rows)]


def training_messages(training: Sequence[TrainingSession]) -> list[str]:
    """What a person wrote in their training sessions, as messages of a played chat.

    Raises:
        TypeError: something other than training sessions.
    """
    for item in training:
        if not isinstance(item, TrainingSession):
            raise TypeError(
                "authors are learned from training sessions as histories.split returns them, not "
                f"from {type(item).__name__}"
            )
    return [
        message.text
        for item in training
        for message in alternating(item.session)
        if message.speaker == "user"
    ]


def attribution(
    training: Mapping[str, Sequence[TrainingSession]],
    messages: Messages,
    *,
    seed: int,
    group_messages: int = GROUP_MESSAGES,
) -> Attribution:
    """To whom the messages of each source are attributed, among the persons of `training`.

    Args:
        messages: of "human", the persons' held-out messages; of a condition, its simulators'.
            A person without messages there is left out of that source's figures.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    persons = tuple(training)
    groups = {
        person: grouped(training_messages(sessions), group_messages)
        for person, sessions in training.items()
    }
    reason = _why_not({person: len(found) for person, found in groups.items()}, group_messages)
    tested = {
        source: {who: grouped(texts, group_messages) for who, texts in of.items() if who in groups}
        for source, of in messages.items()
    }
    human = [len(found) for found in tested.get("human", {}).values()]
    learned = None if reason else _learned(groups, seed)
    return Attribution(
        persons=persons,
        group_messages=group_messages,
        training_groups={person: len(found) for person, found in groups.items()},
        chance=max(human) / sum(human) if sum(human) else None,
        authors=()
        if learned is None
        else tuple(_authors(source, of, persons, learned) for source, of in tested.items()),
        reason=reason,
    )


def grouped(messages: Sequence[str], size: int) -> list[str]:
    """The messages in groups of about `size` neighbours, one a line, none left over.

    Fewer than half a group is no group.
    """
    number = round(len(messages) / size)
    if not number:
        return [] if len(messages) * 2 < size else [_joined(messages)]
    ends = [round(place * len(messages) / number) for place in range(number + 1)]
    return [_joined(messages[start:end]) for start, end in itertools.pairwise(ends)]


def _joined(messages: Sequence[str]) -> str:
    return "\n".join(message[:MAX_CHARACTERS] for message in messages)


def _why_not(groups: Mapping[str, int], size: int) -> str | None:
    if len(groups) < 2:
        return "only one person: there is nobody to be taken for"
    few = [person for person, number in groups.items() if number < MIN_TRAINING_GROUPS]
    if few:
        return (
            f"too few training messages to learn {', '.join(few)} from: {MIN_TRAINING_GROUPS} "
            f"groups of {size} are needed"
        )
    return None


def _learned(groups: Mapping[str, Sequence[str]], seed: int) -> _Learned:
    """Trained with the persons weighing the same in the loss, however much each wrote.

    What is rare is counted over all groups, so over those of whoever wrote most. Of four real
    people with 374 to 1,038 groups (`benchmarks/real_people.py`) each was named for 23 to 26 % of
    equally weighted held-out groups, so nothing is evened out there.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    texts = [text for found in groups.values() for text in found]
    names = [person for person, found in groups.items() for _ in found]
    features = TfidfVectorizer(
        analyzer="char",
        ngram_range=NGRAMS,
        lowercase=False,
        sublinear_tf=True,
        max_features=MAX_FEATURES,
    )
    model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000, random_state=seed)
    model.fit(features.fit_transform(texts), names)
    return _Learned(features, model)


def _authors(
    source: Source, groups: Mapping[str, Sequence[str]], persons: Sequence[str], learned: _Learned
) -> Authors:
    named = {who: learned.authors(texts) if texts else [] for who, texts in groups.items()}
    return Authors(
        source=source,
        accuracy=_accuracy(
            sum(found.count(person) for person, found in named.items()),
            sum(len(found) for found in named.values()),
        ),
        by_person={
            person: _accuracy(named[person].count(person), len(named[person]))
            for person in persons
            if person in named
        },
        confusion=tuple(
            tuple(named.get(person, []).count(other) for other in persons) for person in persons
        ),
    )


def _accuracy(hits: int, of: int) -> Estimate:
    return wilson(hits, of) if of else missing("too few messages for one group")
