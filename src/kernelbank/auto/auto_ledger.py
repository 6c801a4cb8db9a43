"""The errors of an AutoBank so far, and the signals of change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..bank.slot_history import SlotChange
from ..utils.validation import Floats
from .change_detection import Change
from .forecasts.forecasting import HorizonScore
from .model import Model
from .quantiles import QuantileScore

if TYPE_CHECKING:
    from .auto_bank import AutoBank


class AutoLedger:
    """Errors and signals of change, over all rows learned so far."""

    def __init__(self, bank: AutoBank) -> None:
        self._bank = bank

    @property
    def _model(self) -> Model | None:
        return self._bank._model

    @property
    def samples(self) -> int:
        """How many rows have been learned."""
        return 0 if self._model is None else self._model.rows

    @property
    def mean_loss(self) -> Any:
        """Mean squared error of the predictions, or the share of wrong labels; for several targets
        (K,).

        Predictions that were made before the first target was known do not count; NaN if there are
        no others.
        """
        model = self._model
        return float("nan") if model is None else _of_targets(model.mean_error())

    @property
    def baseline_loss(self) -> Any:
        """The same for the baseline, which predicts the last target, from the second row on."""
        model = self._model
        return float("nan") if model is None else _of_targets(model.baseline_error())

    @property
    def changes(self) -> tuple[Change, ...]:
        """Signals of change, at most the last 1,000.

        `what` is "error grew" or "error fell" (the size of the errors, or how often a label was
        wrong; each false at most once in 10,000 rows on average while errors are exchangeable),
        "weights" (more than half of the weight has moved to other slots), "target level" (five in a
        row beyond 10 standard deviations that were not predicted), "input level" (five in a row
        beyond 10 standard deviations; not of an input that only steps through a few values) or
        "season" (a period was found, for `seasons="auto"`; `period` says how many rows it has).
        """
        return () if self._model is None else tuple(self._model.changes)

    @property
    def horizons(self) -> tuple[HorizonScore, ...]:
        """How good the forecasts were, for each of `horizons`: `HorizonScore`s with horizon,
        scored, error, last_value, seasonal, absolute_error, coverage and width."""
        model = self._model
        return () if model is None else model.forecasting.horizon_scores()

    @property
    def quantiles(self) -> tuple[QuantileScore, ...]:
        """How good the quantiles were, for each level: `QuantileScore`s with level, scored,
        pinball, conformal (of the ends of intervals at that level) and below."""
        part = getattr(self._model, "quantile_part", None)
        return () if part is None else part.scores()

    @property
    def slot_changes(self) -> tuple[SlotChange, ...]:
        """Slots that were added or retired, at most the last 1,000, with the reason.

        `index` is that in `bank.names`; slots that go together are listed as one.

        Slots without weight give their time to others, after 512 and 4,096 rows and then every
        8,192 rows.
        """
        return () if self._model is None else self._model.slot_changes

    def __repr__(self) -> str:
        count = len(self.changes)
        return (
            f"AutoLedger({self.samples} samples; mean loss {_listed(self.mean_loss)}, baseline "
            f"{_listed(self.baseline_loss)}; {count} signal{'s' * (count != 1)} of change)"
        )


def _of_targets(values: Floats) -> Any:
    """A number for one target, (K,) for several."""
    return values if len(values) > 1 else float(values[0])


def _listed(losses: Any) -> str:
    return ", ".join(f"{loss:.6g}" for loss in np.ravel(losses))
