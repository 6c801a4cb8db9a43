"""Predictions of single rows whose targets have not come."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..errors import FileRefused
from ..utils.validation import Floats
from ..utils.whole_steps import defer_signals
from .config import Arrays, whole_number
from .model import Model

DEFAULT_LIMIT = 1000
"""How many are kept, unless a bank is set to targets that are delayed by more rows."""

LARGEST_LIMIT = 100_001
"""The largest limit that may be set."""


class PendingPredictions:
    """The newest predictions of single rows, the oldest first, by their input.

    Predicting the same input twice before anything is learned counts once.
    """

    def __init__(self) -> None:
        self.items: list[tuple[bytes, _core.Prediction]] = []
        """The bytes of each input, and its prediction. Changed by the methods below only."""
        self.limit = DEFAULT_LIMIT
        self.expired = 0
        """How many, the oldest, were made before the row that was learned last: their targets may
        never come."""

    @property
    def fresh(self) -> int:
        """How many were made after the row that was learned last."""
        return len(self.items) - self.expired

    def waiting_before(self, key: bytes, rows: int) -> int:
        """How many fresh ones are older than that of this input, after so many learned rows."""
        index = self._index(key, rows)
        return self.fresh if index is None else max(index - self.expired, 0)

    def _index(self, key: bytes, rows: int) -> int | None:
        """Where the prediction of this input is, if it was made after so many learned rows."""
        for index in range(len(self.items) - 1, -1, -1):
            other, earlier = self.items[index]
            if earlier.rows_before != rows:
                return None
            if other == key:
                return index
        return None

    def add(self, x: Floats, prediction: _core.Prediction, *, distinct: bool = False) -> None:
        """Keep a prediction; `distinct` if it is a row of its own even where the input is equal."""
        key = x.tobytes()
        index = None if distinct else self._index(key, prediction.rows_before)
        if index is not None:
            self.items[index] = (key, prediction)
            return
        if len(self.items) < self.limit:
            self.append(key, prediction)
            return
        with defer_signals():
            self.append(key, prediction)
            forgotten = len(self.items) - self.limit
            del self.items[:forgotten]
            self.expired = max(self.expired - forgotten, 0)

    def append(self, key: bytes, prediction: _core.Prediction) -> None:
        """Keep the prediction of a row of its own, whatever the limit."""
        self.items.append((key, prediction))

    def clear(self) -> None:
        """Forget all predictions."""
        self.items.clear()
        self.expired = 0

    def add_inputs(self, count: int) -> None:
        """Add `count` columns, which were missing when the predictions were made."""
        missing = np.full(count, np.nan).tobytes()
        self.items = [(key + missing, prediction) for key, prediction in self.items]

    def pop(self, x: Floats) -> _core.Prediction | None:
        """Remove and return the oldest prediction for this input, which is learned now, or None."""
        key = x.tobytes()
        for index, (other, prediction) in enumerate(self.items):
            if other == key:
                del self.items[index]
                self.expired = index
                return prediction
        self.expired = len(self.items)
        return None

    # --- saving ---------------------------------------------------------------------------------

    def arrays(self, model: Model, width: int) -> Arrays:
        """As arrays, filled up with NaN where some had fewer outputs or classes.

        sizes (n, 3): the numbers of scores, of outputs with slot predictions, and of results.

        width : how many numbers an input has.
        """
        predictions = [prediction for _, prediction in self.items]
        results = [np.append(prediction.output, prediction.more) for prediction in predictions]
        outputs = max((len(prediction.scores) for prediction in predictions), default=0)
        most = max(map(len, results), default=0)
        shapes = _shapes(model, len(self.items), width, outputs, most)
        arrays = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
        for i, ((key, prediction), result) in enumerate(zip(self.items, results, strict=True)):
            scores, slots = prediction.scores, prediction.slots
            arrays["rows_before"][i] = prediction.rows_before
            arrays["sizes"][i] = (len(scores), len(slots), len(result))
            arrays["inputs"][i] = np.frombuffer(key)
            arrays["past"][i] = prediction.past
            arrays["ends"][i] = prediction.ends
            for name, values in (("scores", scores), ("slots", slots), ("results", result)):
                arrays[name][i, : len(values)] = values
        return arrays

    def restore(self, arrays: Arrays, expired: object, model: Model, width: int) -> None:
        """Continue, with nothing so far, from what `arrays` returned; `expired` of them are."""
        count, outputs = arrays["scores"].shape
        shapes = _shapes(model, count, width, outputs, arrays["results"].shape[1])
        if (
            {name: array.shape for name, array in arrays.items()} != shapes
            or count > LARGEST_LIMIT
            or outputs > max(model.outputs, model.target_count)
        ):
            raise FileRefused("its pending predictions do not fit its settings.")
        several, more = model.target_count, 2 * len(model.config.quantiles)
        limits = (outputs, outputs, arrays["results"].shape[1])
        for i in range(count):
            scores, slots, output = (
                whole_number(size, 0, most, "a pending prediction")
                for size, most in zip(arrays["sizes"][i], limits, strict=True)
            )
            if model.targets and (output != 3 * several + more or scores != several):
                raise FileRefused("a pending prediction has no value.")
            result = arrays["results"][i, :output]
            prediction = _core.Prediction(
                whole_number(arrays["rows_before"][i], 0, model.rows, "rows"),
                arrays["past"][i].copy(),
                arrays["scores"][i, :scores].copy(),
                arrays["slots"][i, :slots].copy(),
                result[: output - more].copy(),
                result[output - more :].copy(),
                arrays["ends"][i].copy(),
            )
            self.append(arrays["inputs"][i].tobytes(), prediction)
        self.expired = whole_number(expired, 0, count, "old predictions")


def _shapes(
    model: Model, count: int, width: int, outputs: int, results: int
) -> dict[str, tuple[int, ...]]:
    return {
        "rows_before": (count,),
        "sizes": (count, 3),
        "inputs": (count, width),
        "past": (count, model.core.past),
        "scores": (count, outputs),
        "slots": (count, outputs, len(model.names)),
        "results": (count, results),
        "ends": (count, model.core.ends),
    }
