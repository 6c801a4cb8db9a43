"""Rivals of `make accuracy` that are fitted anew, on all past rows, as the stream goes on.

LightGBM and scikit-learn's ExtraTrees are made for data sets, not for streams: they learn by being
fitted again. Between two fits the last model predicts, so a block of rows is predicted in one call;
a row's inputs contain no target but earlier ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from kernelbank.research.competitors import RIVAL, Competitor, CompetitorRun
from kernelbank.research.datasets.stream import CLASSIFICATION, Stream

_SEED = 42


@dataclass(frozen=True)
class Schedule:
    """After how many rows a model is fitted: `first`, then every `often` rows up to `until` rows,
    then every `rarely` rows."""

    first: int = 10
    often: int = 25
    until: int = 500
    rarely: int = 100

    def fits(self, length: int) -> list[int]:
        """The numbers of rows after which a model is fitted on a stream of `length` rows."""
        early = range(self.often, self.until + 1, self.often)
        late = range(self.until + self.rarely, length, self.rarely)
        return [rows for rows in (self.first, *early, *late) if rows < length]

    def __str__(self) -> str:
        return (
            f"after {self.first} rows, every {self.often} up to {self.until:,}, then every "
            f"{self.rarely:,}"
        )


USUAL = Schedule()
LONG = Schedule(often=100, until=1000, rarely=1000)
"""On long streams, where a fit takes seconds."""


def run_refitted(
    make: Callable[[Stream], Any], schedule: Schedule, seed: int, stream: Stream
) -> CompetitorRun:
    """Fit a new model of `make` on all past rows, whenever the schedule says so.

    Before the first fit the prediction is the mean of the past targets or their most frequent
    label, 0 on the first row.
    """
    X, y = stream.inputs, stream.y
    predictions = np.zeros(len(y))
    start = time.perf_counter()
    for row in range(1, min(schedule.first, len(y))):
        predictions[row] = _constant(y[:row], stream.task)
    for now, following in pairwise([*schedule.fits(len(y)), len(y)]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that columns have no names, and the like
            model = make(stream).fit(X[:now], y[:now])
            predictions[now:following] = model.predict(X[now:following])
    return CompetitorRun(predictions, (time.perf_counter() - start) / len(y))


def _constant(past: np.ndarray, task: str) -> float:
    if task == CLASSIFICATION:
        labels, counts = np.unique(past, return_counts=True)
        return float(labels[counts.argmax()])
    return float(past.mean())


# --- models ---------------------------------------------------------------------------------------


def _boosted_trees(trees: int, stream: Stream) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if stream.task == CLASSIFICATION else LGBMRegressor
    return kind(
        n_estimators=trees,
        random_state=_SEED,
        deterministic=True,
        force_row_wise=True,  # to be deterministic it must not choose by measuring times
        n_jobs=1,  # runs go on side by side (--jobs)
        verbose=-1,
    )


def _extra_trees(stream: Stream) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesClassifier if stream.task == CLASSIFICATION else ExtraTreesRegressor
    return kind(random_state=_SEED, n_jobs=1)


def refitted_rivals(schedule: Schedule = USUAL) -> list[Competitor]:
    """The rivals with this schedule. What they predict depends on it, so their descriptions, by
    which runs are cached, contain it."""
    models = (
        ("lightgbm-100", "LightGBM", "100 trees", partial(_boosted_trees, 100)),
        ("lightgbm-500", "LightGBM", "500 trees", partial(_boosted_trees, 500)),
        ("extratrees", "scikit-learn", "ExtraTrees, 100 trees", _extra_trees),
    )
    return [
        Competitor(
            name,
            RIVAL,
            partial(run_refitted, make, schedule),
            description=f"{library}: {what}, fitted on all past rows ({schedule})",
            libraries=(library.lower(), "numpy"),
        )
        for name, library, what, make in models
    ]
