"""The last rows of a stream, from which banks that are new learn again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..utils.validation import Floats


class Kept:
    """The last `size` rows, as long as something may start from them: until row number `until`.

    The row of number n stands at n % size, so that how many rows there were, which the desk knows,
    tells where each of them is.
    """

    def __init__(self, size: int, dimension: int, lags: int, until: float) -> None:
        self.size = size
        self.until = until
        self.inputs = np.zeros((size, dimension))
        self.lagged = np.zeros((size, lags))
        self.targets = np.zeros(size)
        self.asked = np.zeros(size)
        """After how many rows each was asked for: before its own number, if its target was late."""

    def keep(self, rows: int, X: Floats, lagged: Floats, targets: Floats, asked: Any) -> None:
        """Keep the last of these, which were the last of so many rows."""
        if rows - len(X) >= self.until:
            return
        X, lagged, targets = X[-self.size :], lagged[-self.size :], targets[-self.size :]
        places = (rows - len(X) + np.arange(len(X))) % self.size
        self.inputs[places] = X
        self.lagged[places] = lagged
        self.targets[places] = targets
        self.asked[places] = np.asarray(asked)[-self.size :]

    def latest(self, rows: int) -> tuple[Floats, Floats, Floats]:
        """The rows kept after so many, the oldest first: inputs, lagged targets, targets."""
        places = self._numbers(rows) % self.size
        return self.inputs[places], self.lagged[places], self.targets[places]

    def replay(
        self, rows: int, bank: KernelBank, inputs: Floats, targets: Floats, chosen: Any = None
    ) -> None:
        """Let a new bank learn the rows kept after so many, or the chosen ones, as they came.

        `inputs` and `targets` are those of the chosen rows, as the bank sees them. A target that
        came late is judged by what was said when its row was asked for.
        """
        numbers = self._numbers(rows)
        asked = self.asked[numbers % self.size]
        places = np.arange(len(numbers)) if chosen is None else np.asarray(chosen, dtype=np.int64)
        if (asked[places] >= numbers[places]).all():
            if len(inputs):
                bank.run(inputs, targets, record="light")
            return
        said: dict[int, Floats] = {}
        for turn, place in enumerate(places):
            for later in range(turn + 1, len(places)):
                if later not in said and asked[places[later]] <= numbers[place]:
                    said[later] = bank.predict_slots_one(inputs[later])[1]
            bank.learn_one(inputs[turn], float(targets[turn]), said.pop(turn, None))

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        return {
            "kept_inputs": self.inputs,
            "kept_lagged": self.lagged,
            "kept_targets": self.targets,
            "kept_asked": self.asked,
        }

    def _numbers(self, rows: int) -> np.ndarray:
        count = min(rows, self.size)
        return rows - count + np.arange(count)
