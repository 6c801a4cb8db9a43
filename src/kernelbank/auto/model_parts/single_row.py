"""The fast path for single rows: one compiled call to predict a row, and one to learn it.

Python around compiled steps took as long as the steps themselves. So the steps of a row (scale,
predict with the banks, intervals or probabilities; score, detect changes, update the statistics,
learn) are phases in a list, and their results stay in arrays. A call takes plain numbers in range,
whose target is not far. Anything else is declined before something has changed, and takes the path
with all checks, through the same compiled steps: the bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...bank.single_sample import DECLINED
from ...native.phases import Phase, Phases, run_phases
from ...utils.validation import LARGEST, Floats
from ..scaling import scaling_steps
from . import single_row_steps as steps


class SingleRowCalls:
    """The two compiled calls, bound to the arrays of a model and of its batch.

    Parameters
    ----------
    model : a `TaskModel`.
    positives : of each bank, the class with the label 1, or `steps.NUMBER`.
    scores, spreads, targets, output, scale, tail : arrays of the batch.
    predicting : phases that turn scores into output.
    before : phases on a learned row, before the banks learn it.
    """

    def __init__(
        self,
        model: Any,
        positives: Sequence[int],
        *,
        scores: Floats,
        spreads: Floats,
        targets: Floats,
        output: Floats,
        scale: Floats | None,
        tail: Floats | None,
        predicting: Sequence[Phase],
        before: Sequence[Phase],
    ) -> None:
        scaling, rows, batch = model.scaling, model.scaling.batch, model._batch
        config, banks, slots = model.config, len(model.banks), len(model.members)
        self._x, self._last = np.zeros(model.dimension), np.zeros(model.dimension)
        self._y = np.zeros(1)
        self._tail = np.zeros(1) if tail is None else tail
        self.last_key = b""
        """The bytes of the row that was predicted last."""
        self.last_lagged = np.zeros(model.past)
        self.last_scores = np.zeros(banks)
        self.last_slots = np.zeros((banks, slots))
        """Of every bank, as it predicts: for numbers, in units of `last_scale`."""
        self.last_scale = np.zeros(2)
        self.last_output = np.zeros(output.shape[1])
        self._result = np.zeros(2, dtype=np.int64)
        diagnose = np.zeros(1, dtype=np.int64)
        arguments: dict[str, Any] = {
            "inputs": model.dimension,
            "lags": model.remembered,
            "previous": model.previous,
            "past": model.past,
            "width": scaling.width,
            "banks": banks,
            "outputs": output.shape[1],
            "numbers": scale is not None,
            "largest": LARGEST,
            "bounds": config.bounds,
            "run_phases": run_phases.address,
            "predict_phases": 0,
            "learn_phases": 0,
            "x": self._x,
            "y": self._y,
            "x_bits": self._x.view(np.int64),
            "last_bits": self._last.view(np.int64),
            "result": self._result,
            "diagnose": diagnose,
            "rows": model.row_count,
            "lagged": model.lagged,
            "target": scaling.target,
            "last_lagged": self.last_lagged,
            "last_scores": self.last_scores,
            "last_scale": self.last_scale,
            "last_output": self.last_output,
            "scaling_x": rows.X,
            "scaling_lagged": rows.lagged,
            "scaling_y": rows.y,
            "scaling_result": rows.result,
            "scaled_row": rows.out,
            "forms": rows.forms,
            "last_row": np.zeros(scaling.width),
            "last_forms": np.zeros_like(rows.forms),
            "scores": scores.reshape(len(scores), banks),
            "scale": scale,
            "targets": targets,
            "output": output,
            "error_signals": batch.error_signals,
            "weight_signals": batch.weight_signals,
        }
        own = [
            self._bank_arguments(bank, positive, k, model, diagnose, spreads)
            for k, (bank, positive) in enumerate(zip(model.banks, positives, strict=True))
        ]
        learning = Phases([*before, *(Phase(steps.learn_with_bank, **bank) for bank in own)])
        predictors = [Phase(steps.predict_with_bank, **bank) for bank in own]
        scale_rows = rows.phase(scaling_steps.scale_rows)
        fill = Phase(steps.fill_scores, **arguments)
        everything = Phases([scale_rows, *predictors, fill, *predicting])
        arguments |= {"predict_phases": everything.address, "learn_phases": learning.address}
        predict, learn = Phase(steps.predict_row, **arguments), Phase(steps.learn_row, **arguments)
        self._kept = (model, everything, learning, predict, learn)  # their tables must stay
        self._predict, self._learn = predict.bound(), learn.bound()

    def _bank_arguments(
        self,
        bank: KernelBank,
        positive: int,
        k: int,
        model: Any,
        diagnose: np.ndarray,
        spreads: Floats,
    ) -> dict[str, Any]:
        calls = bank._runtime.single_sample_calls
        assert calls is not None
        rows = model.scaling.batch
        return {
            "width": model.scaling.width,
            "slots": len(model.members),
            "lags": model.remembered,
            "past": model.past,
            "seasons": model.scaling.seasons,
            "season_column": model.scaling.season_columns[0] if model.scaling.seasons else 0,
            "positive": positive,
            "predict": calls.predict_entry[0],
            "predict_table": calls.predict_entry[1],
            "learn": calls.learn_entry[0],
            "learn_table": calls.learn_entry[1],
            "scaled_row": rows.out,
            "scaled_y": rows.scaled,
            "y": self._y,
            "lagged": self.last_lagged,
            "lag_columns": np.array(model.scaling.lag_columns, dtype=np.int64),
            "query_point": calls.query_point,
            "query_prediction": calls.prediction,
            "slot_values": calls.slot_values,
            "points": calls.points,
            "targets": calls.targets,
            "result": calls.result,
            "score": self.last_scores[k : k + 1],
            "kept_values": self.last_slots[k],
            "weights": bank._runtime.weights,
            "spread": spreads[k : k + 1],
            "diagnose": diagnose,
        }

    def key(self, x: Any) -> bytes | None:
        """Take the row x; its bytes, or None if it is not plain numbers."""
        return self._x.tobytes() if self._copy(x) else None

    def predict(self, key: bytes, tail: float) -> bool:
        """Predict the row that was taken, with these bytes; False if it is declined."""
        self._tail[0] = tail
        self._predict()
        if self._result.item(0) != steps.PREDICTED:
            return False
        self.last_key = key
        return True

    def learn(self, y: Any) -> int:
        """Learn the row that was taken, if it was predicted last: what has happened to it."""
        if not isinstance(y, float):
            return DECLINED
        self._y[0] = y
        self._learn()
        return self._result.item(0)

    @property
    def has_signals(self) -> bool:
        """Whether the last row gave signals of change."""
        return bool(self._result[1])

    @property
    def last(self) -> Floats:
        """(d,): the last row that was predicted."""
        return self._last

    def _copy(self, x: Any) -> bool:
        """Copy x if it is a (d,) array of float64, a list of floats, or a float; False if not."""
        row = self._x
        if type(x) is np.ndarray:
            if x.dtype != np.float64 or x.shape != row.shape:
                return False
            row[:] = x
            return True
        if type(x) is list:
            if len(x) != len(row) or not all(isinstance(value, float) for value in x):
                return False
            row[:] = x
            return True
        if type(x) is float and len(row) == 1:
            row[0] = x
            return True
        return False
