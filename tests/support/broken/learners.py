"""Learners that each lack one property, with the property (None: a sound one)."""

import itertools
from dataclasses import dataclass, field

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
    """Changes if another bank has learned in between."""

    last = [None]  # noqa: RUF012

    def learn(self, group, block, buffer):
        if block.first == 0:
            self.last[0] = None
        if self.last[0] not in (None, id(group)):
            group.state["weights"] *= 0.5
        self.last[0] = id(group)
        super().learn(group, block, buffer)


class CounterOutsideState(Sound):
    """Adds a count that it keeps outside its state."""

    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        before, count = group.scratch.get("seen", 0), len(block.points)
        seen = 0.001 * (before + np.arange(count + 1))
        group.predictions[:, :count, 0] += seen[:-1]
        group.values[:, 1 : count + 1, :, 0] += seen[1:, None]
        group.scratch["seen"] = before + count

    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return out + 0.001 * group.scratch["seen"]

    def norm(self, state, kernel):
        return 0.0


class UsesLaterTargets(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        ahead = 0.01 * (block.targets[-1] - block.targets)
        group.predictions[:, 1 : len(ahead), 0] += ahead[1:]


class KeepsReferences(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.scratch["last"] = block.points[-1]

    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return out + 1e-3 * group.scratch["last"].sum()


class ChangedByEvaluate(Sound):
    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        group.state["weights"] *= 0.99
        return out


class ChangedByValue(Sound):
    def value(self, state, x, kernel):
        state["weights"] *= 0.99
        return super().value(state, x, kernel)


class TwoPredictions(Sound):
    def evaluate(self, group, seen, points, statistics, wanted):
        return 1.01 * super().evaluate(group, seen, points, statistics, wanted)


class DependsOnOtherInputs(Sound):
    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return out + (points - points.mean(axis=0)).sum(axis=1)[None, :, None]


class OldWindowValues(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.values[:, 1:, -1] *= 0.9


class Follows(Sound):
    """Sound: nothing is shared, and slots of other outputs learn as those of the first."""

    def follows(self, objective, leader):
        return True

    def follow(self, group, leader, block, buffer):
        self.learn(group, block, buffer)


class FollowsWithoutTargets(Follows):
    def follow(self, group, leader, block, buffer):
        for name in ("values", "norms", "predictions"):
            getattr(group, name)[...] = getattr(leader, name)
        for name, array in group.state.items():
            array[...] = leader.state[name]


class SharesWeights(Follows):
    """Says of weights, which depend on the targets, that they follow from the inputs."""

    shared_arrays = frozenset({"weights"})


class SpoiledByMissing(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.state["weights"] += 0.0 * block.targets.sum()


class NegativeNorm(Sound):
    def norm(self, state, kernel):
        return -super().norm(state, kernel)


class HalfTheNorm(Sound):
    """The norm, not its square, of a function whose norm is above 1."""

    def norm(self, state, kernel):
        return 0.5 * super().norm(state, kernel)


class KeepsAllInputs(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.scratch.setdefault("inputs", []).extend(block.points.copy())


class GrowingState(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.state["count"] = np.zeros((group.leaves, block.first))


class MixesLeaves(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        if group.leaves > 1:
            group.predictions[0] = group.predictions[1] + 1


class RaisesOnLargeTargets(Sound):
    def step(self, state, x, y, slope, kernel):
        if abs(y) > 1e8:
            raise ZeroDivisionError("too large")
        super().step(state, x, y, slope, kernel)


class HidesNaN(Sound):
    """Predicts NaN, but its state stays finite."""

    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return np.where(np.abs(out) > 1e6, np.nan, out)


class RefusesWithKeyError(Sound):
    def check(self, objective):
        if objective.loss.labels:
            raise KeyError("hinge")


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
class UnhashableField(Sound):
    weights: list = field(default_factory=list)


@dataclass(frozen=True)
class UnsaveableField(Sound):
    weights: object = np.float32(1.0).dtype


LEARNERS = [
    (Sound(), None),
    (NonzeroAtStart(), "0 before the first sample"),
    (GlobalCounter(), "free of state outside its bank"),
    (SharedBetweenBanks(), "free of state outside its bank"),
    (CounterOutsideState(), "the same after saving and loading"),
    (UsesLaterTargets(), "the same for blocks and sample by sample"),
    (KeepsReferences(), "keeping copies of its arguments"),
    (ChangedByEvaluate(), "unchanged by predicting"),
    (ChangedByValue(), "free of exceptions"),
    (TwoPredictions(), "consistent in predicting and learning"),
    (DependsOnOtherInputs(), "consistent in predicting and learning"),
    (OldWindowValues(), "exact in its values on the window"),
    (Follows(), None),
    (FollowsWithoutTargets(), "the same for several outputs"),
    (SharesWeights(), "the same for several outputs"),
    (SpoiledByMissing(), "able to leave out a missing target"),
    (NegativeNorm(), "large enough in its norm"),
    (HalfTheNorm(), "large enough in its norm"),
    (KeepsAllInputs(), "bounded in memory"),
    (GrowingState(), "bounded in memory"),
    (MixesLeaves(), "independent of its neighbours"),
    (RaisesOnLargeTargets(), "robust on extreme data"),
    (HidesNaN(), "robust on extreme data"),
    (RefusesWithKeyError(), "clear about what it refuses"),
    (RefusesWithoutReason(), "clear about what it refuses"),
    (RefusesEverything(), "clear about what it refuses"),
    (NotFrozen(), "a frozen dataclass of plain settings"),
    (UnhashableField(), "a frozen dataclass of plain settings"),
    (UnsaveableField(), "a frozen dataclass of plain settings"),
]
