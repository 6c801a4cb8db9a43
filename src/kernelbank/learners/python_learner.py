"""PythonLearner: a learner of your own, written as functions of one sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..utils import validation as check
from ..utils.validation import Floats, quiet
from .base import Learner


class PythonLearner(Learner):
    """A base class for learners in plain NumPy: write `start`, `value`, `step` and `norm`.

    The core calls these functions, one sample and one slot at a time; windows, blocks and outputs
    are its work. So blocks give the same bits as single samples, and the state, being arrays, can
    be saved. A bank with several outputs has a state for each. Subclasses are frozen dataclasses of
    their settings. Cost per step: window + 1 calls of `value` and one of `step` and `norm`, in
    Python: about 10 microseconds each, and their own work. Memory: the state.

    >>> from dataclasses import dataclass
    >>> import numpy as np, kernelbank as kb
    >>> @dataclass(frozen=True)
    ... class Mean(kb.learners.PythonLearner):
    ...     def start(self, dimension, kernel):
    ...         return {"mean": np.zeros(()), "count": np.zeros(())}
    ...     def value(self, state, x, kernel):
    ...         return state["mean"]
    ...     def step(self, state, x, y, slope, kernel):
    ...         state["count"] += 1
    ...         state["mean"] += (y - state["mean"]) / state["count"]
    ...     def norm(self, state, kernel):
    ...         return state["mean"] ** 2
    >>> bank = kb.KernelBank(kb.kernels.Linear(1.0), Mean())
    >>> for target in (1.0, 2.0, 6.0):
    ...     bank.learn_one(0.0, target)
    >>> bank.predict_one(0.0)
    3.0
    """

    accepts_new_inputs: ClassVar[bool] = False

    def start(self, dimension: int, kernel: Kernel) -> dict[str, Any]:
        """The state before the first sample: arrays by name, of shapes that never change.

        f must be 0 at first. Equal arguments must give equal arrays: draw random numbers
        from a seed.
        """
        raise NotImplementedError

    def value(self, state: Mapping[str, Floats], x: Floats, kernel: Kernel) -> float:
        """f(x) for x of shape (d,); must not change the state, which is read-only here."""
        raise NotImplementedError

    def step(
        self, state: dict[str, Floats], x: Floats, y: float, slope: float, kernel: Any
    ) -> None:
        """Learn a sample in the arrays of `state`; slope is l'(f(x), y), the loss's derivative.

        It is not called for a sample without a target.
        """
        raise NotImplementedError

    def norm(self, state: Mapping[str, Floats], kernel: Kernel) -> float:
        """norm^2 of f in the RKHS; with 0 the slot's weight depends on its losses alone."""
        return 0.0

    def variance_at(self, state: Mapping[str, Floats], x: Floats, kernel: Kernel) -> float:
        """Variance of f(x) over that of the noise; NaN: not known."""
        return np.nan

    def core_model(self, kernel: Kernel, dimension: int, objective: Objective) -> Any:
        return _Model(self, kernel, _checked_start(self, dimension, kernel))


def _checked_start(learner: PythonLearner, dimension: int, kernel: Kernel) -> dict[str, Floats]:
    """What `start` returns, if it is arrays by name."""
    state = learner.start(dimension, kernel)
    remedy = 'Return a dictionary such as {"weights": np.zeros(dimension)}.'
    if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
        rule = "return arrays by name"
        raise check.refuse("start", rule, state, remedy, type(learner).__name__)
    return {name: check.floats(name, array, remedy) for name, array in state.items()}


class _Model:
    """One output of a slot, as the core calls it. The inputs that it gets are copies."""

    may_fail = True

    def __init__(self, learner: PythonLearner, kernel: Kernel, arrays: dict[str, Floats]) -> None:
        self._learner, self._kernel = learner, kernel
        # Copies, which the core writes to when a state is restored.
        self.arrays = {name: np.array(array, order="C") for name, array in arrays.items()}

    def copy(self) -> _Model:
        return _Model(self._learner, self._kernel, self.arrays)

    @quiet
    def value(self, x: Floats) -> float:
        return self._number(self._learner.value(self._read_only(), x, self._kernel), "value")

    @quiet
    def norm(self) -> float:
        return self._number(self._learner.norm(self._read_only(), self._kernel), "norm")

    @quiet
    def variance(self, x: Floats) -> float:
        variance = self._learner.variance_at(self._read_only(), x, self._kernel)
        return self._number(variance, "variance_at")

    @quiet
    def learn(self, x: Floats, y: float, slope: float) -> None:
        """`step`, which may also replace arrays by others of the same shape."""
        state, owner = dict(self.arrays), type(self._learner).__name__
        self._learner.step(state, x, y, slope, self._kernel)
        for name, array in state.items():
            if name not in self.arrays:
                remedy = "Let start return it, with its final shape."
                rule = f"keep to the names that start returned ({sorted(self.arrays)})"
                raise check.refuse("step", rule, name, remedy, owner)
            target = self.arrays[name]
            if array is target:
                continue
            if np.shape(array) != target.shape:
                rule = f"leave state[{name!r}] in the shape {target.shape}"
                remedy = "Make arrays as large as they can get in start, and count what is used."
                raise check.refuse("step", rule, np.shape(array), remedy, owner)
            target[...] = array  # state["w"] = ... is as good as state["w"][...] = ...

    def _read_only(self) -> dict[str, Floats]:
        views = {name: array.view() for name, array in self.arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def _number(self, value: Any, method: str) -> float:
        """What a method returned, as a float."""
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "fiub":
            owner, remedy = type(self._learner).__name__, "Return a float: float(weights @ x)."
            raise check.refuse(method, "return one number", value, remedy, owner)
        return float(array.reshape(()))
