"""The newest rows of a stream, from which new banks learn again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...utils.validation import Floats

REPLAY = 512
"""How many of the newest rows are kept for outputs and slots that start later."""


class ReplayBuffer:
    """The newest `size` rows, kept as long as a bank may start from them: up to row `until`.

    Row number n is at index n % size. So the number of rows learned so far, which the caller knows,
    gives the index of each row.
    """

    def __init__(
        self, size: int, dimension: int, lags: int, until: float = np.inf, outputs: int = 1
    ) -> None:
        self.size = size
        self.until = until
        self.inputs = np.zeros((size, dimension))
        self.lagged = np.zeros((size, lags))
        self.targets = np.zeros(size) if outputs == 1 else np.zeros((size, outputs))
        self.predicted_at = np.zeros(size)
        """How many rows were learned when each was predicted: fewer than its number if its target
        was delayed."""

    def append(
        self, rows: int, X: Floats, lagged: Floats, targets: Floats, predicted_at: Any
    ) -> None:
        """Add the newest rows of a stream of `rows` rows."""
        if rows - len(X) >= self.until:
            return
        X, lagged, targets = X[-self.size :], lagged[-self.size :], targets[-self.size :]
        index = (rows - len(X) + np.arange(len(X))) % self.size
        self.inputs[index] = X
        self.lagged[index] = lagged
        self.targets[index] = targets
        self.predicted_at[index] = np.asarray(predicted_at)[-self.size :]

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs, which were missing so far."""
        self.inputs = with_missing(self.inputs, count)

    def latest(self, rows: int) -> tuple[Floats, Floats, Floats]:
        """Inputs, lagged targets and targets, the oldest first, after `rows` rows."""
        index = self.numbers(rows)[0] % self.size
        return self.inputs[index], self.lagged[index], self.targets[index]

    def replay(
        self, rows: int, bank: KernelBank, inputs: Floats, targets: Floats, chosen: Any = None
    ) -> None:
        """Let a new bank learn the rows of `latest(rows)`, in the order of predictions and targets.

        A row with a delayed target is judged by the slots' predictions of the moment at which it
        was predicted.

        Parameters
        ----------
        inputs, targets : of the chosen rows, scaled for the bank; targets (n,), or (n, K) for K
            outputs.
        chosen : indices into `latest(rows)`; all of them by default.
        """
        numbers, predicted_at = self.numbers(rows)
        index = np.arange(len(numbers)) if chosen is None else np.asarray(chosen, dtype=np.int64)
        if (predicted_at[index] >= numbers[index]).all():  # no target was delayed
            if len(inputs):
                bank.run(inputs, targets, record="light")
            return
        past: dict[int, Floats] = {}
        for turn, row in enumerate(index):
            for later in range(turn + 1, len(index)):
                if later not in past and predicted_at[index[later]] <= numbers[row]:
                    past[later] = bank.predict_slots_one(inputs[later])[1]
            bank.learn_one(inputs[turn], targets[turn], past.pop(turn, None))

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        return {
            "replay_inputs": self.inputs,
            "replay_lagged": self.lagged,
            "replay_targets": self.targets,
            "replay_predicted_at": self.predicted_at,
        }

    def numbers(self, rows: int) -> tuple[np.ndarray, Floats]:
        """The numbers of the rows of `latest(rows)`, and how many were learned before each."""
        count = min(rows, self.size)
        numbers = rows - count + np.arange(count)
        return numbers, self.predicted_at[numbers % self.size]


def with_missing(rows: Floats, count: int) -> Floats:
    """Rows with `count` more columns, in which everything is missing (NaN)."""
    return np.hstack([rows, np.full((len(rows), count), np.nan)])
