"""Synthetic evidence, and the weights that a combiner computes from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..combiners import Combiner
from ..combiners.base import State
from ..losses import Loss, Squared
from ..losses.objective import Objective
from ..native.phases import Phases
from ..native.workspace import Workspace
from ..utils.validation import Floats

RIDGE = 0.1


@dataclass(frozen=True)
class SyntheticEvidence:
    """Evidence of n samples and P slots, whose arrays are consistent with each other.

    - targets: (window - 1 + n,), those before the first sample come first
    - values: (n, window, P); the others: (n, P)
    """

    loss: Loss
    targets: Floats
    values: Floats
    predictions: Floats
    curvature: Floats
    window_loss: Floats
    slot_loss: Floats
    slot_cost: Floats

    @property
    def window(self) -> int:
        return self.values.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and slots."""
        return self.slot_loss.shape[0], self.slot_loss.shape[1]

    def with_other_past(self) -> SyntheticEvidence:
        """The same, with other numbers for samples before the first one."""
        targets, values = self.targets.copy(), self.values.copy()
        targets[: self.window - 1] = 1000.0 + 3.0 * np.arange(self.window - 1)
        for t in range(min(self.window - 1, len(values))):
            values[t, : self.window - 1 - t] = -500.0
        return replace(self, targets=targets, values=values)


def synthetic_evidence(
    slots: int, samples: int, *, window: int = 3, size: float = 1.0, out: Sequence[int] = ()
) -> SyntheticEvidence:
    """Slots of different accuracy; slot p is quarantined from sample out[p] on, if there is one."""
    draw = np.random.default_rng([slots, samples])
    loss = Squared()
    targets = size * draw.normal(size=window - 1 + samples)
    recent = np.lib.stride_tricks.sliding_window_view(targets, window)
    noise = np.linspace(0.2, 1.5, slots)
    values = recent[:, :, None] + size * noise * draw.normal(size=(samples, window, slots)) / 2
    predictions = recent[:, -1, None] + size * noise * draw.normal(size=(samples, slots))
    curvature = RIDGE / 2 * size**2 * draw.exponential(size=(samples, slots))
    window_loss = loss.value(values, recent[:, :, None]).sum(axis=1)
    slot_loss = loss.value(predictions, recent[:, -1, None])
    slot_cost = slot_loss + curvature + loss.value(values[:, :-1], recent[:, :-1, None]).sum(axis=1)
    for p, first in enumerate(out):
        values[first:, :, p] = curvature[first:, p] = 0.0
        predictions[first:, p] = np.nan
        for array in (window_loss, slot_loss, slot_cost):
            array[first:, p] = np.inf
    return SyntheticEvidence(
        loss,
        targets,
        values,
        predictions,
        curvature,
        window_loss,
        slot_loss,
        slot_cost,
    )


class CombinerHarness:
    """A combiner with a workspace, as in a bank. `resumed` continues from another one's state."""

    def __init__(
        self,
        combiner: Combiner,
        evidence: SyntheticEvidence,
        resumed: CombinerHarness | None = None,
    ) -> None:
        samples, slots = evidence.shape
        self._evidence = evidence
        self._objective = Objective(evidence.loss, evidence.window, RIDGE)
        self._workspace = Workspace(
            self._objective, samples, 1, slots, 1, needs=combiner.needs, workers=1
        )
        self.combiner = combiner
        self.weights = np.array(combiner.first_weights(slots), dtype=np.float64)
        shapes = combiner.shapes(slots)
        self.state: State = {name: np.zeros(shape) for name, shape in shapes.items()}
        self._done = 0
        if resumed is not None:
            self.weights[...] = resumed.weights
            for name, array in resumed.state.items():
                self.state[name][...] = array
            self._done = resumed._done
        steps = combiner.phases(self._objective, self._workspace, self.state, self.weights)
        self._phases = Phases(steps)

    def run_block(self, until: int) -> Floats:
        """(n, P): the weights after each sample of one block, which ends at that sample."""
        workspace, evidence = self._workspace, self._evidence
        start, count = self._done, until - self._done
        block = slice(start, until)
        workspace.curvature[:count] = evidence.curvature[block]
        workspace.window_loss[:count] = evidence.window_loss[block]
        workspace.slot_loss[:count] = evidence.slot_loss[block]
        workspace.slot_cost[:count] = evidence.slot_cost[block]
        workspace.slot_predictions[:count] = evidence.predictions[block]
        for name in workspace.needs:
            getattr(workspace, name)[:count] = getattr(evidence, name)[block]
        before = evidence.window - 1
        workspace.recent[: before + count] = evidence.targets[start : before + until]
        workspace.new_targets[:count] = evidence.targets[before + start : before + until]
        self._phases.run(start, count)
        for callback in self._phases.callbacks:
            callback.check()
        chosen = workspace.chosen[:count].copy()
        self.weights[:] = chosen[-1]
        self._done = until
        return chosen

    def run(self, cuts: Sequence[int] = ()) -> Floats:
        """(n, P): the weights after each sample, in blocks that end at the cuts."""
        last = self._evidence.shape[0]
        ends = [self._done, *(cut for cut in cuts if self._done < cut < last), last]
        return np.vstack([self.run_block(end) for _, end in pairwise(ends)])
