"""The quadratic program of the paper: minimise sum_p a_p w_p^2 + b_p w_p over the simplex.

Let mass(v) = sum over b_p < v of (v - b_p) / (2 a_p): the sum of the weights if the multiplier
is v. It grows with v. The *threshold* is the largest b_p with mass(b_p) < 1, that is, with weight.
All weights follow from it, and nothing is subtracted but two members of b:

    w_p = (threshold - b_p) / (2 a_p) + (1 - mass(threshold)) (c / a_p) / sum_active(c / a),
    c = min a.

(The paper's multiplier, Algorithm 1 line 4, loses all digits when a spans many powers of ten.)

`mass` is summed in the order of the index by both methods. A sum of non-negative terms in a fixed
order is monotone in v even after rounding, so the threshold is unique and both methods give the
same bits. b_p = inf marks a slot that has failed and gets weight 0.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..native.jit import inline
from ..native.simd import WIDTH, absolute, broadcast, lane, where_less
from ..native.views import load_four
from ..utils import validation as check
from ..utils.validation import Floats
from .qp_threshold import FEW, SAMPLE, mass, threshold_by_pivots, threshold_by_sorting

SORT, PIVOT, AUTO = 0, 1, 2
_METHODS = {"auto": AUTO, "pivot": PIVOT, "sort": SORT}
HUGE = 2.0**1000  # above this the difference of two members of b may overflow: halve them
SCRATCH = SAMPLE + 2
_CHUNK = 2048  # members examined together: their a and b stay in the cache
_SLACK = 8.9e-16  # four units in the last place: no candidate is lost to the rounding of the bound


def simplex_qp(a: Any, b: Any, method: str = "auto") -> Floats:
    """Minimise sum_p a_p w_p^2 + b_p w_p subject to w >= 0 and sum_p w_p = 1.

    The solution is right to the last bits over the whole range of floats, also with some a_p = 0.
    Let b0 be the least b_p with a_p = 0. Members with a_p > 0 and b_p < b0 get
    (b0 - b_p) / (2 a_p); if the sum is below 1, the members with a_p = 0 and b_p = b0 share the
    rest equally.

    Parameters
    ----------
    a : (P,) or (B, P), non-negative: the curvatures.
    b : the same shape: the linear part.
    method : "sort" is O(P log P); "pivot" is O(P) on average; "auto" picks the faster one for P.
        All return the same bits.

    Returns
    -------
    The weights, in the shape of a.

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101), Algorithm 1; the
    pivot rule follows Duchi et al. (2008).

    >>> simplex_qp([1.0, 1.0], [0.0, 1.0]).tolist()
    [0.75, 0.25]
    >>> simplex_qp([1.0, 1e-17], [0.0, 0.5]).tolist()
    [0.25, 0.75]
    >>> simplex_qp([0.0, 1.0], [3.0, 2.0]).tolist()
    [0.5, 0.5]
    """
    curvature, linear = _problem(a, b)
    rule = _METHODS[check.choice("method", method, "simplex_qp", _METHODS)]
    weights = solve_rows(np.atleast_2d(curvature), np.atleast_2d(linear), rule)
    return weights.reshape(curvature.shape)


def solve_rows(a: Floats, b: Floats, method: int) -> Floats:
    """The minimiser of each row, unchecked. a, b: (B, P); b may be infinite."""
    weights: Floats = _core.simplex_qp(a, b, method)
    return weights


def solve_scratch(size: int) -> dict[str, np.ndarray]:
    """The scratch arrays of `solve` for programs of up to `size` members."""
    length = size + SCRATCH
    return {"scratch": np.empty((4, length)), "indices": np.empty((2, length), dtype=np.int64)}


def kkt_residual(theta: Any, a: Any, b: Any) -> Any:
    """How far `theta` is from the minimiser of `simplex_qp`: 0 is exact, 1e-15 is rounding.

    It is the largest of three numbers without unit:

    - |sum theta - 1|;
    - the most negative weight, -min theta;
    - the duality gap divided by the gradient's mean. With d_p = b_p - min b and the gradient
      g_p = 2 a_p theta_p + d_p, the gap is sum_p theta_p (g_p - min g), which bounds how much the
      objective lies above its minimum; the mean is sum_p |theta_p| g_p. (b is taken relative to its
      least member because adding a constant to b changes nothing. In min g, each theta_p counts one
      unit in the last place larger: a weight below the smallest float cannot be represented.)

    The three vanish together only at the minimiser (the KKT conditions of the paper's supplement).

    Parameters
    ----------
    theta, a, b : (P,), or (B, P) for one residual per row.

    >>> float(kkt_residual([0.75, 0.25], [1.0, 1.0], [0.0, 1.0]))
    0.0
    >>> float(kkt_residual([0.5, 0.5], [1.0, 1.0], [0.0, 1.0])) > 0.1
    True
    """
    curvature, linear = _problem(a, b)
    remedy = "Give one weight for each member of a."
    weights = check.floats("theta", theta, remedy)
    if weights.shape != curvature.shape:
        raise check.refuse(
            "theta", f"have the shape of a, {curvature.shape}", weights.shape, remedy
        )
    if not np.isfinite(weights).all():
        raise check.refuse("theta", "be finite", weights, remedy)
    gradient, above = _gradients(curvature, linear, weights)
    mean = (np.abs(weights) * gradient).sum(axis=-1)
    gap = (weights * (gradient - above.min(axis=-1, keepdims=True))).sum(axis=-1)
    relative = np.maximum(gap, 0.0) / np.where(mean > 0, mean, 1.0)
    off = np.abs(weights.sum(axis=-1) - 1.0)
    return np.maximum(np.maximum(off, -weights.min(axis=-1)), relative)


def _gradients(a: Floats, b: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The gradient, and the same one unit in the last place of the weights further up.

    Both divided by their largest member, in exponents, so that nothing over- or underflows.
    """
    distance = 0.5 * b - 0.5 * b.min(axis=-1, keepdims=True)  # halved: it cannot overflow
    parts = [np.frexp(a), np.frexp(weights), np.frexp(weights + np.spacing(np.abs(weights)))]
    (a_part, a_power), (w_part, w_power), (up_part, up_power) = parts
    d_part, d_power = np.frexp(distance)
    none = np.iinfo(np.int32).min // 4
    powers = np.maximum(
        np.where(a_part * up_part != 0, a_power + up_power, none),
        np.where(d_part > 0, d_power, none),
    )
    top = powers.max(axis=-1, keepdims=True)
    rest = np.ldexp(d_part, np.maximum(d_power - top, -2000))
    gradient = np.ldexp(a_part * w_part, np.maximum(a_power + w_power - top, -2000)) + rest
    above = np.ldexp(a_part * up_part, np.maximum(a_power + up_power - top, -2000)) + rest
    return gradient, above


def _problem(a: Any, b: Any) -> tuple[Floats, Floats]:
    remedy = "Give two arrays of numbers of the same shape, (P,) or (B, P), with P >= 1."
    curvature = check.floats("a", a, remedy)
    linear = check.floats("b", b, remedy)
    if curvature.ndim not in (1, 2):
        raise check.refuse("a", "have one or two axes", curvature.shape, remedy)
    if curvature.shape != linear.shape:
        raise check.refuse("b", f"have the shape of a, {curvature.shape}", linear.shape, remedy)
    if curvature.shape[-1] == 0:
        raise check.refuse("a", "have at least one member", curvature.shape, remedy)
    if not _core.is_program(curvature.ravel(), linear.ravel()):
        _refuse_members(curvature, linear)
    return curvature, linear


def _refuse_members(curvature: Floats, linear: Floats) -> None:
    for name, array in (("a", curvature), ("b", linear)):
        if not np.isfinite(array).all():
            wrong = float(array[~np.isfinite(array)][0])
            raise check.refuse(name, "be finite", wrong, "Remove kernels that are not finite.")
    least = float(curvature.min())
    raise check.refuse("a", "be non-negative", least, "A curvature is a squared norm: clamp it.")


# --- the compiled solver --------------------------------------------------------------------------


@inline
def _exact_threshold(threshold, a, b, count, half, found):
    """The largest b_p with mass(b_p) < 1, in the sum by index, from an approximation.

    found[0] = the mass there, found[1] = the least a_p with b_p at or below it. a, b: (count,).
    """
    while True:
        taken = 0.0
        least = np.inf
        below = -np.inf
        above = np.inf
        for i in range(count):
            if b[i] < threshold:
                taken += half * ((threshold - b[i]) / a[i])
                below = max(below, b[i])
                least = min(least, a[i])
            elif b[i] > threshold:
                above = min(above, b[i])
            else:
                least = min(least, a[i])
        if taken >= 1.0:
            threshold = below
            continue
        found[0] = taken
        found[1] = least
        if above == np.inf or mass(above, a, b, count, half) >= 1.0:
            return threshold
        threshold = above


@inline
def _bounds(a, b, start, end, bound, flat, largest):
    """Update three bounds with members start .. end - 1, and return them.

    bound: mass(bound) >= 1, so no member with a larger b is active. flat: the least b_p with
    a_p = 0. largest: the largest |b_p|.
    """
    even = start + (end - start) // WIDTH * WIDTH
    bounds = broadcast(bound)
    flats = broadcast(flat)
    sizes = broadcast(largest)
    for i in range(start, even, WIDTH):
        some_a, some_b = load_four(a, i), load_four(b, i)
        twice = 2.0 * some_a
        size = absolute(some_b)
        edge = where_less(0.0, some_a, some_b + twice + _SLACK * (size + twice), np.inf)
        base = where_less(0.0, some_a, np.inf, some_b)
        bounds = where_less(edge, bounds, edge, bounds)
        flats = where_less(base, flats, base, flats)
        sizes = where_less(sizes, where_less(size, np.inf, size, 0.0), size, sizes)
    for k in range(WIDTH):
        bound = min(bound, lane(bounds, k))
        flat = min(flat, lane(flats, k))
        largest = max(largest, lane(sizes, k))
    for i in range(even, end):
        if b[i] == np.inf:
            continue
        largest = max(largest, abs(b[i]))
        if a[i] == 0.0:
            flat = min(flat, b[i])
        else:
            twice = 2.0 * a[i]
            bound = min(bound, b[i] + twice + _SLACK * (abs(b[i]) + twice))
    return bound, flat, largest


@inline
def _candidates(a, b, method, some_a, some_b, indices):
    """List the members that can be active; returns their number, `flat`, and whether b is huge.

    In one pass: a chunk updates the bounds while it is in the cache, and is then searched.
    """
    size = len(a)
    bound = np.inf
    flat = np.inf
    largest = 0.0
    count = np.int64(0)  # typed: a literal would compile the callees twice
    for start in range(0, size, _CHUNK):
        end = min(start + _CHUNK, size)
        bound, flat, largest = _bounds(a, b, start, end, bound, flat, largest)
        edge = np.inf if method == SORT else bound
        for i in range(start, end):
            if b[i] <= edge and a[i] > 0.0 and b[i] < flat and b[i] < np.inf:
                some_a[count] = a[i]
                some_b[count] = b[i]
                indices[count] = i
                count += 1
    if method == SORT or 2 * count > size:
        return count, flat, largest > HUGE
    kept = np.int64(0)
    for k in range(count):  # again, by the bounds of all chunks: fewer candidates are faster
        if some_b[k] <= bound and some_b[k] < flat:
            some_a[kept] = some_a[k]
            some_b[kept] = some_b[k]
            indices[kept] = indices[k]
            kept += 1
    return kept, flat, largest > HUGE


@inline
def solve(a, b, method, weights, scratch, indices):
    """Write the minimiser to `weights`, where it is not 0.

    a, b, weights: (P,); scratch: (4, P + SCRATCH) or longer; indices: the same with two rows.
    """
    size = len(a)
    some_a, some_b, unknown_a, unknown_b = scratch[0], scratch[1], scratch[2], scratch[3]
    members, order = indices[0], indices[1]  # which slots the candidates are; a sorting order
    found = some_a[size + SAMPLE :]  # (2,): the mass, and the least a_p that takes part
    count, flat, huge = _candidates(a, b, method, some_a, some_b, members)
    half = 0.5
    scale = 1.0
    if huge:
        half = 1.0
        scale = 0.5
        for k in range(count):
            some_b[k] *= scale
    if flat < np.inf:
        taken = mass(scale * flat, some_a, some_b, count, half)
        if taken < 1.0:
            sharing = 0
            for i in range(size):
                if a[i] == 0.0 and b[i] == flat:
                    sharing += 1
            for k in range(count):
                if some_b[k] < scale * flat:
                    weights[members[k]] = half * ((scale * flat - some_b[k]) / some_a[k])
            for i in range(size):
                if a[i] == 0.0 and b[i] == flat:
                    weights[i] = (1.0 - taken) / sharing
            return
    if count == 0:
        return  # all slots have failed: all weights are 0
    if method == SORT or (method == AUTO and count <= FEW):
        threshold = threshold_by_sorting(some_a, some_b, order, count, half)
    else:
        threshold = threshold_by_pivots(
            some_a, some_b, order, count, half, unknown_a, unknown_b, found
        )
    threshold = _exact_threshold(threshold, some_a, some_b, count, half, found)
    rest = 1.0 - found[0]
    least = found[1]
    inverse = 0.0
    for k in range(count):
        if some_b[k] <= threshold:
            inverse += least / some_a[k]
    for k in range(count):
        if some_b[k] <= threshold:
            # w_p = (threshold - b_p) / (2 a_p) + (1 - mass) (c / a_p) / sum_active(c / a)
            own = half * ((threshold - some_b[k]) / some_a[k])
            weights[members[k]] = own + rest * ((least / some_a[k]) / inverse)
