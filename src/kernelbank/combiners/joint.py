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

import numpy as np

from ..losses import Squared
from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import float_array, int_array, read_float, read_int
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .joint_model import (
    JOINT,
    KINKED,
    QUADRATIC,
    SHRINK,
    SMOOTH,
    Hessian,
    averaged_slopes,
    curvatures,
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
    descend_pairs,
    drop_columns,
    least_gradient,
    linear_gap,
    normalise,
    pairwise_scratch,
)

_ROUNDS = 40
_NARROWEST = 1e-7  # relative to the first width: below, a difference of two values is rounding
_BY_ROW, _BY_SLOT = 10, 6  # numbers of scratch arrays


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

    Reference: the problem is that of Ruiz-Moreno and Beferull-Lozano before they separate it;
    pairwise moves: Lacoste-Julien and Jaggi, On the global linear convergence of Frank-Wolfe
    optimization variants, NeurIPS 2015; Fan, Chen and Lin (2005) for the choice of the pair.

    >>> import kernelbank as kb
    >>> joint = kb.combiners.Joint(evidence="prequential", horizon=50, discount=0.99, ridge=0.1)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=joint)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> shown = bank.evidence()
    >>> bool(shown["gap"] <= joint.tolerance * shown["scale"])
    True
    """

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
    def needs_values(self) -> bool:  # type: ignore[override]
        """Whether the rule needs each slot's values on the window."""
        return self.evidence == "window"

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        if self.evidence == "window":
            return {"certificate": (4,)}
        return {"certificate": (4,), "values": (self.horizon, slots), "targets": (self.horizon,)}

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
            JOINT,
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
            values=state["values"] if prequential else workspace.values,
            powers=self.discount ** np.arange(float(longest)),
            rows=rows,
            targets=state["targets"] if prequential else np.zeros(1),
            certificate=state["certificate"],
            by_row=np.ones((_BY_ROW, rows)),
            by_slot=np.zeros((_BY_SLOT, slots)),
            **pairwise_scratch(slots),
        )
        return [phase]


def _kind(objective: Objective) -> int:
    if type(objective.loss) is Squared:
        return QUADRATIC
    return KINKED if objective.loss.curvature is None else SMOOTH


@inline
def _gradient(F, rows, slots, c, penalty, w, g):
    """g = F'c + 2 penalty w: the gradient at w, if c holds the slopes of the rows."""
    weighted_sums(F, rows, slots, c, g)
    for p in range(slots):
        g[p] += 2.0 * penalty[p] * w[p]


@inline
def _solve(args, F, rows, d, y, penalty, active, w):
    """Move the weights w to the minimiser; certificate = (gap, cost, scale, moves).

    F: (rows, P), values of the slots; d, y: (rows,), discounts and targets; penalty, active, w:
    (P,). The scratch arrays of one number per row follow y, those of one per slot follow active.
    """
    slots = read_int(args, JOINT.slots)
    kind = read_int(args, JOINT.kind)
    tolerance = read_float(args, JOINT.tolerance)
    steps = read_int(args, JOINT.steps)
    certificate = float_array(args, JOINT.certificate)
    columns = float_array(args, JOINT.columns)
    column_of = int_array(args, JOINT.column_of)
    support = int_array(args, JOINT.support)
    stride = read_int(args, JOINT.rows)
    z = pointer(y, stride)  # z_i = w'f_i
    direction = pointer(z, stride)
    c = pointer(direction, stride)  # c_i = d_i l'(z_i), averaged if the loss has kinks
    h = pointer(c, stride)  # h_i = d_i l''(z_i)
    slopes = pointer(h, stride)
    point = pointer(slopes, stride)
    shifted = pointer(point, stride)
    other = pointer(shifted, stride)
    g = pointer(active, slots)
    model = pointer(g, slots)
    diag = pointer(model, slots)
    v = pointer(diag, slots)
    used = 0
    turn = 0
    width = 0.0
    narrowest = 0.0
    spare = 0.0
    while True:
        mixed(F, rows, slots, w, support, z)
        loss_of(args, JOINT.value, z, y, rows, other)
        loss_of(args, JOINT.derivative, z, y, rows, slopes)
        cost = 0.0  # E(w) = sum_i d_i l(z_i, y_i) + sum_p penalty_p w_p^2
        for i in range(rows):
            cost += d[i] * other[i]
        for p in range(slots):
            cost += penalty[p] * w[p] * w[p]
        if turn == 0:
            spare = SPARE * abs(cost)
            width = first_width(kind, rows, d, cost, slopes, z, y)
            narrowest = _NARROWEST * width
        slack = 0.0
        if kind == KINKED:
            averaged_slopes(args, z, y, d, rows, width, shifted, other, c)
            for i in range(rows):
                slack += width * abs(c[i] - d[i] * slopes[i])
        else:
            for i in range(rows):
                c[i] = d[i] * slopes[i]
        _gradient(F, rows, slots, c, penalty, w, g)
        gap = linear_gap(g, w, least_gradient(g, active, slots), slots)
        certificate[0] = gap + slack
        certificate[1] = cost
        certificate[2] = abs(cost) + spare
        certificate[3] = used
        enough = certificate[0] <= tolerance * certificate[2]
        if enough or used >= steps or turn == _ROUNDS or not np.isfinite(gap + slack + cost):
            return
        narrow = slack > gap and width * SHRINK >= narrowest
        if kind == QUADRATIC:
            for i in range(rows):
                h[i] = 2.0 * d[i]
        elif narrow:
            shrunk_model(args, z, y, d, c, rows, width, shifted, other, h, slopes)
            _gradient(F, rows, slots, slopes, penalty, w, g)
            width *= SHRINK
        else:
            curvatures(args, z, y, d, c, rows, width, shifted, other, h)
        if turn == 0 or kind != QUADRATIC:  # the columns of a quadratic are the same in all rounds
            drop_columns(column_of, slots)
            diagonal(F, rows, slots, h, penalty, diag)
        for p in range(slots):
            v[p] = w[p]
            model[p] = g[p]
        made = descend_pairs(
            Hessian(F, rows, h, penalty, point), slots, active, v, model, diag,
            0.5 * tolerance * spare if kind == QUADRATIC
            else 0.1 * (SHRINK * slack if narrow else gap),
            0.5 * tolerance if kind == QUADRATIC else 0.0,
            cost, steps - used, column_of, columns, support,
            float_array(args, JOINT.face),
        )  # fmt: skip
        if made == 0 and not narrow:
            return
        used += made
        step = 1.0
        if kind != QUADRATIC and not narrow:
            for p in range(slots):
                model[p] = v[p] - w[p]
            mixed(
                F, rows, slots, model, support, direction
            )  # not a difference of mixtures, which would round
            straight = 0.0
            bend = 0.0
            at_start = 0.0
            for p in range(slots):
                move = model[p]
                if move != 0.0:
                    straight += 2.0 * penalty[p] * w[p] * move
                    bend += 2.0 * penalty[p] * move * move
                    at_start += g[p] * move
            if not at_start < 0.0:
                return
            step = line_search(
                args,
                d,
                y,
                z,
                direction,
                rows,
                width,
                at_start,
                straight,
                bend,
                point,
                shifted,
                other,
                c,
            )
            if step == 0.0:
                return
        for p in range(slots):
            w[p] = v[p] if step == 1.0 else max(w[p] + step * (v[p] - w[p]), 0.0)
        normalise(w, active, slots)
        turn += 1


def _joint(args, first, count):
    """chosen[t] = the minimiser of the joint cost after sample t, from the weights before it.

    curvature, window_loss, slot_predictions, chosen: (n, P). values: (n, window, P) for window
    evidence; values: (horizon, P) and targets: (horizon,), ring buffers, for prequential.
    """
    slots = read_int(args, JOINT.slots)
    window = read_int(args, JOINT.window)
    horizon = read_int(args, JOINT.horizon)
    certificate = float_array(args, JOINT.certificate)
    d = float_array(args, JOINT.by_row)
    y = pointer(d, read_int(args, JOINT.rows))
    penalty = float_array(args, JOINT.by_slot)
    active = pointer(penalty, slots)
    for t in range(count):
        chosen = pointer(float_array(args, JOINT.chosen), t * slots)
        before = float_array(args, JOINT.weights)
        if t > 0:
            before = pointer(float_array(args, JOINT.chosen), (t - 1) * slots)
        best = 0
        losses = pointer(float_array(args, JOINT.window_loss), t * slots)
        for p in range(slots):
            chosen[p] = before[p]
            active[p] = 1.0 if losses[p] < np.inf else 0.0
            curvature = float_array(args, JOINT.curvature)[t * slots + p]
            penalty[p] = curvature + read_float(args, JOINT.ridge)
            if losses[p] < losses[best]:
                best = p
        if horizon > 0:  # prequential: a ring buffer of the last predictions
            row = (first + t) % horizon
            rows = min(first + t + 1, horizon)
            F = float_array(args, JOINT.values)
            for p in range(slots):
                value = float_array(args, JOINT.slot_predictions)[t * slots + p]
                F[row * slots + p] = value if active[p] > 0.0 else 0.0
            float_array(args, JOINT.targets)[row] = float_array(args, JOINT.new_targets)[t]
            for i in range(rows):
                d[i] = float_array(args, JOINT.powers)[(row - i + horizon) % horizon]
                y[i] = float_array(args, JOINT.targets)[i]
        else:  # window: the newest row last
            rows = min(first + t + 1, window)
            F = pointer(float_array(args, JOINT.values), ((t + 1) * window - rows) * slots)
            for i in range(rows):
                d[i] = 1.0
                y[i] = float_array(args, JOINT.recent)[t + window - rows + i]
        certificate[0] = certificate[1] = certificate[2] = certificate[3] = 0.0
        if normalise(chosen, active, slots) == 0:
            continue
        _solve(args, F, rows, d, y, penalty, active, chosen)
        if not np.isfinite(certificate[0]):  # the costs overflow: only the slot of least loss
            certificate[0] = certificate[1] = certificate[2] = np.inf
            for p in range(slots):
                chosen[p] = 1.0 if p == best else 0.0
