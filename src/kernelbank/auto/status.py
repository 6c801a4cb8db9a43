"""What an `AutoBank` says of itself: its errors so far, signals of change, and its status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..bank.slot import full_name, short_name
from ..bank.status import Metric, Status, columns_note, engine_note, quarantine_note
from ..utils.rendering import one_line, shortened, unique
from ..utils.validation import Floats

# The model imports from here, so its types are only for type checkers.
if TYPE_CHECKING:
    from ..bank.slot_history import SlotChange
    from .auto_bank import AutoBank
    from .forecaster import HorizonScore
    from .inputs import ColumnEncoder
    from .model import Model, QuantileScore


FALSE_ALARM_ROWS = 10_000.0
"""A false signal of a changed error comes at most once in this many rows, on average."""

RECENT_ERRORS = 500  # errors among which a new one is ranked, to detect changes
MAX_CHANGES = 1000  # signals of change that are kept
MAX_LABELS = 6  # how many classes are listed, at most


class Change(NamedTuple):
    """A signal of change.

    row : after how many rows.
    what : "error grew", "error fell", "weights" (more than half of the weight has moved), "target
        level", "input level" or "season" (a period was found).
    column : of the input, else -1.
    period : of the season in rows, else 0.
    """

    row: int
    what: str
    column: int = -1
    period: int = 0


class AutoLedger:
    """Errors and signals of change, over all rows learned so far."""

    def __init__(self, bank: AutoBank) -> None:
        self._bank = bank

    @property
    def samples(self) -> int:
        """How many rows have been learned."""
        return self._bank.samples

    @property
    def mean_loss(self) -> Any:
        """Mean squared error of the predictions, or the share of wrong labels; for several targets
        (K,).

        Predictions that were made before the first target was known do not count; NaN if there are
        no others.
        """
        return _mean_errors(self._bank.model)[0]

    @property
    def baseline_loss(self) -> Any:
        """The same for the baseline, which predicts the last target, from the second row on."""
        return _mean_errors(self._bank.model)[1]

    @property
    def changes(self) -> tuple[Change, ...]:
        """Signals of change, at most the last 1,000.

        `what` is "error grew" or "error fell" (the size of the errors, or how often a label was
        wrong; each false at most once in 10,000 rows on average while errors are exchangeable),
        "weights" (more than half of the weight has moved to other slots), "target level" (five in a
        row beyond 10 standard deviations that were not predicted), "input level" (five in a row
        beyond 10 standard deviations; not of an input that only steps through a few values) or
        "season" (a period was found, for `seasons="auto"`; `period` says how many rows it has).
        """
        model = self._bank.model
        return () if model is None else tuple(model.changes)

    @property
    def horizons(self) -> tuple[HorizonScore, ...]:
        """How good the forecasts were, for each of `horizons`: `HorizonScore`s with horizon,
        scored, error, last_value, seasonal, absolute_error, coverage and width."""
        model = self._bank.model
        forecaster = None if model is None else model.forecaster
        return () if forecaster is None else forecaster.scores()

    @property
    def quantiles(self) -> tuple[QuantileScore, ...]:
        """How good the quantiles were, for each level: `QuantileScore`s with level, scored,
        pinball, conformal (of the ends of intervals at that level) and below; of several targets
        as arrays (K,)."""
        model = self._bank.model
        part = None if model is None else model.quantile_part
        return () if part is None else part.scores()

    @property
    def slot_changes(self) -> tuple[SlotChange, ...]:
        """Slots that were added or retired, at most the last 1,000, with the reason.

        `index` is that in `bank.names`; slots that go together are listed as one.

        Slots without weight give their time to others, after 512 and 4,096 rows and then every
        8,192 rows.
        """
        model = self._bank.model
        return () if model is None else model.slot_changes

    def __repr__(self) -> str:
        count = len(self.changes)
        return (
            f"AutoLedger({self.samples} samples; mean loss {_listed(self.mean_loss)}, baseline "
            f"{_listed(self.baseline_loss)}; {count} signal{'s' * (count != 1)} of change)"
        )


def _mean_errors(model: Model | None) -> tuple[float | Floats, float | Floats]:
    """Those of the predictions and of the baseline: numbers for one target, (K,) for several."""
    if model is None:
        return float("nan"), float("nan")
    errors, baseline = model.mean_errors()
    return (errors, baseline) if len(errors) > 1 else (float(errors[0]), float(baseline[0]))


def _listed(losses: float | Floats) -> str:
    return ", ".join(f"{loss:.6g}" for loss in np.ravel(losses))


@np.errstate(all="ignore")  # values may be beyond all floats, and showing them must not warn
def auto_status(bank: AutoBank) -> Status:
    """The status of an `AutoBank`; the title alone before the first row is learned."""
    model, encoder, config, title = bank.model, bank.encoder, bank.config, _title(bank)
    targets = bank.target_names if len(bank.target_names) > 1 else ()
    if model is None or not model.rows:
        return Status(title)
    lags = f" and {config.lags} lagged target{'s' * (config.lags > 1)}" if config.lags else ""
    columns = model.dimension if encoder is None else len(encoder.columns)
    notes = {"inputs": columns_note(columns) + lags}
    if config.seasons is not None:
        periods = " and ".join(map(str, model.periods))
        notes["seasons"] = f"{periods} rows" if periods else "none found so far"
    if config.labels:
        notes["classes"] = _class_list(bank.classes)
    if targets:
        notes["targets"] = _class_list(targets)
    notes["combiner"] = short_name(config.effective_combiner)
    notes |= engine_note(config.engine)
    notes["last change"] = _last_change(model, encoder)
    status = Status(title, model.rows, _metrics(model, targets), notes)
    if not model.banks:
        why = "there is only one class"
        if not model.started:
            why = f"the slots start after {config.restarts[0]} rows"
        return replace(status, no_weights=f"none yet: {why}")
    count = model.outputs
    quarantined = Counter(
        int(model.members[index])
        for bank in model.banks
        for ledger in (bank.ledger.outputs if bank.outputs > 1 else (bank.ledger,))
        for index in ledger.quarantined
    )
    if quarantined:

        def describe(index: int) -> str:
            what = "classes" if config.labels else "targets"
            where = f" (for {quarantined[index]} of {count} {what})" if count > 1 else ""
            return model.names[index] + where

        notes["quarantined"] = quarantine_note(sorted(quarantined), len(model.members), describe)
    what = "targets" if model.targets else "classes"
    return replace(
        status,
        names=model.names,
        weights=model.mean_weights_of_outputs(),
        heading="weights" if count == 1 else f"weights, mean of {count} {what}",
    )


def _title(bank: AutoBank) -> str:
    lags = f", lags={bank.lags}" if bank.lags else ""
    if bank.seasons is not None:
        lags += f", seasons={bank.seasons!r}"
    size = "" if bank.size == "default" else f", size={bank.size!r}"
    slots = "" if bank.model is None else f"; {len(bank.model.members)} slots"
    several = f"; {len(bank.target_names)} targets" if len(bank.target_names) > 1 else ""
    return f"AutoBank({bank.task!r}{lags}{size}{several}{slots}; {bank.samples} samples)"


def _metrics(model: Model, targets: Sequence[str]) -> dict[str, Metric]:
    """RMSE or error rate, beside the baseline, which predicts the last target."""
    errors, baseline = model.mean_errors()
    note = "baseline (last value)"
    if model.targets:
        errors, baseline = np.sqrt(errors), np.sqrt(baseline)
    if model.target_count > 1:
        names = [shortened(one_line(name), 20) for name in targets[:MAX_LABELS]]
        shown = zip(unique(names), errors, baseline, strict=False)
        return {f"RMSE of {name}": Metric(error, last, note) for name, error, last in shown}
    name, scored = "RMSE" if model.targets else "error rate", model.scored
    metric = Metric(float(errors[0]), float(baseline[0]), note, not model.targets, scored)
    return {name: metric}


def _class_list(classes: Sequence[object]) -> str:
    listed = ", ".join(shortened(full_name(label), 20) for label in classes[:MAX_LABELS])
    return f"{len(classes)}: {listed}{', ...' if len(classes) > MAX_LABELS else ''}"


def _last_change(model: Model, encoder: ColumnEncoder | None) -> str:
    if not model.changes:
        return "none so far"
    last = model.changes[-1]
    column = f" of {last.period} rows" if last.period else ""
    if last.column >= 0:
        name = last.column if encoder is None else repr(encoder.input_names[last.column])
        column = f" of column {name}"
    count = len(model.changes)
    more = " or more" if count >= MAX_CHANGES else ""
    total = f"the last of {count}{more}" if count > 1 else "the only one"
    return f"{last.what}{column} after row {last.row} of {model.rows} ({total})"
