"""Forecasts that go on from their own predictions: an autoregression, one step ahead.

A direct forecast at a long horizon has few independent errors to learn from: those of neighboring
rows overlap. A line that is learned one step ahead, and used again and again, has as many as rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...bank.slot import Slot
from ...combiners import Stacking
from ...kernels import ActiveDims, Linear
from ...learners import LinearRLS
from ...utils.validation import Floats

_RIDGE = 1.0
_FORGETTING = (1.0, 0.998)
_AROUND = (-1, 0, 1)
"""Which targets around that of one period before are inputs too."""


class IteratedLine:
    """Least squares from the last targets, and from those of earlier periods, to the next target.

    Parameters
    ----------
    lags : how many of the last targets are inputs.
    periods : of seasons.
    steps : how many steps ahead it forecasts.
    """

    def __init__(self, lags: int, periods: Sequence[int], steps: int) -> None:
        back = {*range(1, lags + 1)}
        for period in periods:
            back |= {period + k for k in _AROUND if period + k > 0}
        self.back = np.array(sorted(back))
        """How many rows before the next one its inputs are."""
        self.steps = steps
        few = tuple(range(min(3, lags)))
        everything = tuple(range(len(self.back)))
        self.bank = KernelBank(
            slots=[
                Slot(ActiveDims(Linear(1.0), columns), LinearRLS(ridge=_RIDGE, forgetting=rate))
                for columns in dict.fromkeys([few, everything])
                for rate in (_FORGETTING if len(columns) <= 3 else _FORGETTING[:1])
            ],
            combiner=Stacking(),
            window=1,
            regularization=0.0,
        )

    @property
    def history(self) -> int:
        """How many of the last targets it needs."""
        return int(self.back[-1])

    def learn(self, targets: Floats, scaled: float, scale: tuple[float, float]) -> None:
        """Learn the next target, which is scaled; targets (m,) are those before it, newest last."""
        self.bank.learn_one(self._inputs(targets, scale), scaled)

    def forecast(self, targets: Floats, scale: tuple[float, float]) -> Floats:
        """(steps,): the next targets, in their units; targets (m,) are the last, newest last."""
        mean, sd = scale
        length = len(targets)
        values = np.concatenate([targets, np.zeros(self.steps)])
        for step in range(self.steps):
            inputs = self._inputs(values[: length + step], scale)
            value = min(max(self.bank.predict_one(inputs), -10.0), 10.0)
            values[length + step] = mean + sd * value
        return values[length:]

    def _inputs(self, targets: Floats, scale: tuple[float, float]) -> Floats:
        mean, sd = scale
        values = targets[len(targets) - self.back]
        scaled = (values - mean) / sd if sd > 0.0 else np.zeros(len(values))
        return np.where(np.isnan(scaled), 0.0, np.clip(scaled, -10.0, 10.0))

    def state(self) -> dict[str, Floats]:
        """The arrays of the bank, by name."""
        return self.bank.state()

    def describe(self) -> tuple[dict[str, Any], Mapping[str, Floats]]:
        """The bank as plain data and arrays."""
        return self.bank.describe()
