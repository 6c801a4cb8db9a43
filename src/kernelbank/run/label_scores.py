"""How good the predicted labels and probabilities of a run were, in bounded memory.

- The *confusion matrix*: how often each label was predicted for rows of each label.
- *Reliability*: rows by the probability of their predicted label, in STEPS equal steps, with the
  mean probability and the share of correct labels of each.
- The *log loss* of a row: -log of the probability of its label, which counts as at least
  LEAST_PROBABILITY, also if the label was not known yet.
- The *area under the curve* (AUC) of a label: the share of pairs of a row with the label and a row
  with another one in which the first had the higher probability of the label; equal ones count
  half. Probabilities are counted in ODDS_STEPS steps of equal width in log odds, so those within
  one step are equal. Rows count from the first with the label on. The AUC of a run is the mean over
  its labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..errors import FileRefused
from ..utils.validation import Floats

STEPS = 20
"""Of the probability of the predicted label."""

ODDS_STEPS = 128
"""Of the probability of a label, a quarter of a unit of log odds each: from 1e-7 to 1 - 1e-7."""

LEAST_PROBABILITY = 1e-6

MOST_LABELS = 10_000
"""The most labels that a file may claim."""

_ODDS_EDGES = np.array([1 / (1 + math.exp(-k / 4)) for k in range(1 - ODDS_STEPS // 2, 64)])
"""The probabilities between two steps."""

_EDGES = np.arange(1, STEPS) / STEPS


class LabelScores:
    """Counts of labels and probabilities, over the rows that are scored."""

    def __init__(self) -> None:
        self.confusion = np.zeros((1, 1))
        """(K + 1, K + 1): rows by the number of their label, plus 1, and of the predicted one; 0 is
        for labels that the model did not know yet."""
        self.reliability = np.zeros((3, STEPS))
        """Rows, the sum of their probabilities, and correct ones, by probability."""
        self.odds = np.zeros((0, 2, ODDS_STEPS))
        """(K, 2, ODDS_STEPS): rows of other labels, and rows of the label, by probability."""

    @property
    def classes(self) -> int:
        """The number of labels so far."""
        return len(self.odds)

    def add(self, labels: np.ndarray, predicted: np.ndarray, probabilities: Floats) -> None:
        """Add n rows: the numbers of their labels (negative if unknown) and of the predicted ones,
        and the probability (n, K) of every label; 0 or none for a label that was not known yet."""
        known = probabilities.shape[1]
        self._grow(max(known, int(labels.max(initial=-1)) + 1))
        probabilities = np.pad(probabilities, ((0, 0), (0, self.classes - known)))
        np.add.at(self.confusion, (np.maximum(labels, -1) + 1, predicted + 1), 1.0)
        highest = probabilities.max(axis=1, initial=0.0)
        step = np.searchsorted(_EDGES, highest, side="right")
        sums = (np.ones(len(labels)), highest, (labels == predicted).astype(float))
        for own, values in zip(self.reliability, sums, strict=True):
            np.add.at(own, step, values)
        for k in range(self.classes):
            own = (labels == k).astype(int)
            counted = (probabilities[:, k] > 0) | (own == 1)
            step = np.searchsorted(_ODDS_EDGES, probabilities[counted, k], side="right")
            np.add.at(self.odds[k], (own[counted], step), 1.0)

    def _grow(self, classes: int) -> None:
        more = classes - self.classes
        if more > 0:
            self.confusion = np.pad(self.confusion, (0, more))
            self.odds = np.pad(self.odds, ((0, more), (0, 0), (0, 0)))

    def areas(self) -> Floats:
        """(K,): the area under the curve of each label; NaN without rows of both kinds."""
        others, own = self.odds[:, 0], self.odds[:, 1]
        below = np.cumsum(others, axis=1) - 0.5 * others
        pairs = own.sum(axis=1) * others.sum(axis=1)
        better = (own * below).sum(axis=1)
        return np.divide(better, pairs, out=np.full(self.classes, np.nan), where=pairs > 0)

    @property
    def area(self) -> float:
        """The mean area under the curve; NaN if there is none."""
        known = self.areas()
        known = known[~np.isnan(known)]
        return float(known.mean()) if len(known) else math.nan

    def arrays(self) -> dict[str, Floats]:
        return {
            "confusion": self.confusion.copy(),
            "reliability": self.reliability.copy(),
            "odds": self.odds.copy(),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Floats]) -> LabelScores:
        """What `arrays` returned, checked."""
        scores = cls()
        odds = state["odds"]
        classes = len(odds) if odds.ndim == 3 else MOST_LABELS + 1
        shapes = {
            "confusion": (classes + 1, classes + 1),
            "reliability": (3, STEPS),
            "odds": (classes, 2, ODDS_STEPS),
        }
        if classes > MOST_LABELS or any(state[name].shape != s for name, s in shapes.items()):
            raise FileRefused("the scores of its labels have an impossible shape.")
        for name in shapes:
            if not (np.isfinite(state[name]).all() and (state[name] >= 0).all()):
                raise FileRefused("the scores of its labels are not counts.")
            setattr(scores, name, state[name].copy())
        return scores


def log_loss(probability: float) -> float:
    """The log loss of a row whose label had this probability."""
    return -math.log(max(probability, LEAST_PROBABILITY))
