"""The workspace: the arrays of one block of samples that the phases of a bank share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..combiners.base import Evidence
    from ..losses.objective import Objective

SLIDE_PERIOD = 256
"""Samples between two slides of the buffers that hold the newest samples.

Every position in such a buffer follows from the absolute sample number and this period. So a state
needs no offsets, and blocks of any lengths leave the same memory behind.
"""

EXTRA_SUMS = 3
"""Sums beside the combined values on the window: norms, losses, effects of truncation."""

SAMPLE_METRICS = 6
"""Metrics of a sample: prediction, cost, loss, gap, cumulative cost, regret."""


class Workspace:
    """The arrays of one block that the phases of a bank share. They are made once and never move.

    `size` is the longest block. Rows beyond the count of a shorter block hold old values. `slots`
    and `leaves` are the numbers of slots and leaves of the bank, or of the shard that owns the
    workspace. `workers` is the number of threads that may share the combiner's work.
    """

    def __init__(
        self,
        objective: Objective,
        size: int,
        dimension: int,
        slots: int,
        leaves: int,
        *,
        needs: frozenset[str],
        workers: int,
        outputs: int = 1,
        output: int = 0,
        leader: Workspace | None = None,
    ) -> None:
        """`needs`: the extra evidence that the combiner reads (see `Combiner.needs`).

        outputs : of the bank. output : which of them this is. leader : the workspace of the first
        output, for one of the others: inputs are shared.
        """
        self.size = size
        self.outputs = outputs
        self.output = output
        self.leads = leader is None
        self.slots = slots
        self.needs = needs
        self.workers = workers
        # the block's samples, and the targets of the window before each of them
        self.points = np.zeros((size, dimension)) if leader is None else leader.points
        self.new_targets = np.zeros(size)
        self.recent = np.zeros(objective.window - 1 + size)
        # the evidence of the slots
        self.curvature = np.zeros((size, slots))
        self.window_loss = np.zeros((size, slots))
        self.slot_cost = np.zeros((size, slots))
        self.slot_loss = np.zeros((size, slots))
        self.slot_predictions = np.zeros((size, slots))
        self.values = np.zeros((size if "values" in needs else 0, objective.window, slots))
        # the combiner's weights after each sample, and those that the prediction used
        self.chosen = np.zeros((size, slots))
        self.proposed = np.zeros((size, slots))
        # for rules by gradient steps: the largest rate over the largest stable one, and that rate
        self.combiner_step = np.zeros(2)
        # the cost of the bank
        self.sums = np.zeros((leaves, size, objective.window + EXTRA_SUMS))
        self.best = np.zeros(size)  # the least cumulative cost of a slot, after each sample
        self.sample_metrics = np.zeros((size, SAMPLE_METRICS))
        # a prediction at one point, without learning
        self.query_point = np.zeros(dimension) if leader is None else leader.query_point
        self.slot_values = np.zeros(slots)
        # predictions made earlier, for targets that come late: used where the flag is 1
        self.has_past_predictions = np.zeros(size)
        self.past_predictions = np.zeros((size, slots))

    @property
    def is_followed(self) -> bool:
        """Whether other outputs use what slots compute here from the inputs alone."""
        return self.leads and self.outputs > 1

    def evidence(self, first: int, count: int) -> Evidence:
        """The evidence of a block that has been learned."""
        from ..combiners.base import Evidence

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


def __getattr__(name: str) -> Any:
    if name == "Evidence":  # it has moved
        from ..combiners.base import Evidence

        return Evidence
    raise AttributeError(name)
