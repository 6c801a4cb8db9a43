"""The compiled steps of scaling: on a batch of rows, and on first rows, which start columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...native.functions import NativeFunction
from ...native.phases import Phase
from ...native.progress import progress
from ...utils.interrupts import defer_signals
from ...utils.validation import Floats
from ..season_steps import PAST
from . import scaling_steps as steps
from .running_stats import CHANGE_AFTER, FORMS

CHUNK = 256
"""Rows that are scaled and learned in one call."""

_STEPS = 2048


@cache
def normal_quantiles() -> Floats:
    """Normal quantiles over equal steps of probability."""
    from statistics import NormalDist  # slow to import

    ends = 0.5 / _STEPS
    shares = [min(max(i / _STEPS, ends), 1 - ends) for i in range(_STEPS + 1)]
    return np.array([NormalDist().inv_cdf(share) for share in shares])


def fit_columns(columns: Floats, rings: Floats, rows: Floats) -> None:
    """Start columns (d, STATS) and their rings from some first rows (n, d)."""
    values = np.ascontiguousarray(rows.T)
    every = np.arange(len(values))
    present = np.sum(~np.isnan(values), axis=1)
    ordered = np.sort(values)  # missing values are at the end
    middles = (ordered[every, (present - 1) // 2] + ordered[every, present // 2]) / 2
    distances = np.sort(np.abs(values - middles[:, None]))
    steps.fit_columns(
        inputs=len(values),
        columns=columns,
        rings=rings,
        quantiles=normal_quantiles(),
        values=values,
        middles=middles,
        usual=distances[every, present - 1 - present // 8],
        forms=np.zeros(FORMS),
    )


class ScalingBatch:
    """Arrays for up to CHUNK rows, and the compiled steps on them and on running statistics.

    The steps get the addresses of all arrays once. Rows are copied in, a step runs, and the results
    are copied out.
    """

    def __init__(
        self,
        columns: Floats,
        rings: Floats,
        target: Floats,
        target_ring: Floats,
        places: np.ndarray,
        *,
        width: int | None = None,
        shown: int | None = None,
        seasons: int = 0,
        season_column: int = 0,
        previous_columns: Sequence[int] = (),
        relevant_columns: Sequence[int] = (),
        relevant_sources: Sequence[int] = (),
        relevance: Floats | None = None,
        target_shift: Floats | None = None,
        has_target: bool = True,
    ) -> None:
        inputs = len(columns)
        lags = places.shape[1] - inputs
        past = lags + seasons * PAST + len(previous_columns)
        width = int(places.max()) + 1 if width is None else width
        self.X = np.zeros((CHUNK, inputs))
        self.lagged = np.zeros((CHUNK, past))
        self.y = np.zeros(CHUNK)
        self.out = np.zeros((CHUNK, width))
        self.scaled = np.zeros(CHUNK)
        self.scale = np.zeros((CHUNK, 2))
        self.new_levels = np.zeros((CHUNK, inputs), dtype=np.int64)
        self.levels = np.zeros(CHUNK, dtype=np.int64)
        self.result = np.zeros(2, dtype=np.int64)
        self.shift = np.zeros(1)
        self.forms = np.zeros((inputs, FORMS))
        deviations = places[[steps.STANDARD, steps.PLAIN], inputs:]  # columns of past targets
        self._arguments: dict[str, Any] = {
            **self.__dict__,
            "inputs": inputs,
            "lags": lags,
            "shown": lags if shown is None else shown,
            "past": past,
            "seasons": seasons,
            "season_column": season_column,
            "previous": len(previous_columns),
            "previous_column": previous_columns[0] if previous_columns else 0,
            "relevant": len(relevant_columns),
            "relevant_column": relevant_columns[0] if relevant_columns else 0,
            "relevant_sources": np.array(relevant_sources, dtype=np.int64),
            "relevance": np.zeros(0) if relevance is None else relevance,
            "relevant_targets": np.isin(relevant_sources, deviations).astype(np.int64),
            "target_shift": np.zeros(1) if target_shift is None else target_shift,
            "width": width,
            "has_target": has_target,
            "columns": columns,
            "rings": rings,
            "target": target,
            "target_ring": target_ring,
            "quantiles": normal_quantiles(),
            "places": places,
            "target_forms": np.zeros(FORMS),
            "kept": np.zeros(CHANGE_AFTER),
        }
        self._phases: dict[NativeFunction, Phase] = {}

    def phase(self, step: NativeFunction) -> Phase:
        """A step of `scaling_steps` on these arrays."""
        made = self._phases.get(step)
        if made is None:
            with defer_signals():  # compiling must not be interrupted
                made = self._phases[step] = Phase(step, **self._arguments)
            progress.finished()
        return made

    def run(self, step: NativeFunction, count: int = 1) -> None:
        """Run a step of `scaling_steps` on the first `count` rows."""
        self.phase(step).run(0, count)
