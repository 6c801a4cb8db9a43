"""The record of a run, one row per sample."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..utils import validation as check
from ..utils.rendering import frame
from ..utils.validation import Floats

if TYPE_CHECKING:
    import pandas

Record = dict[str, Floats]
"""Predictions of some rows of a trace: arrays of equal length, by field."""

_COSTS = ("cost", "cumulative_cost", "loss", "bound_gap", "regret")

BY_SLOT = ("weights", "slot_cost", "slot_loss", "slot_predictions", "curvature", "window_loss")
"""The arrays with one column per slot."""

FIELDS = ("predictions", *_COSTS, *BY_SLOT)
"""The arrays that a run can record."""


class Trace:
    """The record of a run. Row n holds the prediction of sample n and what made it.

    Arrays of length n:

    - predictions: f(x_n), made before y_n was known
    - cost, cumulative_cost: the cost charged for the prediction, and its sum since the first sample
      that the bank has seen
    - loss: the loss of the prediction alone (one step ahead, on an unseen sample)
    - bound_gap: how far the separable bound lies above the cost; NaN for combiners off the simplex
    - regret: cumulative cost minus that of the best slot so far

    Arrays (n, P), one column per slot, in the order of `names`:

    - weights
    - slot_predictions, slot_cost and slot_loss: of every slot alone
    - curvature and window_loss: what the slots were worth after sample n was learned, which made
      weights[n + 1]; `kb.kkt_residual` of the three certifies the paper's rule (without the
      columns of quarantined slots, whose window_loss is infinite)

    With several targets, K per sample, every array has an axis of targets after the first: (n, K)
    and (n, K, P); `of_output` is the trace of one of them.
    """

    possible: tuple[str, ...] = FIELDS
    """The arrays that a run of this bank can record."""
    by_slot: tuple[str, ...] = BY_SLOT
    """Those with one column per slot."""
    task: str | None = None
    """What a bank with several tasks was made for; None for a bank with one."""
    _output = "output"

    predictions: np.ndarray
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
        self,
        samples: int,
        names: Sequence[str],
        fields: tuple[str, ...] = FIELDS,
        *,
        arrays: Mapping[str, np.ndarray] | None = None,
        outputs: int = 1,
        target_names: Sequence[str] = (),
    ) -> None:
        self.fields = fields
        """The names of the recorded arrays."""
        self._samples = samples
        self.outputs = outputs
        """How many targets a sample has; with more than one, arrays have that axis after the
        first."""
        numbered = tuple(f"output {k}" for k in range(outputs)) if outputs > 1 else ()
        self.target_names = tuple(target_names) or numbered
        """The names of several targets; empty for one."""
        self._names = names
        for name in self.fields:
            shape: tuple[int, ...] = (samples,) if outputs == 1 else (samples, outputs)
            if name in self.by_slot:
                shape += (len(names),)
            setattr(self, name, np.empty(shape) if arrays is None else arrays[name])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the slots: the columns of the arrays (n, P).

        If an `AdaptiveDictionary` exchanges slots, those at the first row; see
        `Ledger.slot_changes`.
        """
        return tuple(self._names)

    def of_output(self, output: int | str) -> Self:
        """The trace of one of several outputs, by its index or name (`target_names`).

        >>> import numpy as np, kernelbank as kb
        >>> x = np.arange(20.0)
        >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 2), outputs=2)
        >>> trace = bank.run(x, np.column_stack([x, -x]))
        >>> trace.predictions.shape, trace.of_output(1).predictions.shape
        ((20, 2), (20,))
        """
        names = self.target_names
        if isinstance(output, str) and output in names:
            index = names.index(output)
        else:
            remedy = "Give the index of an output, from 0"
            remedy += f", or one of the names {', '.join(map(repr, names))}." if names else "."
            most = self.outputs - 1
            index = check.count("output", output, "of_output", remedy, least=0, most=most)
        if self.outputs == 1:
            return self
        trace = copy.copy(self)
        trace.outputs, trace.target_names = 1, ()
        for name in self.fields:
            setattr(trace, name, getattr(self, name)[:, index])
        return trace

    def to_frame(self) -> pandas.DataFrame:
        """The trace as a pandas data frame: one row per sample.

        A field with one value per sample is a column of that name. A field with one value per slot
        has as many columns, such as `weights: [3] Gaussian(width=0.5)`. With several targets their
        names come first: `predictions: load`, `weights: load: [3] Gaussian(width=0.5)`.
        """
        arrays = {name: getattr(self, name) for name in self.fields}
        return frame(len(self), arrays, self._columns())

    def _columns(self) -> dict[str, list[tuple[str, ...]]]:
        """By field, the names along each axis after the first."""
        outputs = [self.target_names] if self.outputs > 1 else []
        by_slot = [*outputs, self.names]
        return {name: by_slot if name in self.by_slot else outputs for name in self.fields}

    def __len__(self) -> int:
        return self._samples

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        remedy = 'Run with record="all", or with this name in the list.'
        if name not in self.possible:
            remedy = "The bank or the task of this run does not have it."
        raise AttributeError(f"this trace has no {name!r}: it holds {list(self.fields)}. {remedy}")

    def __repr__(self) -> str:
        several = f", {self.outputs} {self._output}s" if self.outputs > 1 else ""
        return f"Trace({len(self)} samples{several}; {', '.join(self.fields)})"


def chosen_fields(
    record: object, possible: Sequence[str] = FIELDS, by_slot: Sequence[str] = BY_SLOT
) -> tuple[str, ...]:
    """Those of the possible fields that `record` asks for, in their usual order."""
    if isinstance(record, str) and record in ("all", "light"):
        return tuple(name for name in possible if record == "all" or name not in by_slot)
    remedy = 'Use "all", "light" (no array with one column per slot), or a list of names.'
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise check.refuse("record", 'be "all", "light" or a list of names', record, remedy)
    names = tuple(record)
    for name in names:
        if name not in possible:
            raise check.refuse("record", f"hold names from {list(possible)}", name, remedy)
    return tuple(name for name in possible if name in names)
