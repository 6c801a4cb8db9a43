"""The partition tree by its definition: plain objects, and the posterior from a dense matrix.

Cells are objects, every sample is kept for ever with the cell that knows it, cuts are chosen by
sums of squares in exact rationals, and nothing is passed between cells: the kernel matrix is built
from the cells that two samples share.
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
    since: int = -1
    coordinate: int | None = None
    cut: float = 0.0
    children: tuple = ()
    held: list = field(default_factory=list)
    own: list = field(default_factory=list)

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
        self.cuts = self.merges = 0
        self.inputs, self.targets, self.weights = [], [], []

    # --- the posterior --------------------------------------------------------------------------

    def path(self, x):
        cell = self.root
        while cell.children:
            cell = cell.children[0 if x[cell.coordinate] <= cell.cut else 1]
        return cell.path

    def sample_paths(self):
        """The cells of every sample, down to the one that knows it."""
        paths = [None] * len(self.inputs)
        for cell in self.root.below:
            for i in cell.held + cell.own:
                paths[i] = cell.path
        return paths

    def marks(self, paths, missing):
        """(n, levels): a number for every cell of every path."""
        levels = len(self.variances)
        return np.array([[*map(id, p), *[missing] * (levels - len(p))] for p in paths])

    def covariance(self, marks, others):
        """The variances of the cells that two paths share, summed."""
        return (marks[:, None, :] == others[None, :, :]) @ np.array(self.variances)

    def solve(self):
        """Call after learning: alpha, with f = sum_i alpha_i k(x_i, .)."""
        paths = self.sample_paths()
        self.known = self.marks(paths, -1)
        self.kernel = self.covariance(self.marks(paths, -2), self.known)
        errors = self.noise / np.array(self.weights)
        self.alpha = np.linalg.solve(self.kernel + np.diag(errors), np.array(self.targets))

    def value(self, x):
        if not self.inputs:
            return 0.0
        return float((self.covariance(self.marks([self.path(x)], -2), self.known) @ self.alpha)[0])

    def squared_norm(self):
        return float(self.alpha @ self.kernel @ self.alpha)

    def exact(self, points):
        """Values at the points and all (g, v) of the cells, in rationals."""
        paths = self.sample_paths()
        variances = [Fraction(v) for v in self.variances]
        rows = []
        for i, path in enumerate(paths):
            row = [sum(variances[: len(set(path) & set(other))]) for other in paths]
            row[i] += Fraction(self.noise) / Fraction(self.weights[i])
            rows.append([*row, Fraction(self.targets[i])])
        count = len(rows)
        for i in range(count):  # positive definite: no pivoting
            rows[i] = [value / rows[i][i] for value in rows[i]]
            for j in range(count):
                if j != i and rows[j][i] != 0:
                    factor = rows[j][i]
                    rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
        alpha = [row[-1] for row in rows]
        parts = {}
        for cell in self.root.below:
            variance = variances[len(cell.path) - 1]
            total = sum(a for a, path in zip(alpha, paths, strict=True) if cell in path)
            parts[cell] = (variance * total, variance)
        values = [sum(parts[cell][0] for cell in self.path(x)) for x in points]
        return values, list(parts.values())

    # --- growth ---------------------------------------------------------------------------------

    def learn(self, x, y):
        """Take in a sample; return f before it."""
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
            leaf.own.append(number)
        else:
            leaf.held.append(number)
            different = {tuple(self.inputs[i]) for i in leaf.held}
            if len(leaf.held) >= self.split_after and len(different) > 1:
                self.divide(leaf, number)
        self.solve()
        return f

    def divide(self, leaf, number):
        gain, coordinate, cut = self.best_cut(leaf)
        worth = (gain - 10) / (number - leaf.held[0] + 1)
        if len(self.root.below) + 2 > self.nodes and not self.merge(leaf, worth, number):
            leaf.own += leaf.held
            leaf.held = []
            return
        leaf.children = (Cell(leaf, leaf.held[0]), Cell(leaf, leaf.held[0]))
        leaf.coordinate, leaf.cut = coordinate, cut
        for i in leaf.held:
            leaf.children[0 if self.inputs[i][coordinate] <= cut else 1].held.append(i)
        leaf.held = []
        self.cuts += 1

    def best_cut(self, leaf):
        found = []
        for k in range(len(self.inputs[0])):
            values = [float(self.inputs[i][k]) for i in leaf.held]
            low, high = min(values), max(values)
            if low == high:
                continue
            draw = (stirred(stirred(self.key, self.cuts), k) >> 11) / 2**53
            cut = low + draw * (high - low)
            cut = cut if cut < high else low
            sides = [
                [i for i, value in zip(leaf.held, values, strict=True) if (value <= cut) == side]
                for side in (True, False)
            ]
            found.append((self.lowered(*sides), -k, cut))
        gain, k, cut = max(found)
        return gain, -k, cut

    def lowered(self, left, right):
        """By how much the sum of squares falls, in units of the noise."""
        one, other, both = (
            sum_of_squares([self.targets[i] for i in side], [self.weights[i] for i in side])
            for side in (left, right, left + right)
        )
        return (both - one - other) / Fraction(self.noise)

    def merge(self, leaf, worth, number):
        """Let the samples below the cut that is worth least become its cell's own."""
        cuts = []
        for cell in self.root.below:
            if cell.children and not any(child.children for child in cell.children):
                left, right = (child.own + child.held for child in cell.children)
                own = self.lowered(left, right) / (number - cell.children[0].since + 1)
                if leaf not in cell.children and own < worth / 2:
                    cuts.append((own, cell))
        if not cuts:
            return False
        _, cell = min(cuts, key=lambda pair: pair[0])
        for child in cell.children:
            cell.own += child.own + child.held
        cell.children = ()
        self.merges += 1
        return True
