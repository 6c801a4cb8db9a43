"""Rules for the slots' weights: from the evidence of a block to the weights after each sample.

The built-in rules are in the core, in `src/core/combiners/`; here are their settings.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from . import _core
from .losses import Objective
from .utils import validation as check
from .utils.validation import Floats, built_in, quiet

__all__ = [
    "Best",
    "Combiner",
    "FixedShare",
    "Hedge",
    "Joint",
    "OMKR",
    "RobustStacking",
    "Simplex",
    "Stacking",
    "Uniform",
]


State = dict[str, Floats]


@dataclass(frozen=True)
class Evidence:
    """What a combiner gets from the P slots for a block of n samples.

    Arrays are (n, P) unless stated. A slot that has become non-finite has infinite losses and costs
    from then on, and curvature 0. The arrays are read-only. `values` is empty unless the combiner
    names it in `needs`.
    """

    first: int
    """Number of the block's first sample, counted from 0."""
    curvature: Floats
    """a_p: regularization / 2 * norm^2 after each sample."""
    window_loss: Floats
    """b_p: loss on the window after each sample is learned."""
    slot_cost: Floats
    """Cost of the slot alone, before it learns the sample."""
    slot_loss: Floats
    """Loss of the slot's prediction of the sample."""
    slot_predictions: Floats
    """f_p(x) before the sample is learned."""
    targets: Floats
    """(window - 1 + n,): the last window - 1 targets before the block, then the block's targets."""
    values: Floats
    """(n, window, P): f_p on the window after each sample."""


class Combiner(check.Settings):
    """A rule for the weights. Subclasses are frozen dataclasses of their settings.

    A rule in Python overrides `combine`; the core has the rules that are built in. The state is
    arrays only and belongs to the bank, so one combiner may serve many banks.
    """

    core_name: ClassVar[str] = ""
    on_simplex: ClassVar[bool] = True
    """Whether the weights are non-negative with sum 1."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """The extra evidence that the rule reads: "values", the slots' values on the window."""
    accepts_missing: ClassVar[bool] = False
    """Whether samples without a target may be left out: the rule does not read sample numbers."""
    fixed_slots: ClassVar[str] = ""
    """Why a bank with this rule cannot continue with other slots, if it cannot."""

    @property
    def in_python(self) -> bool:
        """Whether `combine`, in Python, is the rule."""
        return not self.core_name or type(self).combine is not Combiner.combine

    def core_spec(self, objectives: Sequence[Objective], slots: int) -> tuple[object, object]:
        """What the core makes the rule of, for the objective of each output.

        (name, settings) of a rule that the core has; (None, an object for each output) for one in
        Python: with choose(evidence, weights), copy() and `arrays`.
        """
        if self.in_python:
            return (None, [_State(self, objective, slots) for objective in objectives])
        return (self.core_name, self.core_settings(objectives[0]))

    def core_settings(self, objective: Objective) -> dict[str, object]:
        """What the core makes the rule of, by name: the fields."""
        return self._values()

    def first_weights(self, slots: int) -> Floats:
        """The weights before the first sample."""
        return np.full(slots, 1.0 / slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        """The arrays of the state of `combine`, by name. All are zero before the first sample."""
        return {}

    def combine(
        self, objective: Objective, evidence: Evidence, state: State, weights: Floats
    ) -> Floats:
        """(n, P): the weights after each sample of the block; `weights` are those before it.

        A slot with infinite window_loss has failed and must get weight 0. The result must not
        depend on the lengths of the blocks.
        """
        raise NotImplementedError

    def change_slots(
        self, old: State, new: State, kept: Sequence[int | None], previous: Sequence[int]
    ) -> None:
        """Write the state of a bank to `new`, all zero, of one that continues it with other slots.

        Slot i of the new bank continues slot kept[i] of the old one, or is new if that is None.
        A new slot is at first judged like slot previous[i] of the old bank. By default the axes
        over the slots, which grow by one with a slot more in `shapes`, are indexed accordingly.
        """
        source = np.array([p if k is None else k for k, p in zip(kept, previous, strict=True)])
        slots = len(kept)
        larger = self.shapes(slots + 1)
        for name, shape in self.shapes(slots).items():
            array = old[name]
            for axis, (length, longer) in enumerate(zip(shape, larger[name], strict=True)):
                if length == longer:
                    continue
                if length != slots:
                    self._refuse_changes(f"its {name} are not one number per slot")
                array = np.take(array, source, axis=axis)
            new[name][...] = array

    def check_slot_changes(self) -> None:
        """Refuse to be the rule of a bank that continues with other slots, if it cannot."""
        if self.fixed_slots:
            self._refuse_changes(self.fixed_slots)

    def _refuse_changes(self, why: str) -> NoReturn:
        rule = f"be one that can continue with other slots ({why})"
        remedy = "Use another combiner, such as kb.combiners.Simplex or Stacking, or a new bank."
        raise check.refuse("combiner", rule, self, remedy)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """The numbers behind the last weights, by name, for `KernelBank.evidence`.

        state : a copy, all 0 before the first sample. weights : of the next prediction.
        """
        return dict(state)


class _State:
    """The state of a combiner in Python for one output; `arrays` are the core's to save."""

    def __init__(self, combiner: Combiner, objective: Objective, slots: int) -> None:
        self._combiner, self._objective = combiner, objective
        self.arrays = {name: np.zeros(shape) for name, shape in combiner.shapes(slots).items()}

    @quiet
    def choose(self, evidence: dict[str, Any], weights: Floats) -> Floats:
        """(n, P): the weights after each sample. evidence : the fields of `Evidence`."""
        for array in evidence.values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        seen = Evidence(**evidence)
        chosen = np.asarray(self._combiner.combine(self._objective, seen, self.arrays, weights))
        if chosen.shape != seen.curvature.shape:
            owner, remedy = type(self._combiner).__name__, "Give the weights after each sample."
            rule = f"return weights of shape {seen.curvature.shape} from combine"
            raise check.refuse("combiner", rule, chosen.shape, remedy, owner)
        return np.ascontiguousarray(chosen, dtype=float)

    def change_slots(
        self, before: _State, kept: Sequence[int | None], previous: Sequence[int]
    ) -> None:
        self._combiner.change_slots(before.arrays, self.arrays, kept, previous)

    def copy(self) -> _State:
        other = copy.copy(self)
        other.arrays = {name: array.copy() for name, array in self.arrays.items()}
        return other


def certificate(figures: Floats) -> dict[str, Floats]:
    """The diagnostics of rules that solve for their weights up to a certificate."""
    names = ("gap", "cost", "scale", "steps")
    return {name: np.array(x) for name, x in zip(names, figures, strict=True)}


# --- experts: equal weights, the best so far, and exponential weights -----------------------------
#
# Only differences of losses matter to exponential weights, so every sum is kept relative to that of
# the best slot. A slot with infinite loss has failed: its weight is 0.


@dataclass(frozen=True)
class Uniform(Combiner):
    """Equal weights: w_p = 1 / P, over the P slots that have not failed.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Uniform())
    >>> bank.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    accepts_missing: ClassVar[bool] = True

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """active: 1 for a slot with weight, 0 for one that has failed."""
        return {"active": np.where(weights > 0, 1.0, 0.0)}


@dataclass(frozen=True)
class Best(Combiner):
    """All weight on the slot with the least cumulative cost so far (follow the leader).

    If several are equal, the first. Before the first sample the weights are equal.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Best())
    >>> bank.learn_one(0.0, 1.0)
    >>> bank.weights.tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """cumulative_cost: of each slot alone."""
        return {"cumulative_cost": state["totals"]}


@dataclass(frozen=True)
class Hedge(Combiner):
    """Weights w_p proportional to exp(-rate * sum of the losses of slot p one step ahead).

    With evidence="cost" the sums are of the slots' costs instead: the loss on the window plus
    regularization / 2 * norm^2 before the sample is learned. In a bank with window=1 this is the
    regularised loss by which Raker weights its kernels.

    With learning_rate=None the rate is AdaHedge's, log(P) / D. D is the sum of the mixability gaps
    w'l + log(w'exp(-rate l)) / rate over the samples. This rate is infinite at first (the best
    slots share the weight), never grows, and needs no knowledge of the scale of the losses. If
    these lie within an interval of length S, the weighted loss exceeds the loss of the best slot by
    at most S sqrt(log(P) n) + S (16/3 log(P) + 2) after n samples.

    Parameters
    ----------
    learning_rate : positive, per unit of loss; None for AdaHedge.
    evidence : "loss", of the prediction alone, or "cost", with the norm.

    Reference: Freund and Schapire (1997); de Rooij, van Erven, Grünwald and Koolen, Follow the
    leader if you can, hedge if you must, JMLR 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), combiner=kb.combiners.Hedge())
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())
    ['learning_rate', 'loss_above_best']
    """

    accepts_missing: ClassVar[bool] = True
    learning_rate: float | None = check.number_field(
        None, "Give a positive rate per unit of loss, or None to let it adapt.", above=0
    )
    evidence: str = check.choice_field("loss", "cost")

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """loss_above_best: each slot's sum of losses (or costs) minus the least; learning_rate.

        AdaHedge's rate is 0 before the first sample.
        """
        return {"loss_above_best": state["totals"], "learning_rate": state["rate_and_gap"][:1]}


@dataclass(frozen=True)
class FixedShare(Combiner):
    """Exponential weights for a stream whose best slot changes.

    v_p proportional to w_p exp(-learning_rate * loss of the prediction of slot p), and then
    w_p = (1 - share) v_p + share / P, over the P slots that have not failed. So no weight falls
    below share / P, and a slot that becomes the best recovers after about
    log(P / share) / (rate * its lead) samples. `bank.evidence()` shows the posterior v.

    Parameters
    ----------
    learning_rate : positive, per unit of loss.
    share : above 0, at most 1: about how often the best slot changes, per sample.

    Reference: Herbster and Warmuth, Machine Learning 1998.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.FixedShare(share=0.2))
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.weights.min() >= 0.05)
    True
    """

    accepts_missing: ClassVar[bool] = True
    learning_rate: float = check.number_field(1.0, above=0)
    share: float = check.number_field(
        0.01,
        "Give how often the best slot changes, such as 0.01; for never, use Hedge.",
        above=0,
        most=1,
    )


# --- the rule of the paper, its program, and OMKR -------------------------------------------------


@dataclass(frozen=True)
class Simplex(Combiner):
    """Weights that minimise sum_p a_p w_p^2 + b_p w_p over the simplex (see `kb.simplex_qp`).

    a_p = regularization / 2 * norm^2 of slot p. b_p depends on the evidence:

    - "window", as in the paper: the loss of the slot on the window that it has just learned from;
    - "prequential": the sum of the losses of its last `horizon` predictions, each made before the
      slot learned the sample. Not in the paper; often better on real data, as it is out of sample.

    The program is the "direct sum" bound of the paper, equation (3). With Jensen's inequality on
    the norm too, which the paper mentions as looser (w_p >= w_p^2), the bound is linear:
    sum_p (a_p + b_p) w_p. Then all weight is on the least a_p + b_p, shared equally by equals.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.
    bound : "direct sum", or "jensen" for the looser bound.

    Reference: Ruiz-Moreno and Beferull-Lozano, IEEE Signal Processing Letters 31, 2024
    (arXiv:2308.10101), equations (3) to (5). The looser bound: Shen, Chen and Giannakis, JMLR 2019.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.Simplex(evidence="prequential", horizon=50))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(float(bank.weights.sum()), 6)
    1.0
    """

    evidence: str = check.choice_field("window", "prequential")
    horizon: int = check.count_field(100, "Give the number of past samples to use.")
    bound: str = check.choice_field("direct sum", "jensen")

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """The terms of the program that was solved.

        curvature: a; linear: b, the losses on the window or of the last predictions. With
        bound="jensen" curvature is 0 and linear is a + b.
        """
        curvature, linear = state["qp_terms"]
        return {"curvature": curvature, "linear": linear}


_METHODS = {"sort": 0, "pivot": 1, "auto": 2}
"""The ways to solve the program, by their numbers in the core."""


def simplex_qp(a: object, b: object, method: str = "auto") -> Floats:
    """Minimise sum_p a_p w_p^2 + b_p w_p subject to w >= 0 and sum_p w_p = 1.

    The solution is right to the last bits over the whole range of floats, also with some a_p = 0.
    Let b0 be the least b_p with a_p = 0. Members with a_p > 0 and b_p < b0 get
    (b0 - b_p) / (2 a_p); if the sum is below 1, the members with a_p = 0 and b_p = b0 share the
    rest equally.

    Parameters
    ----------
    a : (P,) or (B, P), non-negative: the curvatures.
    b : the same shape: the linear part.
    method : "sort" is O(P log P); "pivot" is O(P) on average; "auto" picks the faster one for P.
        All return the same bits.

    Returns
    -------
    The weights, in the shape of a.

    Reference: Ruiz-Moreno and Beferull-Lozano, IEEE Signal Processing Letters 31, 2024
    (arXiv:2308.10101), Algorithm 1; the pivot rule follows Duchi et al. (2008).

    >>> simplex_qp([1.0, 1.0], [0.0, 1.0]).tolist()
    [0.75, 0.25]
    >>> simplex_qp([1.0, 1e-17], [0.0, 0.5]).tolist()
    [0.25, 0.75]
    >>> simplex_qp([0.0, 1.0], [3.0, 2.0]).tolist()
    [0.5, 0.5]
    """
    curvature, linear = _problem(a, b)
    rule = _METHODS[check.choice("method", method, "simplex_qp", _METHODS)]
    weights = _core.simplex_qp(np.atleast_2d(curvature), np.atleast_2d(linear), rule)
    return weights.reshape(curvature.shape)


def kkt_residual(theta: object, a: object, b: object) -> Any:
    """How far `theta` is from the minimiser of `simplex_qp`: 0 is exact, 1e-15 is rounding.

    It is the largest of three numbers without unit:

    - |sum theta - 1|;
    - the most negative weight, -min theta;
    - the duality gap divided by the gradient's mean. With d_p = b_p - min b and the gradient
      g_p = 2 a_p theta_p + d_p, the gap is sum_p theta_p (g_p - min g), which bounds how much the
      objective lies above its minimum; the mean is sum_p |theta_p| g_p. (b is taken relative to its
      least member because adding a constant to b changes nothing. In min g, each theta_p counts one
      unit in the last place larger: a weight below the smallest float cannot be represented.)

    The three vanish together only at the minimiser (the KKT conditions of the paper's supplement).

    Parameters
    ----------
    theta, a, b : (P,), or (B, P) for one residual per row.

    >>> float(kkt_residual([0.75, 0.25], [1.0, 1.0], [0.0, 1.0]))
    0.0
    >>> float(kkt_residual([0.5, 0.5], [1.0, 1.0], [0.0, 1.0])) > 0.1
    True
    """
    curvature, linear = _problem(a, b)
    remedy = "Give one weight for each member of a."
    weights = check.floats("theta", theta, remedy)
    if weights.shape != curvature.shape:
        rule = f"have the shape of a, {curvature.shape}"
        raise check.refuse("theta", rule, weights.shape, remedy)
    if not np.isfinite(weights).all():
        raise check.refuse("theta", "be finite", weights, remedy)
    # Extended precision has a range in which nothing over- or underflows.
    a2, b2 = 2 * curvature.astype(np.longdouble), linear.astype(np.longdouble)
    distance = b2 - b2.min(axis=-1, keepdims=True)
    gradient = a2 * weights + distance
    above = a2 * (weights + np.spacing(np.abs(weights))) + distance
    mean = (np.abs(weights) * gradient).sum(axis=-1)
    gap = (weights * (gradient - above.min(axis=-1, keepdims=True))).sum(axis=-1)
    relative = np.maximum(gap, 0.0) / np.where(mean > 0, mean, 1.0)
    off = np.abs(weights.sum(axis=-1) - 1.0)
    return np.maximum(np.maximum(off, -weights.min(axis=-1)), relative.astype(float))


def _problem(a: object, b: object) -> tuple[Floats, Floats]:
    remedy = "Give two arrays of numbers of the same shape, (P,) or (B, P), with P >= 1."
    curvature = check.floats("a", a, remedy)
    linear = check.floats("b", b, remedy)
    if curvature.ndim not in (1, 2):
        raise check.refuse("a", "have one or two axes", curvature.shape, remedy)
    if curvature.shape != linear.shape:
        raise check.refuse("b", f"have the shape of a, {curvature.shape}", linear.shape, remedy)
    if curvature.shape[-1] == 0:
        raise check.refuse("a", "have at least one member", curvature.shape, remedy)
    for name, array in (("a", curvature), ("b", linear)):
        if not np.isfinite(array).all():
            wrong = float(array[~np.isfinite(array)][0])
            raise check.refuse(name, "be finite", wrong, "Remove kernels that are not finite.")
    if curvature.min() < 0:
        remedy = "A curvature is a squared norm: clamp it."
        raise check.refuse("a", "be non-negative", float(curvature.min()), remedy)
    return curvature, linear


@dataclass(frozen=True)
class OMKR(Combiner):
    """Online multiple kernel regression, the gradient variant on a budget.

    w <- w - rate * gradient in w of [sum over the window of l(w'f(x_i), y_i) + sum_p a_p w_p^2],
    starting from w = 0; the weights are not on the simplex. The rate of round n is
    max(learning_rate * 2^-floor((n - 1) / halve_every), least_rate): too large a rate for the scale
    of the targets lets the weights diverge (docs/combiners.md).

    Parameters
    ----------
    learning_rate, halve_every, least_rate : the schedule; the defaults are the paper's ("halved
        every 50 steps" in the index n of w(n); `kernelbank reproduce` measures other readings).
    gradient : "exact" (2 a_p w_p, the gradient of the stated cost) or "printed" (as in the paper:
        regularization * a_p w_p, although a_p holds regularization / 2).

    Reference: Sahoo, Hoi and Li, Online multiple kernel regression, KDD 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.OMKR())
    >>> bank.predict_one(0.0)
    0.0
    """

    learning_rate: float = check.number_field(8e-4, above=0)
    halve_every: int = check.count_field(
        50, "Give the number of samples between two halvings of the rate.", most=2**62
    )
    least_rate: float = check.number_field(1e-5, least=0)
    gradient: str = check.choice_field("exact", "printed")
    on_simplex: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset(["values"])

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gradient: of the cost, at the weights before the last step; rate: of that step."""
        return {"gradient": state["gradient"], "rate": np.reshape(state["rate"], 1)}


# --- stacking: the convex combination of least discounted squared error of the predictions --------
#
#     minimise  E(w) = w'M w + ridge L |w|^2  over the simplex,  L = min_p M_pp,
#
# with M <- discount M + e e' after every sample, where e holds the errors of the slots'
# predictions. On the simplex w'f - y = w'e, so the moments M are all that is needed of the stream.


def _discount_field(default: float) -> Any:
    remedy = "Give 1, or a little less, such as 0.998."
    return check.number_field(default, remedy, above=0, most=1)


def _tolerance_field() -> Any:
    return check.number_field(1e-4, "Give a small positive fraction, such as 1e-4.", above=0)


def _steps_field(default: int) -> Any:
    return check.count_field(
        default, f"Give the most moves per sample, such as {default}.", most=2**31
    )


@dataclass(frozen=True)
class _Stacked(Combiner):
    """Rules that find their weights by the moments of the errors."""

    accepts_missing: ClassVar[bool] = True
    discount: float = _discount_field(0.998)
    ridge: float = check.number_field(
        0.1,
        "Give 0 or a fraction of the best slot's loss, such as 0.1; for equal weights, use "
        "Uniform.",
        least=0,
        most=1e9,
    )
    tolerance: float = _tolerance_field()
    steps: int = _steps_field(200)


@dataclass(frozen=True)
class Stacking(_Stacked):
    """Weights that minimise sum_i d^(n-i) (w'f_i - y_i)^2 + ridge L |w|^2 on the simplex.

    f_i holds the slots' predictions of sample i, made before learning it, and
    L = min_p sum_i d^(n-i) (f_ip - y_i)^2 is the loss of the best slot. So the ridge has no unit,
    and multiplying targets and predictions by a factor changes no weight. The error is squared,
    whatever the loss of the bank. On the simplex w'f_i - y_i = w'e_i with the errors
    e_i = f_i - y_i, of which only the moments sum_i d^(n-i) e_i e_i' are kept: the cost does not
    depend on the length of the memory.

    The weights are solved for after every sample, from the weights before it, until the Frank-Wolfe
    gap, an upper bound of cost(w) - least cost, is at most tolerance * scale. The scale is cost(w)
    plus 1e-4 of the cost of the weights before. `bank.evidence()` shows a larger gap if `steps` or
    the precision of the moments did not suffice. A slot with more than 2^60 times the best slot's
    loss gets no weight and is not counted in the gap.

    Parameters
    ----------
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample. The memory is about 1 / (1 - d) samples long.
    ridge : 0 to 1e9, as a fraction of the best slot's loss: pulls the weights towards equal ones.
    tolerance : above 0: how far the cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between slots per sample.

    Reference: Wolpert, Neural Networks 1992; Breiman, Stacked regressions, Machine Learning 1996,
    who found that weights should not be negative.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.Stacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.evidence()["gap"] <= stacking.tolerance * bank.evidence()["scale"])
    True
    """

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what is minimised; scale: of the gap; steps: the moves."""
        return certificate(state["certificate"])


@dataclass(frozen=True)
class RobustStacking(_Stacked):
    """A mean of two weights: those of `Stacking`, and those in which large errors count less.

    With v_i the second weights when sample i is predicted, and r_i = v_i'f_i - y_i their error,
    these minimise

        sum_i d^(n-i) c_i (v'f_i - y_i)^2 + ridge L |v|^2  on the simplex,
        c_i = 1 / (s_i + r_i^2 / degrees_of_freedom),  s_i = discounted mean of r_1^2 .. r_i^2,

    with L = min_p of the sum for slot p alone. The weights are q v + (1 - q) w, with w those of
    `Stacking`, and, with the discounted sums R_v and R_w of the squared errors of both,

        q = 1/2 + 5/2 (1 - R_v / R_w) within 0 and 1.

    For streams whose errors come in bursts, not for labels: docs/combiners.md says why.

    Parameters
    ----------
    discount, ridge, tolerance, steps : as for `Stacking`, for each of the two.
    degrees_of_freedom : positive: the smaller, the less a large error counts.

    Reference: Lange, Little and Taylor, Journal of the American Statistical Association 1989.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.RobustStacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())[:4]
    ['cost', 'gap', 'mean_square', 'plain_cost']
    """

    degrees_of_freedom: float = check.number_field(4.0, above=0)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """As for Stacking, of the second weights and, with "plain_", of the first.

        mean_square : s, of the errors of the second weights.
        share : q, of the second weights.
        """
        plain = certificate(state["plain/certificate"])
        return {
            **certificate(state["robust/certificate"]),
            **{f"plain_{name}": value for name, value in plain.items()},
            "mean_square": np.array(state["mean_square"][0]),
            "share": np.array(_share(*state["squares"])),
        }


def _share(robust: float, plain: float) -> float:
    """q, from the sums of squares of both."""
    if not plain > 0.0:
        return 0.5 if robust == 0.0 else 0.0
    return min(max(0.5 + 2.5 * (1.0 - robust / plain), 0.0), 1.0)


@dataclass(frozen=True)
class Joint(Combiner):
    """Weights that minimise sum_i d^(n-i) l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2 on the simplex.

    f_i holds the values of all slots at sample i and a_p = regularization / 2 * norm^2 of slot p.
    `Simplex` minimises a bound of this, in which errors of different slots cannot cancel. The
    evidence decides which values and samples are used:

    - "window": the slots' values on the window, after learning; this is the cost of the bank;
    - "prequential": their predictions of the last `horizon` samples, each made before learning.

    The weights are solved for as for `Stacking`, with the same certificate. For losses with kinks
    (no `curvature`) the slopes are averaged around each prediction, and the possible error of the
    averaging is added to the gap: it is a bound for every convex loss, also if `steps` did not
    suffice to reduce it.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.
    discount, tolerance, steps : as for `Stacking`; the discount is 1 for "window".
    ridge : at least 0, in units of loss: pulls the weights towards equal ones.

    Reference: the problem is that of Ruiz-Moreno and Beferull-Lozano (IEEE Signal Processing
    Letters 31, 2024, arXiv:2308.10101) before they separate it; pairwise moves: Lacoste-Julien and
    Jaggi, NeurIPS 2015; Fan, Chen and Lin (2005) for the choice of the pair.

    >>> import kernelbank as kb
    >>> joint = kb.combiners.Joint(evidence="prequential", horizon=50, discount=0.99, ridge=0.1)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=joint)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.evidence()["gap"] <= joint.tolerance * bank.evidence()["scale"])
    True
    """

    evidence: str = check.choice_field("window", "prequential")
    horizon: int = check.count_field(100, "Give the number of past samples to use.", most=2**31)
    discount: float = _discount_field(1.0)
    ridge: float = check.number_field(
        0.0, "Give 0 or a positive number, in units of loss.", least=0
    )
    tolerance: float = _tolerance_field()
    steps: int = _steps_field(500)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence == "window" and self.discount != 1:
            remedy = 'Use evidence="prequential", or leave discount at 1.'
            raise self._refuse("discount", "be 1 for the window", remedy)

    @property
    def accepts_missing(self) -> bool:  # type: ignore[override]
        return self.evidence == "prequential"

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(["values"] if self.evidence == "window" else [])

    def core_settings(self, objective: Objective) -> dict[str, object]:
        rows = self.horizon if self.evidence == "prequential" else objective.window
        powers = self.discount ** np.arange(float(rows))
        return super().core_settings(objective) | {"powers": powers}

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what is minimised; scale: of the gap; steps: the moves."""
        return certificate(state["certificate"])


BUILT_IN: tuple[type[Combiner], ...] = built_in(__all__, globals())
"""Every combiner that a file may name."""
