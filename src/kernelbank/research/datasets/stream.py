"""A stream of samples: inputs, targets, and what is known about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...utils import validation as check
from ...utils.validation import Floats

REGRESSION, CLASSIFICATION = "regression", "classification"


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples in the order in which they arrive.

    Parameters
    ----------
    X, y : (n, d) inputs, or (n,) for one column, and (n,) targets; labels are 0, 1, 2, ...
    task : "regression" or "classification".
    lags : how many of the last targets are inputs too.

    >>> import numpy as np, kernelbank as kb
    >>> stream = kb.datasets.Stream(np.zeros((4, 1)), [1.0, 2.0, 3.0, 4.0], lags=2)
    >>> stream.inputs.tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 3.0, 2.0]]
    """

    X: Floats
    y: Floats
    task: str = REGRESSION
    lags: int = 0

    def __post_init__(self) -> None:
        X = check.samples(self.X, None)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", check.targets(self.y, len(X)))
        check.choice("task", self.task, "Stream", (REGRESSION, CLASSIFICATION))
        check.count("lags", self.lags, "Stream", "Give 0, 1, 2, ...", least=0)

    def __len__(self) -> int:
        return len(self.y)

    def head(self, rows: int) -> Stream:
        """Its first `rows` samples, or all of them if there are fewer."""
        return replace(self, X=self.X[:rows], y=self.y[:rows]) if rows < len(self) else self

    @property
    def classes(self) -> int:
        """How many labels there are; 0 in regression."""
        return int(self.y.max()) + 1 if self.task == CLASSIFICATION else 0

    @cached_property
    def inputs(self) -> Floats:
        """(n, d + lags): X, then y[t-1], y[t-2], ...; 0 where there is no such target yet."""
        columns = [self.X]
        for lag in range(1, self.lags + 1):
            late = np.zeros((len(self), 1))
            late[lag:, 0] = self.y[:-lag]
            columns.append(late)
        return np.ascontiguousarray(np.hstack(columns))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that a model is given."""
        content = hashlib.sha256(f"{self.task} {self.lags} {self.X.shape}".encode())
        content.update(np.ascontiguousarray(self.X).tobytes())
        content.update(np.ascontiguousarray(self.y).tobytes())
        return content.hexdigest()
