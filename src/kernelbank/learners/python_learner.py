"""PythonLearner: a learner of your own, written as functions of one sample."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import SlotQuarantined
from ..kernels import Kernel, NoKernel
from ..utils import validation as check
from ..utils.validation import Floats, quiet
from .base import Learner


class PythonLearner(Learner):
    """A base class for learners in plain NumPy: write `start`, `value`, `step` and `norm`.

    The core calls these functions, one sample and one slot at a time; windows, blocks and outputs
    are its work. So blocks give the same bits as single samples, and the state, being arrays, can
    be saved. A bank with several outputs has a state for each. Subclasses are frozen dataclasses of
    their settings. A step costs window + 1 calls of `value` and one of `step` and `norm`.

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

    core_name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.core_name = ""  # wherever it is defined

    accepts_new_inputs: ClassVar[bool] = False

    def start(self, dimension: int, kernel: Kernel) -> dict[str, object]:
        """The state before the first sample: arrays by name, of shapes that never change.

        f must be 0 at first. Equal arguments must give equal arrays: draw random numbers
        from a seed.
        """
        raise NotImplementedError

    def value(self, state: Mapping[str, Floats], x: Floats, kernel: Kernel) -> float:
        """f(x) for x of shape (d,); must not change the state, which is read-only here."""
        raise NotImplementedError

    def step(
        self, state: dict[str, Floats], x: Floats, y: float, slope: float, kernel: object
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

    def core_model(self, kernel: Kernel, dimension: int) -> Any:
        state: object = self.start(dimension, kernel)
        remedy = 'Return a dictionary such as {"weights": np.zeros(dimension)}.'
        if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
            rule = "return arrays by name"
            raise check.refuse("start", rule, state, remedy, type(self).__name__)
        arrays = {name: check.floats(name, array, remedy) for name, array in state.items()}
        return _Model(self, kernel, arrays)


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
            if np.shape(array) != self.arrays[name].shape:
                rule = f"leave state[{name!r}] in the shape {self.arrays[name].shape}"
                remedy = "Make arrays as large as they can get in start, and count what is used."
                raise check.refuse("step", rule, np.shape(array), remedy, owner)
            self.arrays[name][...] = array  # state["w"] = ... is as good as state["w"][...] = ...

    def _read_only(self) -> dict[str, Floats]:
        views = {name: array.view() for name, array in self.arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return views

    def _number(self, value: object, method: str) -> float:
        """What a method returned, as a float."""
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "fiub":
            owner, remedy = type(self._learner).__name__, "Return a float: float(weights @ x)."
            raise check.refuse(method, "return one number", value, remedy, owner)
        return float(array.reshape(()))


@dataclass(frozen=True, eq=False)
class Adapter(Learner):
    """A slot that is any object with predict_one and learn_one, or predict and partial_fit.

    River models get a dictionary {"x0": ..., "x1": ...}, all others the input as an array. A model
    with predict_proba_one is treated as a classifier of -1 and +1, with value 2 P(+1) - 1. The bank
    works on a copy of the given model. Its function has no norm: norm^2 is 0. The slot of a model
    that raises an error has no weight from then on, and the bank continues. A model is not arrays,
    so such a bank cannot be saved.

    Parameters
    ----------
    model : the object.

    >>> import kernelbank as kb
    >>> class Last:
    ...     value = 0.0
    ...     def predict_one(self, x):
    ...         return self.value
    ...     def learn_one(self, x, y):
    ...         self.value = y
    >>> bank = kb.KernelBank([kb.kernels.NoKernel()], kb.learners.Adapter(Last()))
    >>> bank.learn_one(0.0, 5.0)
    >>> bank.predict_one(10.0)
    5.0
    """

    model: object
    core_name: ClassVar[str] = ""
    saveable: ClassVar[bool] = False
    only_kernel: ClassVar[type[Kernel]] = NoKernel

    def __post_init__(self) -> None:
        pairs = (("predict_one", "learn_one"), ("predict", "partial_fit"))
        if not any(all(hasattr(self.model, name) for name in pair) for pair in pairs):
            rule = "have predict_one and learn_one, or predict and partial_fit"
            remedy = "Give a River or scikit-learn model, or an object of your own."
            raise self._refuse("model", rule, remedy)
        super().__post_init__()
        object.__setattr__(self, "model", copy.deepcopy(self.model))

    def core_model(self, kernel: Kernel, dimension: int) -> Any:
        return _AdaptedModel(copy.deepcopy(self.model))


class _AdaptedModel:
    """One interface to all models, as the core calls it. After an error, all values are NaN.

    model : its copies are deep.
    """

    may_fail = False

    def __init__(self, model: Any) -> None:
        self.arrays: dict[str, Floats] = {}  # the model is not arrays
        self._model, self._failed = model, False
        self._width: int | None = None
        self._started = hasattr(model, "predict_one")
        self._from_river = type(model).__module__.split(".")[0] == "river"
        self._needs_classes = any(hasattr(model, n) for n in ("decision_function", "predict_proba"))
        self._probabilities = hasattr(model, "predict_proba_one")
        if self._probabilities and self._from_river:  # every pipeline of River has the method
            from river.base import Classifier

            self._probabilities = isinstance(model, Classifier)

    def value(self, x: Floats) -> float:
        return self._call("predicting", self._value, x)

    def learn(self, x: Floats, y: float, slope: float = 0.0) -> None:
        self._call("learning", self._learn, x, y)

    def norm(self) -> float:
        return 0.0

    def variance(self, x: Floats) -> float:
        return float("nan")

    def copy(self) -> _AdaptedModel:
        return copy.deepcopy(self)

    def _call(self, doing: str, function: Callable[..., float], *arguments: object) -> float:
        """What a function returns; NaN once the model has raised an error."""
        if self._failed:
            return float("nan")
        try:
            return function(*arguments)
        except Exception as error:
            self._failed, kind = True, type(self._model).__name__
            with contextlib.suppress(Warning):  # where they are errors, the quarantine raises one
                warnings.warn(
                    f"the model {kind} behind an Adapter failed while {doing} ({error!r}); its "
                    "slot has no weight from now on. Repair the model, or leave it out.",
                    SlotQuarantined,
                    stacklevel=3,
                )
            return float("nan")

    def _learn(self, x: Floats, y: float) -> float:
        if self._width is None and not self._from_river:
            self._width = len(x)  # only models of River take columns that are added later
        if hasattr(self._model, "learn_one"):
            self._model.learn_one(self._input(x), y)
        else:
            classes = {"classes": [-1.0, 1.0]} if self._needs_classes else {}
            self._model.partial_fit(self._input(x)[None], [y], **classes)
        self._started = True
        return 0.0

    def _input(self, x: Floats) -> Any:
        if self._from_river:
            return {f"x{k}": float(value) for k, value in enumerate(x)}
        return x[: self._width].copy()

    def _value(self, x: Floats) -> float:
        if not self._started:
            return 0.0
        if self._probabilities:
            probabilities = self._model.predict_proba_one(self._input(x))
            return 2.0 * float(probabilities.get(1.0, 0.0)) - 1.0 if probabilities else 0.0
        if hasattr(self._model, "predict_one"):
            value = self._model.predict_one(self._input(x))
        else:
            value = self._model.predict(self._input(x)[None])[0]
        return 0.0 if value is None else float(value)
