"""Phase of stacking by slopes: the moments of another kind of error (see `stacking`)."""

import math

import numpy as np

from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH
from .stacking_steps import STACKING, settle

SLOPE_STACKING = argument_fields(
    *STACKING._fields, "mean_loss", "caution", "value", "derivative", "parameters", "lanes"
)


@inline
def _of_loss(args, address, prediction, target):
    """One value of the loss's four-lane function."""
    lanes = float_array(args, SLOPE_STACKING.lanes)
    for k in range(WIDTH):
        lanes[k] = prediction
        lanes[WIDTH + k] = target
    out = pointer(lanes, 2 * WIDTH)
    parameters = float_array(args, SLOPE_STACKING.parameters)
    call_loss(address, lanes, pointer(lanes, WIDTH), 1, parameters, out)
    return out[0]


@inline
def _slope_errors(predictions, mixture, slope, unit, slots, errors):
    """errors[p] = sqrt(unit) (1 + slope (f_p - mixture) / unit), of which the squares are stacked.

    Without a unit nothing was ever lost, and there is nothing to learn.
    """
    size = math.sqrt(unit)
    for p in range(slots):
        change = slope * (predictions[p] - mixture)
        errors[p] = size + change / size if size > 0.0 else 0.0


def slope_stacking(args, first, count):
    """chosen[t] = the minimiser after sample t, from the weights before it."""
    slots = read_int(args, STACKING.slots)
    mean_loss = float_array(args, SLOPE_STACKING.mean_loss)
    errors = float_array(args, STACKING.by_slot)
    forgotten = 1.0 - read_float(args, STACKING.discount)
    for t in range(count):
        predictions = pointer(float_array(args, STACKING.slot_predictions), t * slots)
        losses = pointer(float_array(args, STACKING.window_loss), t * slots)
        before = float_array(args, STACKING.weights)
        if t > 0:
            before = pointer(float_array(args, STACKING.chosen), (t - 1) * slots)
        mixture = 0.0
        share = 0.0
        for p in range(slots):
            if before[p] > 0.0 and losses[p] < np.inf:
                mixture += before[p] * predictions[p]
                share += before[p]
        mixture = mixture / share if share > 0.0 else 0.0
        target = float_array(args, STACKING.new_targets)[t]
        lost = abs(_of_loss(args, read_int(args, SLOPE_STACKING.value), mixture, target))
        slope = _of_loss(args, read_int(args, SLOPE_STACKING.derivative), mixture, target)
        if not (share > 0.0 and lost < np.inf and abs(slope) < np.inf):
            lost = mean_loss[0]  # of a proposal that nobody made nothing is known
            slope = 0.0
        mean_loss[0] += (lost - mean_loss[0]) * max(1.0 / (first + t + 1), forgotten)
        unit = read_float(args, SLOPE_STACKING.caution) * mean_loss[0]
        _slope_errors(predictions, mixture, slope, unit, slots, errors)
        settle(args, t)


__all__ = ["SLOPE_STACKING", "slope_stacking"]
