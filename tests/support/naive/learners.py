"""The single-kernel online methods by their definitions: slow, plain, and meant to be read.

Where a batch problem defines the estimate, it is the batch problem that is solved. See `estimate`
for what every method offers.
"""

from math import fsum, sqrt

import numpy as np

from . import estimate
from .estimate import (
    Estimate,
    FeatureExpansion,
    KernelExpansion,
    dot,
    gram,
    inverse,
    solve,
)

# ---------------------------------------------------------------- first order, on centres


class KLMS(KernelExpansion):
    """A gradient step in the function space; beyond the budget the oldest term goes."""

    budget = 100

    def learn(self, x, y):
        """Append -rate g k(x, .)."""
        g = self.gradient(x, y)
        self.append(x, -self.rates.next(g * g * self.kernel(x, x)) * g)
        if len(self.centres) > self.budget:
            self.drop_oldest()


class QKLMS(KernelExpansion):
    """KLMS that adds the new term to a centre nearby, or to the nearest if the budget is full."""

    quantization, budget = 0.1, 100

    def learn(self, x, y):
        """The step goes to the nearest centre, or to a new one."""
        g = self.gradient(x, y)
        step = -self.rates.next(g * g * self.kernel(x, x)) * g
        distances = [sqrt(fsum((x - c) ** 2)) for c in self.centres]
        if not distances or (
            len(distances) < self.budget
            and self.exceeds(min(distances), self.quantization, self.quantization)
        ):
            self.append(x, step)
        else:
            self.alpha[self.least(distances)] += step


class KNLMS(KernelExpansion):
    """A normalised gradient step in the coefficients of a dictionary of low coherence."""

    coherence, epsilon, budget = 0.9, 0.01, 100

    def cosine(self, x, c):
        """|k(x,c)| / sqrt(k(x,x) k(c,c)); 1 if k(x, .) = 0, which any centre represents."""
        own, other = self.kernel(x, x), self.kernel(c, c)
        if own == 0 or other == 0:
            return float(own == 0)
        return abs(self.kernel(x, c)) / sqrt(own * other)

    def learn(self, x, y):
        """Perhaps a new centre of coefficient 0, then the step on all of them."""
        g = self.gradient(x, y)
        cosines = [self.cosine(x, c) for c in self.centres]
        if not cosines or (
            len(cosines) < self.budget and not self.exceeds(max(cosines), self.coherence, 1.0)
        ):
            self.append(x, 0.0)
        h = self.row(x)
        direction = g * h / (self.epsilon + dot(h, h))
        self.alpha = self.alpha - self.rates.next(dot(direction, direction)) * direction


# ---------------------------------------------------------------- second order, on centres


class KRLS(KernelExpansion):
    """Least squares over all samples, each replaced by its projection on the dictionary.

    Row i of A is the projection K^-1 k(x_i) as it was when x_i came, padded with zeros (a new
    centre is itself). With b = K alpha, the values at the centres: b minimises
    sum_i w_i (A_i b - z_i)^2.
    """

    novelty, budget = 0.001, 100

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.rows, self.z, self.w = [], [], []

    def learn(self, x, y):
        """Solve the whole problem again."""
        _, z, w = self.working_response(x, y)
        a, left = self.projection(x)
        own = self.kernel(x, x)
        if own == 0 and not self.centres:
            return  # k(x, .) = 0: there is nothing to learn with
        if not self.centres or (
            len(self.centres) < self.budget and self.exceeds(left, self.novelty * own, own)
        ):
            self.append(x, 0.0)
            a = np.append(0.0 * a, 1.0)
        self.rows.append(a)
        self.z.append(z)
        self.w.append(w)
        A = np.array([np.pad(row, (0, len(self.centres) - len(row))) for row in self.rows])
        root = np.sqrt(self.w)
        b = np.linalg.lstsq(root[:, None] * A, root * self.z, rcond=None)[0]
        self.alpha = solve(self.raised(), b)


class SlidingWindowKRLS(KernelExpansion):
    """Kernel ridge regression on the last `budget` samples."""

    budget, ridge = 50, 0.01

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.z, self.w = np.zeros(0), np.zeros(0)

    def keep_sample(self, x, z, w):
        """Keep a sample as the method sees it."""
        self.append(x, 0.0)
        self.z, self.w = np.append(self.z, z), np.append(self.w, w)

    def remove_sample(self, j):
        """Remove the kept sample j."""
        del self.centres[j]
        self.z, self.w = np.delete(self.z, j), np.delete(self.w, j)

    def regularised(self):
        """K + ridge diag(1 / w), and no less than a little of K's own diagonal."""
        K = self.gram()
        return K + np.diag(np.maximum(self.ridge / self.w, estimate.JITTER * np.diag(K)))

    def fit(self):
        """Minimise sum_i w_i (f(x_i) - z_i)^2 + ridge |f|^2."""
        self.alpha = solve(self.regularised(), self.z)

    def learn(self, x, y):
        """The new sample in, the oldest out."""
        _, z, w = self.working_response(x, y)
        self.keep_sample(x, z, w)
        if len(self.centres) > self.budget:
            self.remove_sample(0)
        self.fit()


class FixedBudgetKRLS(SlidingWindowKRLS):
    """Kernel ridge regression on kept samples; the one best predicted by the others goes."""

    label_rate = 0.0

    def learn(self, x, y):
        """Move the kept labels towards the new one, add it, remove the most predictable."""
        _, z, w = self.working_response(x, y)
        self.z = self.z - self.label_rate * self.row(x) * (self.z - z)
        self.keep_sample(x, z, w)
        self.fit()
        if len(self.centres) > self.budget:
            G = inverse(self.regularised())
            self.remove_sample(self.least(np.abs(self.alpha) / np.diag(G)))
            self.fit()


class KRLSTracker(KernelExpansion):
    """The posterior of a Gaussian process, kept on the centres: f(centres) ~ N(mean, covariance).

    A step is: extend to the new point by the prior, condition on its noisy target, marginalise a
    point out if there are too many, and move towards the prior.
    """

    budget, forgetting, noise, forget_when = 50, 1.0, 0.01, "after"

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.mean, self.covariance = np.zeros(0), np.zeros((0, 0))

    def learn(self, x, y):
        """One step."""
        _, z, w = self.working_response(x, y)
        q, left = self.projection(x)
        own = self.kernel(x, x)
        if own == 0 and not self.centres:
            return  # f(x) is 0 for certain
        if self.forget_when == "before":
            self.mean, self.covariance = self.forgotten(self.mean, self.covariance)
        jitter = estimate.JITTER if self.jitter is None else self.jitter
        novel = not self.centres or self.exceeds(left, max(1e-6, 2 * jitter) * own, own)

        # f(x) = q . f(centres) + something independent of variance `left`.
        size = len(self.centres)
        extend = np.vstack([np.eye(size), q])
        mean = extend @ self.mean
        covariance = extend @ self.covariance @ extend.T
        covariance[size, size] += left + jitter * own

        # z = f(x) + noise of variance noise / w.
        with_target = covariance[:, size]
        variance = covariance[size, size] + self.noise / w
        mean = mean + with_target * (z - mean[size]) / variance
        covariance = covariance - np.outer(with_target, with_target) / variance

        self.append(x, 0.0)
        gone = None if novel else size
        if novel and len(self.centres) > self.budget:
            Q = inverse(self.raised())
            gone = self.least(((Q.astype(np.longdouble) @ mean).astype(float) / np.diag(Q)) ** 2)
        if gone is not None:
            del self.centres[gone]
            mean = np.delete(mean, gone)
            covariance = np.delete(np.delete(covariance, gone, 0), gone, 1)

        self.mean, self.covariance = mean, covariance
        if self.forget_when == "after":
            self.mean, self.covariance = self.forgotten(mean, covariance)
        self.alpha = solve(self.raised(), self.mean)

    def forgotten(self, mean, covariance):
        """Mean and covariance, moved towards those of the prior."""
        r = self.forgetting
        return sqrt(r) * mean, r * covariance + (1 - r) * self.raised()

    def variance(self, x):
        """The variance of f(x), without noise."""
        q, left = self.projection(x)
        return left + float(q @ self.covariance @ q)


# ---------------------------------------------------------------- on features


def linear_features(offset):
    """(x, sqrt(offset)): the features of the kernel x.t + offset."""
    return lambda x: np.append(x, sqrt(offset)) if offset else np.array(x, dtype=float)


class FourierSGD(FeatureExpansion):
    """Gradient steps on the weights; before samples number restart, 2 restart, ... f = 0 again."""

    restart, decays, seen = None, True, 0

    def learn(self, x, y):
        """One step."""
        g, phi = self.gradient(x, y), self.features(x)
        old = np.zeros(len(phi)) if self.weights is None else self.weights
        rate = self.rates.next(g * g * dot(phi, phi))
        decay = 1 - rate * self.regularization
        self.weights = decay * old - rate * g * phi
        self.seen += 1
        if self.restart and (self.seen + 1) % self.restart == 0:
            self.weights, self.rates = None, self.new_rates()


class FourierRLS(FeatureExpansion):
    """Recursive least squares: weights ~ N(weights, covariance), from N(0, I / ridge)."""

    forgetting, ridge, forget = 1.0, 0.01, "exponential"
    constant_forgetting = None  # of the last feature
    covariance, samples = None, 0

    def observe(self, phi, error, variance):
        """Condition on phi . weights + noise, which is `error` larger than expected."""
        u = np.array([dot(row, phi) for row in self.covariance])
        if dot(phi, u) > 0:
            s = variance + dot(phi, u)
            self.weights = self.weights + u * error / s
            self.covariance = self.covariance - np.outer(u, u) / s

    def learn(self, x, y):
        """One observation, then one step of forgetting."""
        phi = self.features(x)
        size, r = len(phi), self.forgetting
        walk = (1 - r) / self.ridge if self.forget == "random_walk" else 0.0
        if self.weights is None:
            self.weights = np.zeros(size)
            self.covariance = (1 / self.ridge + walk) * np.eye(size)
        e, _, w = self.working_response(x, y)
        self.observe(phi, e, 1 / w)
        if r < 1 and self.forget == "exponential":
            self.covariance = self.covariance / r
            j = self.samples % size
            self.observe(np.eye(size)[j], -self.weights[j], 1 / (size * (1 - r) * self.ridge))
        elif self.forget == "random_walk":
            self.covariance = self.covariance + walk * np.eye(size)
        elif r < 1:
            kept = np.full(size, sqrt(r))
            if self.constant_forgetting is not None:
                kept[-1] = sqrt(self.constant_forgetting)
            fresh = np.diag(1 - kept**2) / self.ridge
            self.covariance = np.outer(kept, kept) * self.covariance + fresh
            self.weights = kept * self.weights
        self.samples += 1


class LinearRLS(FourierRLS):
    """The same on linear_features(offset)."""


# ---------------------------------------------------------------- nearest neighbours, last value


class NearestNeighborGP(Estimate):
    """At every x the posterior mean of a Gaussian process on the nearest of the last samples."""

    neighbors, memory, noise, constant = 32, 4096, 0.1, 1.0

    def __init__(self, kernel, loss, regularization, **settings):
        super().__init__(loss, regularization, **settings)
        self.kernel = lambda x, t: kernel(x, t) + self.constant
        self.samples = []

    def nearest(self, x):
        """The nearest samples, (input, target); of equally near ones the newest."""
        order = sorted(
            range(len(self.samples)), key=lambda i: (((self.samples[i][0] - x) ** 2).sum(), -i)
        )
        return [self.samples[i] for i in order[: self.neighbors]]

    def predict(self, x):
        return super().predict(np.float32(x).astype(float))

    def local(self, x):
        """Inputs, targets and coefficients of the local function at x."""
        inputs = [z for z, _ in self.nearest(x)]
        targets = np.array([y for _, y in self.nearest(x)])
        K = gram(self.kernel, inputs, inputs)
        return inputs, targets, solve(K + self.noise * np.eye(len(K)), targets)

    def terms(self, x):
        if not self.samples:
            return [0.0]
        inputs, _, alpha = self.local(x)
        return gram(self.kernel, [x], inputs)[0] * alpha

    def learn(self, x, y):
        kept = np.float32(x).astype(float)  # in single precision
        self.samples = [*self.samples, (kept, y)][-self.memory :]

    def norm2(self):
        """None: f is no function of the kernel's space."""
        return 0.0


class LastValue(Estimate):
    """The last target again."""

    column, per_output = None, False
    last, started = 0.0, False

    def __init__(self, kernel, loss, regularization, **settings):
        super().__init__(loss, regularization, **settings)

    def terms(self, x):
        return [x[self.column] if self.started and self.column is not None else self.last]

    def learn(self, x, y):
        self.last, self.started = y, True
        if self.column is not None:
            self.last = 0.0

    def norm2(self):
        return 0.0
