"""TreeKernel: a kernel of nested cells, which its learner makes from the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..utils import validation as check
from .base import CoreSpec, Kernel


@dataclass(frozen=True)
class TreeKernel(Kernel):
    """k(x, t) = sum over levels l < levels of v_l [x and t share a cell of level l].

    v_l = scale * decay^l is the variance that level l adds; level 0 is one cell for all inputs,
    and every cell of level l + 1 lies inside one of level l. The cells are not part of the kernel:
    `kb.learners.PartitionTree`, the only learner for it, makes them from the samples. So k(x, t) is
    unknown before the stream, and the kernel cannot be called, added or multiplied. `ActiveDims`
    restricts the cells, and the stored inputs, to some coordinates.

    Parameters
    ----------
    decay : number in (0, 1], the ratio of the variances of neighbouring levels: small for smooth
        targets, near 1 for rough ones.
    levels : 1 to 64, the most nested cells that contain a point.
    scale : positive number, the variance of level 0, in squared units of the target.

    >>> import kernelbank as kb
    >>> kernel = kb.kernels.TreeKernel(decay=0.5, levels=3)
    >>> kernel.variances()
    (1.0, 0.5, 0.25)
    >>> bank = kb.KernelBank([kernel], kb.learners.PartitionTree(noise=0.5))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)  # 1 / (1 + 0.5): only level 0 has a cell so far
    0.667
    """

    decay: float = 0.8
    levels: int = 12
    scale: float = 1.0
    pairwise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        owner = "TreeKernel"
        remedy = "Give the ratio of the variances of neighbouring levels, such as 0.8."
        decay = check.number("decay", self.decay, owner, remedy, above=0, most=1)
        remedy = "Give the most nested cells, such as 12."
        levels = check.count("levels", self.levels, owner, remedy, most=64)
        remedy = "Give the variance of the first level, in squared units of the target."
        scale = check.scale("scale", self.scale, owner, remedy)
        object.__setattr__(self, "decay", decay)
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "scale", scale)
        if self.variances()[-1] < 1 / check.LARGEST:
            rule = f"leave the last level a variance of at least {1 / check.LARGEST:g}"
            raise check.refuse("decay", rule, decay, "Raise decay or use fewer levels.", owner)

    def variances(self) -> tuple[float, ...]:
        """v_0 .. v_{levels - 1}."""
        return tuple(self.scale * self.decay**level for level in range(self.levels))

    def core_spec(self, dimension: int) -> CoreSpec:
        return ("none", None, (), ())
