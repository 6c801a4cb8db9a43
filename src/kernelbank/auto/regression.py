"""The desk for targets that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ..utils.validation import Floats
from . import calibration as hot
from .config import Plan
from .running_stats import KINDRED, PATIENCE
from .scaling_steps import WILD
from .task_model import STARTS, Desk, Said, lagged_rows, with_missing

LEVELS = np.array([0.0005, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
"""Tails whose quantiles are followed; others lie between them."""

UNUSUAL = 3.0
"""Root mean square of inputs, in their deviations, beyond which they may explain a far target."""


class Row(NamedTuple):
    """A row that is held back."""

    inputs: Floats
    lagged: Floats
    target: float
    expected: float
    """What the bank had predicted, in the target's units, wherever that was."""


class Regression(Desk):
    """One bank, on the target in its deviations.

    A target that is far off (beyond 10 sd) though its inputs are not is held back, with its row. If
    another comes before there are five, those held back are learned at 10 sd, and not at all beyond
    1,000 sd. Five in a row are a change. If the bank had foreseen half of the way, the target's sd
    was too small. Else, if the bank was off by much the same each time, the level has moved, and so
    does the mean; if not, there is a new scale, and the figures start anew. The rows are then
    learned in the new figures. So a jump does not teach the slots nonsense, nor the combiner a
    wrong trust.
    """

    def __init__(self, plan: Plan, dimension: int) -> None:
        super().__init__(plan, dimension, target=True, kept=STARTS[-1], until=STARTS[-1])
        self.answers = np.zeros(hot.ANSWERS)
        normal = [NormalDist().inv_cdf(1 - tail) for tail in LEVELS]
        self.quantiles = np.array([normal, normal])
        self.held: list[Row] = []
        self.streaks = np.zeros(PATIENCE)
        """How often so many rows in a row, from 1 on, were held back."""

    def widen(self, count: int) -> None:
        super().widen(count)
        self.held = [
            row._replace(inputs=with_missing(row.inputs[None], count)[0]) for row in self.held
        ]

    # --- answering ------------------------------------------------------------------------------

    def ask(self, X: Floats, lagged: Floats, tail: float) -> list[Said]:
        mean, sd = self.scaling.scale
        slots = np.zeros((0, len(self.names)))
        if not self.banks:
            mean = float(self.kept()[2].mean()) if self.rows else 0.0
            sd = 0.0
            scores = np.zeros(len(X))
        elif len(X) == 1:
            value, own = self.banks[0].predict_slots_one(self.scaling.rows(X, lagged)[0])
            scores, slots = np.array([value]), mean + sd * own[None]
        else:
            scores = self.banks[0].predict(self.scaling.rows(X, lagged))
        said = []
        shift = self._shift()
        for t, score in enumerate(scores):
            answer = np.empty(3)
            hot.answer_row(score, mean, sd, self.answers, LEVELS, self.quantiles, tail, answer)
            answer += shift
            said.append(Said(self.rows, lagged[t].copy(), scores[t : t + 1], slots, answer))
        return said

    def _shift(self) -> float:
        """What is expected of the next target beyond the bank's prediction, if the last were far.

        By how much the last was missed, times how often so many were followed by another: at
        first, one in half of the cases, and two always.
        """
        count = len(self.held)
        if not count or any(self._wild(row.target) for row in self.held):
            return 0.0
        before = self.streaks[count - 1] - 1.0  # without this time, of which nobody knows yet
        going_on = (self.streaks[count] + min(count, 2)) / (before + 2.0)
        return float(going_on * (self.held[-1].target - self.held[-1].expected))

    def as_lag(self, said: Said) -> float:
        return float(said.answer[0])

    # --- learning -------------------------------------------------------------------------------

    def tell(self, x: Floats, said: Said, target: float) -> None:
        value = float(said.answer[0])
        mean, sd = self.scaling.scale
        total = self.answers[hot.LOSS]
        hot.settle_row(value, mean, sd, target, self.answers, LEVELS, self.quantiles)
        if not said.row:
            self.answers[hot.LOSS] = total
            self.blind += 1
        if self.banks:
            weights = self.banks[0].weights
            self.watch(np.array([abs(target - value)]), weights[None], self.rows + 1)
        self.rows += 1
        self.keep(x[None], said.lagged[None], np.array([target]), [said.row])
        if self.banks:
            row = Row(x.copy(), said.lagged, target, mean + sd * float(said.scores[0]))
            self._take(row, said.slots if said.row + 1 < self.rows else said.slots[:0])
        self.shift(target)
        if self.rows in STARTS:
            self.start()

    def _take(self, row: Row, late: Floats) -> None:
        """Learn a row, or hold it back; `late` is what slots said, if that was some rows ago."""
        waiting = [*self.held, row]
        inputs, targets = self._shown(waiting)
        spoken = self.scaling.scaled(late[0]) if len(late) else None
        unusual = np.mean(self.scaling.distances(inputs[-1]) ** 2) > UNUSUAL**2
        far = self.scaling.farness(row.target) > 0 and not unusual
        for column in self.scaling.take(row.inputs):
            self.note("input level", self.rows, column)
        if far:
            self.streaks[len(self.held)] += 1.0
        if self.scaling.take_target(row.target, far):
            self._change(waiting)
        elif far:
            self.held = waiting
        elif self.held:
            measured = [i for i, held in enumerate(waiting) if not self._wild(held.target)]
            self.held = []
            self._learn(inputs[measured], targets[measured])
        else:
            self._learn(inputs, targets, spoken)

    def _change(self, waiting: list[Row]) -> None:
        """Five targets in a row were far off: decide what has changed, and learn them."""
        seen = np.array([row.target for row in waiting])
        missed = seen - np.array([row.expected for row in waiting])
        mean, sd = self.scaling.scale
        shift = float(np.median(missed))
        if abs(shift) < 0.5 * abs(float(np.median(seen)) - mean):
            self.scaling.wider()
        elif np.median(np.abs(missed - shift)) < KINDRED * sd:
            self.scaling.new_level(shift)
            self.note("target level", self.rows)
        else:
            self.scaling.new_scale()
            self.note("target level", self.rows)
        mean, sd = self.scaling.scale
        hot.forget_range(self.answers, min(seen.min(), mean - sd), max(seen.max(), mean + sd))
        self.held = []
        self._learn(*self._shown(waiting))

    def _wild(self, y: float) -> bool:
        return self.scaling.farness(y) == WILD

    def _shown(self, rows: list[Row]) -> tuple[Floats, Floats]:
        """Rows as the bank sees them now."""
        inputs = np.array([row.inputs for row in rows])
        lagged = np.array([row.lagged for row in rows])
        targets = np.array([row.target for row in rows])
        return self.scaling.rows(inputs, lagged), self.scaling.scaled(targets)

    def _learn(self, inputs: Floats, targets: Floats, said: Floats | None = None) -> None:
        if len(inputs) == 1:
            self.banks[0].learn_one(inputs[0], float(targets[0]), said)
        elif len(inputs):
            self.banks[0].run(inputs, targets, record="light")

    def start(self) -> None:
        X, lagged, targets = self.kept()
        self.start_anew()
        self.scaling.begin(X, targets)
        self.banks = [self.new_bank()]
        self.held = []
        measured = [t for t, y in enumerate(targets) if not self._wild(y)]
        rows = self.scaling.rows(X[measured], lagged[measured])
        self.replay(self.banks[0], rows, self.scaling.scaled(targets[measured]), measured)

    def play(self, X: Floats, targets: Floats, tail: float, slots: bool) -> dict[str, Floats]:
        if not self.banks or self.held or self.scaling.farness(targets[0]):
            return self.play_one(X[0], targets[0], tail)
        first, room = self.rows, self.room()
        history = self.lagged.copy()
        rows, scaled, scale, news = self.scaling.stream(X[:room], targets[:room], self.lagged)
        count = len(rows)
        wanted = ["predictions", "weights", *(["slot_predictions"] if slots else [])]
        trace = self.banks[0].run(rows, scaled, record=wanted)
        values, ends = np.empty(count), np.empty((count, 2))
        hot.settle_rows(
            trace.predictions,
            scale,
            targets[:count],
            self.answers,
            LEVELS,
            self.quantiles,
            tail,
            values,
            ends,
        )
        self.rows += count
        before = lagged_rows(targets[:count], history)
        self.keep(X[:count], before, targets[:count], np.arange(first, self.rows))
        for t, column in news:
            self.note("input level", first + t + 1, column)
        self.watch(np.abs(targets[:count] - values), trace.weights, first + 1)
        found = {"predictions": values, "lower": ends[:, 0], "upper": ends[:, 1]}
        found["weights"] = trace.weights
        if slots:
            found["slot_predictions"] = scale[:, :1] + scale[:, 1:] * trace.slot_predictions
        if self.rows in STARTS:
            self.start()
        return found

    def described(self, said: Said) -> dict[str, Floats]:
        """An answer as the row of a trace."""
        value, lower, upper = said.answer
        found = {"predictions": value, "lower": lower, "upper": upper}
        spoken = said.slots[0] if len(said.slots) else np.full(len(self.names), value)
        rows = {"weights": self.weights(), "slot_predictions": spoken}
        return {name: np.array([value]) for name, value in (found | rows).items()}

    # --- saving ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        held: dict[str, Any] = {
            "held_inputs": np.zeros((PATIENCE, self.dimension)),
            "held_lagged": np.zeros((PATIENCE, self.plan.lags)),
            "held_targets": np.zeros(PATIENCE),
            "held_expected": np.zeros(PATIENCE),
        }
        for place, row in enumerate(self.held):
            for array, value in zip(held.values(), row, strict=True):
                array[place] = value
        own = {"answers": self.answers, "quantiles": self.quantiles, "streaks": self.streaks}
        return super().state() | held | own

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"held": len(self.held)}

    def restore(self, state: Mapping[str, Floats], facts: Mapping[str, Any]) -> None:
        super().restore(state, facts)
        names = ("inputs", "lagged", "targets", "expected")
        rows = zip(*(state[f"held_{name}"][: int(facts["held"])] for name in names), strict=True)
        self.held = [Row(x.copy(), lags.copy(), float(y), float(e)) for x, lags, y, e in rows]
