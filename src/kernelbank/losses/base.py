"""What a loss is: one value and one derivative."""

# mypy: disable-error-code="no-untyped-def"
# The formulas are compiled with types of their own.
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ..io.specs import Copied
from ..native.formulas import Callback, compile_loss
from ..native.simd import WIDTH
from ..utils import validation as check
from ..utils.validation import Floats
from .steps import apply_loss


@cache
def _compiled(formula: Callable[..., Any]) -> Any:
    return compile_loss(formula)


class Loss(Copied):
    """A convex loss. Subclasses state `_value(f, y, p)` and `_derivative(f, y, p)` in lanes."""

    _value: ClassVar[Callable[..., Any]]
    _derivative: ClassVar[Callable[..., Any]]
    labels: ClassVar[bool] = False
    """Whether targets must be -1 or +1."""

    curvature: float | None = None

    def parameter(self) -> float:
        """The number that the formulas take as p, if any."""
        return 0.0

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The user's Python functions inside this loss."""
        return ()

    @property
    def value_address(self) -> int:
        return int(_compiled(type(self)._value).address)

    @property
    def derivative_address(self) -> int:
        return int(_compiled(type(self)._derivative).address)

    @property
    def parameters(self) -> Floats:
        return np.array([self.parameter()])

    def value(self, f: Any, y: Any) -> Any:
        """The loss of predictions f for targets y, element by element."""
        return self._apply(self.value_address, f, y)

    def derivative(self, f: Any, y: Any) -> Any:
        """The derivative of the loss in f, element by element."""
        return self._apply(self.derivative_address, f, y)

    def _apply(self, address: int, f: Any, y: Any) -> Any:
        left, right = np.broadcast_arrays(np.asarray(f, float), np.asarray(y, float))
        rows = -(-left.size // WIDTH)
        padded = np.ones((2, rows, WIDTH))
        padded[0].flat[: left.size] = left.ravel()
        padded[1].flat[: left.size] = right.ravel()
        out = np.empty((rows, WIDTH))
        apply_loss(address, padded[0], padded[1], self.parameters, out)
        for callback in self.callbacks:
            callback.check()
        return out.ravel()[: left.size].reshape(left.shape)[()]

    def check_targets(self, y: Floats) -> None:
        """Refuse targets that the loss is not made for."""
        if self.labels and y.size and not np.isin(y, (-1.0, 1.0)).all():
            wrong = y[~np.isin(y, (-1.0, 1.0))][0]
            raise check.refuse(
                "y",
                f"be -1 or +1 for {self!r}",
                float(wrong),
                "Recode the labels, or use a loss for regression.",
            )
