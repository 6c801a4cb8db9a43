"""PythonLearner: a learner of your own, written as functions of one sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBlock, SampleBuffer
from ..losses.objective import Objective
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD
from ..utils import validation as check
from ..utils.functions import quiet
from ..utils.validation import Floats
from .base import Learner, SlotGroup

_RESERVED = frozenset(["values", "norms", "alive"])  # arrays of every group


class PythonLearner(Learner):
    """A base class for learners in plain NumPy: write `start`, `value`, `step` and `norm`.

    Slots, windows and blocks are handled here, one sample and one slot at a time. So blocks give
    the same bits as single samples, and the state, being arrays, can be saved. Subclasses are
    frozen dataclasses of their settings. Cost per step: window + 1 calls of `value` and one of
    `step` and `norm`, in Python: about 10 microseconds each, and their own work. Memory: the
    state.

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

    pack_width = 1
    uses_kernel_rows = False
    accepts_missing = True

    # --- what a subclass writes -----------------------------------------------------------------

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
        """Learn a sample in the arrays of `state`; slope is l'(f(x), y), the loss's derivative."""
        raise NotImplementedError

    def norm(self, state: Mapping[str, Floats], kernel: Kernel) -> float:
        """norm^2 of f in the RKHS; with 0 the slot's weight depends on its losses alone."""
        return 0.0

    def variance_at(self, state: Mapping[str, Floats], x: Floats, kernel: Kernel) -> float:
        """Variance of f(x) over that of the noise; NaN: not known."""
        return np.nan

    # --- what the bank calls --------------------------------------------------------------------

    def core_model(self, kernel: Kernel, dimension: int, objective: Objective) -> Any:
        return _Model(self, kernel, self._checked_start(dimension, kernel))

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        return {
            name: (leaves, *a.shape) for name, a in self._checked_start(dimension, kernel).items()
        }

    def prepare(self, group: SlotGroup) -> None:
        dimension = group.dimension
        for leaf in range(group.leaves):
            for name, array in self._checked_start(dimension, group.kernels[leaf][0]).items():
                self._assign(group.state[name][leaf, ...], array, name, "start")

    def learn(self, group: SlotGroup, block: SampleBlock, buffer: SampleBuffer) -> None:
        window, loss = group.objective.window, group.objective.loss
        history_length, inputs = buffer.history_length, buffer.inputs
        for leaf in range(group.leaves):
            for t, (x, y) in enumerate(zip(block.points, block.targets, strict=True)):
                number = block.first + t
                prediction = self._value(group, leaf, x)
                group.predictions[leaf, t, 0] = prediction
                if not np.isnan(y):  # a sample without a target is not learned
                    slope = float(loss.derivative(prediction, y))
                    self._step(group, leaf, x, float(y), slope)
                newest = history_length + number % SLIDE_PERIOD
                for age in range(min(number + 1, window)):
                    value = self._value(group, leaf, inputs[:, newest - age])
                    group.values[leaf, t + 1, window - 1 - age, 0] = value
                state, kernel = _read_only(group, leaf), group.kernels[leaf][0]
                group.norms[leaf, t + 1, 0] = self.checked_number(self.norm(state, kernel), "norm")

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        for leaf in np.flatnonzero(wanted):
            out[leaf, :, 0] = [self._value(group, int(leaf), x) for x in points]
        return out

    def variance(self, group: SlotGroup, seen: int, points: Floats) -> Floats:
        out = np.full((group.leaves, len(points), WIDTH), np.nan)
        for leaf in range(group.leaves):
            out[leaf, :, 0] = [self._variance(group, leaf, x) for x in points]
        return out

    # --- checks ---------------------------------------------------------------------------

    def _checked_start(self, dimension: int, kernel: Kernel) -> dict[str, Floats]:
        given = self.start(dimension, kernel)
        remedy = 'Return a dictionary such as {"weights": np.zeros(dimension)}.'
        owner = type(self).__name__
        if not isinstance(given, Mapping):
            raise check.refuse("start", "return arrays by name", given, remedy, owner)
        for name in given:
            if not isinstance(name, str) or name in _RESERVED:
                rule = f"return arrays by words other than {sorted(_RESERVED)}"
                raise check.refuse("start", rule, name, remedy, owner)
        return {name: check.floats(name, array, remedy) for name, array in given.items()}

    def _value(self, group: SlotGroup, leaf: int, x: Floats) -> float:
        # A copy: a learner that keeps x keeps this sample, not a view of an array that changes.
        value = self.value(_read_only(group, leaf), x.copy(), group.kernels[leaf][0])
        return self.checked_number(value, "value")

    def _variance(self, group: SlotGroup, leaf: int, x: Floats) -> float:
        kernel = group.kernels[leaf][0]
        return self.checked_number(
            self.variance_at(_read_only(group, leaf), x.copy(), kernel), "variance_at"
        )

    def _step(self, group: SlotGroup, leaf: int, x: Floats, y: float, slope: float) -> None:
        state = {name: array[leaf, ...] for name, array in group.state.items()}
        self.checked_step(state, x.copy(), y, slope, group.kernels[leaf][0])

    def checked_step(
        self, state: dict[str, Floats], x: Floats, y: float, slope: float, kernel: Kernel
    ) -> None:
        """`step`, which may also replace arrays by others of the same shape."""
        given = dict(state)
        self.step(given, x, y, slope, kernel)
        for name, array in given.items():
            if name not in state:
                remedy = "Let start return it, with its final shape."
                rule = f"keep to the names that start returned ({sorted(state)})"
                raise check.refuse("step", rule, name, remedy, type(self).__name__)
            if array is not state[name]:  # state["w"] = ... is as good as state["w"][...] = ...
                self._assign(state[name], array, name, "step")

    def _assign(self, target: Floats, array: Any, name: str, method: str) -> None:
        given = np.asarray(array)
        if given.shape != target.shape:
            rule = f"leave state[{name!r}] in the shape {target.shape}"
            remedy = "Make arrays as large as they can get in start, and count what is used."
            raise check.refuse(method, rule, given.shape, remedy, type(self).__name__)
        target[...] = given

    def checked_number(self, value: Any, method: str) -> float:
        """What a method returned, as a float."""
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "fiub":
            remedy = "Return a float, such as float(weights @ x)."
            raise check.refuse(method, "return one number", value, remedy, type(self).__name__)
        return float(array.reshape(()))


def _read_only(group: SlotGroup, leaf: int) -> dict[str, Floats]:
    """The state of a slot, as read-only views."""
    state = {}
    for name, array in group.state.items():
        view = array[leaf, ...]
        view.flags.writeable = False
        state[name] = view
    return state


class _Model:
    """A slot of a `PythonLearner`, as the core calls it."""

    may_fail = True

    def __init__(self, learner: PythonLearner, kernel: Kernel, arrays: dict[str, Floats]) -> None:
        self._learner, self._kernel = learner, kernel
        # Copies, which the core writes to when a state is restored.
        self.arrays = {name: np.array(array, order="C") for name, array in arrays.items()}

    def _read_only(self) -> dict[str, Floats]:
        views = {name: array.view() for name, array in self.arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    @quiet
    def value(self, x: Floats) -> float:
        value = self._learner.value(self._read_only(), x, self._kernel)
        return self._learner.checked_number(value, "value")

    @quiet
    def learn(self, x: Floats, y: float, slope: float) -> None:
        self._learner.checked_step(self.arrays, x, y, slope, self._kernel)

    @quiet
    def norm(self) -> float:
        norm = self._learner.norm(self._read_only(), self._kernel)
        return self._learner.checked_number(norm, "norm")

    @quiet
    def variance(self, x: Floats) -> float:
        variance = self._learner.variance_at(self._read_only(), x, self._kernel)
        return self._learner.checked_number(variance, "variance_at")

    def copy(self) -> _Model:
        return _Model(self._learner, self._kernel, self.arrays)
