"""Targets that come late: slots are judged by what they said when they were asked."""

import numpy as np

from ..native.formulas import call_loss, pointer
from ..native.phases import fields, floats, whole
from ..native.simd import WIDTH

HEAR = fields(
    "slots", "loss", "parameters", "heard", "said", "new_targets", "slot_predictions", "slot_loss",
    "scratch",
)  # fmt: skip


def hear(table, first, count):
    """For samples with heard[t]: said[t] and its loss instead of the predictions of now."""
    slots = whole(table, HEAR.slots)
    scratch = floats(table, HEAR.scratch)
    for t in range(count):
        if floats(table, HEAR.heard)[t] == 0.0:
            continue
        for p in range(t * slots, (t + 1) * slots):
            value = floats(table, HEAR.said)[p]
            # A slot that is out stays out; one that is not cannot have said what is no number.
            if not (floats(table, HEAR.slot_loss)[p] < np.inf and abs(value) < np.inf):
                continue
            for k in range(WIDTH):
                scratch[k] = value
                scratch[WIDTH + k] = floats(table, HEAR.new_targets)[t]
            call_loss(
                whole(table, HEAR.loss),
                scratch,
                pointer(scratch, WIDTH),
                1,
                floats(table, HEAR.parameters),
                pointer(scratch, 2 * WIDTH),
            )
            floats(table, HEAR.slot_predictions)[p] = value
            floats(table, HEAR.slot_loss)[p] = scratch[2 * WIDTH]
