"""Adapter: a slot around a model of River, scikit-learn or your own."""

from __future__ import annotations

import contextlib
import copy
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import SlotQuarantined
from ..kernels import NoKernel
from ..kernels.base import Kernel
from ..losses.objective import Objective
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner


@dataclass(frozen=True, eq=False)
class Adapter(Learner):
    """A slot that is any object with predict_one and learn_one, or predict and partial_fit.

    River models get a dictionary {"x0": ..., "x1": ...}, all others the input as an array. A model
    with predict_proba_one is treated as a classifier of -1 and +1, with value 2 P(+1) - 1. The bank
    works on a copy of the given model. Its function has no norm: the quadratic program of
    `kb.combiners.Simplex` uses `curvature` as a_p. The slot of a model that raises an error has no
    weight from then on, and the bank continues. Cost per step: window + 1 predictions and one
    update of the model, in Python; memory: the model. A model is not arrays, so such a bank cannot
    be saved.

    Parameters
    ----------
    model : the object.
    curvature : a_p of this slot, 0 or more; a larger one makes its weight smaller.

    >>> import kernelbank as kb
    >>> class Last:
    ...     value = 0.0
    ...     def predict_one(self, x):
    ...         return self.value
    ...     def learn_one(self, x, y):
    ...         self.value = y
    >>> last = kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(Last()))
    >>> bank = kb.KernelBank(slots=[last, kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma())])
    >>> for n in range(10):
    ...     bank.learn_one(float(n), 5.0)
    >>> round(bank.predict_one(10.0), 2)
    5.0
    """

    model: Any
    curvature: float = 0.0
    saveable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        pairs = (("predict_one", "learn_one"), ("predict", "partial_fit"))
        if not any(all(hasattr(self.model, name) for name in pair) for pair in pairs):
            rule = "have predict_one and learn_one, or predict and partial_fit"
            remedy = "Give a River or scikit-learn model, or an object of your own."
            raise check.refuse("model", rule, self.model, remedy, "Adapter")
        check.settings(self, curvature=check.at_least(0, 0.1))
        object.__setattr__(self, "model", copy.deepcopy(self.model))

    def check(self, objective: Objective) -> None:
        if self.curvature > 0 and objective.regularization == 0:
            remedy = "Give a curvature of 0, or a regularization above 0."
            rule = "be 0 in a bank without regularization"
            raise check.refuse("curvature", rule, self.curvature, remedy, "Adapter")

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, NoKernel):
            remedy = "Use kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(...))."
            raise check.refuse("kernel", "be NoKernel for Adapter", kernel, remedy)

    def core_model(self, kernel: Kernel, dimension: int, objective: Objective) -> Any:
        half = objective.half_regularization
        return _AdaptedModel(copy.deepcopy(self.model), self.curvature / half if half else 0.0)


def _predicts_probabilities(model: Any, from_river: bool) -> bool:
    """Whether the model is a classifier with predict_proba_one."""
    if not hasattr(model, "predict_proba_one"):
        return False
    if not from_river:
        return True
    from river.base import Classifier  # every pipeline of River has the method: check its type

    return isinstance(model, Classifier)


class _AdaptedModel:
    """One interface to all models, as the core calls it. After an error, all values are NaN.

    model : its copies are deep. norm : norm^2 of its function.
    """

    may_fail = False

    def __init__(self, model: Any, norm: float = 0.0) -> None:
        self.arrays: dict[str, Floats] = {}  # the model is not arrays
        self._model = model
        self._norm = norm
        self._failed = False
        self._width: int | None = None
        self._started = hasattr(model, "predict_one")
        self._from_river = type(model).__module__.split(".")[0] == "river"
        self._needs_classes = any(hasattr(model, n) for n in ("decision_function", "predict_proba"))
        self._probabilities = _predicts_probabilities(model, self._from_river)

    def value(self, x: Floats) -> float:
        if self._failed:
            return float("nan")
        try:
            return self._value(x)
        except Exception as error:
            self._fail("predicting", error)
            return float("nan")

    def norm(self) -> float:
        return self._norm

    def variance(self, x: Floats) -> float:
        return float("nan")

    def copy(self) -> _AdaptedModel:
        return copy.deepcopy(self)

    def learn(self, x: Floats, y: float, slope: float = 0.0) -> None:
        if self._failed:
            return
        if self._width is None and not self._from_river:
            self._width = len(x)  # only models of River take columns that are added later
        try:
            if hasattr(self._model, "learn_one"):
                self._model.learn_one(self._input(x), y)
            elif self._needs_classes:
                self._model.partial_fit(self._input(x)[None], [y], classes=[-1.0, 1.0])
            else:
                self._model.partial_fit(self._input(x)[None], [y])
            self._started = True
        except Exception as error:
            self._fail("learning", error)

    def _input(self, x: Floats) -> Any:
        if self._from_river:
            return {f"x{k}": float(value) for k, value in enumerate(x)}
        return x[: self._width].copy()

    def _value(self, x: Floats) -> float:
        if not self._started:
            return 0.0
        if self._probabilities:
            found = self._model.predict_proba_one(self._input(x)) or {}
            return 2.0 * float(found.get(1.0, 0.0)) - 1.0 if found else 0.0
        if hasattr(self._model, "predict_one"):
            value = self._model.predict_one(self._input(x))
        else:
            value = self._model.predict(self._input(x)[None])[0]
        return 0.0 if value is None else float(value)

    def _fail(self, what: str, error: Exception) -> None:
        self._failed = True
        kind = type(self._model).__name__
        with contextlib.suppress(Warning):  # where warnings are errors, the quarantine raises one
            warnings.warn(
                f"the model {kind} behind an Adapter failed while {what} ({error!r}); its slot has "
                "no weight from now on. Repair the model, or leave it out.",
                SlotQuarantined,
                stacklevel=2,
            )
