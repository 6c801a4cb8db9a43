"""The status of a model: what it is, how well it does, which slots carry it.

`KernelBank.status()` and `AutoBank.status()` return a `Status`; `repr`, the view in a notebook and
whatever else shows a model read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..utils.rendering import Pairs, number, one_line, render_html, render_text, shortened
from ..utils.validation import Floats
from .engines import Engine, Serial
from .ledger import Ledger
from .settings import BankSettings
from .slot import LONGEST, distinct_methods, full_name, method_name

MOST_BARS = 5
"""How many slots a drawing shows, at most."""

LINE = 100
"""Characters of a note in a drawing."""


@dataclass(frozen=True)
class Metric:
    """A measure of error, and the same of something to compare with.

    value: of the model; reference: of what it is compared with, NaN if that is unknown;
    reference_name: what that is; percent: whether the value is a share; count: of how many
    predictions, 0 if that is not to be shown.
    """

    value: float
    reference: float = float("nan")
    reference_name: str = ""
    percent: bool = False
    count: int = 0

    def __str__(self) -> str:
        form = ".2%" if self.percent else ".4g"
        text = format(self.value, form)
        if self.count:
            text += f" over {self.count:,} prediction{'s' * (self.count != 1)}"
        if np.isnan(self.reference):
            return text
        return f"{text}  ({self.reference_name}: {self.reference:{form}})"


@dataclass(frozen=True)
class Status:
    """What there is to see of a model at one moment.

    Parameters
    ----------
    title : one line; all that is shown of a model that has learned nothing.
    samples : how many samples have been learned.
    metrics : measures of error by name.
    notes : further facts by name, each a short text.
    names, weights : of every slot.
    heading : what the weights are.
    no_weights : why there are none yet.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 2))
    >>> for n in range(20):
    ...     bank.learn_one(n / 10, 1.0)
    >>> status = bank.status()
    >>> status.samples, sorted(status.metrics)
    (20, ['cumulative cost', 'mean loss'])
    >>> status.bars, status.rest
    ((('[1] Gaussian(width=2)', 1.0),), '1 without weight')
    """

    title: str
    samples: int = 0
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = ()
    weights: Floats = field(default_factory=lambda: np.empty(0))
    heading: str = "weights"
    no_weights: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """The status for a terminal. The first line is the title, the others are indented."""
        heading = self.heading if len(self.weights) or self.no_weights else ""
        return render_text(self.title, self.facts, heading, self.bars, self.rest)

    def html(self) -> str:
        """The status for a notebook."""
        return render_html(self.text())

    @property
    def facts(self) -> Pairs:
        """Notes and metrics as (label, text), one line each."""
        pairs = [*self.notes.items(), *((name, str(m)) for name, m in self.metrics.items())]
        return tuple((label, shortened(one_line(text), LINE)) for label, text in pairs)

    @property
    def bars(self) -> tuple[tuple[str, float], ...]:
        """Name and weight of the slots with the largest weights, by size."""
        order = self._order[:MOST_BARS].tolist()
        return tuple((self.names[p], float(self.weights[p])) for p in order)

    @property
    def rest(self) -> str:
        """A sentence on the slots without a bar."""
        if not len(self.weights):
            return self.no_weights
        if not len(self._order):
            return "no slot has any weight"
        others, without = self._order[MOST_BARS:], len(self.weights) - len(self._order)
        parts = []
        if len(others):
            with np.errstate(all="ignore"):
                total = float(self.weights[others].sum())
            parts.append(f"{number(total)} on {len(others)} other{'s' * (len(others) > 1)}")
        if without:
            parts.append(f"{without} without weight")
        return ", ".join(parts)

    @property
    def _order(self) -> np.ndarray:
        """The slots with weight, the largest first, equal ones in their order."""
        sizes = np.where(np.isfinite(self.weights), np.abs(self.weights), 0.0)
        return np.argsort(-sizes, kind="stable")[: int((sizes > 0).sum())]


def bank_title(settings: BankSettings, samples: int | str) -> str:
    """The title of a `KernelBank`; samples : how many it has learned."""
    outputs = "" if settings.outputs == 1 else f"{settings.outputs} outputs, "
    return (
        f"KernelBank({len(settings.slots)} slots, {outputs}{full_name(settings.combiner)}, "
        f"{full_name(settings.losses[0])}, window={settings.window}, "
        f"regularization={settings.regularization:g}, {samples} samples)"
    )


@np.errstate(all="ignore")  # values may be beyond all floats, and showing them must not warn
def bank_status(
    settings: BankSettings,
    dimension: int | None,
    ledger: Ledger,
    weights: Floats,
    names: Sequence[str],
) -> Status:
    """The status of a `KernelBank`."""
    title, methods = bank_title(settings, ledger.samples), distinct_methods(settings.slots)
    if not ledger.samples:
        return Status(title)
    notes = {"inputs": columns_note(dimension)}
    if len(methods) == 1:
        notes["learner"] = method_name(methods[0])
    notes |= engine_note(settings.engine)
    if settings.dictionary is not None:
        notes["dictionary"] = settings.dictionary.note(settings.selection)
    figures = (ledger.slot_cumulative_cost, ledger.slot_mean_loss, weights)
    costs, losses, mean_weights = (np.mean(np.atleast_2d(values), axis=0) for values in figures)
    out = np.flatnonzero(np.isinf(costs)).tolist()
    if out:
        notes["quarantined"] = quarantine_note(out, len(costs), names.__getitem__)
    metrics = {
        "mean loss": _with_best_slot(np.mean(ledger.mean_loss), losses, names),
        "cumulative cost": _with_best_slot(np.mean(ledger.cumulative_cost), costs, names),
    }
    heading = "weights"
    if settings.outputs > 1:
        heading = "weights, mean over the outputs"
        notes["outputs"] = f"{settings.outputs}; figures are means over them"
    return Status(title, ledger.samples, metrics, notes, names, mean_weights, heading)


def _with_best_slot(value: float | np.floating, of_slots: Floats, names: Sequence[str]) -> Metric:
    """The value of the bank beside that of the best slot alone."""
    finite = np.where(np.isfinite(of_slots), of_slots, np.inf)
    best = int(np.argmin(finite))
    if not np.isfinite(finite[best]):
        return Metric(float(value))
    name = f"best slot alone, {shortened(names[best], LONGEST)}"
    return Metric(float(value), float(finite[best]), name)


# --- notes that several models have -------------------------------------------------------------


def columns_note(dimension: int | None) -> str:
    """The number of columns of the inputs."""
    return "unknown" if dimension is None else f"{dimension} column{'s' * (dimension != 1)}"


def engine_note(engine: Engine) -> dict[str, str]:
    """The engine, unless it is the default."""
    return {} if engine == Serial() else {"engine": full_name(engine)}


def quarantine_note(indices: Sequence[int], slots: int, name: Callable[[int], str]) -> str:
    """Which of the slots have become non-finite."""
    more = f" and {len(indices) - 3} more" if len(indices) > 3 else ""
    return f"{len(indices)} of {slots}: {', '.join(map(name, indices[:3]))}{more}"
