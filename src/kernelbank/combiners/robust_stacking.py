"""RobustStacking: weights by squared errors, and weights in which large errors count less."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.jit import inline
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .stacking import LARGEST_ERROR, STACKING, Stacking, mixture, stacking_phase, update_weights


@dataclass(frozen=True)
class RobustStacking(Stacking):
    """A mean of two weights: those of `Stacking`, and those in which large errors count less.

    As in `Stacking`, f_i holds the slots' predictions of sample i, made before learning it. With
    v_i the second weights at that time and r_i = v_i'f_i - y_i their error, these minimise

        sum_i d^(n-i) c_i (v'f_i - y_i)^2 + ridge L |v|^2  on the simplex,
        c_i = 1 / (s_i + r_i^2 / degrees_of_freedom),  s_i = discounted mean of r_1^2 .. r_i^2,

    with L = min_p of the sum for slot p alone. So samples count as in a likelihood of Student's t
    with these degrees of freedom, whose scale follows the errors: one step of iteratively
    reweighted least squares per sample. Where errors come in bursts, a few samples decide about the
    weights of `Stacking`, and say little more than others here. Where rare samples matter most, the
    second weights neglect them. So the weights are q v + (1 - q) w, with w those of `Stacking`, and

        q = 1/2 + 5/2 (1 - R_v / R_w) within 0 and 1,

    where R_v and R_w are the discounted sums of the squared errors of both. Multiplying targets and
    predictions by a factor changes no weight.

    Not for labels: there the large errors are all that counts.

    Parameters
    ----------
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample. The mean of r^2 has the same memory of about 1 / (1 - d) samples.
    ridge : 0 to 1e9, as a fraction of L: pulls the weights towards equal ones.
    tolerance : above 0: how far a cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between slots per sample, for each of the two.
    degrees_of_freedom : positive: the smaller, the less a large error counts.

    Cost per sample: O(P^2), and O(P) per move; twice that of `Stacking`. Memory: 2 P^2 + 2 P + 12,
    and at most 128 P of scratch.

    Reference: Lange, Little and Taylor, Robust statistical modeling using the t distribution,
    Journal of the American Statistical Association 1989.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.RobustStacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> shown = bank.evidence()
    >>> bool(shown["gap"] <= stacking.tolerance * shown["scale"])
    True
    """

    core_name: ClassVar[str] = "RobustStacking"
    degrees_of_freedom: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        remedy = "Give a positive number, such as 4."
        name = "degrees_of_freedom"
        freedom = check.number(name, self.degrees_of_freedom, type(self).__name__, remedy, above=0)
        object.__setattr__(self, name, freedom)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        both = super().shapes(slots) | {"weights": (slots,)}
        plain = {f"plain_{name}": shape for name, shape in both.items()}
        return {**both, **plain, "mean_square": (2,), "squares": (2,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        def part(prefix: str) -> dict[str, Any]:
            own = {name: state[prefix + name] for name in ("certificate", "moments")}
            return self._arguments(own) | {"chosen": np.zeros_like(workspace.chosen)}

        plain, robust = part("plain_"), part("")
        return [
            combiner_phase(stacking_phase, workspace, state["plain_weights"], **plain),
            combiner_phase(
                _robust_stacking,
                workspace,
                state["weights"],
                **robust,
                mean_square=state["mean_square"],
                degrees_of_freedom=self.degrees_of_freedom,
            ),
            combiner_phase(
                _mean_weights,
                workspace,
                weights,
                discount=self.discount,
                squares=state["squares"],
                plain=plain["chosen"],
                robust=robust["chosen"],
                plain_weights=state["plain_weights"],
                robust_weights=state["weights"],
            ),
        ]

    def change_slots(
        self, old: State, new: State, kept: Sequence[int | None], previous: Sequence[int]
    ) -> None:
        super().change_slots(old, new, kept, previous)
        fresh = np.array([source is None for source in kept])
        for name in ("weights", "plain_weights"):
            new[name][fresh] = 0.0  # the next sample makes their sum 1 again

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """As for Stacking, of the second weights and, with "plain_", of the first.

        mean_square : s, of the errors of the second weights.
        share : q, of the second weights.
        """
        parts = {n: {"certificate": state[f"{n}/certificate"]} for n in ("robust", "plain")}
        plain = super().diagnostics(parts["plain"], weights)
        return {
            **super().diagnostics(parts["robust"], weights),
            **{f"plain_{name}": value for name, value in plain.items()},
            "mean_square": np.array(state["mean_square"][0]),
            "share": np.array(_share(*state["squares"])),
        }


def _share(robust: float, plain: float) -> float:
    """q, from the sums of squares of both."""
    if not plain > 0.0:
        return 0.5 if robust == 0.0 else 0.0
    return min(max(0.5 + 2.5 * (1.0 - robust / plain), 0.0), 1.0)


_inline_share = inline(_share)


@inline
def _start(weights):
    """Equal weights before the first sample, where all are 0. weights: (P,)."""
    total = 0.0
    for p in range(len(weights)):
        total += weights[p]
    if total == 0.0:
        for p in range(len(weights)):
            weights[p] = 1.0 / len(weights)


@inline
def _error_of(weights, predictions, losses, target):
    """w'f - y of a sample, at most LARGEST_ERROR; 0 if no slot made a prediction, and whether.

    weights, predictions, losses: (P,).
    """
    combined, share = mixture(weights, predictions, losses)
    error = combined - target
    if not share > 0.0:
        return 0.0, False
    return error if abs(error) <= LARGEST_ERROR else LARGEST_ERROR, True


@native(STACKING.extended("robust_stacking", mean_square=floats(2), degrees_of_freedom=float))
def _robust_stacking(a, first, count):
    """chosen[t] = the second weights after sample t. mean_square: s, and its number of samples."""
    _start(a.weights)
    for t in range(count):
        before = a.chosen[t - 1] if t > 0 else a.weights
        predictions, target = a.slot_predictions[t], a.new_targets[t]
        own, known = _error_of(before, predictions, a.window_loss[t], target)  # r
        if known:
            a.mean_square[1] += 1.0
            rate = max(1.0 / a.mean_square[1], 1.0 - a.discount)
            a.mean_square[0] += (own * own - a.mean_square[0]) * rate
        # 1 / sqrt(c) = sqrt(s + r^2 / degrees_of_freedom)
        size = math.sqrt(a.mean_square[0] + own * own / a.degrees_of_freedom)
        for p in range(a.slots):
            a.errors[p] = (predictions[p] - target) / size if size > 0.0 else 0.0
        update_weights(a, t)


@native(
    Arguments(
        "mean_weights",
        slots=int,
        discount=float,
        new_targets=floats(None),
        window_loss=floats(None, "slots"),
        slot_predictions=floats(None, "slots"),
        plain=floats(None, "slots"),
        robust=floats(None, "slots"),
        plain_weights=floats("slots"),
        robust_weights=floats("slots"),
        squares=floats(2),  # R_v, R_w
        chosen=floats(None, "slots"),
    )
)
def _mean_weights(a, first, count):
    """chosen[t] = q v + (1 - q) w after sample t; keep the last v and w."""
    _start(a.plain_weights)
    for t in range(count):
        predictions, losses, target = a.slot_predictions[t], a.window_loss[t], a.new_targets[t]
        v = a.robust[t - 1] if t > 0 else a.robust_weights
        w = a.plain[t - 1] if t > 0 else a.plain_weights
        error, _ = _error_of(v, predictions, losses, target)
        a.squares[0] = a.discount * a.squares[0] + error * error
        error, _ = _error_of(w, predictions, losses, target)
        a.squares[1] = a.discount * a.squares[1] + error * error
        q = _inline_share(a.squares[0], a.squares[1])
        for p in range(a.slots):
            a.chosen[t, p] = q * a.robust[t, p] + (1.0 - q) * a.plain[t, p]
    for p in range(a.slots):
        a.plain_weights[p] = a.plain[count - 1, p]
        a.robust_weights[p] = a.robust[count - 1, p]
