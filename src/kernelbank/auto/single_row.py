"""The fast path for single rows: one compiled call to predict a row, and one to learn it.

Python around compiled steps took as long as the steps themselves. So the steps of a row (scale,
predict with the bank, intervals; score, detect changes, update the statistics, learn) are phases
in a list, and their results stay in arrays. A call takes plain numbers in range, whose target is
not far. Anything else is declined before something has changed, and takes the path with all checks,
through the same compiled steps: the bits are the same.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..bank.single_sample import DECLINED, DIAGNOSE, LEARNED, SingleSampleCalls
from ..native.arguments import Arguments, floats, ints
from ..native.formulas import call_phase
from ..native.functions import native
from ..native.jit import inline
from ..native.phases import Phase, Phases, run_phases
from ..utils.validation import LARGEST, Floats
from . import scaling_steps
from .running_stats import CENTER, FAR_DEVIATIONS, SCALE, STATS, deviation

if TYPE_CHECKING:
    from .regression import RegressionModel

ROW = Arguments(
    "single_row",
    inputs=int,
    lags=int,
    width=int,  # of a scaled row
    slots=int,
    largest=float,
    run_phases=int,  # address
    predict_phases=int,  # addresses of tables of phases
    learn_phases=int,
    bank_predict=int,  # address of a function of the bank, and of its table
    bank_predict_table=int,
    bank_learn=int,
    bank_learn_table=int,
    # The row, and the last one that was predicted, as numbers and as their bits:
    x=floats("inputs"),
    y=floats(1),
    x_bits=ints("inputs"),
    last_bits=ints("inputs"),
    result=ints(2),  # what was done; whether there are signals of change
    # State of the model:
    rows=ints(1),
    lagged=floats("lags"),
    target=floats(STATS),
    weights=floats("slots"),
    # The last prediction:
    last_lagged=floats("lags"),
    last_slots=floats("slots"),
    last_output=floats(3),
    last_score=floats(1),
    # Row 0 of the arrays of scaling, of the bank, and of intervals:
    scaling_x=floats(None, "inputs"),
    scaling_lagged=floats(None, "lags"),
    scaling_y=floats(None),
    scaled_row=floats(None, "width"),
    scaled_y=floats(None),
    scaling_result=ints(2),
    query_point=floats("width"),
    query_prediction=floats(1),
    slot_values=floats("slots"),
    points=floats(None, "width"),
    bank_targets=floats(None),
    bank_result=ints(1),
    scores=floats(None),
    scale=floats(None, 2),
    targets=floats(None),
    output=floats(None, 3),
    row_weights=floats(None, "slots"),
    error_signals=ints(None),
    weight_signals=ints(None),
)

PREDICTED = 1
"""A result besides `DECLINED`, `LEARNED` and `DIAGNOSE`."""


@inline
def _copy(source, out):
    for k in range(len(out)):
        out[k] = source[k]


@inline
def _in_range(row, largest):
    """Whether no number is too large; NaN stands for a missing one."""
    for k in range(len(row)):
        if not (np.isnan(row[k]) or -largest <= row[k] <= largest):
            return False
    return True


# --- phases between those of scaling, bank and intervals ------------------------------------------


@native(ROW)
def query_bank(a, first, count):
    """The bank's prediction of the scaled row; NaN if it declines."""
    _copy(a.scaled_row[0], a.query_point)
    call_phase(a.bank_predict, a.bank_predict_table, np.int64(0), np.int64(1))
    mean, sd = a.target[CENTER], a.target[SCALE]
    a.last_score[0] = a.scores[0] = a.query_prediction[0]
    a.scale[0, 0], a.scale[0, 1] = mean, sd
    for p in range(a.slots):
        a.last_slots[p] = a.slot_values[p] * sd + mean


@native(ROW)
def learn_with_bank(a, first, count):
    """The bank learns the scaled row."""
    _copy(a.scaled_row[0], a.points[0])
    a.bank_targets[0] = a.scaled_y[0]
    call_phase(a.bank_learn, a.bank_learn_table, np.int64(0), np.int64(1))


# --- entry points ---------------------------------------------------------------------------------


@native(ROW)
def predict_row(a, first, count):
    """Predict the row x; last_output. result[0]: DECLINED or PREDICTED."""
    a.result[0] = DECLINED
    if not _in_range(a.x, a.largest):
        return
    _copy(a.x, a.scaling_x[0])
    _copy(a.lagged, a.scaling_lagged[0])
    _copy(a.lagged, a.last_lagged)
    call_phase(a.run_phases, a.predict_phases, np.int64(0), np.int64(1))
    if np.isnan(a.last_score[0]):
        return
    _copy(a.x_bits, a.last_bits)
    _copy(a.output[0], a.last_output)
    a.result[0] = PREDICTED


@native(ROW)
def learn_row(a, first, count):
    """Learn the row (x, y), which was predicted last. result[0]: DECLINED, LEARNED or DIAGNOSE."""
    a.result[0] = DECLINED
    y = a.y[0]
    if not -a.largest <= y <= a.largest or not abs(deviation(a.target, y)) <= FAR_DEVIATIONS:
        return
    for k in range(a.inputs):
        if a.x_bits[k] != a.last_bits[k]:
            return
    a.output[0, 0] = a.last_output[0]
    a.scale[0, 0], a.scale[0, 1] = a.target[CENTER], a.target[SCALE]
    a.targets[0] = y
    _copy(a.weights, a.row_weights[0])
    _copy(a.x, a.scaling_x[0])
    _copy(a.last_lagged, a.scaling_lagged[0])
    a.scaling_y[0] = y
    call_phase(a.run_phases, a.learn_phases, np.int64(0), np.int64(1))
    for i in range(a.lags - 1, 0, -1):
        a.lagged[i] = a.lagged[i - 1]
    if a.lags > 0:
        a.lagged[0] = y
    a.rows[0] += 1
    a.result[0] = a.bank_result[0]
    a.result[1] = a.error_signals[0] != 0 or a.weight_signals[0] != 0 or a.scaling_result[1] != 0


class SingleRowCalls:
    """The two compiled calls, bound to the arrays of a model of a regression task."""

    def __init__(self, model: RegressionModel, bank: SingleSampleCalls, weights: Floats) -> None:
        scaling, batch = model.scaling, model._batch
        steps = scaling.batch
        self._x = np.zeros(model.dimension)
        self._y = np.zeros(1)
        self._last = np.zeros(model.dimension)
        self.last_lagged = np.zeros(model.config.lags)
        self.last_slots = np.zeros(len(model.names))
        self.last_output = np.zeros(3)
        self.last_score = np.zeros(1)
        self.result = np.zeros(2, dtype=np.int64)
        self._tail = batch.tail
        arguments: dict[str, Any] = {
            "inputs": model.dimension,
            "lags": model.config.lags,
            "width": scaling.width,
            "slots": len(model.names),
            "largest": LARGEST,
            "run_phases": run_phases.address,
            "predict_phases": 0,
            "learn_phases": 0,
            "bank_predict": bank.predict_entry[0],
            "bank_predict_table": bank.predict_entry[1],
            "bank_learn": bank.learn_entry[0],
            "bank_learn_table": bank.learn_entry[1],
            "x": self._x,
            "y": self._y,
            "x_bits": self._x.view(np.int64),
            "last_bits": self._last.view(np.int64),
            "result": self.result,
            "rows": model.row_count,
            "lagged": model.lagged,
            "target": scaling.target,
            "weights": weights,
            "last_lagged": self.last_lagged,
            "last_slots": self.last_slots,
            "last_output": self.last_output,
            "last_score": self.last_score,
            "scaling_x": steps.X,
            "scaling_lagged": steps.lagged,
            "scaling_y": steps.y,
            "scaled_row": steps.out,
            "scaled_y": steps.scaled,
            "scaling_result": steps.result,
            "query_point": bank.query_point,
            "query_prediction": bank.prediction,
            "slot_values": bank.slot_values,
            "points": bank.points,
            "bank_targets": bank.targets,
            "bank_result": bank.result,
            "scores": batch.scores,
            "scale": batch.scale,
            "targets": batch.targets,
            "output": batch.output,
            "row_weights": batch.weights,
            "error_signals": batch.error_signals,
            "weight_signals": batch.weight_signals,
        }
        predicting = Phases(
            [steps.phase(scaling_steps.scale_rows), Phase(query_bank, **arguments), batch.predict_rows]
        )
        learning = Phases(
            [
                batch.score_rows,
                batch.detect_changes,
                steps.phase(scaling_steps.scale_and_update),
                Phase(learn_with_bank, **arguments),
            ]
        )
        arguments |= {"predict_phases": predicting.address, "learn_phases": learning.address}
        predict, learn = Phase(predict_row, **arguments), Phase(learn_row, **arguments)
        self._kept = (model, bank, predicting, learning, predict, learn)  # their tables must stay
        self._predict, self._learn = predict.bound(), learn.bound()

    def predict(self, x: Any, tail: float) -> bool:
        """Predict x; False if it is declined."""
        if not self._copy(x):
            return False
        self._tail[0] = tail
        self._predict()
        return self.result.item(0) == PREDICTED

    def is_last(self, x: Any) -> bool:
        """Whether x has the bits of the last row that was predicted."""
        return self._copy(x) and self._x.tobytes() == self._last.tobytes()

    def learn(self, x: Any, y: Any) -> int:
        """Learn (x, y), if x was predicted last: `DECLINED`, `LEARNED` or `DIAGNOSE`."""
        if not (isinstance(y, float) and self._copy(x)):
            return DECLINED
        self._y[0] = y
        self._learn()
        return self.result.item(0)

    @property
    def last(self) -> Floats:
        """(d,): the last row that was predicted."""
        return self._last

    def _copy(self, x: Any) -> bool:
        """Copy x if it is a (d,) array of float64 or a list of floats, or a float; False if not."""
        row = self._x
        if type(x) is np.ndarray:
            if x.dtype != np.float64 or x.shape != row.shape:
                return False
            row[:] = x
            return True
        if type(x) is list:
            if len(x) != len(row) or not all(type(value) is float for value in x):
                return False
            row[:] = x
            return True
        if type(x) is float and len(row) == 1:
            row[0] = x
            return True
        return False


__all__ = ["DECLINED", "DIAGNOSE", "LEARNED", "SingleRowCalls"]
