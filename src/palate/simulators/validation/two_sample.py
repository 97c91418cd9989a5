"""Can a classifier tell the simulator's messages from the person's? (a two-sample test)

Each context gives two texts, the human's and the simulator's. A logistic regression on character
n-grams and lengths is trained on some sessions and scores the others; the AUC is the chance that a
human text gets a higher score than a simulated one of the same fold, ties half. 0.5:
indistinguishable, for this classifier. No judge, no taste: a high AUC says that there is a
difference, not that it matters. Needs the extra train (scikit-learn).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palate.habits import characters, words
from palate.simulators.validation.estimates import DRAWS, SHARE, interval, missing
from palate.simulators.validation.measures import Estimate, TwoSample
from palate.simulators.validation.speaking import Pair
from palate.statistics import Floats, Ints, cluster_draws

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Bools = NDArray[np.bool_]

FOLDS = 5
PERMUTATIONS = 199
MIN_PAIRS = 20
MIN_SESSIONS = 5  # one a fold
NGRAMS = (1, 4)
MAX_CHARACTERS = 2000  # of a text: a simulator that does not stop says all it has to say before


class Wins(NamedTuple):
    """By session of the human text and of the simulated one: how often the human's scored higher.

    Both of shape (sessions, sessions); a tie is half a win; `comparisons` counts all.
    """

    wins: Floats
    comparisons: Floats

    def auc(self) -> float:
        """Wins over comparisons; NaN without any."""
        total = float(self.comparisons.sum())
        return float(self.wins.sum()) / total if total else float("nan")

    def redrawn(self, weights: Floats) -> Floats:
        """The AUC in each bootstrap draw of sessions; weights have the shape (draws, sessions)."""
        wins = (weights @ self.wins * weights).sum(axis=1)
        comparisons = (weights @ self.comparisons * weights).sum(axis=1)
        found = np.full(len(weights), np.nan)
        np.divide(wins, comparisons, out=found, where=comparisons > 0)
        return found


def auc(human: Sequence[float], simulated: Sequence[float]) -> float:
    """The chance that a human score is higher than a simulated one; ties count half.

    Raises:
        ValueError: a side is empty.
    """
    if not len(human) or not len(simulated):
        raise ValueError("an AUC needs scores on both sides")
    return float(_beats(np.asarray(human, float), np.asarray(simulated, float)).mean())


def two_sample(pairs: Sequence[Pair], *, seed: int, permutations: int = PERMUTATIONS) -> TwoSample:
    """How well the two sides of these pairs can be told apart.

    Folds are whole sessions, so both texts of a context are in one fold. `p` comes from training
    again with the sides of whole sessions swapped at random: messages of one session may hang
    together, sessions may not.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    sessions = sorted({pair.session_id for pair in pairs})
    if len(pairs) < MIN_PAIRS or len(sessions) < MIN_SESSIONS:
        reason = (
            f"too few messages to tell: {len(pairs)} pairs of {len(sessions)} sessions, at least "
            f"{MIN_PAIRS} of {MIN_SESSIONS} are needed"
        )
        return _untold(pairs, missing(reason).model_copy(update={"sessions": len(sessions)}))
    trial = _Trial.of(pairs, sessions)
    dice = np.random.default_rng(seed)
    wins = trial.wins(np.ones(len(sessions), dtype=np.int64))
    found = wins.auc()
    swapped = [
        trial.wins(dice.choice(np.array([1, -1]), size=len(sessions))).auc()
        for _ in range(permutations)
    ]
    as_high = sum(1 for value in swapped if value >= found - 1e-12)
    estimate = interval(
        found,
        wins.redrawn(cluster_draws(len(sessions), DRAWS, seed)),
        n=2 * len(pairs),
        sessions=len(sessions),
        scale=SHARE,
    )
    return TwoSample(
        auc=estimate,
        p=(1 + as_high) / (1 + permutations),
        permutations=permutations,
        human=len(pairs),
        simulated=len(pairs),
        folds=len(trial.folds),
    )


def _untold(pairs: Sequence[Pair], estimate: Estimate) -> TwoSample:
    return TwoSample(
        auc=estimate, p=None, permutations=0, human=len(pairs), simulated=len(pairs), folds=0
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """The texts as features, the human's of each pair first; folds as sets of sessions."""

    features: csr_matrix  # (2 * pairs, features): all human texts, then all simulated ones
    session: Ints  # (pairs,) of each pair, a number
    sessions: int
    folds: tuple[Ints, ...]  # numbers of sessions

    @classmethod
    def of(cls, pairs: Sequence[Pair], sessions: Sequence[str]) -> _Trial:
        number = {name: place for place, name in enumerate(sessions)}
        session = np.array([number[pair.session_id] for pair in pairs], dtype=np.int64)
        texts = [pair.human for pair in pairs] + [pair.simulated for pair in pairs]
        return cls(
            _features(texts),
            session,
            len(sessions),
            _folds(np.bincount(session, minlength=len(sessions))),
        )

    def wins(self, sides: Ints) -> Wins:
        """All folds scored by what was trained on the others.

        Args:
            sides: 1 for each session as it is, -1 for one whose sides are swapped.
        """
        human = np.concatenate([sides[self.session], -sides[self.session]]) > 0
        session = np.concatenate([self.session, self.session])
        wins = np.zeros((self.sessions, self.sessions))
        comparisons = np.zeros((self.sessions, self.sessions))
        for fold in self.folds:
            test = np.isin(session, fold)
            scores = _scores(self.features[~test], human[~test], self.features[test])
            _count(wins, comparisons, scores, human[test], session[test])
        return Wins(wins, comparisons)


def _features(texts: Sequence[str]) -> csr_matrix:
    """Character n-grams (tf-idf) and three lengths; no label is used, so all texts may be.

    N-grams that one text alone has say nothing about the others.
    """
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Line breaks around each text, so that how it begins and ends is among its n-grams.
    cut = [f"\n{text[:MAX_CHARACTERS]}\n" for text in texts]
    ngrams = TfidfVectorizer(
        analyzer="char", ngram_range=NGRAMS, lowercase=False, sublinear_tf=True, min_df=2
    ).fit_transform(cut)
    lengths = np.log1p(
        [[characters(text), words(text), text.count("\n")] for text in texts], dtype=float
    )
    spread = lengths.std(axis=0)
    lengths = (lengths - lengths.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return csr_matrix(hstack([ngrams, csr_matrix(lengths)]))


def _folds(sizes: Ints) -> tuple[Ints, ...]:
    """Sessions in folds of about as many pairs: the largest left goes to the smallest fold."""
    folds: list[list[int]] = [[] for _ in range(FOLDS)]
    for session in sorted(range(len(sizes)), key=lambda number: (-int(sizes[number]), number)):
        min(folds, key=lambda fold: sum(int(sizes[number]) for number in fold)).append(session)
    return tuple(np.array(fold, dtype=np.int64) for fold in folds if fold)


def _scores(training: csr_matrix, human: Bools, test: csr_matrix) -> Floats:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=10.0, solver="liblinear")
    with warnings.catch_warnings():
        # A step short of convergence changes scores in the last digits, and nothing that is told.
        warnings.simplefilter("ignore")
        model.fit(training, human)
    return np.asarray(model.decision_function(test), dtype=np.float64)


def _count(wins: Floats, comparisons: Floats, scores: Floats, human: Bools, session: Ints) -> None:
    """Add one fold's comparisons of every human text with every simulated one."""
    beats = _beats(scores[human], scores[~human])
    places = np.ix_(session[human], session[~human])
    rows, columns = (place.ravel() for place in np.broadcast_arrays(*places))
    np.add.at(wins, (rows, columns), beats.ravel())
    np.add.at(comparisons, (rows, columns), 1.0)


def _beats(human: Floats, simulated: Floats) -> Floats:
    """1 where the human's score is higher, 0.5 where equal; of shape (human, simulated)."""
    gap = human[:, None] - simulated[None, :]
    return np.where(np.abs(gap) < 1e-12, 0.5, (gap > 0).astype(np.float64))
