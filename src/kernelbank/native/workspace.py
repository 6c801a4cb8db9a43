"""The workspace: the arrays of one block of samples that the phases of a bank share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..utils.validation import Floats

if TYPE_CHECKING:
    from ..losses.objective import Objective

SLIDE_PERIOD = 256
"""Samples between two slides of the sliding tables.

Every position in a table follows from the sample's absolute number and this length, so a state
needs no offsets, and blocks that end where they like leave the same memory behind.
"""


EXTRA = 3
"""Sums that travel with a mixture: norms, losses, effects of truncation."""

CHARGED = 6
"""Figures of a sample: prediction, cost, loss, gap, cumulative cost, regret."""


@dataclass(frozen=True)
class Evidence:
    """What the slots hand over for a block of n samples and P slots; all that a combiner sees.

    All arrays are (n, P). A slot that has become non-finite has infinite losses and costs from
    then on, and curvature 0. The arrays may be read only, and only until the block is done.
    """

    first: int
    """Number of the block's first sample, counted from 0."""
    curvature: Floats
    """a_p: regularization / 2 * norm^2 after each sample."""
    window_loss: Floats
    """b_p: loss on the window after each sample is learned."""
    slot_cost: Floats
    """What the environment charges the slot alone, before it learns the sample."""
    slot_loss: Floats
    """Loss of the slot's prediction of the sample."""
    slot_predictions: Floats
    """f_p(x) before the sample is learned."""
    targets: Floats
    """The window's targets before the block (window - 1 of them), then those of the block."""
    values: Floats
    """(n, window, P): f_p on the window after each sample, if the combiner asked for it."""


class Workspace:
    """Arrays of one block that the phases of a bank share: made once, never moved.

    `size` is the longest block. Rows beyond a shorter block's count hold old figures. `slots` and
    `leaves` are those of the bank, or of a shard that has a workspace of its own. `workers` is how many
    threads may share the driver's work.
    """

    def __init__(
        self,
        objective: Objective,
        size: int,
        dimension: int,
        slots: int,
        leaves: int,
        *,
        values: bool,
        workers: int,
    ) -> None:
        self.size = size
        self.slots = slots
        self.workers = workers
        self.points = np.zeros((size, dimension))
        self.new_targets = np.zeros(size)
        self.recent = np.zeros(objective.window - 1 + size)
        self.curvature = np.zeros((size, slots))
        self.window_loss = np.zeros((size, slots))
        self.slot_cost = np.zeros((size, slots))
        self.slot_loss = np.zeros((size, slots))
        self.slot_predictions = np.zeros((size, slots))
        self.values = np.zeros((size if values else 0, objective.window, slots))
        self.chosen = np.zeros((size, slots))
        self.proposed = np.zeros((size, slots))
        self.sums = np.zeros((leaves, size, objective.window + EXTRA))
        self.best = np.zeros(size)  # the least cumulative cost of a slot, after each sample
        self.charged = np.zeros((size, CHARGED))
        self.query_point = np.zeros(dimension)
        self.slot_values = np.zeros(slots)
        self.heard = np.zeros(size)  # 1 where `said` holds what slots said when they were asked
        self.said = np.zeros((size, slots))

    def evidence(self, first: int, count: int) -> Evidence:
        """The evidence of a block that has been learned."""
        arrays = (
            self.curvature[:count],
            self.window_loss[:count],
            self.slot_cost[:count],
            self.slot_loss[:count],
            self.slot_predictions[:count],
            self.recent[: len(self.recent) - self.size + count],
            self.values[:count],
        )
        for array in arrays:
            array.flags.writeable = False
        return Evidence(first, *arrays)
