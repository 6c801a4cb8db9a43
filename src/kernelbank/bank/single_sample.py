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
from numba.core import types
from numba.extending import overload

from ..losses.objective import Objective
from ..native.jit import entry
from ..native.phases import (
    PhaseArguments,
    Phases,
    argument_fields,
    call_phases,
    float_array,
    int_array_at,
    read_float,
    read_int,
)
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import LARGEST, Floats
from .bank_cost import EFFECT, QUARANTINED, SAMPLES
from .ledger import Ledger

FIELDS = argument_fields(
    "learn_phases",
    "learn_count",
    "query_phases",
    "query_count",
    "dimension",
    "largest",
    "labels",
    "slide_period",
    "point",
    "target",
    "query_point",
    "query_prediction",
    "running",
)

DECLINED, LEARNED, DIAGNOSE = range(3)
"""Results of `learn`: nothing has happened; done; done, and the diagnostics should be checked."""


def _copy_input(x, out, dimension, largest):
    raise NotImplementedError("compiled only")


@overload(_copy_input)
def _copy_input_of_type(x, out, dimension, largest):
    """Copy x to (d,) `out` if it has d members, none of them NaN or too large."""
    if isinstance(x, types.Float):

        def number(x, out, dimension, largest):
            if dimension != 1 or not -largest <= x <= largest:
                return False
            out[0] = x
            return True

        return number

    def array(x, out, dimension, largest):
        if x.shape[0] != dimension:
            return False
        for k in range(dimension):
            if not -largest <= x[k] <= largest:
                return False
        for k in range(dimension):
            out[k] = x[k]
        return True

    return array


@entry
def predict_sample(address, x):
    """The bank's prediction at x; NaN if x is declined."""
    args = int_array_at(address)
    point = float_array(args, FIELDS.query_point)
    if not _copy_input(
        x, point, read_int(args, FIELDS.dimension), read_float(args, FIELDS.largest)
    ):
        return np.nan
    seen = np.int64(float_array(args, FIELDS.running)[SAMPLES])
    call_phases(
        read_int(args, FIELDS.query_phases), read_int(args, FIELDS.query_count), seen, np.int64(1)
    )
    return float_array(args, FIELDS.query_prediction)[0]


@entry
def learn_sample(address, x, y):
    """Learn the sample (x, y), a block of one, unless it is declined."""
    args = int_array_at(address)
    largest = read_float(args, FIELDS.largest)
    if not -largest <= y <= largest:
        return DECLINED
    if read_int(args, FIELDS.labels) and y not in (-1.0, 1.0):
        return DECLINED
    point = float_array(args, FIELDS.point)
    if not _copy_input(x, point, read_int(args, FIELDS.dimension), largest):
        return DECLINED
    float_array(args, FIELDS.target)[0] = y
    running = float_array(args, FIELDS.running)
    first = np.int64(running[SAMPLES])
    quarantined, effect = running[QUARANTINED], running[EFFECT]
    call_phases(
        read_int(args, FIELDS.learn_phases), read_int(args, FIELDS.learn_count), first, np.int64(1)
    )
    seen = first + 1
    if running[QUARANTINED] != quarantined or running[EFFECT] != effect:
        return DIAGNOSE
    # Step sizes are checked when the samples have doubled, and at the end of a slide period.
    if (first ^ seen) > first or seen % read_int(args, FIELDS.slide_period) == 0:
        return DIAGNOSE
    return LEARNED


class SingleSampleCalls:
    """The two compiled calls, bound to the phases and arrays of one bank."""

    def __init__(
        self,
        learning: Phases,
        predicting: Phases,
        objective: Objective,
        ledger: Ledger,
        workspace: Workspace,
        query_prediction: Floats,
    ) -> None:
        dimension = workspace.points.shape[1]
        self._arguments = PhaseArguments(
            FIELDS,
            learn_phases=learning.address,
            learn_count=learning.number,
            query_phases=predicting.address,
            query_count=predicting.number,
            dimension=dimension,
            largest=LARGEST,
            labels=int(objective.loss.labels),
            slide_period=SLIDE_PERIOD,
            point=workspace.points,
            target=workspace.new_targets,
            query_point=workspace.query_point,
            query_prediction=query_prediction,
            running=ledger.running,
        )
        self._phases = (learning, predicting)  # their addresses must stay valid
        self._address = self._arguments.address
        # Compile now, not in the middle of a stream.
        array = types.Array(types.float64, 1, "C")
        for kind in [array, types.float64] if dimension == 1 else [array]:
            predict_sample.compile((types.int64, kind))
            learn_sample.compile((types.int64, kind, types.float64))

    def predict(self, x: Any) -> float:
        """The bank's prediction at x, or NaN if x is declined."""
        if isinstance(x, float) or _is_row(x):
            return float(predict_sample(self._address, x))
        return nan

    def learn(self, x: Any, y: Any) -> int:
        """Learn (x, y): `DECLINED`, `LEARNED` or `DIAGNOSE`."""
        if isinstance(y, float) and (isinstance(x, float) or _is_row(x)):
            return int(learn_sample(self._address, x, y))
        return DECLINED


def _is_row(x: Any) -> bool:
    return type(x) is np.ndarray and x.ndim == 1 and x.dtype == np.float64 and x.flags.carray
