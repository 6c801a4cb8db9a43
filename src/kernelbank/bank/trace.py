"""The record of a run, one row per sample: of a `KernelBank` or of an `AutoBank`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils import validation as check
from ..utils.rendering import frame
from ..utils.validation import Floats

if TYPE_CHECKING:
    import pandas

Record = dict[str, Floats]
"""Predictions of some rows of a trace: arrays of equal length, by field."""

_COSTS = ("cost", "cumulative_cost", "loss", "bound_gap", "regret")
_INTERVALS = ("lower", "upper", "forecasts", "forecast_lower", "forecast_upper", "quantiles")
_CLASSES = ("probabilities", "weights", "slot_predictions", "slot_classes")
_SLOTS = ("weights", "slot_cost", "slot_loss", "slot_predictions", "curvature", "window_loss")

FIELDS: dict[str | None, tuple[str, ...]] = {
    None: ("predictions", *_COSTS, *_SLOTS),
    "regression": ("predictions", *_INTERVALS, "weights", "slot_predictions"),
    "classification": ("predictions", *_CLASSES),
}
"""The arrays that a run can record, by the task of the `AutoBank`; None: by a `KernelBank`."""

BY_SLOT = frozenset([*_SLOTS, "slot_classes"])
"""The arrays with one column per slot."""

BY_HORIZON = ("forecasts", "forecast_lower", "forecast_upper")
"""The arrays with one column per horizon."""


class Trace:
    """The record of a run. Row n holds the prediction of sample n and what made it.

    Arrays of length n:

    - predictions: f(x_n), made before y_n was known; for classes, their labels
    - cost, cumulative_cost: the cost charged for the prediction, and its sum since the first sample
      that the bank has seen (`KernelBank`)
    - loss: the loss of the prediction alone (one step ahead, on an unseen sample; `KernelBank`)
    - bound_gap: how far the separable bound lies above the cost (`KernelBank`); see `jensen_gap`
    - regret: cumulative cost minus that of the best slot so far (`KernelBank`)
    - lower, upper: the interval of the coverage given to `run` (`AutoBank`, regression)

    Arrays (n, H), one column per horizon (`AutoBank(horizons=...)`):

    - forecasts, forecast_lower, forecast_upper: row n holds those made after sample n was learned;
      `horizons` says how many rows ahead. NaN where known inputs of later rows were not given

    Arrays (n, Q), one column per level (`AutoBank(quantiles=...)`):

    - quantiles: of the target, made before it was known

    Arrays (n, classes):

    - probabilities, columns in the order of `classes` (`AutoBank`, classification)

    Arrays (n, P), one column per slot, in the order of `names`:

    - weights; with more than two classes, those of the first class
    - slot_predictions: of every slot alone, in the target's units; for classes the scores of the
      first class, or of the second of two: positive for it
    - slot_cost and slot_loss: of every slot alone (`KernelBank`)
    - slot_classes: the index in `classes` that every slot alone would have predicted, -1 before the
      first label was known (`AutoBank`, classification)
    - curvature and window_loss: what the slots were worth after sample n was learned, which made
      weights[n + 1]; `kb.kkt_residual` of the three certifies the paper's rule (without the
      columns of quarantined slots, whose window_loss is infinite; `KernelBank`)

    With several targets, K per sample, every array has an axis of targets after the first: (n, K)
    and (n, K, P); `of_output` is the trace of one of them.
    """

    predictions: np.ndarray
    cost: Floats
    cumulative_cost: Floats
    loss: Floats
    bound_gap: Floats
    regret: Floats
    lower: Floats
    upper: Floats
    forecasts: Floats
    forecast_lower: Floats
    forecast_upper: Floats
    quantiles: Floats
    probabilities: Floats
    weights: Floats
    slot_cost: Floats
    slot_loss: Floats
    slot_predictions: Floats
    slot_classes: Floats
    curvature: Floats
    window_loss: Floats

    def __init__(
        self,
        samples: int,
        names: Sequence[str],
        fields: tuple[str, ...] = FIELDS[None],
        *,
        task: str | None = None,
        classes: tuple[Any, ...] = (),
        arrays: Mapping[str, np.ndarray] | None = None,
        outputs: int = 1,
        horizons: tuple[int, ...] = (),
        levels: tuple[float, ...] = (),
        target_names: Sequence[str] = (),
    ) -> None:
        self._fields = fields
        self._samples = samples
        self.levels = levels
        """Of the columns of `quantiles`."""
        self.horizons = horizons
        """Of the columns of `forecasts`, in rows."""
        self.outputs = outputs
        """How many targets a sample has; with more than one, arrays have that axis after the
        first."""
        numbered = tuple(f"output {k}" for k in range(outputs)) if outputs > 1 else ()
        self.target_names = tuple(target_names) or numbered
        """The names of several targets; empty for one."""
        self._names = names
        self._later_names: list[tuple[int, Sequence[str]]] = []
        self.task = task
        """ "regression" or "classification"; None for the trace of a `KernelBank`."""
        self.classes = classes
        """The labels, in the order of the columns of `probabilities`."""
        for name in self._fields:
            shape: tuple[int, ...] = (samples,) if outputs == 1 else (samples, outputs)
            if name in BY_SLOT:
                shape += (len(names),)
            setattr(self, name, np.empty(shape) if arrays is None else arrays[name])

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the recorded arrays."""
        return self._fields

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the slots: the columns of the arrays (n, P)."""
        return tuple(self._names)

    def names_at(self, row: int) -> tuple[str, ...]:
        """The names of the slots at one row, for a bank whose slots change within a run.

        `names` are those at the first row. See `AdaptiveDictionary`.

        >>> import kernelbank as kb
        >>> grid = kb.gaussian_grid(0.1, 10, 30)
        >>> pool = kb.AdaptiveDictionary(grid, size=3, every=256, threshold=1.0)
        >>> x, y = kb.datasets.ar1(seed=0, samples=300)
        >>> trace = kb.KernelBank(pool).run(x, y)
        >>> trace.names_at(0) == trace.names_at(255) != trace.names_at(256)
        True
        """
        index = check.count("row", row, "names_at", "Give a row of the trace, from 0.", least=0)
        names = self._names
        for first, later in self._later_names:
            if first <= index:
                names = later
        return tuple(names)

    def of_output(self, output: int | str) -> Trace:
        """The trace of one of several outputs, by its index or name (`target_names`).

        >>> import numpy as np, kernelbank as kb
        >>> x = np.arange(20.0)
        >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 2), outputs=2)
        >>> trace = bank.run(x, np.column_stack([x, -x]))
        >>> trace.predictions.shape, trace.of_output(1).predictions.shape
        ((20, 2), (20,))
        """
        index = self.output_index(output, "of_output")
        if self.outputs == 1:
            return self
        arrays = {name: getattr(self, name)[:, index] for name in self._fields}
        settings: Any = {"task": self.task, "classes": self.classes, "arrays": arrays}
        trace = Trace(self._samples, self._names, self._fields, **settings)
        trace._later_names = self._later_names
        return trace

    def output_index(self, output: object, owner: str) -> int:
        """The index of an output that is given by its index or name."""
        names = self.target_names
        if isinstance(output, str) and output in names:
            return names.index(output)
        remedy = "Give the index of an output, from 0"
        remedy += f", or one of the names {', '.join(map(repr, names))}." if names else "."
        return check.count("output", output, owner, remedy, least=0, most=self.outputs - 1)

    def rename(self, row: int, names: Sequence[str]) -> None:
        """The slots have these names from this row on."""
        self._later_names.append((row, names))

    def to_frame(self) -> pandas.DataFrame:
        """The trace as a pandas data frame: one row per sample.

        A field with one value per sample is a column of that name. A field with one value per slot,
        class or horizon has as many columns, such as `weights: [3] Gaussian(width=0.5)`,
        `probabilities: spam` or `forecasts: +24`. With several targets their names come first:
        `predictions: load`, `weights: load: [3] Gaussian(width=0.5)`.

        >>> import numpy as np, kernelbank as kb
        >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 2))
        >>> trace = bank.run(np.arange(9), np.arange(9), record=["predictions", "weights"])
        >>> list(trace.to_frame())
        ['predictions', 'weights: [0] Gaussian(width=0.5)', 'weights: [1] Gaussian(width=2)']
        >>> X = np.arange(40.0)
        >>> bank = kb.AutoBank("classification", size="small")
        >>> trace = bank.run(X, np.where(X % 2, "odd", "even"))
        >>> list(trace.to_frame())
        ['predictions', 'probabilities: even', 'probabilities: odd']
        """
        arrays = {name: getattr(self, name) for name in self._fields}
        outputs = [self.target_names] if self.outputs > 1 else []
        names = {
            name: [*outputs, self.names] if name in BY_SLOT else outputs for name in self._fields
        }
        names["probabilities"] = [tuple(map(str, self.classes))]
        names["quantiles"] = [tuple(f"{level:g}" for level in self.levels)]
        ahead = [tuple(f"+{horizon}" for horizon in self.horizons)]
        names |= dict.fromkeys(BY_HORIZON, ahead)
        return frame(len(self), arrays, names)

    def jensen_gap(self) -> Floats:
        """(n,): how far the looser bound, with Jensen's inequality on the norm, is above the cost.

        (n, K) for several outputs.

        The bound is the weighted cost of the slots, sum_p w_p C(f_p). It is never below the one of
        `bound_gap`. Needs "weights", "slot_cost", "cost" and "bound_gap"; NaN for combiners off the
        simplex, for which there is no such bound.

        >>> import kernelbank as kb
        >>> x, y = kb.datasets.ar1(seed=0, samples=100)
        >>> trace = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5)).run(x, y)
        >>> bool((trace.jensen_gap() >= trace.bound_gap - 1e-12).all())
        True
        """
        costs = np.where(self.weights > 0, self.slot_cost, 0.0)  # infinite for a slot that is out
        gap = (self.weights * costs).sum(axis=-1) - self.cost
        return np.where(np.isnan(self.bound_gap), np.nan, gap)

    def __len__(self) -> int:
        return self._samples

    def __getattr__(self, name: str) -> Any:
        if name not in Trace.__annotations__:
            raise AttributeError(name)
        remedy = 'Run with record="all", or with this name in the list.'
        if name not in FIELDS[self.task]:
            remedy = "The bank or the task of this run does not have it."
        raise AttributeError(f"this trace has no {name!r}: it holds {list(self._fields)}. {remedy}")

    def __repr__(self) -> str:
        what = "outputs" if self.task is None else "targets"
        several = f", {self.outputs} {what}" if self.outputs > 1 else ""
        return f"Trace({len(self)} samples{several}; {', '.join(self._fields)})"

    def write(self, start: int, arrays: Mapping[str, Floats]) -> None:
        """Fill rows start, start + 1, ... of the arrays that are given."""
        for name, rows in arrays.items():
            getattr(self, name)[start : start + len(rows)] = rows


def chosen_fields(
    record: object, task: str | None = None, *, without: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The fields that `record` asks for, in their usual order.

    without : how the names of those begin that the bank does not have.
    """
    possible = tuple(name for name in FIELDS[task] if not name.startswith(without or "-"))
    if isinstance(record, str) and record in ("all", "light"):
        return tuple(name for name in possible if record == "all" or name not in BY_SLOT)
    remedy = 'Use "all", "light" (no array with one column per slot), or a list of names.'
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise check.refuse("record", 'be "all", "light" or a list of names', record, remedy)
    names = tuple(record)
    for name in names:
        if name not in possible:
            raise check.refuse("record", f"hold names from {list(possible)}", name, remedy)
    if task is not None and not names:
        raise check.refuse("record", "name at least one field", record, remedy)
    return tuple(name for name in possible if name in names)
