"""Learners that each lack one property, with the property (None: a sound one)."""

import itertools
from dataclasses import dataclass

import numpy as np

import kernelbank as kb


@dataclass(frozen=True)
class Sound(kb.learners.PythonLearner):
    """A linear function by gradient steps: sound. The others break one property each."""

    rate: float = 0.05

    def check_kernel(self, kernel):
        if not isinstance(kernel, kb.kernels.Linear):
            raise kb.errors.InvalidArgument(f"'kernel' must be Linear; got {kernel!r}. Use it.")

    def start(self, dimension, kernel):
        return {"weights": np.zeros(dimension), "count": np.zeros(())}

    def value(self, state, x, kernel):
        return (state["weights"] * x).sum()

    def step(self, state, x, y, slope, kernel):
        state["count"] += 1
        state["weights"] -= self.rate / (1 + (x * x).sum()) * slope * x

    def norm(self, state, kernel):
        return (state["weights"] ** 2).sum()


class NonzeroAtStart(Sound):
    def value(self, state, x, kernel):
        return super().value(state, x, kernel) + 1


class GlobalCounter(Sound):
    total = itertools.count(1)

    def step(self, state, x, y, slope, kernel):
        super().step(state, x, y, slope / next(self.total), kernel)


class SharedBetweenBanks(Sound):
    """Changes if another bank has learned another input in between."""

    last = [0.0]  # noqa: RUF012

    def start(self, dimension, kernel):
        return super().start(dimension, kernel) | {"last": np.zeros(())}

    def step(self, state, x, y, slope, kernel):
        if state["count"] and self.last[0] != state["last"]:
            state["weights"] *= 0.5
        state["last"] = self.last[0] = x[0]
        super().step(state, x, y, slope, kernel)


@dataclass(frozen=True)
class DrawnWithoutSeed(Sound):
    """Has a random number beside its settings, which a file does not keep."""

    def __post_init__(self):
        object.__setattr__(self, "drawn", np.random.default_rng().uniform(0.5, 1.0))

    def step(self, state, x, y, slope, kernel):
        super().step(state, x, y, self.drawn * slope, kernel)


class ChangedByValue(Sound):
    def value(self, state, x, kernel):
        state["weights"] *= 0.99
        return super().value(state, x, kernel)


class ChangesBehindTheView(Sound):
    """Writes to the state that it gets as read-only."""

    def value(self, state, x, kernel):
        state["weights"].base[...] *= 0.99
        return super().value(state, x, kernel)


class HalfTheNorm(Sound):
    """The norm, not its square, of a function whose norm is above 1."""

    def norm(self, state, kernel):
        return 0.5 * super().norm(state, kernel)


class RaisesOnLargeTargets(Sound):
    def step(self, state, x, y, slope, kernel):
        if abs(y) > 1e8:
            raise ZeroDivisionError("too large")
        super().step(state, x, y, slope, kernel)


class HidesNaN(Sound):
    """Predicts NaN at its first input if that is huge, but not while it is in the window."""

    def start(self, dimension, kernel):
        return super().start(dimension, kernel) | {"first": np.zeros(())}

    def step(self, state, x, y, slope, kernel):
        if state["count"] == 0:
            state["first"] = x[0]
        super().step(state, x, y, slope, kernel)

    def value(self, state, x, kernel):
        if abs(x[0]) > 1e6 and x[0] == state["first"] and state["count"] > 10:
            return np.nan
        return super().value(state, x, kernel)


class RefusesWithoutReason(Sound):
    def check(self, objective):
        if objective.loss.labels:
            raise kb.errors.InvalidArgument("no")


class RefusesEverything(Sound):
    def check(self, objective):
        raise kb.errors.InvalidArgument("'loss' must be another")


@dataclass
class NotFrozen(kb.learners.Learner):
    rate: float = 0.1


@dataclass(frozen=True)
class UnsaveableField(Sound):
    weights: object = np.float32(1.0).dtype


LEARNERS = [
    (Sound(), None),
    (NonzeroAtStart(), "0 before the first sample"),
    (GlobalCounter(), "free of state outside its bank"),
    (SharedBetweenBanks(), "free of state outside its bank"),
    (DrawnWithoutSeed(), "the same after saving and loading"),
    (ChangedByValue(), "free of exceptions"),
    (ChangesBehindTheView(), "unchanged by predicting"),
    (HalfTheNorm(), "large enough in its norm"),
    (RaisesOnLargeTargets(), "robust on extreme data"),
    (HidesNaN(), "robust on extreme data"),
    (RefusesWithoutReason(), "clear about what it refuses"),
    (RefusesEverything(), "clear about what it refuses"),
    (NotFrozen(), "a frozen dataclass of plain settings"),
    (UnsaveableField(), "a frozen dataclass of plain settings"),
]
