"""PartitionTree: an exact online Gaussian process on nested cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..kernels import TreeKernel
from ..kernels.base import Kernel, without_active_dims
from ..utils import validation as check
from .base import Learner, count_of


@dataclass(frozen=True)
class PartitionTree(Learner):
    """A Gaussian process whose kernel is a tree of cells that grows with the stream.

        f(x) = sum over the cells c that contain x of g_c,  g_c ~ N(0, v_level),  v from TreeKernel
        y = f(x) + a normal error of variance `noise`

    The estimate is the posterior mean, which also minimises, over all values of the cells,

        sum_i (f(x_i) - y_i)^2 + noise * sum_c g_c^2 / v_level,

    and the second sum is norm^2. Both are exact after every sample, by messages between the cells
    on one path: no matrix, no step size, no drift. With another loss a sample is a square
    around its working response f - l' / c when it is learned, with c as in `KRLS`. It counts c / 2
    as much as one of the squared loss.

    A leaf stores its samples, and after `split_after` of them is split in two. Of one random split
    per input, uniform between the smallest and the largest stored value, it takes the one that
    lowers the targets' sum of squares most. The samples move to the children, so that the posterior
    is the one that the new cells would have given from the start.

    When all `nodes` are in use, a new split takes the nodes of the split between two leaves with
    the least gain rate: the decrease of the sum of squares, in units of the noise, per sample of
    the stream since the oldest sample below it. The gain rate of the new split must be twice as
    high, after 10 units are subtracted for chance. All samples of the two leaves become
    observations of their parent's value (count and sum): the posterior is exact for the kernel in
    which these samples have the coarser cells only. A leaf whose split has too small a gain rate
    treats its own samples so, and starts to store again.

    It works with `kb.kernels.TreeKernel`, also inside `ActiveDims`, and with losses of bounded
    curvature. Memory: at most nodes * (18 + split_after * (inputs + 4) / 2) numbers.

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

    core_name: ClassVar[str] = "PartitionTree"
    second_order: ClassVar[bool] = True
    uses_values: ClassVar[bool] = False  # its variances are all that the cells need
    only_kernel: ClassVar[type[Kernel]] = TreeKernel
    nodes: int = count_of("cells", 1023)
    split_after: int = count_of("samples in a cell", 20, least=2)
    noise: float = check.scale_field(0.1)
    seed: int = check.count_field(
        0, "Give a whole number below 2**63; another one draws other cells.", least=0
    )

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, object]:
        tree = without_active_dims(kernels[0])
        assert isinstance(tree, TreeKernel)
        return super().core_settings(kernels, dimension, identity) | {
            "variances": np.array(tree.variances()),
            "seed_parts": np.array([self.seed >> 32, self.seed & 0xFFFFFFFF], dtype=float),
            "identity": float(identity),
        }
