"""The state of a run as a viewer sees it: terminal line, JSON log, summary and page read this."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..auto import AutoBank
from ..auto.forecaster import HorizonScore
from ..auto.loading import DAMAGE
from ..auto.status import Change
from ..errors import FileRefused, RunRefused
from ..io.checkpoint import damage_text
from . import Saved
from .history import History
from .options import RunOptions
from .runner import RejectedRows, check_times
from .scores import LabelScore
from .session import Session
from .state_folder import STATE, read_checkpoint, saved_count

if TYPE_CHECKING:
    from .runner import Runner


def forecast_scores(bank: AutoBank) -> list[HorizonScore]:
    """The scores of all horizons with roots of mean squares as errors, in the target's units."""
    return [
        score._replace(
            error=math.sqrt(score.error),
            last_value=math.sqrt(score.last_value),
            seasonal=math.sqrt(score.seasonal),
        )
        for score in bank.ledger.horizons
    ]


def finite(value: Any) -> Any:
    """For JSON: numbers that are not finite become None, tuples become lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(member) for name, member in value.items()}
    return [finite(member) for member in value] if isinstance(value, (list, tuple)) else value


OF_TARGET = (
    "scored", "error", "baseline_error", "best_slot", "best_slot_error", "mean_absolute_error",
    "coverage", "weights",
)  # fmt: skip
"""What the JSON log has for each of several targets."""

_LARGEST_WEIGHTS = 3
_VISIBLE_WEIGHT = 0.005


class Scores(NamedTuple):
    """How good the predictions of a run were; NaN for what is unknown or of the other task.

    Errors are RMSE, or error rates of classification.
    """

    error: float
    baseline_error: float
    """Of the baseline, the last value."""
    best_slot: str | None
    """The slot that alone has the smallest error."""
    best_slot_error: float
    mean_absolute_error: float
    coverage: float
    """Share of the targets inside their intervals."""
    log_loss: float
    """The mean log loss of the probabilities."""


@dataclass(frozen=True)
class RunStatus:
    """What a run has done and how well, at one moment.

    `of_run` makes it from a run in this process, `of_state` from the folder of a checkpoint.
    """

    options: RunOptions
    phase: str
    """running, ended, stopped or saved."""
    source: Mapping[str, object]
    """The fingerprint of the source."""
    predictions: Sequence[str]
    """Where the predictions are written."""
    features: Sequence[str]
    session: Session
    """The model, and the history of its predictions."""
    rows: int
    rows_before: int
    """Rows that were done when the present process started."""
    rejected: RejectedRows
    missing_rows: int
    """Rows that a broker deleted before they were read, where `--allow-gaps` allows it."""
    times: Saved
    """What `RunTimes.to_json` returns."""
    seconds: float
    """Since the present process started; of a saved run, the time of all processes."""
    output: int = 0
    """The number of the target whose errors these are, of several."""

    @classmethod
    def of_run(cls, run: Runner, phase: str = "running") -> RunStatus:
        """The status of a run in this process."""
        return cls(
            options=run.options,
            phase=phase,
            source=run.source.fingerprint,
            predictions=[sink.address for sink in run.sinks],
            features=run.encoder.features,
            session=run.session,
            rows=run.rows,
            rows_before=run.rows_before,
            rejected=run.rejected,
            missing_rows=run.source.missing_rows,
            times=run.times.to_json(),
            seconds=run.times.seconds,
        )

    @classmethod
    def of_state(cls, folder: str | os.PathLike[str]) -> RunStatus:
        """The status of a run from its checkpoint. The run may be active; it is not disturbed."""
        path = Path(folder, STATE)
        if not path.exists():
            raise RunRefused(
                f"{folder} is not the state of a run: there is no {STATE} in it. Give the folder "
                "of --state of a `kernelbank run`."
            )
        header, arrays = read_checkpoint(path)
        try:
            options = RunOptions.from_json(header["options"])
            session = Session(options, "serial")
            session.restore(header, arrays)
            rejected = RejectedRows()
            rejected.restore(header["rejected_rows"])
            times = check_times(header["times"])
            return cls(
                options=options,
                phase="saved",
                source=dict(header["source"]),
                predictions=[str(address) for address in header["predictions"]],
                features=[str(name) for name in header["features"] or []],
                session=session,
                rows=saved_count(header["rows"], "rows"),
                rows_before=0,
                rejected=rejected,
                missing_rows=int(header.get("missing_rows", 0)),
                times=times,
                seconds=max(times["seconds"], 1e-9),
            )
        except DAMAGE as error:
            raise FileRefused(f"{path} is damaged: {damage_text(error)}.") from None

    # --- derived ----------------------------------------------------------------------------------

    def of_target(self, output: int) -> RunStatus:
        """The same with the errors of another one of several targets."""
        return replace(self, output=output)

    @property
    def target(self) -> str:
        """The target whose errors these are."""
        return self.options.targets[self.output]

    @property
    def each_target(self) -> list[RunStatus]:
        """The status of every target."""
        return [self.of_target(k) for k in range(len(self.options.targets))]

    @property
    def bank(self) -> AutoBank:
        """The model."""
        return self.session.bank

    @property
    def history(self) -> History:
        """The history of the target's predictions, empty before there is one."""
        histories = self.session.histories
        return histories[self.output] if histories else History(0)

    @property
    def categories(self) -> Sequence[tuple[str, str]]:
        """(column, category) of the inputs of single categories."""
        return [] if self.bank.encoder is None else self.bank.encoder.categories

    @property
    def categories_beyond(self) -> Mapping[str, Mapping[str, int]]:
        """By column: how many categories have no input of their own, and how many rows."""
        return {} if self.bank.encoder is None else self.bank.encoder.beyond

    @property
    def is_classification(self) -> bool:
        """Whether errors are error rates."""
        return self.options.task == "classification"

    @property
    def change_groups(self) -> list[ChangeGroup]:
        """The signals of change in groups, by row: those close together are one."""
        delay = self.options.delay
        signals = [(c.row + delay, *self.change_text(c)) for c in self.changes]
        return change_groups(signals, self.rows, self.history)

    @property
    def changes(self) -> list[Change]:
        """Signals of change, without those of inputs that were made from a time or a category:
        these only step through their values."""
        return [c for c in self.bank.ledger.changes if c.column < len(self.features)]

    def change_text(self, change: Change) -> tuple[str, str]:
        """What has changed, and its subject: an input, a period, or one of several targets."""
        what, _, number = change.what.partition(", target ")
        if change.period:
            return what, f"{change.period} rows"
        if number.isdecimal() and int(number) < len(self.options.targets):
            return what, self.options.targets[int(number)]
        named = 0 <= change.column < len(self.features)
        return what, self.features[change.column] if named else ""

    @property
    def rows_per_second(self) -> float:
        """The mean speed of the present process."""
        return (self.rows - self.rows_before) / max(self.seconds, 1e-9)

    @cached_property
    def scored(self) -> int:
        """How many predictions the errors are taken over."""
        return int(self._totals["scored"])

    @cached_property
    def scores(self) -> Scores:
        """How good the predictions were."""
        totals, labels = self._totals, self.is_classification
        means = {name: total / self.scored for name, total in totals.items() if self.scored}
        best, losses = "", math.nan
        if self.scored:
            of_slots = self.history.losses.sum(axis=0)
            slot = int(np.argmin(of_slots))
            best, losses = self.bank.names[slot], float(of_slots[slot])
        return Scores(
            error=self.error_of(totals["loss"], self.scored),
            baseline_error=self.error_of(totals["baseline_loss"], self.scored),
            best_slot=best or None,
            best_slot_error=self.error_of(losses, self.scored),
            mean_absolute_error=math.nan if labels else means.get("absolute_error", math.nan),
            coverage=math.nan if labels else means.get("covered", math.nan),
            log_loss=means.get("log_loss", math.nan) if labels else math.nan,
        )

    @property
    def label_scores(self) -> dict[str, LabelScore]:
        """How well each label is found; empty for regression."""
        scores = self.history.labels.of_each()
        return dict(zip(map(str, self.bank.classes), scores, strict=False))

    @property
    def chosen_forecasts(self) -> list[HorizonScore]:
        """How good the forecasts were at the first, the middle and the last horizon."""
        scores = forecast_scores(self.bank)
        places = sorted({0, (len(scores) - 1) // 2, len(scores) - 1})
        return [scores[place] for place in places if 0 <= place < len(scores)]

    @cached_property
    def largest_weights(self) -> list[tuple[str, float]]:
        """The slots with the largest weights now, and these weights."""
        if not self.scored:
            return []
        weights = self.history.weights[-1]
        order = np.argsort(-weights, kind="stable")[:_LARGEST_WEIGHTS].tolist()
        names = self.bank.names
        return [(names[i], float(weights[i])) for i in order if weights[i] > _VISIBLE_WEIGHT]

    @cached_property
    def _totals(self) -> dict[str, float]:
        return {name: float(values.sum()) for name, values in self.history.totals.items()}

    def error_of(self, loss: float, scored: float) -> float:
        """RMSE, or error rate, of rows with a summed loss."""
        if not scored:
            return math.nan
        return loss / scored if self.is_classification else math.sqrt(loss / scored)

    def to_log(self) -> dict[str, object]:
        """The status as an object of the JSON log; of several targets, errors are by target."""
        if len(self.options.targets) == 1:
            return self.to_json()
        each = {status.target: status.to_json() for status in self.each_target}
        by_target = {name: {key: record[key] for key in OF_TARGET} for name, record in each.items()}
        common = {key: value for key, value in self.to_json().items() if key not in OF_TARGET}
        return {**common, "targets": by_target}

    def to_json(self) -> dict[str, object]:
        """The status, with the errors of its target, as JSON data; None for what is unknown."""
        record: dict[str, object] = {
            "rows": self.rows,
            "bad_rows": self.rejected.count,
            "missing_rows": self.missing_rows,
            "rows_without_target": self.session.rows_without_target,
            "scored": self.scored,
            "categories_beyond_limit": dict(self.categories_beyond),
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.rows_per_second, 1),
            **self.scores._asdict(),
            "weights": dict(self.largest_weights),
        }
        if self.is_classification:
            record["labels"] = {name: s._asdict() for name, s in self.label_scores.items()}
        if self.options.horizons:
            record["forecasts"] = [score._asdict() for score in self.chosen_forecasts]
        return dict(finite(record))


class ChangeGroup(NamedTuple):
    """Signals of change that are close together."""

    first: int
    """The row after which the first was noticed, with the delay."""
    last: int
    kinds: list[tuple[str, str, int]]
    """What has changed, its input, period or target, and how often that was noticed."""
    cost: float
    """The summed loss of the rows around the first, as a change is noticed late, beyond that of as
    many rows before. Negative where errors became smaller."""


def change_groups(
    signals: Sequence[tuple[int, str, str]], rows: int, history: History
) -> list[ChangeGroup]:
    """Groups of signals (row, kind, subject), which are in the order of their rows.

    A group spans at most a fiftieth of the rows of the run, or 50; so do the rows of its cost.
    """
    width = max(50, rows // 50)
    groups: list[tuple[list[int], Counter[tuple[str, str]]]] = []
    for row, what, subject in signals:
        if not groups or row - groups[-1][0][0] > width:
            groups.append(([row, row], Counter()))
        ends, counts = groups[-1]
        ends[1] = row
        counts[what, subject] += 1
    ends_of_points = np.r_[0.0, np.cumsum(history.totals["rows"])]
    losses = np.r_[0.0, np.cumsum(history.totals["loss"])]

    def summed(row: int) -> float:
        return float(np.interp(row, ends_of_points, losses))

    def cost(first: int) -> float:
        begin, end = first - width // 2, min(first + width // 2, int(ends_of_points[-1]))
        before = max(begin - width, 0)
        if not before < begin < end:
            return 0.0
        share = (end - begin) / (begin - before)
        return summed(end) - summed(begin) - share * (summed(begin) - summed(before))

    return [
        ChangeGroup(first, last, [(*kind, n) for kind, n in counts.items()], cost(first))
        for (first, last), counts in groups
    ]
