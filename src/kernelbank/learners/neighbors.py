"""Learners that keep past samples as they are: the last target, and the nearest of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import _core
from ..kernels import Kernel, NoKernel
from ..losses import Objective, Squared
from ..utils import validation as check
from .base import MOST, Learner, count_of

_COLUMN = "Give the index, from 0, of an input, or None."


@dataclass(frozen=True)
class LastValue(Learner):
    """f = the last target, at every input: the baseline of every stream that moves slowly.

    In a stack it has its say from the second sample on, and a slot on its residual
    (`kb.Slot(..., residual_of=...)`) learns the change from one target to the next. f is 0 before
    the first sample. It needs no kernel: use it with `kb.kernels.NoKernel()`. So norm^2 is 0.

    Parameters
    ----------
    column : index of an input that is the last target already, in its units; f(x) is then this
        input, from the second sample on. By default the targets themselves are remembered.
    per_output : whether output k of a bank with several uses the input at column + k.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(slots=[kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())])
    >>> bank.learn_one(1.0, 5.0)
    >>> bank.predict_one(2.0)
    5.0
    """

    core_name: ClassVar[str] = "LastValue"
    pack_width: ClassVar[int] = _core.WIDTH
    only_kernel: ClassVar[type[Kernel]] = NoKernel
    uses_values: ClassVar[bool] = False
    column: int | None = check.count_field(None, _COLUMN, least=0, most=MOST)
    per_output: bool = False

    def check_width(self, width: int) -> None:
        if self.column is not None and self.column >= width:
            rule = f"be the index of one of {width} inputs"
            raise check.refuse("column", rule, self.column, _COLUMN, "LastValue")


@dataclass(frozen=True)
class NearestNeighborGP(Learner):
    """Gaussian process regression from the nearest of the last samples, anew at every point.

    With z_1 .. z_k the nearest inputs to x among the last `memory` samples, v their targets, and
    K the matrix of k(z_i, z_j) + constant:

        f(x) = q' (K + noise I)^-1 v,   q_i = k(x, z_i) + constant.

    Near means a small Euclidean distance, in the coordinates of `ActiveDims` if the kernel has it;
    of equally near inputs the newer are taken. Inputs are rounded to single precision, so that more
    of them can be searched. f is a posterior mean, but of another small process at every x, so it
    is not a function of the kernel's space: norm^2 is 0, which means none.

    The four slots of a pack, with kernels of one structure, share the search: four widths cost
    little more than one. It learns by the squared loss; a slot of a bank for another loss can:
    kb.Slot(..., loss="squared").

    Parameters
    ----------
    neighbors : k, how many samples a prediction is computed from.
    memory : how many of the last samples are kept, more than `neighbors`.
    noise : variance of the targets' error, positive, in the unit of the kernel's values.
    constant : variance of an unknown constant, 0 or more, in the same unit: where the targets are
        not near 0 everywhere, the prediction far from all samples is then near their mean.

    Reference: Vecchia, Journal of the Royal Statistical Society B 50 (1988); Datta, Banerjee,
    Finley and Gelfand, Journal of the American Statistical Association 111 (2016).

    >>> import numpy as np, kernelbank as kb
    >>> x = np.random.default_rng(0).uniform(0, 6, 500)
    >>> bank = kb.KernelBank([kb.kernels.Matern(1.0)], kb.learners.NearestNeighborGP(noise=0.01))
    >>> trace = bank.run(x, np.sin(x))
    >>> bank.predict([1.0, 4.0]).round(2).tolist() == np.sin([1.0, 4.0]).round(2).tolist()
    True
    """

    core_name: ClassVar[str] = "NearestNeighborGP"
    pack_width: ClassVar[int] = _core.WIDTH
    neighbors: int = count_of("neighbors", 32)
    memory: int = count_of("samples", 4096)
    noise: float = check.scale_field(0.1)
    constant: float = check.number_field(1.0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory <= self.neighbors:
            remedy = "Raise memory, or lower neighbors."
            rule = f"be a whole number >= {self.neighbors + 1}"
            raise check.refuse("memory", rule, self.memory, remedy, "NearestNeighborGP")

    def check(self, objective: Objective) -> None:
        if objective.loss != Squared():
            remedy = 'Use "squared", another learner, or let this one learn by squares all the '
            remedy += 'same: kb.Slot(..., loss="squared").'
            rule = "be the squared one for NearestNeighborGP"
            raise check.refuse("loss", rule, objective.loss, remedy)
