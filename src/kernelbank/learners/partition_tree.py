"""PartitionTree: an exact online Gaussian process on nested cells.

One slot per leaf of the bank, so only the first of four lanes is used. The messages between cells
are in `tree_inference`, how the tree grows is in `tree_split`.
"""

# mypy: disable-error-code="no-untyped-def"
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
from ..native.formulas import call_loss, int_pointer, pointer
from ..native.hash_rng import mix_key
from ..native.phases import (
    Phase,
    Phases,
    argument_fields,
    compiled,
    float_array,
    int_array,
    read_float,
    read_int,
)
from ..native.simd import WIDTH, store
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup
from .feature_learner import curvature_above
from .tree_inference import CELL_SIZE, descend, squared_norm
from .tree_split import ENTRY_EXTRA, learn_sample

COUNTERS = 2

LEARN_FIELDS = argument_fields(
    "leaves",
    "steps",  # longest block + 1
    "window",
    "slide_period",
    "history_length",
    "dimension",  # number of active coordinates
    "start",  # of the first active coordinate of an input
    "stride",  # between active coordinates, or 0
    "offsets",  # (dimension,): where active coordinates are if stride is 0
    "max_cells",
    "capacity",  # samples of a leaf before it is split
    "max_levels",
    "levels",  # (leaves,)
    "variances",  # (leaves, max_levels)
    "noise",
    "seed",
    "columns",  # (leaves, 4): index of the slot
    "squared",  # 1 for the squared loss
    "derivative",  # address of the loss's derivative
    "parameters",  # of the loss
    "inputs",  # (width, history_length + slide_period)
    "targets",  # (history_length + slide_period, 4)
    "paths",  # (2, max_levels): scratch
    "scratch",  # (2, 4)
    "cells",  # (leaves, max_cells, CELL_SIZE)
    "entries",  # (leaves, (max_cells + 1) // 2, capacity, dimension + ENTRY_EXTRA)
    "counters",  # (leaves, 2)
    "values",  # (leaves, steps, window, 4)
    "norms",  # (leaves, steps, 4)
    "predictions",  # (leaves, steps - 1, 4)
)
POINTS_FIELDS = argument_fields(
    "leaves",
    "width",
    "dimension",
    "start",
    "stride",
    "offsets",
    "max_cells",
    "levels",
    "paths",
    "cells",
    "wanted",  # (leaves,)
    "points",  # (point_count, width)
    "point_count",
    "out",  # (leaves, point_count, 4)
)


@dataclass(frozen=True)
class PartitionTree(Learner):
    """A Gaussian process whose kernel is a tree of cells that grows with the stream.

        f(x) = sum over the cells c that contain x of g_c,  g_c ~ N(0, v_level),  v from TreeKernel
        y = f(x) + a normal error of variance `noise`

    The estimate is the posterior mean, which also minimises, over all values of the cells,

        sum_i (f(x_i) - y_i)^2 + noise * sum_c g_c^2 / v_level,

    and the second sum is norm^2. Both are exact after every sample, by messages between the cells
    on one path: no matrix, no step size, no drift. With the logistic loss a sample is a square
    around its working response f - l' / c, where c = tanh(f / 2) / 2 f bounds the loss's curvature
    when the sample is learned; it counts c / 2 as much as one of the squared loss.

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
    seed : whole number from which the random splits follow, with the slot's index in the bank.

    It works with `kb.kernels.TreeKernel`, also inside `ActiveDims`, and with the squared and the
    logistic loss only.

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

    nodes: int = 1023
    split_after: int = 20
    noise: float = 0.1
    seed: int = 0
    leaf_width: ClassVar[int] = 1
    accepts_new_inputs: ClassVar[bool] = True
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
        if not isinstance(objective.loss, (Squared, Logistic)):
            raise check.refuse(
                "loss",
                "be Squared or Logistic, whose curvature is known",
                objective.loss,
                "Use one of these, a learner for every loss, such as kb.learners.Norma, or let the "
                'tree learn by squares all the same: kb.Slot(..., loss="squared").',
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
        entries = (leaves, (self.nodes + 1) // 2, self.split_after, seen + ENTRY_EXTRA)
        return {
            "cells": (leaves, self.nodes, CELL_SIZE),
            "entries": entries,
            "counters": (leaves, COUNTERS),
        }

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        super().extend_inputs(
            {name: array for name, array in old.items() if name != "entries"}, new
        )
        seen = old["entries"].shape[-1] - ENTRY_EXTRA
        new["entries"][..., :seen] = old["entries"][..., :seen]
        new["entries"][..., -ENTRY_EXTRA:] = old["entries"][..., -ENTRY_EXTRA:]

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        objective = group.objective
        levels = _levels(group)
        max_levels = int(levels.max())
        variances = np.zeros((group.leaves, max_levels))
        for leaf, kernel in enumerate(_kernels(group)):
            variances[leaf, : kernel.levels] = kernel.variances()
        learn = Phase(
            compiled(learn_block),
            LEARN_FIELDS,
            **group.common(),
            **group.state,
            **_coordinates(group, buffer.history_length + SLIDE_PERIOD),
            slide_period=SLIDE_PERIOD,
            history_length=buffer.history_length,
            max_cells=self.nodes,
            capacity=self.split_after,
            max_levels=max_levels,
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
            paths=np.zeros((2, max_levels), dtype=np.int64),
            scratch=np.zeros((2, WIDTH)),
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        everyone = np.ones(group.leaves, dtype=np.int64)
        return [
            self._predict_phase(group, workspace.query_point[None, :], everyone, group.query_values)
        ]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        chosen = wanted.astype(np.int64)
        Phases([self._predict_phase(group, points, chosen, out)]).run(seen, len(points))
        return out

    def _predict_phase(
        self, group: SlotGroup, points: Floats, wanted: np.ndarray, out: Any
    ) -> Phase:
        """The phase that writes f at the points, for the wanted leaves."""
        levels = _levels(group)
        return Phase(
            compiled(predict_points),
            POINTS_FIELDS,
            **_coordinates(group, 1),
            leaves=group.leaves,
            width=points.shape[1],
            max_cells=self.nodes,
            levels=levels,
            paths=np.zeros(int(levels.max()), dtype=np.int64),
            cells=group.state["cells"],
            wanted=wanted,
            points=points,
            point_count=len(points),
            out=out,
        )


def _kernels(group: SlotGroup) -> list[TreeKernel]:
    """The kernel of every leaf, without `ActiveDims` around it."""
    bases = [without_active_dims(kernel) for (kernel,) in group.kernels]
    return [base for base in bases if isinstance(base, TreeKernel)]


def _levels(group: SlotGroup) -> np.ndarray:
    """(leaves,): the levels of each leaf's kernel."""
    return np.array([kernel.levels for kernel in _kernels(group)], dtype=np.int64)


def _coordinates(group: SlotGroup, apart: int) -> dict[str, Any]:
    """How to find the active coordinates of inputs whose coordinates are `apart` in memory."""
    active = np.array(active_coordinates(group.kernels[0][0], group.dimension), dtype=np.int64)
    steps = np.diff(active) if len(active) > 1 else np.ones(1, dtype=np.int64)
    even = bool((steps == steps[0]).all())
    return {
        "dimension": len(active),
        "start": active[0] * apart,
        "stride": steps[0] * apart if even else 0,
        "offsets": (active - active[0]) * apart,
    }


# --- compiled -------------------------------------------------------------------------------------


def learn_block(args, first, count):
    """Run every tree through samples first .. first + count - 1, which lie in one slide period."""
    steps = read_int(args, LEARN_FIELDS.steps)
    window = read_int(args, LEARN_FIELDS.window)
    history_length = read_int(args, LEARN_FIELDS.history_length)
    slide_period = read_int(args, LEARN_FIELDS.slide_period)
    dimension = read_int(args, LEARN_FIELDS.dimension)
    max_cells = read_int(args, LEARN_FIELDS.max_cells)
    capacity = read_int(args, LEARN_FIELDS.capacity)
    max_levels = read_int(args, LEARN_FIELDS.max_levels)
    noise = read_float(args, LEARN_FIELDS.noise)
    inputs = pointer(float_array(args, LEARN_FIELDS.inputs), read_int(args, LEARN_FIELDS.start))
    targets = float_array(args, LEARN_FIELDS.targets)
    path = int_array(args, LEARN_FIELDS.paths)
    other_path = int_pointer(path, max_levels)
    scratch = float_array(args, LEARN_FIELDS.scratch)
    slope = pointer(scratch, WIDTH)
    values = float_array(args, LEARN_FIELDS.values)
    stride = read_int(args, LEARN_FIELDS.stride)
    offsets = int_array(args, LEARN_FIELDS.offsets)
    position = history_length + first % slide_period
    entries_size = (max_cells + 1) // 2 * capacity * (dimension + ENTRY_EXTRA)  # of a tree
    for leaf in range(read_int(args, LEARN_FIELDS.leaves)):
        cells = pointer(float_array(args, LEARN_FIELDS.cells), leaf * max_cells * CELL_SIZE)
        entries = pointer(float_array(args, LEARN_FIELDS.entries), leaf * entries_size)
        counters = pointer(float_array(args, LEARN_FIELDS.counters), leaf * COUNTERS)
        variances = pointer(float_array(args, LEARN_FIELDS.variances), leaf * max_levels)
        levels = int_array(args, LEARN_FIELDS.levels)[leaf]
        column = int_array(args, LEARN_FIELDS.columns)[leaf * WIDTH]
        key = mix_key(mix_key(np.uint64(0), read_int(args, LEARN_FIELDS.seed)), column)
        for t in range(count):
            point = pointer(inputs, position + t)
            # Predict: f(x), and the cells of x.
            depth, value = descend(
                cells, max_cells, levels, dimension, point, stride, offsets, path
            )
            store(float_array(args, LEARN_FIELDS.predictions), leaf * (steps - 1) + t, value)

            # The loss as a square around the working response, with half its curvature as weight.
            target = targets[(position + t) * WIDTH]
            precision = 1.0 / noise
            if read_int(args, LEARN_FIELDS.squared) == 0:
                store(scratch, 0, value)
                call_loss(
                    read_int(args, LEARN_FIELDS.derivative),
                    scratch,
                    pointer(targets, (position + t) * WIDTH),
                    1,
                    float_array(args, LEARN_FIELDS.parameters),
                    slope,
                )
                curvature = curvature_above(value)
                target = value - slope[0] / curvature
                precision = 0.5 * curvature / noise

            # Learn, perhaps with a split.
            learn_sample(
                cells,
                max_cells,
                counters,
                entries,
                capacity,
                dimension,
                variances,
                levels,
                path,
                depth,
                other_path,
                point,
                stride,
                offsets,
                precision,
                target,
                first + t,
                key,
            )
            # Values of f on the window, oldest first.
            seen = min(first + t + 1, window)
            row = (leaf * steps + t + 1) * window
            for i in range(window):
                value = 0.0
                if i >= window - seen:
                    point = pointer(inputs, position + t - (window - 1 - i))
                    _, value = descend(
                        cells, max_cells, levels, dimension, point, stride, offsets, path
                    )
                store(values, row + i, value)
            store(float_array(args, LEARN_FIELDS.norms), leaf * steps + t + 1, squared_norm(cells))


def predict_points(args, first, count):
    """out[leaf, t] = f at point t < count, for leaves with wanted[leaf]; changes nothing."""
    width = read_int(args, POINTS_FIELDS.width)
    dimension = read_int(args, POINTS_FIELDS.dimension)
    stride = read_int(args, POINTS_FIELDS.stride)
    offsets = int_array(args, POINTS_FIELDS.offsets)
    points = pointer(float_array(args, POINTS_FIELDS.points), read_int(args, POINTS_FIELDS.start))
    max_cells = read_int(args, POINTS_FIELDS.max_cells)
    path = int_array(args, POINTS_FIELDS.paths)
    for leaf in range(read_int(args, POINTS_FIELDS.leaves)):
        if int_array(args, POINTS_FIELDS.wanted)[leaf] == 0:
            continue
        cells = pointer(float_array(args, POINTS_FIELDS.cells), leaf * max_cells * CELL_SIZE)
        levels = int_array(args, POINTS_FIELDS.levels)[leaf]
        for t in range(count):
            point = pointer(points, t * width)
            _, value = descend(cells, max_cells, levels, dimension, point, stride, offsets, path)
            index = leaf * read_int(args, POINTS_FIELDS.point_count) + t
            store(float_array(args, POINTS_FIELDS.out), index, value)
