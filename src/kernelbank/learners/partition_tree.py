"""PartitionTree: an exact online Gaussian process on nested cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import Kernel, TreeKernel
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..kernels.sample_buffer import SampleBuffer
from ..losses import Logistic, Squared
from ..losses.objective import Objective
from ..native.phases import Phase, Phases, compiled
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import tree_phases as hot
from .base import Learner, SlotGroup
from .tree_inference import SIZE
from .tree_split import BESIDE

_MOST_SEED = 2**63 - 1


@dataclass(frozen=True)
class PartitionTree(Learner):
    """A Gaussian process whose kernel is a tree of cells that accepts_new_inputs with the stream.

        f(x) = sum over the cells c that hold x of g_c,   g_c ~ N(0, v_level),   v from TreeKernel
        y = f(x) + a normal error of variance `noise`

    The estimate is the posterior mean, which also minimises, over all values of the cells,

        sum_i (f(x_i) - y_i)^2 + noise * sum_c g_c^2 / v_level,

    and the second sum is norm^2. Both are exact after every sample, by messages between the cells
    on one path: no matrix, no step size, no drift. With the logistic loss a sample is a square
    around its working response f - l' / c, where c = tanh(f / 2) / 2 f bounds the loss's curvature
    when the sample is learned; it counts c / 2 as much as one of the squared loss.

    A leaf holds its samples, and after `split_after` of them is cut in two: of one random cut per
    input, uniform between the smallest and the largest value held, it takes the one that lowers
    the targets' sum of squares most. The samples are handed to the children, so that the posterior
    is the one that the new cells would have given from the start.

    When all `nodes` are in use, a new cut takes the nodes of the cut between two leaves that is
    worth least. Worth is what a cut lowers the sum of squares by, in units of the noise and per
    sample of the stream since the oldest sample that it parts; the new cut must be worth twice as
    much, after 10 units are taken off for chance. All samples of the two leaves become observations
    of their parent's value (count and sum): the posterior is exact for the kernel in which these
    samples have the coarser cells only. A leaf whose cut is not worth it treats its own samples so,
    and gathers anew.

    Cost per step and slot: O(levels * (window + 1)), `split_after` comparisons of inputs, and
    rarely, for a cut, O(split_after * inputs + nodes). Memory: at most
    nodes * (18 + split_after * (inputs + 4) / 2) numbers, whatever the length of the stream. With
    the kernel ActiveDims(TreeKernel(...), coordinates) only these inputs count, are kept and are cut.

    Parameters
    ----------
    nodes : most cells of a tree; a binary tree has an odd number of them.
    split_after : samples, at least 2, after which a leaf is cut, if two of their inputs differ.
    noise : variance of the error, positive, in squared units of the target.
    seed : whole number from which the random cuts follow, with the slot's place in the bank.

    It works with `kb.kernels.TreeKernel`, also `ActiveDims` some coordinates, and with the squared and the
    logistic loss only.

    Reference: Willsky, Multiresolution Markov models for signal and image processing, Proceedings
    of the IEEE 90 (2002), for the messages; Geurts, Ernst and Wehenkel, Extremely randomized trees,
    Machine Learning 63 (2006), for the cuts.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.random.default_rng(0).uniform(0, 1, 500)
    >>> cells = kb.kernels.TreeKernel(decay=0.7, levels=8)
    >>> bank = kb.KernelBank([cells], kb.learners.PartitionTree(noise=0.01))
    >>> trace = bank.run(x, np.where(x < 0.3, -1.0, 1.0))
    >>> bank.predict([0.1, 0.8]).round(1).tolist()
    [-1.0, 1.0]
    """

    nodes: int = 1023
    split_after: int = 20
    noise: float = 0.1
    seed: int = 0
    leaf_width: ClassVar[int] = 1
    accepts_new_inputs: ClassVar[bool] = True
    uses_kernel_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        owner = "PartitionTree"
        nodes = check.count("nodes", self.nodes, owner, "Give how many cells to keep.")
        remedy = "Give how many samples a cell gathers before it is cut, such as 20."
        split_after = check.count("split_after", self.split_after, owner, remedy, least=2)
        remedy = "Give the variance of the targets' error, in their squared units."
        noise = check.scale("noise", self.noise, owner, remedy)
        remedy = "Give a whole number below 2**63; another one draws other cells."
        seed = check.count("seed", self.seed, owner, remedy, least=0, most=_MOST_SEED)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "split_after", split_after)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "seed", seed)

    def check(self, objective: Objective) -> None:
        if not isinstance(objective.loss, (Squared, Logistic)):
            raise check.refuse(
                "loss",
                "be Squared or Logistic, whose curvature is known",
                objective.loss,
                "Use one of these, a learner for every loss, such as kb.learners.Norma, or let the "
                "tree learn by squares all the same: kb.learners.WithLoss(...).",
                "PartitionTree",
            )

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(without_active_dims(kernel), TreeKernel):
            remedy = "Use kb.kernels.TreeKernel(), or another learner for this kernel."
            rule = "be TreeKernel, or ActiveDims(TreeKernel(...), coordinates)"
            raise check.refuse("kernel", rule, kernel, remedy, "PartitionTree")

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        seen = len(active_coordinates(kernel, dimension))
        entries = (leaves, (self.nodes + 1) // 2, self.split_after, seen + BESIDE)
        return {
            "cells": (leaves, self.nodes, SIZE),
            "entries": entries,
            "counters": (leaves, hot.COUNTERS),
        }

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        super().extend_inputs(
            {name: array for name, array in old.items() if name != "entries"}, new
        )
        seen = old["entries"].shape[-1] - BESIDE
        new["entries"][..., :seen] = old["entries"][..., :seen]
        new["entries"][..., -BESIDE:] = old["entries"][..., -BESIDE:]

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        objective = group.objective
        levels = _levels(group)
        most = int(levels.max())
        variances = np.zeros((group.leaves, most))
        for leaf, kernel in enumerate(_cells(group)):
            variances[leaf, : kernel.levels] = kernel.variances()
        learn = Phase(
            compiled(hot.learn),
            hot.LEARN,
            **group.common(),
            **group.state,
            **_reading(
                group, buffer.history_length + SLIDE_PERIOD
            ),  # inputs lie coordinate by coordinate
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            limit=self.nodes,
            capacity=self.split_after,
            most_levels=most,
            levels=levels,
            variances=variances,
            noise=self.noise,
            seed=self.seed,
            columns=group.columns,
            squared=isinstance(objective.loss, Squared),
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            inputs=buffer.inputs,
            targets=buffer.targets,
            paths=np.zeros((2, most), dtype=np.int64),
            scratch=np.zeros((2, WIDTH)),
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        everyone = np.ones(group.leaves, dtype=np.int64)
        return [self._values(group, workspace.query_point[None, :], everyone, group.query_values)]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        chosen = wanted.astype(np.int64)
        Phases([self._values(group, points, chosen, out)]).run(seen, len(points))
        return out

    def _values(self, group: SlotGroup, points: Floats, wanted: np.ndarray, out: Any) -> Phase:
        """The phase that writes f at the points for the wanted leaves."""
        levels = _levels(group)
        return Phase(
            compiled(hot.evaluate),
            hot.EVALUATE,
            **_reading(group, 1),
            leaves=group.leaves,
            width=points.shape[1],
            limit=self.nodes,
            levels=levels,
            paths=np.zeros(int(levels.max()), dtype=np.int64),
            cells=group.state["cells"],
            wanted=wanted,
            points=points,
            room=len(points),
            out=out,
        )


def _cells(group: SlotGroup) -> list[TreeKernel]:
    """The kernel of every leaf, without the `ActiveDims` around it."""
    bases = [without_active_dims(kernel) for (kernel,) in group.kernels]
    return [base for base in bases if isinstance(base, TreeKernel)]


def _levels(group: SlotGroup) -> np.ndarray:
    return np.array([kernel.levels for kernel in _cells(group)], dtype=np.int64)


def _reading(group: SlotGroup, apart: int) -> dict[str, Any]:
    """How to find what the trees look at in inputs whose neighbouring coordinates are `apart`."""
    view = np.array(active_coordinates(group.kernels[0][0], group.dimension), dtype=np.int64)
    steps = np.diff(view) if len(view) > 1 else np.ones(1, dtype=np.int64)
    even = bool((steps == steps[0]).all())
    return {
        "dimension": len(view),
        "start": view[0] * apart,
        "stride": steps[0] * apart if even else 0,
        "offsets": (view - view[0]) * apart,
    }
