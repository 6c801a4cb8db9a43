"""Components that each lack one property, by the property's name: what the checks must find."""

import itertools
from dataclasses import dataclass, field

import numpy as np

import kernelbank as kb
from support.instances import cauchy

K, L = kb.kernels, kb.losses

# --- kernels --------------------------------------------------------------------------------------


def squared_distance(X, Z):
    return ((X[:, None] - Z[None]) ** 2).sum(axis=2)


def skew(X, Z):
    return cauchy(X, Z) + 0.01 * (X[:, None, 0] - Z[None, :, 0])


def tanh(X, Z):
    return np.tanh((X[:, None] * Z[None]).sum(axis=2) - 1) + 1


def parabola(X, Z):
    return np.maximum(0, 1 - squared_distance(X, Z))


def negative(X, Z):
    return -cauchy(X, Z)


def centred(X, Z):
    return np.exp(-squared_distance(X, Z) / (1 + X.std()))


def last_digits(X, Z):
    return cauchy(X, Z) * (1 + (2.0**-52 if len(Z) > 10 else 0.0))


def greedy(X, Z):
    X /= 2.0
    Z /= 2.0
    return cauchy(X, Z)


_draw = np.random.default_rng(0)


def random(X, Z):
    return cauchy(X, Z) + 1e-9 * _draw.normal(size=(len(X), len(Z)))


def singular(X, Z):
    with np.errstate(divide="ignore"):
        return 1 / squared_distance(X, Z)


def flat(X, Z):
    return cauchy(X, Z).ravel()


def raising(X, Z):
    raise RuntimeError("not today")


KERNELS = [
    (K.Custom(skew), "symmetric"),
    (K.Custom(tanh), "positive semi-definite"),
    (K.Custom(parabola), "positive semi-definite"),
    (K.Custom(cauchy) + K.Custom(parabola) * K.Gaussian(3.0), "positive semi-definite"),
    (K.Custom(negative), "non-negative on the diagonal"),
    (K.Custom(centred), "the same for calls of any number of rows"),
    (K.Custom(last_digits), "the same for calls of any number of rows"),
    (K.Custom(greedy), "leaving its arguments unchanged"),
    (K.Gaussian(1.0) + K.ActiveDims(K.Custom(greedy), [1]), "leaving its arguments unchanged"),
    (K.Custom(random), "deterministic"),
    (K.Custom(singular), "finite"),
    (K.Custom(flat), "of the right shape"),
    (K.Custom(raising), "free of exceptions"),
]

# --- losses ---------------------------------------------------------------------------------------


def square(f, y):
    return (f - y) ** 2


def slope(f, y):
    return 2 * (f - y)


def own(value, derivative, curvature=None, name="own"):
    return L.Custom(value, derivative, curvature, name)


def swallow(f, y):
    f -= y
    return f**2


@dataclass(frozen=True)
class Margins(L.Custom):
    """A loss of labels."""

    labels = True


LOSSES = [
    (own(square, lambda f, y: f - y), "consistent with its derivative"),
    (own(square, lambda f, y: 2 * (y - f)), "consistent with its derivative"),
    (
        own(lambda f, y: np.log1p((f - y) ** 2), lambda f, y: 2 * (f - y) / (1 + (f - y) ** 2)),
        "convex",
    ),
    (own(lambda f, y: np.minimum(np.abs(f - y), 9), lambda f, y: np.sign(f - y)), "convex"),
    (
        own(lambda f, y: np.abs(f - y), lambda f, y: np.where(f == y, 3.0, np.sign(f - y))),
        "consistent with its derivative",
    ),
    (
        own(lambda f, y: np.abs(f - y), lambda f, y: (1 + 2e-10) * np.sign(f - y)),
        "a subgradient everywhere",
    ),
    (own(square, slope, 1.9), "within its curvature"),
    (own(lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y), 1.0), "within its curvature"),
    (own(lambda f, y: (f - y) ** 2 + 0 * f.max(), slope), None),
    (own(lambda f, y: (f - y) ** 2 / len(f), slope), "computed element by element"),
    (own(lambda f, y: (f - f.mean()) ** 2, slope), "computed element by element"),
    (own(swallow, slope), "leaving its arguments unchanged"),
    (own(lambda f, y: square(f, y) + _draw.uniform(size=f.shape), slope), "deterministic"),
    (own(lambda f, y: np.exp(f - y), lambda f, y: np.exp(f - y)), "finite"),
    (
        Margins(lambda f, y: np.log(1 + np.exp(-y * f)), lambda f, y: -y / (1 + np.exp(y * f))),
        "finite",
    ),
    (own(lambda f, y: 1.0, slope), "free of exceptions"),
]

# --- learners -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sound(kb.learners.PythonLearner):
    """A linear function by gradient steps. The others spoil it."""

    rate: float = 0.05

    def start(self, dimension, kernel):
        return {"weights": np.zeros(dimension), "count": np.zeros(())}

    def value(self, state, x, kernel):
        return (state["weights"] * x).sum()

    def step(self, state, x, y, slope, kernel):
        state["count"] += 1
        state["weights"] -= self.rate / (1 + (x * x).sum()) * slope * x

    def norm(self, state, kernel):
        return (state["weights"] ** 2).sum()


class Beginning(Sound):
    def value(self, state, x, kernel):
        return super().value(state, x, kernel) + 1


class Counting(Sound):
    total = itertools.count(1)

    def step(self, state, x, y, slope, kernel):
        super().step(state, x, y, slope / next(self.total), kernel)


class Alternating(Sound):
    """Diagnostics that another bank has learned in between."""

    last = [None]  # noqa: RUF012

    def learn(self, group, block, buffer):
        if block.first == 0:
            self.last[0] = None
        if self.last[0] not in (None, id(group)):
            group.state["weights"] *= 0.5
        self.last[0] = id(group)
        super().learn(group, block, buffer)


class Forgetful(Sound):
    """Adds what it has counted, outside its state."""

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


class Foresight(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        ahead = 0.01 * (block.targets[-1] - block.targets)
        group.predictions[:, 1 : len(ahead), 0] += ahead[1:]


class Aliasing(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.scratch["last"] = block.points[-1]

    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return out + 1e-3 * group.scratch["last"].sum()


class Touchy(Sound):
    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        group.state["weights"] *= 0.99
        return out


class Writing(Sound):
    def value(self, state, x, kernel):
        state["weights"] *= 0.99
        return super().value(state, x, kernel)


class TwoFaced(Sound):
    def evaluate(self, group, seen, points, statistics, wanted):
        return 1.01 * super().evaluate(group, seen, points, statistics, wanted)


class Sociable(Sound):
    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return out + (points - points.mean(axis=0)).sum(axis=1)[None, :, None]


class Stale(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.values[:, 1:, -1] *= 0.9


class Antinorm(Sound):
    def norm(self, state, kernel):
        return -super().norm(state, kernel)


class Hoarding(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.scratch.setdefault("inputs", []).extend(block.points.copy())


class Growing(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        group.state["count"] = np.zeros((group.leaves, block.first))


class Crowded(Sound):
    def learn(self, group, block, buffer):
        super().learn(group, block, buffer)
        if group.leaves > 1:
            group.predictions[0] = group.predictions[1] + 1


class Fragile(Sound):
    def step(self, state, x, y, slope, kernel):
        if abs(y) > 1e8:
            raise ZeroDivisionError("too large")
        super().step(state, x, y, slope, kernel)


class Hiding(Sound):
    """Predicts NaN, and does not tell the bank."""

    def evaluate(self, group, seen, points, statistics, wanted):
        out = super().evaluate(group, seen, points, statistics, wanted)
        return np.where(np.abs(out) > 1e6, np.nan, out)


class Rude(Sound):
    def check(self, objective):
        if objective.loss.labels:
            raise KeyError("hinge")


class Mumbling(Sound):
    def check(self, objective):
        if objective.loss.labels:
            raise kb.errors.InvalidArgument("no")


class Choosy(Sound):
    def check(self, objective):
        raise kb.errors.InvalidArgument("'loss' must be another")


@dataclass
class Thawed(kb.learners.Learner):
    rate: float = 0.1


@dataclass(frozen=True)
class Listed(Sound):
    weights: list = field(default_factory=list)


@dataclass(frozen=True)
class Arrayed(Sound):
    weights: object = np.float32(1.0).dtype


LEARNERS = [
    (Sound(), None),
    (Beginning(), "0 before the first sample"),
    (Counting(), "free of state outside its bank"),
    (Alternating(), "free of state outside its bank"),
    (Forgetful(), "the same after saving and loading"),
    (Foresight(), "the same for blocks and sample by sample"),
    (Aliasing(), "keeping copies of its arguments"),
    (Touchy(), "unchanged by predicting"),
    (Writing(), "free of exceptions"),
    (TwoFaced(), "consistent in predicting and learning"),
    (Sociable(), "predicting each input by itself"),
    (Stale(), "exact in its values on the window"),
    (Antinorm(), "finite and non-negative in its norm"),
    (Hoarding(), "bounded in memory"),
    (Growing(), "bounded in memory"),
    (Crowded(), "independent of its neighbours"),
    (Fragile(), "robust on extreme data"),
    (Hiding(), "robust on extreme data"),
    (Rude(), "clear about what it refuses"),
    (Mumbling(), "clear about what it refuses"),
    (Choosy(), "accepting some kernel and loss"),
    (Thawed(), "a frozen dataclass"),
    (Listed(), "hashable"),
    (Arrayed(), "saveable"),
]

# --- combiners ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fair(kb.combiners.Combiner):
    """Weights by the inverse of the sum of losses. The others spoil it."""

    def shapes(self, slots):
        return {"totals": (slots,)}

    def combine(self, objective, evidence, state, weights):
        out = np.zeros_like(evidence.slot_loss)
        for t, losses in enumerate(evidence.slot_loss):
            state["totals"] += losses
            out[t] = 1 / (1e-300 + state["totals"])
            if out[t].any():
                out[t] /= out[t].sum()
        return out


class Blockwise(Fair):
    def combine(self, objective, evidence, state, weights):
        totals = np.cumsum(evidence.slot_loss, axis=0)
        out = 1 / totals
        sums = out.sum(axis=1, keepdims=True)
        return out / np.where(sums > 0, sums, 1)


class Loyal(Fair):
    """Gives weight to the dead."""

    def combine(self, objective, evidence, state, weights):
        return np.full_like(evidence.slot_loss, 1 / len(weights))


class Amnesiac(Fair):
    """Keeps its state on itself."""

    def combine(self, objective, evidence, state, weights):
        own = vars(self).setdefault("own", {})
        if evidence.first == 0:
            own[id(state)] = {"totals": np.zeros(len(weights))}
        kept = own.setdefault(id(state), {"totals": np.zeros(len(weights))})
        return super().combine(objective, evidence, kept, weights)


class Remembering(Fair):
    """Learns from one game for the next."""

    games = itertools.count(1)

    def combine(self, objective, evidence, state, weights):
        out = super().combine(objective, evidence, state, weights)
        out[:, 0] += next(self.games) * 1e-9
        return out


class Lavish(Fair):
    def combine(self, objective, evidence, state, weights):
        return 1.1 * super().combine(objective, evidence, state, weights)


class Undefined(Fair):
    """inf - inf, once all slots are out."""

    def combine(self, objective, evidence, state, weights):
        above = evidence.slot_loss - evidence.slot_loss.min(axis=1, keepdims=True)
        return np.exp(-above) / np.exp(-above).sum(axis=1, keepdims=True)


class Single(Fair):
    def combine(self, objective, evidence, state, weights):
        return super().combine(objective, evidence, state, weights)[-1]


class Heavy(Fair):
    def first_weights(self, slots):
        return np.ones(slots)


class Sparse(Fair):
    def first_weights(self, slots):
        return np.ones(1)


class Exposed(Fair):
    def diagnostics(self, state, weights):
        return state


class Silent(Fair):
    def diagnostics(self, state, weights):
        return None


class Scribbling(Fair):
    def combine(self, objective, evidence, state, weights):
        evidence.slot_loss[:] = 0
        return super().combine(objective, evidence, state, weights)


class Wanting(Fair):
    def combine(self, objective, evidence, state, weights):
        return np.abs(evidence.values[:, 0])


class Stacked(Fair):
    """Discounted moments of the errors, and thirty steps of Frank and Wolfe: sound."""

    def shapes(self, slots):
        return {"moments": (slots, slots)}

    def discount(self, t):
        return 0.9

    def combine(self, objective, evidence, state, weights):
        targets = evidence.targets[-len(evidence.slot_loss) :]
        out = np.zeros_like(evidence.slot_loss)
        for t, target in enumerate(targets):
            alive = np.isfinite(evidence.window_loss[t])
            errors = np.where(alive, evidence.slot_predictions[t] - target, 0.0)
            state["moments"] *= self.discount(t)
            state["moments"] += np.outer(errors, errors)
            own = alive / max(alive.sum(), 1)
            for step in range(30 if alive.any() else 0):
                slopes = np.where(alive, (state["moments"] * own).sum(axis=1), np.inf)
                best = np.arange(len(own)) == np.argmin(slopes)
                own += (best - own) * 2 / (step + 3)
            out[t] = own
        return out


class OnceABlock(Stacked):
    """Discounts by blocks."""

    def discount(self, t):
        return 0.9 if t == 0 else 1.0


COMBINERS = [
    (Fair(), None),
    (Blockwise(), "the same for blocks and sample by sample"),
    (Loyal(), "without weight on quarantined slots"),
    (Amnesiac(), "complete in its state"),
    (Remembering(), "a function of its evidence and state"),
    (Lavish(), "on the simplex"),
    (Undefined(), "finite"),
    (Single(), "free of exceptions"),
    (Heavy(), "on the simplex"),
    (Sparse(), "of one weight per slot"),
    (Exposed(), "able to give diagnostics"),
    (Silent(), "able to give diagnostics"),
    (Scribbling(), "free of exceptions"),
    (Wanting(), "free of exceptions"),
    (Stacked(), None),
    (OnceABlock(), "the same for blocks and sample by sample"),
]
