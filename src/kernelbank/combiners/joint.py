"""Joint: the convex combination of least cost, where the paper minimises a bound of the cost.

    minimise  E(w) = sum_i d_i l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2  over the simplex.

Each round models E by a quadratic (`joint_model`), minimises that by pairwise moves
(`pairwise_solver`), and goes towards its minimiser as long as E falls. For squared loss the
model is E itself.

The certificate is the Frank-Wolfe gap with numbers c_i for the slopes of the losses. If the
derivative is continuous, c_i is the derivative. Otherwise it is the slope of the loss averaged over
m around the prediction z_i, c_i = (l(z_i + m) - l(z_i - m)) / 2m. That is a subgradient of l
somewhere within m of z_i, so with any subgradient s_i at z_i, and for every z,

    l(z) >= l(z_i) + c_i (z - z_i) - m |c_i - s_i|,

and E(w) is above its minimum by at most the gap with c plus sum_i d_i m |c_i - s_i|, the slack. The
averaged loss has a second derivative, so Newton's method applies; m shrinks until the slack is
small.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..losses import Squared
from ..losses.objective import Objective
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .joint_model import (
    BY_ROW,
    BY_SLOT,
    JOINT,
    KINKED,
    QUADRATIC,
    SHRINK,
    SMOOTH,
    Hessian,
    averaged_slopes,
    curvatures,
    descend_pairs,
    diagonal,
    first_width,
    line_search,
    loss_of,
    mixed,
    shrunk_model,
    weighted_sums,
)
from .pairwise_solver import (
    SPARE,
    PairwiseSolver,
    drop_columns,
    least_gradient,
    linear_gap,
    normalise,
    pairwise_scratch,
)

_ROUNDS = 40
_NARROWEST = 1e-7  # relative to the first width: below, a difference of two values is rounding


@dataclass(frozen=True)
class Joint(PairwiseSolver):
    """Weights that minimise sum_i d^(n-i) l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2 on the simplex.

    f_i holds the values of all slots at sample i and a_p = regularization / 2 * norm^2 of slot p.
    `Simplex` minimises a bound of this, in which errors of different slots cannot cancel. The
    evidence decides which values and samples are used:

    - "window": the slots' values on the window, after learning; this is the cost of the bank;
    - "prequential": their predictions of the last `horizon` samples, each made before learning.

    The weights are solved for after every sample, from the weights before it, until a certificate
    holds: an upper bound of cost(w) - least cost, at most tolerance * scale. The scale is cost(w)
    plus 1e-4 of the cost of the weights before (if the least cost is 0, no bound is a fraction of
    it). The bound is the Frank-Wolfe gap max_p gradient'(w - e_p); for losses with kinks (no
    `curvature`) the slopes are averaged around each prediction, and the possible error of the
    averaging is added. The bound is valid for every convex loss, also if `steps` or the precision
    of floats did not suffice to reduce it: then `bank.evidence()` shows a larger gap.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample; 1 for "window".
    ridge : at least 0, in units of loss: pulls the weights towards equal ones.
    tolerance : above 0: how far the cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between two slots per sample.

    Cost per sample: squared loss, O(rows * P) per slot that moves and O(P) per move; other losses
    repeat this up to 40 times, fewer when the weights hardly change. Memory: horizon * (P + 1) for
    "prequential", and 64 P of scratch.

    Reference: the problem is that of Ruiz-Moreno and Beferull-Lozano before they separate it (IEEE
    Signal Processing Letters 31, 2024, arXiv:2308.10101); pairwise moves: Lacoste-Julien and Jaggi,
    On the global linear convergence of Frank-Wolfe optimization variants, NeurIPS 2015; Fan, Chen
    and Lin (2005) for the choice of the pair.

    >>> import kernelbank as kb
    >>> joint = kb.combiners.Joint(evidence="prequential", horizon=50, discount=0.99, ridge=0.1)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=joint)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> shown = bank.evidence()
    >>> bool(shown["gap"] <= joint.tolerance * shown["scale"])
    True
    """

    core_name: ClassVar[str] = "Joint"
    evidence: str = "window"
    horizon: int = 100
    discount: float = 1.0
    ridge: float = 0.0
    tolerance: float = 1e-4
    steps: int = 500

    def __post_init__(self) -> None:
        check.choice("evidence", self.evidence, "Joint", ("window", "prequential"))
        remedy = "Give the number of past samples to use."
        horizon = check.count("horizon", self.horizon, "Joint", remedy, most=2**31)
        remedy = "Give 1, or a little less, such as 0.995."
        discount = check.number("discount", self.discount, "Joint", remedy, above=0, most=1)
        if self.evidence == "window" and discount != 1:
            remedy = 'Use evidence="prequential", or leave discount at 1.'
            raise check.refuse("discount", "be 1 for the window", discount, remedy, "Joint")
        remedy = "Give 0 or a positive number, in units of loss."
        ridge = check.number("ridge", self.ridge, "Joint", remedy, least=0)
        remedy = "Give a small positive fraction, such as 1e-4."
        tolerance = check.number("tolerance", self.tolerance, "Joint", remedy, above=0)
        remedy = "Give the most moves per sample, such as 500."
        steps = check.count("steps", self.steps, "Joint", remedy, most=2**31)
        for name, value in (
            ("horizon", horizon),
            ("discount", discount),
            ("ridge", ridge),
            ("tolerance", tolerance),
            ("steps", steps),
        ):
            object.__setattr__(self, name, value)

    @property
    def accepts_missing(self) -> bool:  # type: ignore[override]
        return self.evidence == "prequential"

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(["values"] if self.evidence == "window" else [])

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        if self.evidence == "window":
            return {"certificate": (4,)}
        return {
            "certificate": (4,),
            "values": (self.horizon, slots),
            "targets": (self.horizon,),
            "taken": (1,),
        }

    def core_settings(self, objective: Objective) -> dict[str, Any]:
        rows = self.horizon if self.evidence == "prequential" else objective.window
        powers = self.discount ** np.arange(float(rows))
        return super().core_settings(objective) | {"powers": powers}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        prequential = self.evidence == "prequential"
        longest = self.horizon if prequential else objective.window
        rows = -(-longest // WIDTH) * WIDTH
        bound = objective.loss.curvature
        phase = combiner_phase(
            _joint,
            workspace,
            weights,
            window=objective.window,
            horizon=self.horizon if prequential else 0,
            kind=_kind(objective),
            steepest=np.inf if bound is None else float(bound),
            ridge=self.ridge,
            tolerance=self.tolerance,
            steps=self.steps,
            value=objective.loss.value_address,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            powers=self.discount ** np.arange(float(longest)),
            past_predictions=state.get("values"),
            past_targets=state.get("targets"),
            taken=state.get("taken"),
            certificate=state["certificate"],
            longest=rows,
            **{name: np.ones(rows) for name in BY_ROW},
            **{name: np.zeros(slots) for name in BY_SLOT},
            **pairwise_scratch(slots),
        )
        return [phase]


def _kind(objective: Objective) -> int:
    if type(objective.loss) is Squared:
        return QUADRATIC
    return KINKED if objective.loss.curvature is None else SMOOTH


@inline
def _gradient(F, c, penalty, w, g):
    """g = F'c + 2 penalty w: the gradient at w, if c holds the slopes of the rows."""
    weighted_sums(F, c, g)
    for p in range(len(g)):
        g[p] += 2.0 * penalty[p] * w[p]


@inline
def _cost(a, rows, w):
    """E(w) = sum_i d_i l(z_i, y_i) + sum_p penalty_p w_p^2. `other` is scratch."""
    loss_of(a, a.value, rows, a.z, a.other)
    cost = 0.0
    for i in range(rows):
        cost += a.d[i] * a.other[i]
    for p in range(a.slots):
        cost += a.penalty[p] * w[p] * w[p]
    return cost


@inline
def _slopes_and_slack(a, rows, width):
    """c_i = d_i l'(z_i), averaged over `width` if the loss has kinks; returns the slack."""
    slack = 0.0  # sum_i d_i m |c_i - s_i|, with d_i in c_i
    if a.kind == KINKED:
        averaged_slopes(a, rows, a.z, width)
        for i in range(rows):
            slack += width * abs(a.c[i] - a.d[i] * a.slopes[i])
    else:
        for i in range(rows):
            a.c[i] = a.d[i] * a.slopes[i]
    return slack


@inline
def _step_length(a, F, width, w):
    """How far E falls from w towards the model's minimiser v, in [0, 1]. `model` is scratch."""
    penalty, move = a.penalty, a.model
    for p in range(a.slots):
        move[p] = a.v[p] - w[p]
    mixed(F, move, a.support, a.direction)  # not a difference of mixtures, which would round
    straight = 0.0
    bend = 0.0
    at_start = 0.0
    for p in range(a.slots):
        if move[p] != 0.0:
            straight += 2.0 * penalty[p] * w[p] * move[p]
            bend += 2.0 * penalty[p] * move[p] * move[p]
            at_start += a.g[p] * move[p]
    if not at_start < 0.0:
        return 0.0
    return line_search(a, len(F), width, at_start, straight, bend)


@inline
def _solve(a, F, w):
    """Move the weights w to the minimiser; certificate = (gap, cost, scale, moves).

    F: (rows, P), values of the slots. The discounts d, targets y and penalties are given; the other
    arrays of BY_ROW and BY_SLOT are scratch: g is the gradient of E at w, v and `model` are the
    weights and the gradient of the quadratic while it is minimised, diag is its diagonal.
    """
    rows = len(F)
    z, d, c, h, slopes = a.z, a.d, a.c, a.h, a.slopes
    penalty, active, g, model, diag, v = a.penalty, a.active, a.g, a.model, a.diag, a.v
    kind, tolerance, certificate = a.kind, a.tolerance, a.certificate
    used = 0
    turn = 0
    width = 0.0
    narrowest = 0.0
    spare = 0.0
    while True:
        mixed(F, w, a.support, z)  # z_i = w'f_i
        cost = _cost(a, rows, w)
        loss_of(a, a.derivative, rows, z, slopes)
        if turn == 0:
            spare = SPARE * abs(cost)
            width = first_width(a, rows, cost)
            narrowest = _NARROWEST * width
        slack = _slopes_and_slack(a, rows, width)
        _gradient(F, c, penalty, w, g)
        gap = linear_gap(g, w, least_gradient(g, active))
        certificate[0] = gap + slack
        certificate[1] = cost
        certificate[2] = abs(cost) + spare
        certificate[3] = used
        enough = certificate[0] <= tolerance * certificate[2]
        if enough or used >= a.steps or turn == _ROUNDS or not np.isfinite(gap + slack + cost):
            return

        # The model: the gradient g and the curvatures h at w, and how exactly it is to be solved.
        narrow = slack > gap and width * SHRINK >= narrowest
        target, share = 0.1 * (SHRINK * slack if narrow else gap), 0.0
        if kind == QUADRATIC:
            target, share = 0.5 * tolerance * spare, 0.5 * tolerance
            for i in range(rows):
                h[i] = 2.0 * d[i]
        elif narrow:
            shrunk_model(a, rows, width)
            _gradient(F, slopes, penalty, w, g)
            width *= SHRINK
        else:
            curvatures(a, rows, width)
        if turn == 0 or kind != QUADRATIC:  # the columns of a quadratic are the same in all rounds
            drop_columns(a)
            diagonal(F, h, penalty, diag)

        # v = the minimiser of the model, from w.
        for p in range(a.slots):
            v[p] = w[p]
            model[p] = g[p]
        source = Hessian(F, h, penalty, a.point)
        left = a.steps - used
        made = descend_pairs(a, source, active, v, model, diag, target, share, cost, left)
        if made == 0 and not narrow:
            return
        used += made

        # w <- w + step (v - w)
        step = 1.0
        if kind != QUADRATIC and not narrow:
            step = _step_length(a, F, width, w)
            if step == 0.0:
                return
        for p in range(a.slots):
            w[p] = v[p] if step == 1.0 else max(w[p] + step * (v[p] - w[p]), 0.0)
        normalise(w, active)
        turn += 1


@native(JOINT)
def _joint(a, first, count):
    """chosen[t] = the minimiser of the joint cost after sample t, from the weights before it."""
    window, horizon, certificate = a.window, a.horizon, a.certificate
    for t in range(count):
        chosen, losses = a.chosen[t], a.window_loss[t]
        before = a.chosen[t - 1] if t > 0 else a.weights
        best = 0
        for p in range(a.slots):
            chosen[p] = before[p]
            a.active[p] = 1.0 if losses[p] < np.inf else 0.0
            a.penalty[p] = a.curvature[t, p] + a.ridge
            if losses[p] < losses[best]:
                best = p
        if horizon > 0:  # prequential: a ring buffer of the last predictions
            number = int(a.taken[0])
            if not (number >= 0 and number == a.taken[0]):  # from a forged file only
                number = 0
            row = number % horizon
            rows = min(number + 1, horizon)
            a.taken[0] = number + 1.0
            F = a.past_predictions[0:rows]
            for p in range(a.slots):
                F[row, p] = a.slot_predictions[t, p] if a.active[p] > 0.0 else 0.0
            a.past_targets[row] = a.new_targets[t]
            for i in range(rows):
                a.d[i] = a.powers[(row - i + horizon) % horizon]
                a.y[i] = a.past_targets[i]
        else:  # window: the newest row last
            rows = min(first + t + 1, window)
            F = a.values[t][window - rows :]
            for i in range(rows):
                a.d[i] = 1.0
                a.y[i] = a.recent[t + window - rows + i]
        for k in range(4):
            certificate[k] = 0.0
        if normalise(chosen, a.active) == 0:
            continue
        _solve(a, F, chosen)
        if not np.isfinite(certificate[0]):  # the costs overflow: only the slot of least loss
            certificate[0] = certificate[1] = certificate[2] = np.inf
            for p in range(a.slots):
                chosen[p] = 1.0 if p == best else 0.0
