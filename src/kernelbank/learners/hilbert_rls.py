"""HilbertRLS: recursive least squares on the eigenfunctions of the Laplacian on a box."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..kernels import Additive, Gaussian, Matern
from ..kernels.base import Kernel, Scaled
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..native.arguments import floats, ints
from ..native.dense import dot
from ..native.functions import native
from ..native.simd import WIDTH
from ..native.sincos import cosine_and_sine
from ..native.views import load_four, store_four
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_learner import Shapes
from .feature_steps import FIELDS, SELF_KERNEL
from .recursive import RECURSIVE, RecursiveLeastSquares

HILBERT = FIELDS.extended(
    "hilbert",
    amplitudes=floats("leaves", "capacity"),  # sqrt(S) / L^(d / 2)
    numbers=ints("dimension", "capacity"),  # j of each coordinate; 0 where it takes no part
    most=int,  # the largest j, rounded up to a multiple of four
    multiples=floats("most"),  # 1, 2, 3, ...
    sines=floats("dimension", "most"),  # scratch: sin(j angle) of each coordinate
    sides=floats("leaves", "dimension"),  # L
    half_range=float,
)
ARGUMENTS = HILBERT.extended("hilbert_rls", **RECURSIVE)


@dataclass(frozen=True)
class HilbertRLS(RecursiveLeastSquares):
    """Bayesian linear regression on sines: a Gaussian process on a box, without random numbers.

    With L = boundary * half_range and whole numbers j = (j_1, ..., j_d), all at least 1,

        phi_j(x) = sqrt(S(w)) prod_k sin(w_k (x_k + L)) / sqrt(L),  w_k = pi j_k / 2 L.

    The products of sines are the eigenfunctions of the Laplacian on the box [-L, L]^d that are 0 at
    its boundary, and S is the spectral density of the kernel, so that phi(x)'phi(t) is close to
    k(x, t) inside. The `features` functions with the least |j|^2, which have the largest S, are
    kept. S falls with d: a product needs about m^d functions where one input needs m. So for
    several inputs use Additive(kernel, 1), whose functions are single sines of one input each,
    equally many for every input. Weights and P are learned as by `FourierRLS`, with the same
    forgetting; "random_walk" is the dynamic model of the reference below.

    Inputs are to lie in [-half_range, half_range]. Beyond, they are clipped to it: there f is
    constant. Cost per step: O(features^2 + features dimension); memory O(features^2 / 2).

    Parameters
    ----------
    features : number of functions.
    half_range : positive number, in the units of the inputs. 3 suits inputs in standard units.
    boundary : number above 1: the half side of the box over half_range. Near the boundary of the
        box the approximation is poor; kernels with a width near half_range need 2 or more.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    ridge : positive number: the prior's precision, that is the noise's variance over the kernel's.
    forget : "exponential", "prior" or "random_walk".

    Reference: Solin and Särkkä, Hilbert space methods for reduced-rank Gaussian process
    regression, Statistics and Computing 30 (2020); online, and with a random walk, Waxman and
    Djurić, Dynamic online ensembles of basis expansions, Transactions on Machine Learning Research
    (2024).

    >>> import kernelbank as kb
    >>> learner = kb.learners.HilbertRLS(features=30, half_range=10.0)
    >>> bank = kb.KernelBank(kb.kernels.Gaussian(width=2.0), learner)
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """

    features: int = 64
    half_range: float = 3.0
    boundary: float = 1.5
    forgetting: float = 1.0
    ridge: float = 0.01
    forget: str = "exponential"
    constant_forgetting: ClassVar[float | None] = None  # type: ignore[misc]
    step = RecursiveLeastSquares.step.with_arguments(ARGUMENTS)
    look_ahead = RecursiveLeastSquares.look_ahead.with_arguments(ARGUMENTS)
    lead_step = RecursiveLeastSquares.lead_step.with_arguments(ARGUMENTS)
    follow_loop = RecursiveLeastSquares.follow_loop.with_arguments(ARGUMENTS)
    fixed_features: ClassVar[bool] = True
    shared_arrays = RecursiveLeastSquares.shared_arrays | {"amplitudes", "sides"}

    def __post_init__(self) -> None:
        owner = type(self).__name__
        self._check_forgetting()
        remedy = "Give a number above 1, such as 1.5."
        boundary = check.number("boundary", self.boundary, owner, remedy, above=1)
        check.settings(
            self,
            features=check.whole("Give the number of functions, such as 64."),
            half_range=check.positive(3.0),
            boundary=lambda *_: boundary,
        )

    def check_kernel(self, kernel: Kernel) -> None:
        _parts(kernel)

    def active_dims(self, kernel: Kernel, dimension: int) -> tuple[int, ...]:
        return active_coordinates(kernel, dimension)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return self.features

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        inherited = super().state_shapes(capacity, dimension)
        return {**inherited, "amplitudes": (capacity,), "sides": (dimension,)}

    def prepare(self, group: SlotGroup) -> None:
        super().prepare(group)
        numbers = self._numbers(group)
        used = (numbers > 0).sum(axis=0)  # inputs in each product
        side = self.boundary * self.half_range
        for leaf, (kernel, *_) in enumerate(group.kernels):
            factor, base, additive = _parts(kernel)
            if additive:  # the mean over the inputs
                factor /= len(numbers)
            squares = (math.pi / (2.0 * side)) ** 2 * (numbers**2).sum(axis=0)
            log_density = log_spectral_density(base, squares, int(used[0]))
            amplitudes = np.sqrt(factor) * np.exp(0.5 * (log_density - used * math.log(side)))
            group.state["amplitudes"][leaf] = amplitudes
            group.state["sides"][leaf] = side

    def _numbers(self, group: SlotGroup) -> np.ndarray:
        """(dimension, features): j of each function."""
        kernel = group.kernels[0][0]
        dimension = len(self.active_dims(kernel, group.dimension))
        if _parts(kernel)[2]:
            return _single_inputs(self.features, dimension)
        return _smallest_products(self.features, dimension)

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        numbers = self._numbers(group)
        most = -(-int(numbers.max()) // WIDTH) * WIDTH
        return {
            **super().step_arguments(group, dimension),
            "constant": self.features,  # none
            "numbers": numbers,
            "most": most,
            "multiples": np.arange(1.0, most + 1.0),
            "sines": np.zeros((dimension, most)),
        }

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, features): the functions at points (n, width)."""
        numbers = self._numbers(group)
        active = list(self.active_dims(group.kernels[0][0], group.dimension))
        side = self.boundary * self.half_range
        inside = np.clip(points[:, active], -self.half_range, self.half_range)
        angles = math.pi / (2.0 * side) * (inside + side)  # (n, dimension)
        sines = np.sin(angles[:, :, None] * numbers)  # (n, dimension, features)
        products = np.where(numbers > 0, sines, 1.0).prod(axis=1)
        return np.array([products * amplitudes for amplitudes in group.state["amplitudes"]])

    @staticmethod
    @native(HILBERT)
    def compute_features(a, leaf, number):
        """point_features[m] = amplitude_m prod_k sin(j_km angle_k), angle = pi (x + L) / 2 L."""
        phi, sines = a.point_features, a.sines
        for k in range(a.dimension):
            side = a.sides[leaf, k]
            inside = min(max(a.point[k], -a.half_range), a.half_range)
            angle = math.pi / (2.0 * side) * (inside + side)
            for m in range(0, a.most, WIDTH):
                _, sine = cosine_and_sine(load_four(a.multiples, m) * angle)
                store_four(sines[k], m, sine)
        for m in range(a.capacity):
            value = a.amplitudes[leaf, m]
            for k in range(a.dimension):
                j = a.numbers[k, m]
                if j > 0:
                    value *= sines[k, j - 1]
            phi[m] = value
        a.sample[SELF_KERNEL] = dot(phi, phi, a.capacity)


def log_spectral_density(kernel: Any, squares: Floats, dimension: int) -> Floats:
    """log S(w) of a Gaussian or Matern kernel on `dimension` inputs, from squares = |w|^2.

    k(x, t) = (2 pi)^-d integral S(w) exp(i w'(x - t)) dw.
    """
    d, width = dimension, kernel.width
    if isinstance(kernel, Gaussian):
        return np.asarray(d / 2 * math.log(2 * math.pi * width**2) - width**2 / 2 * squares)
    nu = kernel.nu
    size = (
        d * math.log(2) + d / 2 * math.log(math.pi) + math.lgamma(nu + d / 2) - math.lgamma(nu)
    ) + nu * math.log(2 * nu / width**2)
    return np.asarray(size - (nu + d / 2) * np.log(2 * nu / width**2 + squares))


def _parts(kernel: Kernel) -> tuple[float, Any, bool]:
    """Factor and kernel of one product, and whether it is a mean over single inputs."""
    base: Any = without_active_dims(kernel)
    factor, additive = 1.0, False
    while isinstance(base, (Scaled, Additive)):
        if isinstance(base, Scaled):
            base, factor = base.kernel, factor * base.factor
        elif base.order == 1:
            base, additive = base.base, True
        else:
            break
    if not isinstance(base, (Gaussian, Matern)):
        rule = "be Gaussian, Matern, Additive(one of these, 1), or a multiple, for HilbertRLS"
        remedy = "Use one of these, inside ActiveDims if you like, or kb.learners.FourierRLS."
        raise check.refuse("kernel", rule, kernel, remedy)
    return factor, base, additive


@lru_cache(maxsize=64)
def _single_inputs(count: int, dimension: int) -> np.ndarray:
    """(dimension, count): functions of one input each, by j and then by input."""
    numbers = np.zeros((dimension, count), dtype=np.int64)
    functions = np.arange(count)
    numbers[functions % dimension, functions] = 1 + functions // dimension
    return numbers


@lru_cache(maxsize=64)
def _smallest_products(count: int, dimension: int) -> np.ndarray:
    """(dimension, count): the j with the least |j|^2, in this order; ties in the order of j."""
    first = (1,) * dimension
    waiting = [(dimension, first, 0)]  # |j|^2, j, the last input whose j is above 1
    found: list[tuple[int, ...]] = []
    while len(found) < count:
        square, j, last = heapq.heappop(waiting)
        found.append(j)
        for k in range(last, dimension):
            larger = (*j[:k], j[k] + 1, *j[k + 1 :])
            heapq.heappush(waiting, (square + 2 * j[k] + 1, larger, k))
    return np.ascontiguousarray(np.array(found, dtype=np.int64).T)
