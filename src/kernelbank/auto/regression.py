"""The desk for targets that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

from .._hot import answers as hot
from .._hot.scaling import PATIENCE, WILD
from .._validate import Floats
from .desk import CHUNK, STARTS, Desk, Said
from .plan import Plan

LEVELS = np.array([0.0005, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
"""Tails whose quantiles are followed; others lie between them."""


class Regression(Desk):
    """One bank, on the target in its deviations.

    A target that is far off (beyond 10 sd) is held back, with its row. Five in a row are a new
    level: the target's figures start anew, and the rows are learned in the new ones. If a usual
    target comes before, those held back are learned at 10 sd, and not at all beyond 1,000 sd. So a
    level that jumps does not teach the slots nonsense, and the combiner no wrong trust.
    """

    def __init__(self, plan: Plan, dimension: int) -> None:
        super().__init__(plan, dimension, target=True, kept=STARTS[-1])
        self.answers = np.zeros(hot.ANSWERS)
        normal = [NormalDist().inv_cdf(1 - tail) for tail in LEVELS]
        self.quantiles = np.array([normal, normal])
        self.held: list[tuple[Floats, Floats, float]] = []

    # --- answering ------------------------------------------------------------------------------

    def ask(self, X: Floats, lagged: Floats, tail: float) -> list[Said]:
        mean, sd = self.scaling.scale
        slots = np.zeros((0, len(self.names)))
        if not self.banks:
            mean = float(self.kept()[2].mean()) if self.rows else 0.0
            sd = 0.0
            scores = np.zeros(len(X))
        elif len(X) == 1:
            value, own = self.banks[0].answer_one(self.scaling.rows(X, lagged)[0])
            scores, slots = np.array([value]), mean + sd * own[None]
        else:
            scores = self.banks[0].predict(self.scaling.rows(X, lagged))
        values, ends = np.empty(len(X)), np.empty((len(X), 2))
        hot.answer_rows(
            scores, mean, sd, self.answers, LEVELS, self.quantiles, tail, values, ends
        )
        answers = np.column_stack([values, ends])
        return [
            Said(self.rows, lagged[t].copy(), scores[t : t + 1], slots, answers[t])
            for t in range(len(X))
        ]

    def slot_values(self, X: Floats, lagged: Floats) -> Floats:
        """(n, P): what every slot would answer, in the target's units."""
        mean, sd = self.scaling.scale
        if not self.banks:
            mean = float(self.kept()[2].mean()) if self.rows else 0.0
            return np.full((len(X), len(self.names)), mean)
        return mean + sd * self.banks[0].predict_slots(self.scaling.rows(X, lagged))

    def as_lag(self, said: Said) -> float:
        return float(said.answer[0])

    # --- learning -------------------------------------------------------------------------------

    def tell(self, x: Floats, said: Said, target: float) -> None:
        value = float(said.answer[0])
        mean, sd = self.scaling.scale
        hot.settle_row(value, mean, sd, target, self.answers, LEVELS, self.quantiles)
        if self.banks:
            weights = self.banks[0].weights
            self.watch(np.array([abs(target - value)]), weights[None], self.rows + 1)
        self.rows += 1
        row = (x.copy(), said.lagged, target)
        if self.rows <= STARTS[-1]:
            self.keep(x[None], said.lagged[None], np.array([target]))
        if self.rows in STARTS:
            self.shift(target)
            self.start()
            return
        if not self.banks:
            self.shift(target)
            return
        far = self.scaling.farness(target)
        waiting = [*self.held, row]
        inputs, targets = self._shown(waiting)
        for column in self.scaling.take(x):
            self.note("input level", self.rows, column)
        changed = self.scaling.take_target(target)
        self.shift(target)
        if changed:
            self._change_level(waiting)
        elif far:
            self.held = waiting
        elif self.held:
            measured = [place for place, (*_, y) in enumerate(waiting) if not self._wild(y)]
            self.held = []
            self._learn(inputs[measured], targets[measured])
        else:
            late = said.row + 1 < self.rows and len(said.slots) > 0
            self._learn(inputs, targets, self.scaling.scaled(said.slots[0]) if late else None)

    def _change_level(self, waiting: list[tuple[Floats, Floats, float]]) -> None:
        """The target has a new level: learn the rows that were held back, in its figures."""
        self.note("target level", self.rows)
        seen = [y for *_, y in waiting]
        mean, sd = self.scaling.scale
        hot.forget_range(self.answers, min(*seen, mean - sd), max(*seen, mean + sd))
        self.held = []
        self._learn(*self._shown(waiting))

    def _wild(self, y: float) -> bool:
        return self.scaling.farness(y) == WILD

    def _shown(self, rows: list[tuple[Floats, Floats, float]]) -> tuple[Floats, Floats]:
        """Rows as the bank sees them now."""
        X = np.array([x for x, _, _ in rows])
        lagged = np.array([lags for _, lags, _ in rows])
        return self.scaling.rows(X, lagged), self.scaling.scaled(np.array([y for *_, y in rows]))

    def _learn(self, inputs: Floats, targets: Floats, said: Floats | None = None) -> None:
        if len(inputs) == 1:
            self.banks[0].learn_one(inputs[0], float(targets[0]), said)
        elif len(inputs):
            self.banks[0].run(inputs, targets, record="light")

    def start(self) -> None:
        X, lagged, targets = self.kept()
        self.scaling.begin(X, targets)
        self.banks = [self.plan.bank(self.scaling)]
        self.held = []
        measured = [t for t, y in enumerate(targets) if not self._wild(y)]
        rows = self.scaling.rows(X[measured], lagged[measured])
        self._learn(rows, self.scaling.scaled(targets[measured]))

    def play(self, X: Floats, targets: Floats, tail: float, slots: bool) -> dict[str, Floats]:
        if self.rows < STARTS[-1] or self.held or self.scaling.farness(targets[0]):
            return self._play_one(X[0], targets[0], tail, slots)
        first = self.rows
        rows, scaled, scale, news = self.scaling.stream(X[:CHUNK], targets[:CHUNK], self.lagged)
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
        for t, column in news:
            self.note("input level", first + t + 1, column)
        self.watch(np.abs(targets[:count] - values), trace.weights, first + 1)
        found = {"predictions": values, "lower": ends[:, 0], "upper": ends[:, 1]}
        found["weights"] = trace.weights
        if slots:
            found["slot_predictions"] = scale[:, :1] + scale[:, 1:] * trace.slot_predictions
        return found

    def _play_one(self, x: Floats, target: float, tail: float, slots: bool) -> dict[str, Floats]:
        lagged = self.lagged.copy()
        said = self.ask(x[None], lagged[None], tail)[0]
        value, lower, upper = said.answer
        found = {
            "predictions": np.array([value]),
            "lower": np.array([lower]),
            "upper": np.array([upper]),
        }
        equal = np.full((1, len(self.names)), 1 / len(self.names))
        found["weights"] = self.banks[0].weights[None] if self.banks else equal
        if slots:
            found["slot_predictions"] = self.slot_values(x[None], lagged[None])
        self.tell(x, said, target)
        return found

    # --- saving ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        held = {
            "held_inputs": np.zeros((PATIENCE, self.dimension)),
            "held_lagged": np.zeros((PATIENCE, self.plan.lags)),
            "held_targets": np.zeros(PATIENCE),
        }
        for place, row in enumerate(self.held):
            for array, value in zip(held.values(), row, strict=True):
                array[place] = value
        return super().state() | held | {"answers": self.answers, "quantiles": self.quantiles}

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"held": len(self.held)}

    def restore(self, state: Mapping[str, Floats], facts: Mapping[str, Any]) -> None:
        super().restore(state, facts)
        arrays = [state[f"held_{name}"] for name in ("inputs", "lagged", "targets")]
        rows = zip(*(array[: int(facts["held"])] for array in arrays), strict=True)
        self.held = [(x.copy(), lagged.copy(), float(y)) for x, lagged, y in rows]
