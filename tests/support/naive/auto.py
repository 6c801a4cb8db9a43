"""The parts of AutoBank as one would write them down: lists, no rings, no care for speed.

Written from the rules, not from the compiled loops: a second opinion on every figure.
"""

import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np

FAR, EXTREME, CLIP, ROW = 10.0, 1000.0, 8.0, 5
LONGEST, SAME, MEMORY = 10_000, 1e-10, 0.999

PROBABILITIES = np.arange(2049) / 2048
QUANTILES = np.array(
    [NormalDist().inv_cdf(float(np.clip(p, 0.5 / 2048, 1 - 0.5 / 2048))) for p in PROBABILITIES]
)


class Column:
    """One column: its statistics, the values among which it is ranked, and its correlation.

    `base` and `unit` are the mean and sd of some time ago (center and scale in the library).
    """

    def __init__(self, memory):
        self.memory = memory
        self.weight, self.mean, self.squares = 0, 0.0, 0.0
        self.base, self.unit = 0.0, 0.0
        self.values = []  # the last ones, the oldest first
        self.far_in_a_row = 0
        self.last = np.zeros(3)
        self.age = 0
        self.products, self.powers = 0.0, 0.0
        self.nearest = math.inf  # distance from the decision that base and unit follow, in sds

    @property
    def sd(self):
        if self.weight < 2:
            return 0.0
        sd = math.sqrt(self.squares / (self.weight - 1))
        return sd if sd > SAME * abs(self.mean) else 0.0

    def deviation(self, value):
        return away(value, self.base, self.unit)

    def is_far(self, value):
        return abs(self.deviation(value)) > FAR

    def is_extreme(self, value):
        return self.unit > 0 and abs(value - self.base) > EXTREME * self.unit

    def scaled(self, value):
        """A target as it is learned."""
        return float(np.clip(self.deviation(value), -FAR, FAR)) if self.unit > 0 else 0.0

    def rank(self, value):
        values = np.array(self.values)
        below, equal = np.sum(values < value), np.sum(values == value)
        share = (below + equal / 2 + 0.5) / (len(values) + 1)
        return float(np.interp(share, PROBABILITIES, QUANTILES))

    def correlation(self):
        return float(np.clip(self.products / self.powers, 0, 1)) if self.powers > 0 else 0.0

    def is_filled_in(self, value):
        return math.isnan(value) or self.is_extreme(value)

    def forms(self, value):
        """The deviation by base and unit, the deviation by mean and sd, and the rank."""
        if self.is_filled_in(value):
            return self.last * self.correlation() ** (self.age + 1)
        still, moving = self.deviation(value), away(value, self.mean, self.sd)
        return np.array([*np.clip([still, moving], -CLIP, CLIP), self.rank(value)])

    def _notice(self, value):
        """Keep the forms of a value that is not filled in."""
        if self.is_filled_in(value):
            self.age += 1
            return
        forms = self.forms(value)
        if self.age == 0:
            self.products = MEMORY * self.products + self.last[0] * forms[0]
            self.powers = MEMORY * self.powers + self.last[0] ** 2
        self.last, self.age = forms, 0

    def _hold(self, value):
        self.values = [*self.values, value][-self.memory :]

    def take(self, value):
        """Whether the value made a new level; steps between a few values are none."""
        self._notice(value)
        if math.isnan(value):
            return False
        far = self.is_far(value)
        self._enter(value, FAR)
        self._hold(value)
        self.far_in_a_row = self.far_in_a_row + 1 if far else 0
        if self.far_in_a_row < ROW:
            return False
        steps = len(set(self.values[-ROW:])) == 1 and len(set(self.values)) <= ROW
        self.change_level()
        return not steps

    def _enter(self, value, most):
        if self.sd > 0:
            value = self.mean + float(np.clip((value - self.mean) / self.sd, -most, most)) * self.sd
        full = self.weight == LONGEST
        before = self.mean
        self.weight = min(self.weight + 1, LONGEST)
        self.mean = before + (value - before) / self.weight
        self.squares += (value - before) * (value - self.mean)
        if full:
            self.squares *= (LONGEST - 1) / LONGEST
        self._follow()

    def _follow(self):
        sd = self.sd
        moved, grown = abs(self.mean - self.base), abs(sd - self.unit)
        self.nearest = min(abs(moved / sd - 0.1), abs(grown / sd - 0.1)) if sd > 0 else math.inf
        if moved > 0.1 * sd or grown > 0.1 * sd:
            self.base, self.unit = self.mean, sd

    def change_level(self):
        newest = np.array(self.values[-ROW:])
        mean, sd, old = newest.mean(), newest.std(ddof=1), self.sd
        if sd <= SAME * abs(mean):
            mean, sd = (mean + self.mean) / 2, abs(mean - self.mean) / 2
        elif old / 4 < sd < old * 4:
            sd = old
        self.mean, self.weight, self.squares = float(mean), ROW, float(sd**2 * (ROW - 1))
        self.base, self.unit = float(mean), float(sd)
        self.values = newest.tolist()
        self.far_in_a_row = 0

    def begin(self, values):
        self.__init__(self.memory)
        present = np.array([v for v in values if not math.isnan(v)])
        if not len(present):
            return
        middle = np.median(present)
        usual = np.sort(abs(present - middle))[len(present) - 1 - len(present) // 8]
        counted = present
        if usual > 0:
            counted = present[abs(present - middle) <= EXTREME * usual]
            counted = np.clip(counted, middle - 3 * usual, middle + 3 * usual)
        self.weight, self.mean = len(counted), float(counted.mean())
        self.squares = float(((counted - self.mean) ** 2).sum())
        self.base, self.unit = self.mean, self.sd
        measured = None
        for value in values:
            self._notice(value)
            if not self.is_filled_in(value):
                self._hold(value)
                measured = value
        self.last[2] = self.rank(measured)


def away(value, base, unit):
    """The deviation in units; infinite for any move of a column that was constant."""
    if unit > 0:
        return (value - base) / unit
    if abs(value - base) <= SAME * abs(base):
        return 0.0
    return math.inf if value > base else -math.inf


class Target(Column):
    """A column whose values may be held back; `far_in_a_row` is how many are."""

    def take_target(self, value, hold):
        """Whether five are held back: then `widen`, `new_level` or `change_level` has to follow."""
        self._notice(value)
        if not hold:
            self._add_held(FAR)
            self._enter(value, FAR)
        self._hold(value)
        self.far_in_a_row += hold
        return self.far_in_a_row >= ROW

    def replace_newest(self, values):
        """What was held back is believed to be these values."""
        self.values[len(self.values) - len(values) :] = values

    def _add_held(self, most):
        for value in self.values[len(self.values) - self.far_in_a_row :]:
            self._enter(value, most)
        self.far_in_a_row = 0

    def new_level(self, shift):
        self.mean += shift
        self.base += shift
        self.values = [v + shift for v in self.values[:-ROW]] + self.values[-ROW:]
        self._add_held(FAR)

    def widen(self):
        self._add_held(math.inf)


def meaning(targets, expected, mean, sd):
    """What five far targets mean, and by how much the level has moved if it has."""
    missed = np.array(targets) - np.array(expected)
    shift = float(np.median(missed))
    if abs(shift) < abs(np.median(targets) - mean) / 2:
        return "predicted", shift
    same = np.median(abs(missed - shift)) < 4 * sd
    return ("level" if same else "scale"), shift


class RegressionSteps:
    """Which targets of a regression are learned after a row, and as which numbers.

    A far target is held back. Until five of them are a change, it is believed to be no farther from
    its prediction than the usual error (`width`).
    """

    def __init__(self, columns, target):
        self.columns, self.target = columns, target
        self.held = []

    def take(self, x, y, expected, width):
        """The scaled targets that are learned, and what has changed."""
        forms = [column.forms(v)[0] for column, v in zip(self.columns, x, strict=True)]
        usual = np.mean(np.square(forms)) <= 3**2
        far = bool(self.target.is_far(y) and usual)
        for column, value in zip(self.columns, x, strict=True):
            column.take(value)
        believed = expected + float(np.clip(y - expected, -width, width)) if far else y
        rows = [*self.held, (y, expected, believed)]
        before = [self.target.scaled(b) for _, _, b in rows]
        if not far:
            self.target.replace_newest([b for _, _, b in self.held])
        five = self.target.take_target(y, far)
        self.held = rows if far and not five else []
        if five:
            seen, predicted, _ = zip(*rows, strict=True)
            what, shift = meaning(seen, predicted, self.target.base, self.target.unit)
            if what == "predicted":
                self.target.widen()
            elif what == "level":
                self.target.new_level(shift)
            else:
                self.target.change_level()
            return [self.target.scaled(v) for v in seen], what
        if far:
            return [], None
        if len(rows) == 1:
            return before, None
        kept = [not self.target.is_extreme(v) for v, _, _ in rows]
        return [z for z, keep in zip(before, kept, strict=True) if keep], None


class Calibration:
    """Predictions in the target's units, and quantiles of their errors."""

    def __init__(self, levels, quantiles, bounds=(-np.inf, np.inf)):
        self.bounds = bounds
        self.levels = np.array(levels)
        self.quantiles = np.array(quantiles, dtype=float)
        self.corrections = np.zeros((2, len(self.levels)))
        self.targets = []  # each at most 10 sd from the mean at that time
        self.variance, self.weight = 0.0, 1

    @property
    def rows(self):
        return len(self.targets)

    def predict(self, score, mean, sd, spread):
        """Farther beyond the range by what the distance is more than two spreads."""
        value = mean + sd * score
        if self.rows >= 30:
            low, high = min(self.targets), max(self.targets)
            beyond = max(low - value, value - high)
            room = max(0.05 * (high - low), beyond - 2 * sd * spread)
            value = np.clip(value, low - room, high + room)
        return float(np.clip(value, *self.bounds))

    def aimed(self, rows, tails):
        """The share of errors beyond each quantile so far that leaves its tail for the next one.

        Of n + 1 exchangeable errors the last is beyond a quantile that has a share s of the n
        others beyond it with probability (s n + 1) / (n + 1); here n + 1 for n, and at least half.
        """
        return np.maximum(tails - (1 - tails) / (rows + 1), tails / 2)

    def quantile(self, side, tail):
        """Smaller tails never have smaller quantiles; beyond the smallest the last line goes on."""
        rising = np.maximum.accumulate(self.quantiles[side][::-1])[::-1]
        if tail >= self.levels[0]:
            return float(np.interp(math.log(tail), np.log(self.levels), rising))
        slope = (rising[0] - rising[1]) / math.log(self.levels[0] / self.levels[1])
        return float(rising[0] + slope * math.log(tail / self.levels[0]))

    def interval(self, value, tail):
        unit = math.sqrt(self.variance)
        ends = value - unit * self.quantile(0, tail), value + unit * self.quantile(1, tail)
        return np.clip(ends if ends[0] <= ends[1] else (value, value), *self.bounds)

    def ends(self):
        """What all intervals are made of now: the unit, and quantiles that do not cross."""
        rising = np.maximum.accumulate(self.quantiles[:, ::-1], axis=1)[:, ::-1]
        return math.sqrt(self.variance) if self.weight > 1 else 0.0, rising

    def corrected(self, side, missed, delay):
        """The tails to aim at, once the ends made for a late error were `missed` or not."""
        moved = self.corrections[side] + 8 / (300 + delay) * (missed - self.levels)
        self.corrections[side] = np.clip(moved, -math.log(8), math.log(8))
        odds = self.levels / (1 - self.levels) * np.exp(-self.corrections[side])
        return odds / (1 + odds)

    def move(self, error, unit, delay, made, rows):
        """Every quantile towards its tail; that of late errors is corrected by ends as made."""
        step = max(0.05 / math.sqrt(1 + delay), 1 / (rows + 10)) / np.sqrt(self.levels)
        for side, beyond in enumerate([-error, error]):
            tails = self.levels
            if delay and made[0] > 0:
                tails = self.corrected(side, beyond > made[0] * made[1][side], delay)
            missed = beyond > unit * self.quantiles[side]
            aims = self.aimed(rows / math.sqrt(1 + delay), tails)
            self.quantiles[side] += step * (missed - aims)

    def add_square(self, error, delay):
        """To the running mean square."""
        memory = max(self.rows / 5, 50)
        self.weight = min(self.weight + 1, 50 * (1 + delay), memory, 1000)
        square = min(error**2, 100 * self.variance) if self.variance > 0 else error**2
        self.variance += (square - self.variance) / self.weight

    def score(self, value, mean, sd, y, *, far=False, delay=0, made=None):
        """`made`: the `ends` that were made for this error, if it comes late."""
        usual = mean + np.clip((y - mean) / sd, -FAR, FAR) * sd if sd else y
        if far:
            unit = math.sqrt(self.variance)
            usual = value + np.clip(y - value, -unit, unit)
        if not self.rows:
            self.variance = sd**2
        error, unit = y - value, math.sqrt(self.variance)
        if unit > 0:  # without a unit no error is beyond a quantile
            self.move(error, unit, delay, made, self.weight if delay else self.rows)
        self.add_square(usual - value if far else error, delay)
        self.targets.append(usual)

    def skip(self, y):
        """Take a further target before there is an error: it would be a quarter of the range."""
        self.targets.append(y)
        self.variance = ((max(self.targets) - min(self.targets)) / 4) ** 2
        normal = [NormalDist().inv_cdf(1 - level) for level in self.levels]
        self.weight, self.quantiles = 1, np.array([normal, normal])


class LateRows:
    """How much of a row a late one counts, by the autocorrelation of the errors."""

    def __init__(self):
        self.errors = []

    def count(self, error, delay):
        """(1 - r) / (1 + r); 1 + delay rows of errors that are alike are assumed at first."""
        if not delay:
            return 1.0
        self.errors.append(np.atleast_1d(error))
        squares = sum(e @ e for e in self.errors)
        products = sum(e @ f for e, f in pairwise(self.errors))
        r = (products + 1 + delay) / (squares + 1 + delay)
        return max((1 - r) / (1 + max(r, 0)), 1 / (1 + delay))


class Platt:
    """p = 1 / (1 + exp(-a l - b)), l the log odds of (1 + f) / 2, by Newton steps that forget."""

    START = np.diag([20.0, 5.0])

    def __init__(self):
        self.line = np.array([1.0, 0.0])
        self.matrix = self.START
        self.late = LateRows()

    def point(self, score):
        positive = (1 + np.clip(score, -1, 1)) / 2
        return np.array([math.log((positive + 0.01) / (1 - positive + 0.01)), 1.0])

    def probability(self, score):
        p = 1 / (1 + math.exp(-self.line @ self.point(score)))
        return float(np.clip(p, 1e-6, 1 - 1e-6))

    def learn(self, score, label, delay=0):
        p, point = self.probability(score), self.point(score)
        count = self.late.count(label - p, delay)
        curvature = max(p * (1 - p), 1e-3)
        self.matrix = (1 - 0.002 * count) * self.matrix + 0.002 * count * self.START
        self.matrix = self.matrix + count * curvature * np.outer(point, point)
        self.line = self.line + np.linalg.solve(self.matrix, point) * count * (label - p)


class Softmax:
    """p_k = exp(z_k) / sum_j exp(z_j), z_k = (a + a_k) s_k + c g(s_k) + b_k.

    Fitted by Newton steps that forget. Those of the pair (a, c) and of every pair (a_k, b_k) use
    the gradient and the diagonal block of the Hessian of -log p_y, with the Jacobian of z.
    """

    def __init__(self, classes, late=()):
        self.common, self.common_matrix = np.array([2.0, 1.0]), np.eye(2)
        self.pairs = np.array([[0.0, 1.0 if k in late else 0.0] for k in range(classes)])
        self.matrices = [np.diag([10.0, 30.0]) for _ in range(classes)]
        self.late = LateRows()

    def points(self, scores):
        """(K, 2): what the common slopes multiply."""
        clipped = np.clip(scores, -1.5, 1.5)
        return np.column_stack([clipped, 0.3 * np.arcsinh(25 * (1 + clipped))])

    def probabilities(self, scores):
        points = self.points(scores)
        z = points @ self.common + self.pairs[:, 0] * points[:, 0] + self.pairs[:, 1]
        p = np.exp(z - z.max())
        return (p / p.sum() + 1e-6) / (1 + 1e-6 * len(p))

    def learn(self, scores, label, delay=0):
        if np.isnan(scores).any():
            return
        p, points = self.probabilities(scores), self.points(scores)
        error = (np.arange(len(p)) == label) - p
        count = self.late.count(error, delay)
        hessian = np.diag(p) - np.outer(p, p)  # of the log loss, in z
        slopes = self.common, self.common_matrix, np.eye(2)
        self.common, self.common_matrix = _step(*slopes, points, error, hessian, (0, 30), count)
        for k in range(len(p)):
            jacobian = np.zeros((len(p), 2))
            jacobian[k] = points[k, 0], 1.0
            line = self.pairs[k], self.matrices[k], np.diag([10.0, 30.0])
            limits = (-30, 30), count
            self.pairs[k], self.matrices[k] = _step(*line, jacobian, error, hessian, *limits)


def _step(pair, matrix, start, jacobian, error, hessian, limits, count):
    """A Newton step on two parameters of z, and their Hessian; count : how much the row counts."""
    matrix = matrix + count * (0.002 * (start - matrix) + jacobian.T @ hessian @ jacobian)
    return np.clip(pair + count * np.linalg.solve(matrix, jacobian.T @ error), *limits), matrix


class ErrorDetector:
    """Sums of martingales on the ranks of the errors among the last `memory`; large ones first.

    A betting factor is the mean of k u^(k - 1) over the cell of the rank, of width 1 / (n + 1); tied
    errors share the cell in the middle of theirs.
    """

    powers = np.array([0.1, 0.5, 0.8])

    def __init__(self, memory, limit):
        self.memory, self.limit = memory, limit
        self.sizes = []
        self.grew, self.fell = np.zeros(3), np.zeros(3)

    def factors(self, middle, width):
        low, high = max(middle - width / 2, 0.0), min(middle + width / 2, 1.0)
        return (high**self.powers - low**self.powers) / width

    def see(self, size):
        signal = 0
        if len(self.sizes) >= 50:
            among = np.array(self.sizes)
            larger = np.sum(among > size) + (np.sum(among == size) + 1) / 2
            width = 1 / (len(among) + 1)
            self.grew = (1 + self.grew) * self.factors(larger * width, width)
            self.fell = (1 + self.fell) * self.factors(1 - larger * width, width)
            signal = 1 if self.grew.mean() >= self.limit else 0
            signal = signal or (-1 if self.fell.mean() >= self.limit else 0)
        if signal:
            self.sizes, self.grew, self.fell = [], np.zeros(3), np.zeros(3)
        self.sizes = [*self.sizes, size][-self.memory :]
        return signal


class WeightDetector:
    """A short and a long running mean of the weights, and whether they are apart."""

    def __init__(self, slots):
        self.short, self.long = np.zeros(slots), np.zeros(slots)
        self.rows, self.apart = 0, False

    def see(self, weights):
        self.rows += 1
        self.short = self.short + max(0.05, 1 / self.rows) * (weights - self.short)
        self.long = self.long + max(0.002, 1 / self.rows) * (weights - self.long)
        moved = abs(self.short - self.long).sum() / 2
        if not self.apart and moved > 0.5 and self.rows >= 500:
            self.apart, self.long = True, self.short.copy()
            return True
        if moved < 0.25:
            self.apart = False
        return False
