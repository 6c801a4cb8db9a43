"""Features of a slot that were drawn once and are kept in its state (see `features`)."""

from ..kernels.feature_steps import features
from ..native.dense import dot
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_int
from .feature_steps import SELF, SINGLE

WAVES = argument_fields("trigonometric", "frequencies", "phases", "amplitudes")
"""Names that tables of such learners add behind those of SINGLE, in this order."""

_PLACES = argument_fields(*SINGLE._fields, *WAVES._fields)


def waves(args, leaf, number):
    """now = the features of the point, and SELF their square: what stands for k(x, x)."""
    capacity = read_int(args, SINGLE.capacity)
    dimension = read_int(args, SINGLE.dimension)
    now = float_array(args, SINGLE.now)
    features(
        float_array(args, SINGLE.point),
        dimension,
        pointer(float_array(args, _PLACES.frequencies), leaf * dimension * capacity),
        pointer(float_array(args, _PLACES.phases), leaf * capacity),
        pointer(float_array(args, _PLACES.amplitudes), leaf * capacity),
        read_int(args, _PLACES.trigonometric),
        capacity,
        now,
    )
    float_array(args, SINGLE.sample)[SELF] = dot(now, now, capacity)
