"""Weights of forecasts, for every horizon from its own past errors.

    minimise  sum_i d^(n-i) (w'e_i)^2 + RIDGE L |w|^2 + PRICE L h / (N + h) sum_p c_p w_p

over the simplex, where e_i holds the errors of the slots' forecasts h rows ahead, as they were
made, L is the sum of the best slot's squared errors and N the sum of the discounts (see
`combiners.stacking`). A horizon learns its weights as soon as its own target comes, whatever the
longest one is.

The third part is a price of slots with coefficients: c_p is 0 for the last value and other
forecasts that are only read off, else 1. Errors of h rows overlap, so N rows have no more than
about N / h independent errors: by chance alone some slot is better than the last value by h / N of
its loss. The memory, 1 / (1 - d), is longer for far horizons for the same reason.

Some slots may forecast what inputs known in advance leave of a target. They are the first ones.
Their errors are those with the known part added, so that the weights say for each horizon how much
of the forecast is made with known inputs: the *share*.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...combiners.pairwise_solver import PAIRWISE, normalise, pairwise_scratch
from ...combiners.stacking import LARGEST_ERROR, WORST_RATIO, solve_weights
from ...native.arguments import Arguments, floats, ints
from ...native.functions import native
from ...native.phases import Phase
from ...utils.validation import Floats

MEMORY = 500.0
"""Rows that the weights one row ahead look at; sqrt(h) times as many h rows ahead."""
RIDGE, PRICE = 0.005, 2.0
_TOLERANCE, _STEPS = 1e-4, 200

STACKED = Arguments(
    "horizon_stacking",
    outputs=int,
    slots=int,
    known=int,  # so many of the first slots forecast what known inputs leave
    rows=int,  # the longest horizon: that many moments wait for targets
    tolerance=float,
    steps=int,
    horizons=ints("outputs"),
    prices=floats("slots"),
    # State of every horizon:
    sums=floats("outputs", "slots", "slots"),  # of products of errors
    counts=floats("outputs"),  # N
    weights=floats("outputs", "slots"),
    # Forecasts that wait, those of moment n in row n % rows:
    made=floats("rows", "outputs", "slots"),
    # The present moment:
    y=floats("outputs", 2),  # what the first slots forecast, and the target
    forecasts=floats("outputs", "slots"),
    output=floats("outputs", 2),  # the combined forecast, and the spread of the slots around it
    # Scratch:
    moments=floats("slots", "slots"),  # sums with the price
    errors=floats("slots"),
    active=floats("slots"),
    gradient=floats("slots"),
    diagonal=floats("slots"),
    certificate=floats(4),
    **PAIRWISE,
)


@native(STACKED)
def learn(a, first, count):
    """Learn the targets y, of moment `first`; the forecasts of the last `count` moments wait."""
    for k in range(a.outputs):
        horizon = a.horizons[k]
        if horizon > count:
            continue
        made, sums = a.made[(first - horizon) % a.rows, k], a.sums[k]
        discount = 1.0 - 1.0 / (MEMORY * math.sqrt(float(horizon)))
        for p in range(a.slots):
            error = made[p] - (a.y[k, 0] if p < a.known else a.y[k, 1])
            if not abs(error) <= LARGEST_ERROR:
                error = -LARGEST_ERROR if error < 0.0 else LARGEST_ERROR
            a.errors[p] = error
        least = np.inf
        for p in range(a.slots):
            for q in range(a.slots):
                sums[p, q] = discount * sums[p, q] + a.errors[p] * a.errors[q]
            least = min(least, sums[p, p])
        a.counts[k] = discount * a.counts[k] + 1.0
        price = 0.5 * PRICE * least * (float(horizon) / (a.counts[k] + float(horizon)))
        for p in range(a.slots):
            a.active[p] = 1.0 if sums[p, p] <= WORST_RATIO * least else 0.0
            for q in range(a.slots):
                # As the weights have the sum 1, this is a linear price of 2 c'w.
                a.moments[p, q] = sums[p, q] + price * (a.prices[p] + a.prices[q])
        if normalise(a.weights[k], a.active) > 0:
            solve_weights(a, RIDGE * least, a.weights[k])


@native(STACKED)
def combine(a, first, count):
    """output: the weighted forecasts, and the weighted deviations of the slots around them."""
    for k in range(a.outputs):
        value = 0.0
        for p in range(a.slots):
            if a.weights[k, p] > 0.0:
                value += a.weights[k, p] * a.forecasts[k, p]
        spread = 0.0
        for p in range(a.slots):
            if a.weights[k, p] > 0.0:
                away = a.forecasts[k, p] - value
                spread += a.weights[k, p] * (away * away)
        a.output[k, 0], a.output[k, 1] = value, math.sqrt(spread)


class HorizonStacking:
    """The weights of all horizons, and the slots' forecasts that wait for their targets.

    Parameters
    ----------
    horizons : in rows, ascending.
    prices : (slots,), c: 0 for forecasts without coefficients, else 1. All weight is on the former
        until a target has come.
    known : how many of the first slots forecast what inputs known in advance leave.
    """

    def __init__(self, horizons: Sequence[int], prices: Floats, known: int = 0) -> None:
        outputs, slots, rows = len(horizons), len(prices), horizons[-1]
        self._horizons, self._prices, self._known = np.array(horizons), prices, known
        free = np.where(prices == prices.min(), 1.0, 0.0)
        self.weights = np.tile(free / free.sum(), (outputs, 1))
        self.sums = np.zeros((outputs, slots, slots))
        self.counts = np.zeros(outputs)
        self.made = np.zeros((rows, outputs, slots))
        self.shares = np.zeros((rows, outputs))
        """The share of every forecast that waits."""

    @cached_property
    def _batch(self) -> dict[str, Any]:
        outputs, slots = self.weights.shape
        arrays: dict[str, Any] = {
            "y": np.zeros((outputs, 2)),
            "forecasts": np.zeros((outputs, slots)),
            "output": np.zeros((outputs, 2)),
        }
        arguments = {
            **arrays,
            **{name: getattr(self, name) for name in ("sums", "counts", "weights", "made")},
            "outputs": outputs,
            "slots": slots,
            "known": self._known,
            "rows": len(self.made),
            "tolerance": _TOLERANCE,
            "steps": _STEPS,
            "horizons": self._horizons,
            "prices": self._prices,
            "moments": np.zeros((slots, slots)),
            **{name: np.zeros(slots) for name in ("errors", "active", "gradient", "diagonal")},
            "certificate": np.zeros(4),
            **pairwise_scratch(slots),
        }
        steps = {name: Phase(step, **arguments) for name, step in _STEPS_BY_NAME.items()}
        return {**arrays, **steps}

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but what holds the addresses of arrays."""
        return {name: value for name, value in self.__dict__.items() if name != "_batch"}

    @property
    def share(self) -> Floats:
        """(H,): the weight of the forecasts with known inputs."""
        return np.array([math.fsum(row[: self._known]) for row in self.weights])

    def learn(self, moment: int, waiting: int, left: Floats, target: float) -> None:
        """Learn the target of a moment, for which the forecasts of the last `waiting` ones count.

        left : (H,), what known inputs leave of it, as far as they were known h rows before.
        """
        self._batch["y"][:, 0], self._batch["y"][:, 1] = left, target
        self._batch["learn"].run(moment, waiting)

    def combine(self, forecasts: Floats) -> tuple[Floats, Floats]:
        """(H,) combined forecasts and their spreads, of the slots' forecasts (H, slots)."""
        batch = self._batch
        batch["forecasts"][:] = forecasts
        batch["combine"].run(0, 1)
        return batch["output"][:, 0].copy(), batch["output"][:, 1].copy()

    def keep(self, moment: int, forecasts: Floats) -> None:
        """Keep the slots' forecasts of a moment until their targets come."""
        row = moment % len(self.made)
        self.made[row], self.shares[row] = forecasts, self.share

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        return {name: getattr(self, name) for name in _STATE}


_STATE = ("weights", "sums", "counts", "made", "shares")
_STEPS_BY_NAME = {"learn": learn, "combine": combine}
