"""The short way in for one sample: one call checks it, puts it on the workspace and runs the phases.

A sample one by one costs little more than the interpreter's own steps, so there is one compiled
call for `predict_one` and one for `learn_one`. Whatever is not easily seen to be right (text, an
array of another shape, a number too large) is turned away at the door and goes the long way,
where every check has its message.
"""

import numpy as np
from numba.core import types
from numba.extending import overload

from ..native.jit import entry
from ..native.phases import (
    argument_fields,
    call_phases,
    float_array,
    int_array_at,
    read_float,
    read_int,
)
from .bank_cost import EFFECT, OUT, SAMPLES

DOOR = argument_fields(
    "learning",
    "learning_count",
    "looking",
    "looking_count",
    "dimension",
    "largest",
    "labels",
    "slide_period",
    "point",
    "target",
    "query_point",
    "blended",
    "running",
)

TURNED_AWAY, LEARNED, NEWS = range(3)
"""What `learn` tells: nothing has happened; done; done, and the notices should have a look."""


def _put(x, place, dimension, largest):
    raise NotImplementedError("compiled only")


@overload(_put)
def _put_kind(x, place, dimension, largest):
    """Copy x to `place` if it has the right length and no member is NaN or too large."""
    if isinstance(x, types.Float):

        def number(x, place, dimension, largest):
            if dimension != 1 or not -largest <= x <= largest:
                return False
            place[0] = x
            return True

        return number

    def array(x, place, dimension, largest):
        if x.shape[0] != dimension:
            return False
        for k in range(dimension):
            if not -largest <= x[k] <= largest:
                return False
        for k in range(dimension):
            place[k] = x[k]
        return True

    return array


@entry
def look(address, x):
    """The proposal at x; NaN if the door is shut for it."""
    args = int_array_at(address)
    place = float_array(args, DOOR.query_point)
    if not _put(x, place, read_int(args, DOOR.dimension), read_float(args, DOOR.largest)):
        return np.nan
    seen = np.int64(float_array(args, DOOR.running)[SAMPLES])
    call_phases(read_int(args, DOOR.looking), read_int(args, DOOR.looking_count), seen, np.int64(1))
    return float_array(args, DOOR.blended)[0]


@entry
def learn(address, x, y):
    """Play one round with the sample (x, y), unless the door is shut for it."""
    args = int_array_at(address)
    largest = read_float(args, DOOR.largest)
    if not -largest <= y <= largest:
        return TURNED_AWAY
    if read_int(args, DOOR.labels) and y not in (-1.0, 1.0):
        return TURNED_AWAY
    if not _put(x, float_array(args, DOOR.point), read_int(args, DOOR.dimension), largest):
        return TURNED_AWAY
    float_array(args, DOOR.target)[0] = y
    running = float_array(args, DOOR.running)
    first = np.int64(running[SAMPLES])
    out, effect = running[OUT], running[EFFECT]
    call_phases(
        read_int(args, DOOR.learning), read_int(args, DOOR.learning_count), first, np.int64(1)
    )
    seen = first + 1
    if running[OUT] != out or running[EFFECT] != effect:
        return NEWS
    # The steps are looked at when the samples have doubled, and at the end of a slide_period.
    if (first ^ seen) > first or seen % read_int(args, DOOR.slide_period) == 0:
        return NEWS
    return LEARNED


def prepare(dimension: int) -> None:
    """Compile both now: in the middle of a stream is no good moment."""
    kinds = [types.Array(types.float64, 1, "C")]
    if dimension == 1:
        kinds.append(types.float64)
    for kind in kinds:
        look.compile((types.int64, kind))
        learn.compile((types.int64, kind, types.float64))
