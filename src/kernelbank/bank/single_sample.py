"""The fast path for single samples: one compiled call checks a sample and runs all phases on it.

A call from Python for one sample should cost little more than the interpreter's own steps. So
there is one compiled call for `predict_one` and one for `learn_one`. They take floats and (d,)
arrays of float64 whose numbers are in range. Anything else (text, lists, another length, NaN) is
declined, and takes the slow path, where every check has its message.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats, ints
from ..native.formulas import call_phase
from ..native.functions import native
from ..native.jit import inline
from ..native.phases import Phase, Phases, run_phases
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import LARGEST, Floats
from .bank_cost import EFFECT, QUARANTINED, SAMPLES
from .ledger import Ledger

SINGLE_SAMPLE = Arguments(
    "single_sample",
    run_phases=int,  # address
    learn_phases=int,  # addresses of their tables
    backward_phases=int,  # the same in another order, for every other sample
    query_phases=int,
    dimension=int,
    largest=float,
    labels=int,
    least_target=float,
    most_target=float,
    slide_period=int,
    points=floats(None, "dimension"),
    targets=floats(None),
    query_point=floats("dimension"),
    query_prediction=floats(1),
    running=floats(6),
    result=ints(1),
)

DECLINED, LEARNED, DIAGNOSE = range(3)
"""Results: nothing has happened; done; done, and the diagnostics should be checked."""


@inline
def _in_range(point, largest):
    """Whether no coordinate is NaN or too large."""
    for k in range(len(point)):
        if not -largest <= point[k] <= largest:
            return False
    return True


@native(SINGLE_SAMPLE)
def predict_sample(a, first, count):
    """query_prediction[0] = the bank's prediction at query_point; NaN if that is declined."""
    if not _in_range(a.query_point, a.largest):
        a.query_prediction[0] = np.nan
        return
    call_phase(a.run_phases, a.query_phases, np.int64(a.running[SAMPLES]), np.int64(1))


@native(SINGLE_SAMPLE)
def learn_sample(a, first, count):
    """Learn the sample (points[0], targets[0]), a block of one; result[0] says what was done."""
    y = a.targets[0]
    a.result[0] = DECLINED
    if not a.least_target <= y <= a.most_target or not _in_range(a.points[0], a.largest):
        return
    if a.labels and y not in (-1.0, 1.0):
        return
    number = np.int64(a.running[SAMPLES])
    quarantined, effect = a.running[QUARANTINED], a.running[EFFECT]
    phases = a.learn_phases if number % 2 == 0 else a.backward_phases
    call_phase(a.run_phases, phases, number, np.int64(1))
    seen = number + 1
    a.result[0] = LEARNED
    if a.running[QUARANTINED] != quarantined or a.running[EFFECT] != effect:
        a.result[0] = DIAGNOSE
    # Step sizes are checked when the samples have doubled, and at the end of a slide period.
    if (number ^ seen) > number or seen % a.slide_period == 0:
        a.result[0] = DIAGNOSE


class SingleSampleCalls:
    """The two compiled calls, bound to the phases and arrays of one bank."""

    def __init__(
        self,
        learning: Phases,
        backward: Phases,
        predicting: Phases,
        objective: Objective,
        ledger: Ledger,
        workspace: Workspace,
        query_prediction: Floats,
    ) -> None:
        self._dimension = workspace.points.shape[1]
        self.points, self.targets = workspace.points, workspace.new_targets
        self.query_point, self.prediction = workspace.query_point, query_prediction
        self.slot_values = workspace.slot_values
        self.result = np.zeros(1, dtype=np.int64)
        self._point = self.points[0]
        least, most = objective.loss.targets
        arguments = {
            "run_phases": run_phases.address,
            "learn_phases": learning.address,
            "backward_phases": backward.address,
            "query_phases": predicting.address,
            "dimension": self._dimension,
            "largest": LARGEST,
            "labels": objective.loss.labels,
            "least_target": max(-LARGEST, least),
            "most_target": min(LARGEST, most),
            "slide_period": SLIDE_PERIOD,
            "points": workspace.points,
            "targets": workspace.new_targets,
            "query_point": workspace.query_point,
            "query_prediction": query_prediction,
            "running": ledger.running,
            "result": self.result,
        }
        predict, learn = Phase(predict_sample, **arguments), Phase(learn_sample, **arguments)
        self._phases = (learning, backward, predicting, predict, learn)  # their tables must stay
        self._predict, self._learn = predict.bound(), learn.bound()
        self.predict_entry, self.learn_entry = predict.entry, learn.entry
        """Addresses of functions and tables, to be called from compiled code."""

    def predict(self, x: Any) -> float:
        """The bank's prediction at x, or NaN if x is declined."""
        if not self._copy(x, self.query_point):
            return nan
        self._predict()
        return self.prediction.item()

    def learn(self, x: Any, y: Any) -> int:
        """Learn (x, y): `DECLINED`, `LEARNED` or `DIAGNOSE`."""
        if not (isinstance(y, float) and self._copy(x, self._point)):
            return DECLINED
        self.targets[0] = y
        self._learn()
        return self.result.item()

    def _copy(self, x: Any, point: Floats) -> bool:
        """Copy x to (d,) `point` if it is a float or a (d,) array of float64; False if not."""
        if isinstance(x, float):
            if self._dimension != 1:
                return False
            point[0] = x
            return True
        if type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != (self._dimension,):
            return False
        point[:] = x
        return True
