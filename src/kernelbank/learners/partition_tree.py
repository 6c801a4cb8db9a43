"""PartitionTree: an exact online Gaussian process on nested cells.

One slot per leaf of the bank, so only the first of four lanes is used. The messages between cells
are in `tree_inference`, how the tree grows is in `tree_split`.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels import Kernel, TreeKernel
from ..kernels.base import CoreSpec
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..kernels.sample_buffer import USED, SampleBuffer
from ..losses import Logistic, Squared
from ..losses.objective import Objective
from ..native.arguments import floats, ints, lanes
from ..native.formulas import call_loss
from ..native.functions import native
from ..native.hash_rng import mix_key
from ..native.phases import Phase
from ..native.simd import WIDTH, lane
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup
from .feature_steps import curvature_above, curvature_along
from .tree_inference import CELL_SIZE, TREE, descend, squared_norm
from .tree_split import COUNTERS, ENTRY_EXTRA, GROWING, learn_sample

LEARN = GROWING.extended(
    "tree_learn",
    steps=int,  # longest block + 1
    window=int,
    slide_period=int,
    history_length=int,
    noise=float,
    seed=int,
    identities=ints("leaves", WIDTH),  # of the slot, in the first lane
    squared=int,  # 1 for the squared loss
    curvature_bound=float,  # of the loss; 0 for the logistic one, whose curvature is taken at f
    derivative=int,  # address of the loss's derivative
    parameters=floats(None),  # of the loss
    targets=lanes("history_length + slide_period"),
    scratch=lanes(3),  # a prediction, its target and slope of the loss
    memo=ints(3),  # of the last query, see `SampleBuffer`
    memo_paths=ints("leaves", "max_levels"),  # the cells of the last query,
    memo_depths=ints("leaves"),  # their numbers,
    memo_values=floats("leaves"),  # and f there
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
)
QUERY = TREE.extended(
    "tree_query",
    memo_paths=ints("leaves", "max_levels"),
    memo_depths=ints("leaves"),
    memo_values=floats("leaves"),
    query_values=lanes("leaves"),
)
POINTS = TREE.extended(
    "tree_points",
    wanted=ints("leaves"),
    out=lanes("leaves", None),
)


@dataclass(frozen=True)
class PartitionTree(Learner):
    """A Gaussian process whose kernel is a tree of cells that grows with the stream.

        f(x) = sum over the cells c that contain x of g_c,  g_c ~ N(0, v_level),  v from TreeKernel
        y = f(x) + a normal error of variance `noise`

    The estimate is the posterior mean, which also minimises, over all values of the cells,

        sum_i (f(x_i) - y_i)^2 + noise * sum_c g_c^2 / v_level,

    and the second sum is norm^2. Both are exact after every sample, by messages between the cells
    on one path: no matrix, no step size, no drift. With another loss a sample is a square
    around its working response f - l' / c when it is learned, where c bounds the loss's curvature:
    tanh(f / 2) / 2 f for the logistic loss, else as in `KRLS`. It counts c / 2 as much as one
    of the squared loss.

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

    Cost per step and slot: O(levels * (window + 1)), `split_after` comparisons of inputs, and
    rarely, for a split, O(split_after * inputs + nodes). Memory: at most
    nodes * (18 + split_after * (inputs + 4) / 2) numbers, whatever the length of the stream. With
    the kernel ActiveDims(TreeKernel(...), coordinates) only these inputs count.

    Parameters
    ----------
    nodes : most cells of a tree; a binary tree has an odd number of them.
    split_after : samples, at least 2, after which a leaf is split, if two of their inputs differ.
    noise : variance of the error, positive, in squared units of the target.
    seed : whole number from which the random splits follow, with the slot's number: its
        index in the bank that it began in, counting on for slots that are added later.

    It works with `kb.kernels.TreeKernel`, also inside `ActiveDims`, and with losses of
    bounded curvature.

    Reference: Willsky, Multiresolution Markov models for signal and image processing, Proceedings
    of the IEEE 90 (2002), for the messages; Geurts, Ernst and Wehenkel, Extremely randomized trees,
    Machine Learning 63 (2006), for the splits.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.random.default_rng(0).uniform(0, 1, 500)
    >>> cells = kb.kernels.TreeKernel(decay=0.7, levels=8)
    >>> bank = kb.KernelBank([cells], kb.learners.PartitionTree(noise=0.01))
    >>> trace = bank.run(x, np.where(x < 0.3, -1.0, 1.0))
    >>> bank.predict([0.1, 0.8]).round(1).tolist()
    [-1.0, 1.0]
    """

    core_name: ClassVar[str] = "PartitionTree"
    nodes: int = 1023
    split_after: int = 20
    noise: float = 0.1
    seed: int = 0
    pack_width: ClassVar[int] = 1
    accepts_new_inputs: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = True
    uses_kernel_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        seed = "Give a whole number below 2**63; another one draws other cells."
        split_after = "Give how many samples a cell gathers before it is split, such as 20."
        noise = "Give the variance of the targets' error, in their squared units."
        check.settings(
            self,
            nodes=check.whole("Give how many cells to keep."),
            split_after=check.whole(split_after, least=2),
            noise=lambda name, value, owner: check.scale(name, value, owner, noise),
            seed=check.whole(seed, least=0, most=2**63 - 1),
        )

    def check(self, objective: Objective) -> None:
        if not objective.loss.curvature:
            raise check.refuse(
                "loss",
                "have a bounded curvature",
                objective.loss,
                'Use "squared", "logistic" or "huber", a loss with smoothing, a learner for every '
                "loss, such as kb.learners.Norma, or let the tree learn by squares all the same: "
                'kb.Slot(..., loss="squared").',
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
        entries = (leaves, (self.nodes + 1) // 2, seen + ENTRY_EXTRA, self.split_after)
        return {
            "cells": (leaves, self.nodes, CELL_SIZE),
            "entries": entries,
            "counters": (leaves, COUNTERS),
        }

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        super().extend_inputs(
            {name: array for name, array in old.items() if name != "entries"}, new
        )
        seen = old["entries"].shape[2] - ENTRY_EXTRA
        new["entries"][:, :, :seen] = old["entries"][:, :, :seen]
        new["entries"][:, :, -ENTRY_EXTRA:] = old["entries"][:, :, -ENTRY_EXTRA:]

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, Any]:
        tree: Any = without_active_dims(kernels[0])
        return super().core_settings(kernels, dimension, identity) | {
            "coordinates": np.array(active_coordinates(kernels[0], dimension), dtype=float),
            "variances": np.array(tree.variances()),
            "seed_parts": np.array([self.seed >> 32, self.seed & 0xFFFFFFFF], dtype=float),
            "identity": float(identity),
        }

    def core_kernels(self, kernels: Sequence[Kernel], dimension: int) -> list[CoreSpec]:
        return []  # its variances are all that the cells need

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        objective = group.objective
        logistic = isinstance(objective.loss, Logistic)
        tree = _tree(group, buffer.inputs)
        variances = np.zeros((group.leaves, tree["max_levels"]))
        for leaf, kernel in enumerate(_kernels(group)):
            variances[leaf, : kernel.levels] = kernel.variances()
        learn = Phase(
            learn_block,
            **group.common() | tree | group.state,
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            capacity=self.split_after,
            variances=variances,
            noise=self.noise,
            seed=self.seed,
            identities=group.identities,
            squared=isinstance(objective.loss, Squared),
            curvature_bound=0.0 if logistic else objective.loss.curvature,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            targets=buffer.targets,
            other_path=np.zeros_like(tree["path"]),
            scratch=np.zeros((3, WIDTH)),
            memo=buffer.memo,
            **_memo(group, tree["max_levels"]),
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        tree = _tree(group, workspace.query_point[:, None])
        memo = _memo(group, tree["max_levels"])
        return [Phase(predict_query, **tree, **memo, query_values=group.query_values)]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        predict_points(
            len(points),
            **_tree(group, np.ascontiguousarray(points.T)),
            wanted=wanted.astype(np.int64),
            out=out,
        )
        return out


def _kernels(group: SlotGroup) -> list[TreeKernel]:
    """The kernel of every leaf, without `ActiveDims` around it."""
    bases = [without_active_dims(kernel) for (kernel,) in group.kernels]
    return [base for base in bases if isinstance(base, TreeKernel)]


def _memo(group: SlotGroup, max_levels: int) -> dict[str, Any]:
    """What is kept of the last query, shared by the phases that write and read it."""
    shapes = {"memo_paths": (group.leaves, max_levels), "memo_depths": (group.leaves,)}
    made: dict[str, Any] = {name: np.zeros(s, dtype=np.int64) for name, s in shapes.items()}
    made["memo_values"] = np.zeros(group.leaves)
    return {name: group.scratch.setdefault(name, array) for name, array in made.items()}


def _tree(group: SlotGroup, inputs: Floats) -> dict[str, Any]:
    """The values of TREE; inputs: (dimension of the bank, positions)."""
    active = np.array(active_coordinates(group.kernels[0][0], group.dimension), dtype=np.int64)
    levels = np.array([kernel.levels for kernel in _kernels(group)], dtype=np.int64)
    cells = group.state["cells"]
    return {
        "leaves": group.leaves,
        "dimension": len(active),
        "active": active,
        "inputs": inputs,
        "max_cells": cells.shape[1],
        "cells": cells,
        "max_levels": int(levels.max()),
        "levels": levels,
        "path": np.zeros(int(levels.max()), dtype=np.int64),
    }


# --- compiled -------------------------------------------------------------------------------------


@native(LEARN)
def learn_block(a, first, count):
    """Run every tree through samples first .. first + count - 1, which lie in one slide period."""
    window = a.window
    for leaf in range(a.leaves):
        key = mix_key(mix_key(np.uint64(0), a.seed), a.identities[leaf, 0])
        for t in range(count):
            position = a.history_length + first % a.slide_period + t
            # Predict: f(x), and the cells of x.
            if a.memo[USED] == 1:  # a block of one, just predicted
                depth, prediction = a.memo_depths[leaf], a.memo_values[leaf]
                for level in range(depth):
                    a.path[level] = a.memo_paths[leaf, level]
            else:
                depth, prediction = descend(a, leaf, position)
            a.predictions[leaf, t] = prediction

            # The loss as a square around the working response, with half its curvature as weight.
            target = lane(a.targets[position], 0)
            missing = np.isnan(target)
            precision = 1.0 / a.noise
            if a.squared == 0 and not missing:
                a.scratch[0] = prediction
                rows = a.scratch
                call_loss(a.derivative, rows, a.targets[position:], 1, a.parameters, rows[2:])
                slope = lane(rows[2], 0)
                if a.curvature_bound == 0.0:
                    curvature = curvature_above(prediction)
                else:
                    curvature = curvature_along(
                        a.derivative,
                        a.parameters,
                        a.curvature_bound,
                        prediction,
                        target,
                        slope,
                        rows,
                    )
                target = prediction - slope / curvature
                precision = 0.5 * curvature / a.noise

            # Learn, perhaps with a split; a sample without a target changes nothing.
            if not missing:
                learn_sample(a, leaf, depth, position, precision, target, first + t, key)

            # Values of f on the window, oldest first; 0 before the first sample.
            for age in range(window):
                value = 0.0
                if age <= first + t:
                    _, value = descend(a, leaf, position - age)
                a.values[leaf, t + 1, window - 1 - age] = value
            a.norms[leaf, t + 1] = squared_norm(a.cells[leaf])


@native(QUERY)
def predict_query(a, first, count):
    """query_values[leaf] = f at inputs[:, 0]; the cells on its path are kept."""
    for leaf in range(a.leaves):
        depth, value = descend(a, leaf, 0)
        a.query_values[leaf] = value
        a.memo_depths[leaf], a.memo_values[leaf] = depth, value
        for level in range(depth):
            a.memo_paths[leaf, level] = a.path[level]


@native(POINTS)
def predict_points(a, first, count):
    """out[leaf, t] = f at inputs[:, t], t < count, for leaves with wanted[leaf]; changes nothing.

    Only the scratch `path` is written besides.
    """
    for leaf in range(a.leaves):
        if a.wanted[leaf] == 0:
            continue
        for t in range(count):
            _, value = descend(a, leaf, t)
            a.out[leaf, t] = value
