"""LinearRLS: recursive least squares on the inputs themselves."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import Linear
from ..kernels.base import Kernel
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..native.arguments import floats
from ..native.functions import native
from ..native.packed_symmetric import pack, unpack
from ..utils import validation as check
from ..utils.validation import Floats
from .base import SlotGroup
from .feature_steps import FIELDS, SELF_KERNEL
from .recursive import RECURSIVE, RecursiveLeastSquares
from .recursive_follow import RANDOM_WALK

LINEAR = FIELDS.extended("linear", constants=floats("leaves"))  # sqrt(offset)
ARGUMENTS = LINEAR.extended("linear_rls", **RECURSIVE)

_PER_FEATURE = ("coefficients", "window_features", "vectors")


@dataclass(frozen=True)
class LinearRLS(RecursiveLeastSquares):
    """Recursive least squares for the kernel Linear: the second-order learner of a line.

    With phi(x) = (x, sqrt(offset)), so that phi(x)'phi(t) = k(x, t), and P = I / ridge at first:

        u = P phi(x),  s = 1 + phi(x)'u,  weights <- weights + u (y - f(x)) / s,  P <- P - u u' / s,

    then forgetting, as for `FourierRLS`. For the logistic loss: an online Newton step. Cost per
    step: O(dimension^2); memory O(dimension^2). With ActiveDims(Linear(...), coordinates), the
    dimension is the number of these coordinates.

    It works in double precision: phi(x)'phi(x) / ridge beyond about 1e12 leaves no correct digits,
    so scale inputs to the order of one.

    Parameters
    ----------
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    ridge : positive number: the prior's precision.
    forget : "exponential", "prior" or "random_walk".
    constant_forgetting : with "prior", the forgetting of the constant feature (Linear kernels with
        an offset have one): 0.9, say, makes it follow the mean residual.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank([kb.kernels.Linear(1.0)], kb.learners.LinearRLS())
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 2 * n / 10 - 1)
    >>> round(bank.predict_one(10.0), 1)
    19.0
    """

    core_name: ClassVar[str] = "LinearRLS"
    forgetting: float = 1.0
    ridge: float = 0.01
    forget: str = "exponential"
    constant_forgetting: float | None = None
    step = RecursiveLeastSquares.step.with_arguments(ARGUMENTS)
    look_ahead = RecursiveLeastSquares.look_ahead.with_arguments(ARGUMENTS)
    lead_step = RecursiveLeastSquares.lead_step.with_arguments(ARGUMENTS)
    follow_loop = RecursiveLeastSquares.follow_loop.with_arguments(ARGUMENTS)
    accepts_new_inputs: ClassVar[bool] = True
    fixed_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_forgetting()

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(without_active_dims(kernel), Linear):
            remedy = "Use kb.kernels.Linear(...), or kb.learners.FourierRLS for other kernels."
            rule = "be Linear for LinearRLS, or ActiveDims(Linear(...), coordinates)"
            raise check.refuse("kernel", rule, kernel, remedy)

    def active_dims(self, kernel: Kernel, dimension: int) -> tuple[int, ...]:
        return active_coordinates(kernel, dimension)

    def capacity(self, kernel: Kernel, dimension: int) -> int:
        return len(self.active_dims(kernel, dimension)) + 1

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        if self._forget_rule == RANDOM_WALK:
            rule = 'be one that can take up new columns (with forget="random_walk" it cannot)'
            remedy = "Give all columns from the start, with NaN or 0 where one is not known."
            raise check.refuse("learner", rule, self, remedy)
        before, after = old["coefficients"].shape[1], new["coefficients"].shape[1]
        indices = [*range(before - 1), after - 1]  # the constant stays the last
        for name, array in old.items():
            if name == "covariance":
                for leaf, packed in enumerate(array):
                    full = unpack(new[name][leaf], after)
                    full[np.ix_(indices, indices)] = unpack(packed, before)
                    new[name][leaf] = pack(full)
            elif name in _PER_FEATURE:
                new[name][..., indices] = array[..., :before]
            elif name != "size":
                new[name][...] = array

    def step_arguments(self, group: SlotGroup, dimension: int) -> Mapping[str, Any]:
        inherited = super().step_arguments(group, dimension)
        return {**inherited, "constants": _constants(group), "constant": dimension}

    def feature_rows(self, group: SlotGroup, points: Floats) -> Floats:
        active = points[:, list(self.active_dims(group.kernels[0][0], group.dimension))]
        rows = [np.column_stack([active, np.full(len(points), c)]) for c in _constants(group)]
        return np.array(rows)

    @staticmethod
    @native(LINEAR)
    def compute_features(a, leaf, number):
        """point_features = (x, sqrt(offset)): their inner product is the kernel."""
        x, phi = a.point, a.point_features
        constant = a.constants[leaf]
        total = constant * constant
        for k in range(a.dimension):
            phi[k] = x[k]
            total += x[k] * x[k]
        phi[a.dimension] = constant
        a.sample[SELF_KERNEL] = total


def _constants(group: SlotGroup) -> Floats:
    """(leaves,): sqrt(offset) of each slot's kernel."""
    bases = [without_active_dims(kernel) for (kernel,) in group.kernels]
    return np.array([np.sqrt(base.offset) for base in bases if isinstance(base, Linear)])
