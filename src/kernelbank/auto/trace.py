"""What a run of an AutoBank leaves behind: one row per sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..utils import validation as check
from ..utils.frames import frame
from ..utils.lazy import plots
from ..utils.validation import Floats

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

NUMBERS = ("predictions", "lower", "upper", "weights", "slot_predictions")
CLASSES = ("predictions", "probabilities", "weights", "slot_predictions", "slot_answers")
BY_SLOT = ("weights", "slot_predictions", "slot_answers")
FIELDS = tuple(dict.fromkeys(NUMBERS + CLASSES))


class AutoTrace:
    """The record of a run. Row n holds what was answered before target n was known.

    - predictions: numbers in the target's units, or labels
    - lower, upper: the interval of the coverage that `run` was asked for (regression)
    - probabilities: (n, classes), columns in the order of `classes` (classification)
    - weights: (n, P), of the slots; with more than two classes those of the first class's bank
    - slot_predictions: (n, P), of every slot alone: in the target's units; for two classes scores,
      positive for the second
    - slot_answers: (n, P), the place in `classes` of what every slot alone would have answered, -1
      before the first label was known (classification)
    """

    predictions: np.ndarray
    lower: Floats
    upper: Floats
    probabilities: Floats
    weights: Floats
    slot_predictions: Floats
    slot_answers: Floats

    def __init__(
        self,
        task: str,
        fields: tuple[str, ...],
        parts: dict[str, list[Any]],
        classes: tuple[Any, ...],
        names: Iterable[str],
    ) -> None:
        self._fields = fields
        self.task = task
        self.classes = classes
        self.names = tuple(names)
        """What the slots are, in words: the columns of the arrays (n, P)."""
        for name in fields:
            setattr(self, name, _joined(parts[name]))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the recorded arrays."""
        return self._fields

    def to_frame(self) -> pandas.DataFrame:
        """The trace as a frame of pandas: one row a sample.

        A field of one value a sample is a column of that name; one of a value for each slot or
        class is as many columns, such as `weights: rank: linear` or `probabilities: spam`.

        >>> import numpy as np, kernelbank as kb
        >>> X = np.arange(40.0)
        >>> bank = kb.AutoBank("classification", size="small")
        >>> trace = bank.run(X, np.where(X % 2, "odd", "even"))
        >>> list(trace.to_frame())
        ['predictions', 'probabilities: even', 'probabilities: odd']
        """
        arrays = {name: getattr(self, name) for name in self._fields}
        names = dict.fromkeys(BY_SLOT, self.names)
        return frame(len(self), arrays, {**names, "probabilities": tuple(map(str, self.classes))})

    def plot(self, y: Any = None) -> Figure:
        """The trace in panels: predictions, errors, weights. See `kb.plots.trace`, and `kb.plots`
        for each of them alone.

        y : the targets or labels, to draw them beside the predictions.
        """
        return plots().trace(self, y)

    def __len__(self) -> int:
        return len(getattr(self, self._fields[0])) if self._fields else 0

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            raise AttributeError(
                f"this trace has no {name!r}: it holds {list(self._fields)}. "
                'Some belong to one task only; others need run(..., record="all").'
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"AutoTrace({len(self)} samples; {', '.join(self._fields)})"


def _joined(parts: list[Any]) -> np.ndarray:
    """Pieces one after the other; classes that came later had the probability 0 before."""
    width = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    filled = [
        np.pad(part, ((0, 0), (0, width - part.shape[1]))) if part.ndim == 2 else part
        for part in parts
    ]
    return np.concatenate(filled)


def chosen_fields(record: Any, task: str) -> tuple[str, ...]:
    """The fields that `record` asks for, in their usual order."""
    known = NUMBERS if task == "regression" else CLASSES
    if isinstance(record, str) and record in ("all", "light"):
        return tuple(name for name in known if record == "all" or name not in BY_SLOT)
    remedy = 'Use "light", "all" (also what is kept for every slot), or a list of names.'
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise check.refuse("record", 'be "light", "all" or a list of names', record, remedy)
    names = tuple(record)
    for name in names:
        if name not in known:
            raise check.refuse("record", f"hold names from {list(known)}", name, remedy)
    if not names:
        raise check.refuse("record", "name at least one field", record, remedy)
    return tuple(name for name in known if name in names)
