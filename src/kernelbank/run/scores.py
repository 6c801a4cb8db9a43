"""How good the predictions of a run were: scores of rows, and counts of labels in bounded memory.

- The *confusion matrix*: how often each label was predicted for rows of each label.
- *Reliability*: rows by the probability of their predicted label, in STEPS equal steps, with the
  mean probability and the share of correct labels of each.
- The *log loss* of a row: -log of the probability of its label, which counts as at least
  LEAST_PROBABILITY, also if the label was not known yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..auto.model import AutoTrace
from ..utils.validation import Floats
from .state_folder import Shapes, checked_arrays, require

TOTALS = (
    "rows", "scored", "loss", "baseline_loss", "covered", "width",
    "absolute_error", "baseline_absolute_error", "log_loss",
)  # fmt: skip
"""Sums over the rows of a point: all rows; the rows that are scored (a target was known before the
prediction); and over the scored rows the squared errors, or wrong labels, of the model and of the
baseline (last value); targets inside their interval, or correct labels; widths of the intervals, or
predicted probabilities; the absolute errors of model and baseline, 0 for labels; the log losses, 0
for numbers."""

EXTREMES = (
    "worst_loss", "target_high", "prediction_high", "target_low", "prediction_low",
    "time_high", "time_low",
)  # fmt: skip
"""Over the rows of a point, so that merged points keep spikes: the largest loss; the highest and
lowest target and prediction, NaN for labels, which have no order; the first and the last time."""


class RowScores(NamedTuple):
    """The scores of n rows; columns as in `history.py`, NaN or 0 where a task has none."""

    totals: Floats
    """(n, TOTALS)."""
    extremes: Floats
    """(n, EXTREMES)."""
    losses: Floats
    """(n, P): the loss of every slot alone."""

    @classmethod
    def of_rows(
        cls, totals: Mapping[str, Floats], extremes: Mapping[str, Floats], losses: Floats
    ) -> RowScores:
        """The scores of rows that are scored, by the names of the columns that their task has."""
        scores = cls(
            np.zeros((len(losses), len(TOTALS))),
            np.full((len(losses), len(EXTREMES)), np.nan),
            losses,
        )
        scores.totals[:, :2] = 1.0
        for name, values in totals.items():
            scores.totals[:, TOTALS.index(name)] = values
        for name, values in extremes.items():
            scores.extremes[:, EXTREMES.index(name)] = values
        return scores

    def leave_out(self, rows: np.ndarray) -> RowScores:
        """Let some rows, a mask (n,), count as rows, but not as scored ones."""
        self.totals[rows, 1:] = 0.0
        self.losses[rows] = 0.0
        for name in ("worst_loss", "prediction_high", "prediction_low"):
            self.extremes[rows, EXTREMES.index(name)] = np.nan
        return self


def score_numbers(trace: AutoTrace, y: Floats, last: Floats, times: Floats) -> RowScores:
    """Score predicted numbers; of rows without a prediction or a target there are no scores.

    y : (n,) the targets. last : (n,) what the baseline predicts, the target before.
    """
    unscored = np.isnan(trace.predictions) | np.isnan(y)
    last = np.where(unscored | np.isnan(last), y, last)
    squares = (trace.predictions - y) ** 2
    totals = {
        "loss": squares,
        "baseline_loss": (last - y) ** 2,
        "covered": (trace.lower <= y) & (y <= trace.upper),
        "width": trace.upper - trace.lower,
        "absolute_error": np.abs(trace.predictions - y),
        "baseline_absolute_error": np.abs(last - y),
    }
    extremes = {"worst_loss": squares, "time_high": times, "time_low": times}
    extremes |= {f"target_{end}": y for end in ("high", "low")}
    extremes |= {f"prediction_{end}": trace.predictions for end in ("high", "low")}
    losses = (trace.slot_predictions - y[:, None]) ** 2
    return RowScores.of_rows(totals, extremes, losses).leave_out(unscored)


def score_labels(
    trace: AutoTrace,
    labels: Sequence[object],
    last: Sequence[object],
    predicted: np.ndarray,
    times: Floats,
    counts: LabelScores,
) -> RowScores:
    """Score predicted labels, and count them; no label was known before the first row.

    predicted : (n,) the numbers of the predicted classes. last : (n,) the label before.
    """
    numbers = {label: number for number, label in enumerate(trace.classes)}
    # No slot predicts -2, a label that is not known.
    classes = np.array([numbers.get(label, -2) for label in labels])
    wrong = (classes != predicted).astype(np.float64)
    pairs = zip(trace.probabilities, classes, strict=True)
    of_label = [float(p[k]) if 0 <= k < len(p) else 0.0 for p, k in pairs]
    totals = {
        "loss": wrong,
        "baseline_loss": np.array([a != b for a, b in zip(last, labels, strict=True)]),
        "covered": 1.0 - wrong,
        "width": probability_of(trace.probabilities, predicted),
        "log_loss": np.array([log_loss(p) for p in of_label]),
    }
    extremes = {"worst_loss": wrong, "time_high": times, "time_low": times}
    losses = (trace.slot_classes != classes[:, None]).astype(np.float64)
    unscored = np.array([label is None for label in last])
    counts.add(classes[~unscored], predicted[~unscored], trace.probabilities[~unscored])
    return RowScores.of_rows(totals, extremes, losses).leave_out(unscored)


def probability_of(probabilities: Floats, predicted: np.ndarray) -> Floats:
    """(n,): of probabilities (n, K) that of the predicted class; 0 for the number -1."""
    padded = np.pad(np.nan_to_num(probabilities), ((0, 0), (0, 1)))
    return np.asarray(padded[np.arange(len(padded)), predicted])


class LabelScore(NamedTuple):
    """How well one label is found. A share is None without any row to count."""

    rows: int
    """Scored rows with the label."""
    predicted: int
    """Scored rows for which it was predicted."""
    recall: float | None
    """The share of the rows with the label for which it was predicted."""
    precision: float | None
    """The share of the rows for which it was predicted that had it."""


STEPS = 20
"""Of the probability of the predicted label."""

LEAST_PROBABILITY = 1e-6

_EDGES = np.arange(1, STEPS) / STEPS


class LabelScores:
    """Counts of labels and probabilities, over the rows that are scored."""

    def __init__(self) -> None:
        self.confusion = np.zeros((1, 1))
        """(K + 1, K + 1): rows by the number of their label, plus 1, and of the predicted one; 0 is
        for labels that the model did not know yet."""
        self.reliability = np.zeros((3, STEPS))
        """Rows, the sum of their probabilities, and correct ones, by probability."""

    @property
    def classes(self) -> int:
        """The number of labels so far."""
        return len(self.confusion) - 1

    def add(self, labels: np.ndarray, predicted: np.ndarray, probabilities: Floats) -> None:
        """Add n rows: the numbers of their labels (negative if unknown) and of the predicted ones,
        and the probability (n, K) of every label; 0 or none for a label that was not known yet."""
        classes = max(probabilities.shape[1], int(labels.max(initial=-1)) + 1)
        self.confusion = np.pad(self.confusion, (0, max(classes - self.classes, 0)))
        np.add.at(self.confusion, (np.maximum(labels, -1) + 1, predicted + 1), 1.0)
        highest = probability_of(probabilities, predicted)
        step = np.searchsorted(_EDGES, highest, side="right")
        sums = (np.ones(len(labels)), highest, (labels == predicted).astype(float))
        for counts, values in zip(self.reliability, sums, strict=True):
            np.add.at(counts, step, values)

    def of_each(self) -> list[LabelScore]:
        """The recall and the precision of each label."""
        rows, predicted = self.confusion.sum(axis=1)[1:], self.confusion.sum(axis=0)[1:]
        return [
            LabelScore(
                int(n), int(p), float(right / n) if n else None, float(right / p) if p else None
            )
            for n, p, right in zip(rows, predicted, np.diag(self.confusion)[1:], strict=True)
        ]

    def arrays(self) -> dict[str, Floats]:
        return {name: getattr(self, name).copy() for name in ("confusion", "reliability")}

    @classmethod
    def restore(cls, state: Mapping[str, Floats]) -> LabelScores:
        """What `arrays` returned, checked."""
        labels = max(len(state["confusion"]), 1)
        shapes: Shapes = {"confusion": (labels, labels), "reliability": (3, STEPS)}
        scores = cls()
        for name, counts in checked_arrays(state, shapes, "the scores of its labels").items():
            are_counts = np.isfinite(counts).all() and (counts >= 0).all()
            require(are_counts, "the scores of its labels are not counts.")
            setattr(scores, name, counts)
        return scores


def log_loss(probability: float) -> float:
    """The log loss of a row whose label had this probability."""
    return -math.log(max(probability, LEAST_PROBABILITY))
