"""The partition tree by its definition: plain objects, and the posterior from a dense matrix.

Cells are objects. Every sample is kept in one cell: stored in a leaf, or summarized in any cell.
Splits are chosen by sums of squares in exact rationals. There are no messages between cells: the
kernel matrix is built from the cells that two samples share.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

MASK = 2**64 - 1


def stirred(key, word):
    bits = (key + 0x9E3779B97F4A7C15 * (word + 1)) & MASK
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


@dataclass(eq=False)
class Cell:
    parent: "Cell | None" = None
    first_sample: int = -1
    coordinate: int | None = None
    threshold: float = 0.0
    children: tuple = ()
    stored: list = field(default_factory=list)
    summarized: list = field(default_factory=list)

    @property
    def path(self):
        return ([] if self.parent is None else self.parent.path) + [self]

    @property
    def below(self):
        return [self] + [cell for child in self.children for cell in child.below]


def sum_of_squares(targets, weights):
    """Around their weighted mean, exactly."""
    z = [Fraction(target) for target in targets]
    w = [Fraction(weight) for weight in weights]
    mean = sum(a * b for a, b in zip(w, z, strict=True)) / sum(w)
    return sum(a * (b - mean) ** 2 for a, b in zip(w, z, strict=True))


class NaiveTree:
    def __init__(self, variances, *, nodes, split_after, noise, seed, column, loss="squared"):
        self.variances, self.nodes, self.split_after = variances, nodes, split_after
        self.noise, self.loss = noise, loss
        self.key = stirred(stirred(0, seed), column)
        self.root = Cell()
        self.splits = self.merges = 0
        self.inputs, self.targets, self.weights = [], [], []

    # --- the posterior ----------------------------------------------------------------------------

    def path(self, x):
        cell = self.root
        while cell.children:
            cell = cell.children[0 if x[cell.coordinate] <= cell.threshold else 1]
        return cell.path

    def sample_paths(self):
        """The cells of every sample, down to the one that keeps it."""
        paths = [None] * len(self.inputs)
        for cell in self.root.below:
            for i in cell.stored + cell.summarized:
                paths[i] = cell.path
        return paths

    def marks(self, paths, missing):
        """(n, levels): an identity number for every cell of every path."""
        levels = len(self.variances)
        return np.array([[*map(id, p), *[missing] * (levels - len(p))] for p in paths])

    def covariance(self, marks, others):
        """The variances of the cells that two paths share, summed."""
        return (marks[:, None, :] == others[None, :, :]) @ np.array(self.variances)

    def solve(self):
        """Call after learning: alpha, with f = sum_i alpha_i k(x_i, .)."""
        paths = self.sample_paths()
        self.sample_marks = self.marks(paths, -1)
        self.kernel = self.covariance(self.marks(paths, -2), self.sample_marks)
        errors = self.noise / np.array(self.weights)
        self.alpha = np.linalg.solve(self.kernel + np.diag(errors), np.array(self.targets))

    def value(self, x):
        if not self.inputs:
            return 0.0
        row = self.covariance(self.marks([self.path(x)], -2), self.sample_marks)
        return float((row @ self.alpha)[0])

    def squared_norm(self):
        return float(self.alpha @ self.kernel @ self.alpha)

    # --- splits and merges ------------------------------------------------------------------------

    def learn(self, x, y):
        """Learn a sample; return f before it."""
        number = len(self.inputs)
        f = self.value(x)
        target, weight = y, 1.0
        if self.loss == "logistic":
            slope = -y / (1 + np.exp(y * f))
            curvature = np.tanh(f / 2) / (2 * f) if f else 0.25
            target, weight = f - slope / curvature, curvature / 2
        path = self.path(x)
        leaf = path[-1]
        self.inputs.append(np.array(x))
        self.targets.append(target)
        self.weights.append(weight)
        if len(path) == len(self.variances):
            leaf.summarized.append(number)
        else:
            leaf.stored.append(number)
            different = {tuple(self.inputs[i]) for i in leaf.stored}
            if len(leaf.stored) >= self.split_after and len(different) > 1:
                self.split_leaf(leaf, number)
        self.solve()
        return f

    def split_leaf(self, leaf, number):
        gain, coordinate, threshold = self.best_split(leaf)
        gain_rate = (gain - 10) / (number - leaf.stored[0] + 1)
        if len(self.root.below) + 2 > self.nodes and not self.merge(leaf, gain_rate, number):
            leaf.summarized += leaf.stored
            leaf.stored = []
            return
        leaf.children = (Cell(leaf, leaf.stored[0]), Cell(leaf, leaf.stored[0]))
        leaf.coordinate, leaf.threshold = coordinate, threshold
        for i in leaf.stored:
            leaf.children[0 if self.inputs[i][coordinate] <= threshold else 1].stored.append(i)
        leaf.stored = []
        self.splits += 1

    def best_split(self, leaf):
        found = []
        for k in range(len(self.inputs[0])):
            values = [float(self.inputs[i][k]) for i in leaf.stored]
            low, high = min(values), max(values)
            if low == high:
                continue
            draw = (stirred(stirred(self.key, self.splits), k) >> 11) / 2**53
            threshold = low + draw * (high - low)
            threshold = threshold if threshold < high else low
            sides = [
                [
                    i
                    for i, value in zip(leaf.stored, values, strict=True)
                    if (value <= threshold) == side
                ]
                for side in (True, False)
            ]
            found.append((self.sse_reduction(*sides), -k, threshold))
        gain, k, threshold = max(found)
        return gain, -k, threshold

    def sse_reduction(self, left, right):
        """The decrease of the sum of squares, in units of the noise."""
        one, other, both = (
            sum_of_squares([self.targets[i] for i in side], [self.weights[i] for i in side])
            for side in (left, right, left + right)
        )
        return (both - one - other) / Fraction(self.noise)

    def merge(self, leaf, gain_rate, number):
        """Summarize the samples below the split with the least gain rate in its cell."""
        splits = []
        for cell in self.root.below:
            if cell.children and not any(child.children for child in cell.children):
                left, right = (child.summarized + child.stored for child in cell.children)
                age = number - cell.children[0].first_sample + 1
                other = self.sse_reduction(left, right) / age
                if leaf not in cell.children and other < gain_rate / 2:
                    splits.append((other, cell))
        if not splits:
            return False
        _, cell = min(splits, key=lambda pair: pair[0])
        for child in cell.children:
            cell.summarized += child.summarized + child.stored
        cell.children = ()
        self.merges += 1
        return True
