"""The errors of an AutoBank so far, and the signals of change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..bank.slot_history import SlotChange
from .change_detection import Change
from .classification import ClassificationModel
from .forecasts.forecasting import HorizonScore
from .many_targets import TargetsModel
from .quantiles import Quantiles, QuantileScore
from .regression import RegressionModel
from .task_model import TaskModel

if TYPE_CHECKING:
    from .auto_bank import AutoBank


class AutoLedger:
    """Errors and signals of change, over all rows learned so far."""

    def __init__(self, bank: AutoBank) -> None:
        self._bank = bank

    @property
    def _model(self) -> TaskModel | None:
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
        if isinstance(model, TargetsModel):
            return model.mean_error()
        count = 0 if model is None else model.rows - model.unscored
        if isinstance(model, RegressionModel) and count:
            return float(model.intervals.loss / count)
        if isinstance(model, ClassificationModel) and count:
            return float(model.wrong[0] / count)
        return float("nan")

    @property
    def baseline_loss(self) -> Any:
        """The same for the baseline, which predicts the last target, from the second row on."""
        model = self._model
        if isinstance(model, TargetsModel):
            return model.baseline_error()
        if isinstance(model, RegressionModel) and model.rows > 1:
            return float(model.intervals.baseline_loss / (model.rows - 1))
        if isinstance(model, ClassificationModel) and model.rows > 1:
            return float(model.wrong[1] / (model.rows - 1))
        return float("nan")

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
        return model.horizon_scores() if isinstance(model, RegressionModel) else ()

    @property
    def quantiles(self) -> tuple[QuantileScore, ...]:
        """How good the quantiles were, for each level: `QuantileScore`s with level, scored,
        pinball, conformal (of the ends of intervals at that level) and below."""
        part = getattr(self._model, "quantile_part", None)
        return part.scores() if isinstance(part, Quantiles) else ()

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


def _listed(losses: Any) -> str:
    return ", ".join(f"{loss:.6g}" for loss in np.ravel(losses))
