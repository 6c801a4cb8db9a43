"""Features of a slot that were drawn once and are kept in its state (see `features`)."""

from ..kernels.feature_steps import features
from ..native.dense import dot
from ..native.formulas import pointer
from ..native.phases import fields, floats, whole
from .feature_steps import SELF, SINGLE

WAVES = fields("trigonometric", "frequencies", "phases", "amplitudes")
"""Names that tables of such learners add behind those of SINGLE, in this order."""

_PLACES = fields(*SINGLE._fields, *WAVES._fields)


def waves(table, leaf, number):
    """now = the features of the point, and SELF their square: what stands for k(x, x)."""
    capacity = whole(table, SINGLE.capacity)
    dimension = whole(table, SINGLE.dimension)
    now = floats(table, SINGLE.now)
    features(
        floats(table, SINGLE.point),
        dimension,
        pointer(floats(table, _PLACES.frequencies), leaf * dimension * capacity),
        pointer(floats(table, _PLACES.phases), leaf * capacity),
        pointer(floats(table, _PLACES.amplitudes), leaf * capacity),
        whole(table, _PLACES.trigonometric),
        capacity,
        now,
    )
    floats(table, SINGLE.sample)[SELF] = dot(now, now, capacity)
