"""FourierVAW: the forecaster of Vovk, Azoury and Warmuth on random features."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..kernels.base import Kernel
from ..losses import Squared
from ..losses.objective import Objective
from ..native.dense import add_multiple, dot
from ..native.functions import native
from ..native.packed_symmetric import RANK, multiply
from ..utils import validation as check
from .base import Learner, SlotGroup
from .feature_learner import Shapes
from .feature_steps import PREDICTION, VARIANCE, size_of
from .fourier import FOURIER, FourierBase
from .recursive import RECURSIVE, RecursiveLeastSquares, recursive_step

ARGUMENTS = FOURIER.extended("fourier_vaw", **RECURSIVE)


@dataclass(frozen=True)
class FourierVAW(FourierBase, RecursiveLeastSquares):
    """Least squares that treats the input to be predicted as one that was seen with target 0.

    With A = ridge I + sum_i phi(x_i) phi(x_i)', b = sum_i y_i phi(x_i), P = A^-1 and weights = P b:

        f(x) = phi(x)'(A + phi(x) phi(x)')^-1 b = phi(x)'weights / (1 + phi(x)'P phi(x)).

    So f is that of `FourierRLS`, with the same weights and P, but shrunk where it is uncertain. It
    is not linear in the features; norm^2 is |weights|^2. With D features, all |y| <= Y and all
    |phi(x)| <= R, for any n and any stream,

        sum_i (f(x_i) - y_i)^2 <= min_w (sum_i (w'phi(x_i) - y_i)^2 + ridge |w|^2)
                                  + Y^2 D log(1 + n R^2 / (ridge D)).

    R^2 = k(x, x) here. (The forecast of least squares itself has a factor of 4 before Y^2, and only
    if it is clipped to [-Y, Y].) For the squared loss only, without forgetting. With Linear kernels
    the features are exact, and this is linear regression. Cost per step:
    O(features^2 + features (dimension + window)); memory O(features^2 / 2 + features dimension).

    Parameters
    ----------
    features : number of features, even.
    ridge : positive number: the prior's precision.
    seed : whole number; the frequencies are drawn from it and from the slot's index in the bank.

    Reference: Vovk, Competitive on-line statistics, International Statistical Review 69 (2001);
    Azoury and Warmuth, Relative loss bounds for on-line density estimation with the exponential
    family of distributions, Machine Learning 43 (2001); on random features Rokhlin and Gurtovaya
    (see `kb.combiners.VAW`).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FourierVAW(features=50))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """

    features: int = 100
    ridge: float = 0.01
    seed: int = 0
    forgetting: ClassVar[float] = 1.0  # type: ignore[misc]
    forget: ClassVar[str] = "exponential"  # type: ignore[misc]
    constant_forgetting: ClassVar[float | None] = None  # type: ignore[misc]
    look_ahead = RecursiveLeastSquares.look_ahead.with_arguments(ARGUMENTS)

    def __post_init__(self) -> None:
        self._check_features()
        check.settings(self, ridge=check.positive(0.01))

    def check(self, objective: Objective) -> None:
        if type(objective.loss) is not Squared:
            remedy = 'Use "squared", kb.Slot(..., loss="squared"), or kb.learners.FourierRLS.'
            raise check.refuse("loss", "be Squared for FourierVAW", objective.loss, remedy)

    def check_initial(self, objective: Objective, terms: int) -> None:
        Learner.check_initial(self, objective, terms)  # it would shrink a function given

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> Shapes:
        inherited = super().shapes(objective, leaves, dimension, kernel, history_length)
        return {**inherited, "window_variances": (leaves, objective.window)}

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own = RecursiveLeastSquares.state_shapes(self, capacity, dimension)
        return {**FourierBase.state_shapes(self, capacity, dimension), **own}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        inherited = super().step_arguments(group, dimension)
        constant = inherited["trigonometric"] + dimension
        variances = group.state["window_variances"]
        own = {"constant": constant, "forgetting": 1.0, "window_variances": variances}
        return {**inherited, **own}

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """One sample of least squares; the variances on the window follow P <- P - u u' / s."""
        recursive_step(a, leaf, number, False)
        size, window = size_of(a, leaf), a.window
        rows, variances = a.window_features[leaf], a.window_variances[leaf]
        variance = a.sample[VARIANCE]
        s = 1.0 + variance  # u = P phi, from before the sample, is still there
        a.sample[PREDICTION] /= s
        for age in range(1, min(number + 1, window)):
            i = (number - age) % window
            product = dot(rows[i], a.u, size)
            variances[i] = max(variances[i] - product * product / s, 0.0)
        variances[number % window] = variance / s

    @staticmethod
    @native(ARGUMENTS)
    def shrink(a, leaf, number):
        """sample[VARIANCE] = phi'P phi, with P = P0 + sum_i factors[i] vectors[i] vectors[i]'.

        The same sums in the same order as in a step, so that a prediction has the same bits.
        """
        phi, u, size = a.point_features, a.products[0], size_of(a, leaf)
        for m in range(size):
            a.scaled[0, m] = phi[m]
        multiply(a.covariance[leaf], a.padded, a.scaled, 0, 1, a.products)
        for i in range(RANK):  # zeros beyond those of this cycle
            vector = a.vectors[leaf, i]
            add_multiple(u, a.factors[leaf, i] * dot(vector, phi, size), vector, size)
        a.sample[VARIANCE] = max(dot(phi, u, size), 0.0)
