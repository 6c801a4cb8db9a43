"""FourierRLS: recursive least squares on random features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .base import SlotGroup
from .feature_learner import Shapes
from .fourier import FOURIER, FourierBase
from .recursive import RECURSIVE, RecursiveLeastSquares

ARGUMENTS = FOURIER.extended("fourier_rls", **RECURSIVE)


@dataclass(frozen=True)
class FourierRLS(FourierBase, RecursiveLeastSquares):
    """Bayesian linear regression on random features: a Gaussian process at a constant cost.

    With P = I / ridge at first and phi(x)'phi(t) close to k(x, t):

        u = P phi(x),  s = 1 + phi(x)'u,  weights <- weights + u (y - f(x)) / s,  P <- P - u u' / s,

    so that weights minimise sum (w'phi(x_i) - y_i)^2 + ridge |w|^2. Then, with forgetting r < 1,

    - "exponential": the squares of i steps ago have weight r^i. P <- P / r, and a dummy observation
      that one weight, in turn, is 0, with precision D (1 - r) ridge, D the number of features. It
      renews the ridge, without which P would grow where there are no inputs.
    - "prior": P <- r P + (1 - r) I / ridge, weights <- sqrt(r) weights. Without new samples the
      weights return to the prior.
    - "random_walk": P <- P + (1 - r) I / ridge: before every sample, also the first, each weight
      takes a random step, with the part 1 - r of its prior variance. Without new samples the
      weights stay, and P grows.

    For other losses: an online Newton step, with -l' / c for y - f(x) and 2 / c for the 1, with
    the curvature c of the loss as in `KRLS`. Only half of P is kept, and it is read and
    written once per sample. Cost per step: O(features^2 + features dimension); memory
    O(features^2 / 2 + features dimension).

    It works in double precision: phi(x)'phi(x) / ridge beyond about 1e12 leaves no correct digits,
    so scale inputs to the order of one.

    Parameters
    ----------
    features : number of features, even.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    ridge : positive number: the prior's precision.
    seed : whole number; the frequencies are drawn from it and from the slot's number:
        its index in the bank that it began in, counting on for slots that are added later.
    forget : "exponential", "prior" or "random_walk".
    constant_forgetting : with "prior", the forgetting of the constant feature (Linear kernels with
        an offset have one): 0.9, say, makes it follow the mean residual.

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, NeurIPS 2007;
    forgetting to the prior after Van Vaerenbergh et al. 2012 (see `KRLSTracker`).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FourierRLS(features=50))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """

    core_name: ClassVar[str] = "FourierRLS"
    features: int = 100
    forgetting: float = 1.0
    ridge: float = 0.01
    seed: int = 0
    forget: str = "exponential"
    constant_forgetting: float | None = None
    step = RecursiveLeastSquares.step.with_arguments(ARGUMENTS)
    look_ahead = RecursiveLeastSquares.look_ahead.with_arguments(ARGUMENTS)
    shared_arrays = FourierBase.shared_arrays | RecursiveLeastSquares.shared_arrays
    lead_step = RecursiveLeastSquares.lead_step.with_arguments(ARGUMENTS)
    follow_loop = RecursiveLeastSquares.follow_loop.with_arguments(ARGUMENTS)

    def __post_init__(self) -> None:
        self._check_features()
        self._check_forgetting()

    def state_shapes(self, capacity: int, dimension: int) -> Shapes:
        own = RecursiveLeastSquares.state_shapes(self, capacity, dimension)
        return {**FourierBase.state_shapes(self, capacity, dimension), **own}

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        inherited = super().step_arguments(group, dimension)
        return {**inherited, "constant": inherited["trigonometric"] + dimension}
