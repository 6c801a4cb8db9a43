"""What all parts of a game agree on: window, regularisation, loss, and the length of a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._hot.lanes import WIDTH
from ._validate import Floats
from .losses import Loss

PAGE = 256
"""Samples between two slides of the sliding tables.

Every position in a table follows from the sample's absolute number and this length, so a state
needs no offsets, and blocks that end where they like leave the same memory behind.
"""


@dataclass(frozen=True)
class Setting:
    """The rules of one game."""

    loss: Loss
    window: int
    regularization: float

    @property
    def half_regularization(self) -> float:
        return 0.5 * self.regularization


@dataclass
class Samples:
    """The last inputs and targets, as sliding tables that all slots of a shard read.

    inputs[k, position] is coordinate k; targets[position] the target in all four lanes. Sample
    number n stands at position reach + n % PAGE.
    """

    reach: int
    inputs: Floats
    targets: Floats

    @classmethod
    def start(cls, reach: int, first: Floats) -> Samples:
        """Tables filled with the first input: terms that do not exist need finite kernel values."""
        inputs = np.repeat(first[:, None], reach + PAGE, axis=1)
        return cls(reach, inputs, np.zeros((reach + PAGE, WIDTH)))

    def add(self, first: int, X: Floats, y: Floats) -> int:
        """Write samples first, first + 1, ... of one page; return the position of the first."""
        offset = first % PAGE
        if first > 0 and offset == 0:
            self.inputs[:, : self.reach] = self.inputs[:, PAGE:].copy()
            self.targets[: self.reach] = self.targets[PAGE:].copy()
        position = self.reach + offset
        self.inputs[:, position : position + len(X)] = X.T
        self.targets[position : position + len(X)] = y[:, None]
        return position

    def next_start(self, seen: int) -> int:
        """Where the last `reach` samples start, once `seen` have been added."""
        return 0 if seen == 0 else (seen - 1) % PAGE + 1


@dataclass
class Block:
    """Some samples of one page, as a learner gets them."""

    first: int
    points: Floats
    position: int
    samples: Samples
    statistics: Floats
    repeated: np.ndarray

    @property
    def count(self) -> int:
        return len(self.points)


@dataclass
class Evidence:
    """What the slots hand over for a block of n samples and P slots; all that a combiner sees.

    All arrays are (n, P). A slot that has become non-finite has infinite losses and costs from
    then on, and curvature 0.
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
    values: Floats | None = None
    """(n, window, P): f_p on the window after each sample, if the combiner asked for it."""

    @classmethod
    def empty(cls, first: int, count: int, slots: int, targets: Floats) -> Evidence:
        a, b, cost, loss, predictions = np.empty((5, count, slots))
        return cls(first, a, b, cost, loss, predictions, targets)
