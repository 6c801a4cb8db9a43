"""Targets that come late: slots are judged by what they said when they were asked."""

import numpy as np

from ..native.formulas import call_loss, pointer
from ..native.phases import argument_fields, float_array, read_int
from ..native.simd import WIDTH

HEAR = argument_fields(
    "slots", "loss", "parameters", "has_past_predictions", "past_predictions", "new_targets",
    "slot_predictions", "slot_loss", "scratch",
)  # fmt: skip


def hear(args, first, count):
    """Where has_past_predictions[t]: use past_predictions[t] and their loss, not those of now."""
    slots = read_int(args, HEAR.slots)
    scratch = float_array(args, HEAR.scratch)
    for t in range(count):
        if float_array(args, HEAR.has_past_predictions)[t] == 0.0:
            continue
        for p in range(t * slots, (t + 1) * slots):
            value = float_array(args, HEAR.past_predictions)[p]
            # A slot that is out stays out; one that is not cannot have said what is no number.
            if not (float_array(args, HEAR.slot_loss)[p] < np.inf and abs(value) < np.inf):
                continue
            for k in range(WIDTH):
                scratch[k] = value
                scratch[WIDTH + k] = float_array(args, HEAR.new_targets)[t]
            call_loss(
                read_int(args, HEAR.loss),
                scratch,
                pointer(scratch, WIDTH),
                1,
                float_array(args, HEAR.parameters),
                pointer(scratch, 2 * WIDTH),
            )
            float_array(args, HEAR.slot_predictions)[p] = value
            float_array(args, HEAR.slot_loss)[p] = scratch[2 * WIDTH]
