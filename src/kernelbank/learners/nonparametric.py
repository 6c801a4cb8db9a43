"""Learners that keep samples, not terms: the last target, the nearest of many, cells and trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import _core
from ..kernels import Kernel, NoKernel, TreeKernel, without_active_dims
from ..utils import validation as check
from .base import MOST, Learner, Values, count_of, seed_field

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

    pack_width: ClassVar[int] = _core.WIDTH
    only_kernel: ClassVar[type[Kernel]] = NoKernel
    uses_values: ClassVar[bool] = False
    column: int | None = check.count_field(None, _COLUMN, least=0, most=MOST)
    per_output: bool = False

    @property
    def late_price(self) -> float:
        return 0.25

    def fewest_columns(self) -> int:
        return 1 if self.column is None else self.column + 1

    def check_width(self, width: int) -> None:
        if width < self.fewest_columns():
            raise self._refuse("column", f"be the index of one of {width} inputs", _COLUMN)


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

    pack_width: ClassVar[int] = _core.WIDTH
    needs_squared: ClassVar[bool] = True
    neighbors: int = count_of("neighbors", 32)
    memory: int = count_of("samples", 4096)
    noise: float = check.scale_field(0.1)
    constant: float = check.number_field(1.0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory <= self.neighbors:
            rule = f"be a whole number >= {self.neighbors + 1}"
            raise self._refuse("memory", rule, "Raise memory, or lower neighbors.")


@dataclass(frozen=True)
class PartitionTree(Learner):
    """A Gaussian process whose kernel is a tree of cells that grows with the stream.

        f(x) = sum over the cells c that contain x of g_c,  g_c ~ N(0, v_level),  v from TreeKernel
        y = f(x) + a normal error of variance `noise`

    The estimate is the posterior mean, which also minimises, over all values of the cells,

        sum_i (f(x_i) - y_i)^2 + noise * sum_c g_c^2 / v_level,

    and the second sum is norm^2. Both are exact after every sample: no matrix, no step size, no
    drift. With another loss a sample is a square around its working response f - l' / c, with
    weight c / 2 and c as in `KRLS`.

    A leaf is split in two after `split_after` samples: of one random split per input, by the one
    that lowers the targets' sum of squares most. When all `nodes` are in use, a new split takes
    those of the split that has gained least, in time, if it gains twice as much; the samples below
    that one then have the coarser cells only. So cells go where they help most, also when the
    stream moves. Memory: at most nodes * (18 + split_after * (inputs + 4) / 2) numbers.

    Parameters
    ----------
    nodes : most cells of a tree; a binary tree has an odd number of them.
    split_after : samples, at least 2, after which a leaf is split, if two of their inputs differ.
    noise : variance of the error, positive, in squared units of the target.
    seed : whole number from which the random splits follow, with the slot's number, as for
        `FourierSGD`.

    Reference: Willsky, Proceedings of the IEEE 90 (2002), for the messages; Geurts, Ernst and
    Wehenkel, Machine Learning 63 (2006), for the splits.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.random.default_rng(0).uniform(0, 1, 500)
    >>> cells = kb.kernels.TreeKernel(decay=0.7, levels=8)
    >>> bank = kb.KernelBank([cells], kb.learners.PartitionTree(noise=0.01))
    >>> trace = bank.run(x, np.where(x < 0.3, -1.0, 1.0))
    >>> bank.predict([0.1, 0.8]).round(1).tolist()
    [-1.0, 1.0]
    """

    second_order: ClassVar[bool] = True
    uses_values: ClassVar[bool] = False  # its variances are all that the cells need
    only_kernel: ClassVar[type[Kernel]] = TreeKernel
    nodes: int = count_of("cells", 1023)
    split_after: int = count_of("samples in a cell", 20, least=2)
    noise: float = check.scale_field(0.1)
    seed: int = seed_field()

    def core_settings(self, kernels: Sequence[Kernel], dimension: int, identity: int) -> Values:
        tree = without_active_dims(kernels[0])
        assert isinstance(tree, TreeKernel)
        variances = np.array(tree.variances())
        return super().core_settings(kernels, dimension, identity) | {"variances": variances}


@dataclass(frozen=True)
class BoostedTrees(Learner):
    """Gradient boosting: trees that each learn what those before them leave.

        f(x) = c + sum over trees t of v_t(x),  v_t(x) = the value of the leaf of x in tree t

    While one generation of trees predicts, the next is grown from the last `memory` samples, a tree
    at a time, each from a random half of them. The trees that predict go on to learn: a sample
    moves c and the values of its leaves by a Kalman step, with variances

        P_t = adaptation * learning_rate / (n_t + 4),   n_t = the number of samples of the leaf.

    It is for tables with thresholds and interactions. f is not in the space of a kernel: norm^2 is
    0, which means none. It learns by the squared loss; a slot of a bank for another loss can:
    kb.Slot(..., loss="squared"). Use it with `kb.kernels.NoKernel()`, or for some of the inputs
    with `kb.kernels.ActiveDims(kb.kernels.NoKernel(), columns)`.

    Parameters
    ----------
    trees : of a generation.
    leaves : most leaves of a tree, at least 2.
    learning_rate : which part of the residuals a tree learns, in (0, 1].
    adaptation : how fast the values of leaves follow new samples, 0 or more.
    memory : how many of the last samples are kept, at least 16.
    seed : whole number from which the random halves follow, with the slot's number, as for
        `FourierSGD`.

    Reference: Friedman, Stochastic gradient boosting, Computational Statistics and Data Analysis 38
    (2002); Ke et al., LightGBM, NeurIPS 2017, for the histograms and the order of the splits.

    >>> import numpy as np, kernelbank as kb
    >>> X = np.random.default_rng(0).uniform(0, 1, (2000, 2))
    >>> bank = kb.KernelBank([kb.kernels.NoKernel()], kb.learners.BoostedTrees())
    >>> trace = bank.run(X, np.where((X[:, 0] < 0.3) & (X[:, 1] > 0.5), 1.0, -1.0))
    >>> bank.predict([[0.1, 0.8], [0.1, 0.2]]).round(1).tolist()
    [1.0, -1.0]
    """

    only_kernel: ClassVar[type[Kernel]] = NoKernel
    uses_values: ClassVar[bool] = False
    needs_squared: ClassVar[bool] = True
    trees: int = count_of("trees", 50)
    leaves: int = count_of("leaves", 32, least=2)
    learning_rate: float = check.number_field(0.1, above=0, most=1)
    adaptation: float = check.number_field(8.0, least=0)
    memory: int = count_of("samples", 4096, least=16)
    seed: int = seed_field()

    def check_kernel(self, kernel: Kernel) -> None:
        super().check_kernel(without_active_dims(kernel))
