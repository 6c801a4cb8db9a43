"""A user's own kernel, as a NumPy function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..io.specs import callable_field
from ..native.callbacks import Callback, callback_statistic, write_result
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Kernel
from .elementary import identity
from .program import EVALUATE, BoundStatistic, Instruction


@dataclass(frozen=True)
class _CallbackStatistic:
    """A user's function as a statistic."""

    function: Callable[[Any, Any], Any]
    name: str

    @cached_property
    def callback(self) -> Callback:
        return callback_statistic(self.function, self.name)

    @property
    def address(self) -> int:
        return self.callback.address


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel from a function k(X, Z) -> (n, m) of NumPy arrays (n, d) and (m, d).

    The function must be symmetric and positive definite, and must give the same values for the
    same inputs. It is called with one row of X at a time, always in the same shapes, so that
    blocks equal the loop over samples bit for bit.

    Parameters
    ----------
    function : the kernel.
    name : its name in a saved bank; `kb.load(path, components={name: kernel})` restores it.

    >>> import numpy as np
    >>> def cauchy(X, Z):
    ...     return 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2))
    >>> Custom(cauchy)([[0.0]], [[1.0]]).tolist()
    [[0.5]]
    """

    function: Callable[[Any, Any], Any] = field(repr=False, metadata=callable_field())
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.function):
            remedy = "Give a function k(X, Z) that returns an (n, m) array."
            raise check.refuse("function", "be callable", self.function, remedy, "Custom")
        name = self.name or getattr(self.function, "__name__", "custom")
        if not isinstance(name, str):
            raise check.refuse("name", "be text", name, "Give a short name.", "Custom")
        object.__setattr__(self, "name", name)

    def __call__(self, X: Any, Z: Any) -> Floats:
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        values = np.empty((len(left), len(right)))
        write_result(values, self.function(left.copy(), right.copy()), self.name)
        return values

    @cached_property
    def _statistic(self) -> BoundStatistic:
        return BoundStatistic(_CallbackStatistic(self.function, self.name))

    def program(self) -> tuple[Instruction, ...]:
        return (Instruction(EVALUATE, self._statistic, identity),)
