"""What a run leaves behind: one row per sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils import validation as check
from ..utils.frames import frame
from ..utils.lazy import plots
from ..utils.validation import Floats

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

BY_SAMPLE = ("predictions", "cost", "cumulative_cost", "loss", "bound_gap", "regret")
BY_SLOT = (
    "weights",
    "slot_cost",
    "slot_loss",
    "slot_predictions",
    "curvature",
    "window_loss",
)
FIELDS = BY_SAMPLE + BY_SLOT


class Trace:
    """The record of a run. Row n holds what made the prediction of sample n.

    Arrays of length n:

    - predictions: f(x_n) proposed before y_n was known
    - cost: what the environment charged the proposal, cumulative_cost: its sum since the first
      sample that the bank ever saw
    - loss: the loss of the prediction alone (one step ahead, on an unseen sample)
    - bound_gap: how far the separable bound lies above the cost
    - regret: cumulative cost minus that of the best slot so far

    Arrays (n, P):

    - weights; slot_cost, slot_loss and slot_predictions of every slot alone
    - curvature and window_loss: what the slots were worth after sample n was learned, which made
      weights[n + 1]; `kb.kkt_residual` of the three certifies the paper's rule (without the
      columns of slots that are out, whose window_loss is infinite)
    """

    predictions: Floats
    cost: Floats
    cumulative_cost: Floats
    loss: Floats
    bound_gap: Floats
    regret: Floats
    weights: Floats
    slot_cost: Floats
    slot_loss: Floats
    slot_predictions: Floats
    curvature: Floats
    window_loss: Floats

    def __init__(
        self, samples: int, names: Sequence[str], fields: tuple[str, ...] = FIELDS
    ) -> None:
        self._fields = fields
        self._samples = samples
        self._names = names
        for name in self._fields:
            shape = (samples, len(names)) if name in BY_SLOT else (samples,)
            setattr(self, name, np.empty(shape))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the recorded arrays."""
        return self._fields

    @property
    def names(self) -> tuple[str, ...]:
        """What the slots are, in words: the columns of the arrays (n, P)."""
        return tuple(self._names)

    def to_frame(self) -> pandas.DataFrame:
        """The trace as a frame of pandas: one row a sample.

        A field of one value a sample is a column of that name; one of a value for each slot is P
        columns, such as `weights: [3] Gaussian(width=0.5)`.

        >>> import numpy as np, kernelbank as kb
        >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 2))
        >>> trace = bank.run(np.arange(9), np.arange(9), record=["predictions", "weights"])
        >>> list(trace.to_frame())
        ['predictions', 'weights: [0] Gaussian(width=0.5)', 'weights: [1] Gaussian(width=2)']
        """
        arrays = {name: getattr(self, name) for name in self._fields}
        return frame(len(self), arrays, dict.fromkeys(BY_SLOT, self.names))

    def plot(self, y: Any = None) -> Figure:
        """The trace in panels: predictions, costs, weights. See `kb.plots.trace`, and `kb.plots`
        for each of them alone.

        y : the targets, to draw them beside the predictions.
        """
        return plots().trace(self, y)

    def __len__(self) -> int:
        return self._samples

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            raise AttributeError(
                f"this trace has no {name!r}: run(..., record=...) chose {list(self._fields)}. "
                'Run with record="all", or with this name in the list.'
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"Trace({len(self)} samples; {', '.join(self._fields)})"

    def write(self, start: int, **arrays: Floats) -> None:
        """Fill rows start, start + 1, ... of the arrays that are recorded."""
        for name, rows in arrays.items():
            if name in self._fields:
                getattr(self, name)[start : start + len(rows)] = rows


def chosen_fields(record: Any) -> tuple[str, ...]:
    """The fields that `record` asks for, in their usual order."""
    if isinstance(record, str) and record in ("all", "light"):
        return FIELDS if record == "all" else BY_SAMPLE
    remedy = 'Use "all", "light" (no array over the slots), or a list of names.'
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise check.refuse("record", 'be "all", "light" or a list of names', record, remedy)
    names = tuple(record)
    for name in names:
        if name not in FIELDS:
            raise check.refuse("record", f"hold names from {list(FIELDS)}", name, remedy)
    return tuple(name for name in FIELDS if name in names)
