"""Regret: how much more a bank has lost than comparators that were chosen in hindsight.

Every function takes the losses, or the costs, of each sample: `trace.loss` and `trace.slot_loss` of
a run, or `trace.cost` and `trace.slot_cost`. Entry n of a result is the regret after sample n. It
is negative where the bank was better. Against the best slot:

- `best_slot`: one slot for all samples so far (static regret);
- `best_slot_per_interval`: another slot in each interval of a given length;
- `best_slot_sequence`: the best sequence of slots with a given number of switches.

Against comparators of your own (dynamic regret), predictions or functions that may change with
time: `np.cumsum(trace.loss - comparator_loss(...))`. `path_length` says how much they change;
bounds of dynamic regret grow with it (docs/theory.md). For a bank that runs without a trace,
`kb.Ledger.since` has the totals of an interval, and so the regret against its best slot.

Reference: Zinkevich, Online convex programming and generalized infinitesimal gradient ascent, ICML
2003; Herbster and Warmuth, Tracking the best expert, Machine Learning 1998.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeGuard

import numpy as np

from ..losses import as_loss
from ..utils import validation as check
from ..utils.validation import Floats

__all__ = [
    "best_slot",
    "best_slot_per_interval",
    "best_slot_sequence",
    "comparator_loss",
    "path_length",
]

Function = Callable[[Floats], object]

_REMEDY = "Give trace.loss and trace.slot_loss, or trace.cost and trace.slot_cost."


def best_slot(loss: object, slot_loss: object) -> Floats:
    """(n,): the sum of the losses minus that of the best slot so far.

    R_n = sum_{t <= n} l_t - min_p sum_{t <= n} l_{t,p}.

    Parameters
    ----------
    loss : (n,), of the bank.
    slot_loss : (n, P), of every slot alone; infinite for a slot that is out.

    >>> import kernelbank as kb
    >>> kb.regret.best_slot([1, 1, 1], [[0, 3], [2, 1], [2, 0]]).tolist()
    [1.0, 0.0, -1.0]
    """
    bank_loss, alone = _checked(loss, slot_loss)
    return np.asarray(np.cumsum(bank_loss) - np.cumsum(alone, axis=0).min(axis=1))


def best_slot_per_interval(loss: object, slot_loss: object, length: int) -> Floats:
    """(n,): the sum of the losses minus that of the best slot of each interval.

    Intervals have `length` samples, the last one perhaps fewer. In the interval of sample n the
    best slot is the best one from its first sample to n. With one interval this is `best_slot`.

    Parameters
    ----------
    loss : (n,), of the bank.
    slot_loss : (n, P), of every slot alone.
    length : samples of an interval.

    >>> import kernelbank as kb
    >>> kb.regret.best_slot_per_interval([1, 1, 1, 1], [[0, 3], [2, 1], [2, 0], [2, 0]], 2).tolist()
    [1.0, 0.0, 1.0, 2.0]
    """
    bank_loss, alone = _checked(loss, slot_loss)
    owner, remedy = "best_slot_per_interval", "Give how many samples an interval has."
    size = check.count("length", length, owner, remedy)
    best = np.empty(len(bank_loss))
    before = 0.0
    for start in range(0, len(bank_loss), size):
        part = slice(start, start + size)
        best[part] = before + np.cumsum(alone[part], axis=0).min(axis=1)
        before = best[part][-1]
    return np.asarray(np.cumsum(bank_loss) - best)


def best_slot_sequence(loss: object, slot_loss: object, switches: int) -> Floats:
    """(n,): the sum of the losses minus that of the best sequence of slots with few switches.

    By dynamic programming: with D_{s,p} the least sum of a sequence that ends in slot p after at
    most s switches,

        D_{s,p} <- l_{t,p} + min(D_{s,p}, min_q D_{s-1,q}).

    Cost: O(n P switches).

    Parameters
    ----------
    loss : (n,), of the bank.
    slot_loss : (n, P), of every slot alone.
    switches : the most changes from one slot to another, at least 0.

    >>> import kernelbank as kb
    >>> kb.regret.best_slot_sequence([1, 1, 1], [[0, 3], [2, 1], [2, 0]], 1).tolist()
    [1.0, 1.0, 2.0]
    """
    bank_loss, alone = _checked(loss, slot_loss)
    owner, remedy = "best_slot_sequence", "Give the most changes of the slot, such as 5."
    changes = check.count("switches", switches, owner, remedy, least=0)
    least = np.zeros((changes + 1, alone.shape[1]))  # D
    best = np.empty(len(bank_loss))
    for t, losses in enumerate(alone):
        least[1:] = np.minimum(least[1:], least[:-1].min(axis=1, keepdims=True))
        least += losses
        best[t] = least[-1].min()
    return np.asarray(np.cumsum(bank_loss) - best)


def comparator_loss(
    comparator: object,
    X: object,
    y: object,
    loss: object = "squared",
    *,
    window: int = 1,
    regularization: float = 0.0,
    norm2: object = 0.0,
) -> Floats:
    """The losses of a comparator, sample by sample; with a window, its costs.

    The cost of a function c at sample n is the paper's: sum_i l(c(x_i), y_i) over the last `window`
    samples plus regularization / 2 * |c|^2.

    Parameters
    ----------
    comparator : predictions, (n,) or (n, K) for K comparators; or a function of an (m, d) array
        that returns (m,) values, such as `BatchSolution.predict`; or a list of pairs (start,
        function), where each function is the comparator from sample `start` on, the first from 0.
    X : (n, d) inputs, or (n,); for predictions they may be None.
    y : (n,) targets.
    loss : the loss, or its name.
    window, regularization : those of the bank, to compare with `trace.cost`. Only functions have
        such costs: predictions say nothing of the older samples of a window.
    norm2 : |c|^2 of the function, or of each of them. With 0 the cost is too small by the
        regularizer, and the regret too large.

    Returns (n,), or (n, K).

    >>> import numpy as np, kernelbank as kb
    >>> x, y = kb.datasets.sine(seed=0, samples=400)
    >>> trace = kb.KernelBank(kb.gaussian_grid(0.1, 1, 5), kb.learners.FourierSGD()).run(x, y)
    >>> drifting = np.sin(2 * np.pi * (x[:, 0] + np.arange(400) / 400))
    >>> losses = kb.regret.comparator_loss(drifting, x, y)
    >>> dynamic_regret = np.cumsum(trace.loss - losses)
    >>> dynamic_regret.shape, bool(dynamic_regret[-1] > 0)
    ((400,), True)
    """
    target = check.floats("y", y, "Give one number for each sample.").ravel()
    check.within_range("y", target)
    owner, remedy = "comparator_loss", "Give that of the bank."
    size = check.count("window", window, owner, remedy)
    ridge = check.number("regularization", regularization, owner, remedy, least=0)
    measure = as_loss(loss)
    if not _is_functions(comparator):
        if size > 1:
            remedy = "Give functions, or compare losses: window=1."
            raise check.refuse("comparator", "be functions for a window", comparator, remedy)
        values = _predictions(comparator, len(target))
        column = target.reshape(-1, *[1] * (values.ndim - 1))
        return np.asarray(measure.value(values, column))
    points = check.samples(X, None)
    target = check.targets(y, len(points))
    parts = _parts(comparator, len(points))
    norms = check.floats("norm2", norm2, "Give one number, or one for each function.")
    if norms.shape not in ((), (len(parts),)):
        rule = f"be one number, or one for each of {len(parts)} functions"
        raise check.refuse("norm2", rule, norms.shape, "Give |c|^2 of each function.")
    out = np.empty(len(points))
    for (start, end, function), squared_norm in zip(
        parts, np.broadcast_to(norms, len(parts)), strict=True
    ):
        first = max(0, start - size + 1)  # the oldest sample of the first window
        losses = measure.value(_values(function, points[first:end]), target[first:end])
        for n in range(start, end):
            out[n] = losses[max(0, n - size + 1) - first : n + 1 - first].sum()
        out[start:end] += 0.5 * ridge * squared_norm
    return out


def path_length(comparator: object, X: object = None) -> float | Floats:
    """How much a comparator changes: for predictions sum_n |c_n - c_{n-1}|.

    For functions sum_n |c_n(x_n) - c_{n-1}(x_n)|: each change is measured at the sample at which it
    takes place, so that one function for all samples has length 0.

    Parameters
    ----------
    comparator : as for `comparator_loss`.
    X : (n, d) inputs; for predictions they may be None.

    Returns a number, or (K,) for predictions (n, K).

    >>> import kernelbank as kb
    >>> kb.regret.path_length([0.0, 1.0, 1.0, -1.0])
    3.0
    >>> kb.regret.path_length([(0, lambda x: x[:, 0]), (2, lambda x: 2 * x[:, 0])], [1, 2, 3, 4])
    3.0
    """
    if not _is_functions(comparator):
        values = _predictions(comparator, None)
        length = np.abs(np.diff(values, axis=0)).sum(axis=0)
        return length if length.ndim else float(length)
    points = check.samples(X, None)
    total = 0.0
    for (_, _, before), (start, _, after) in pairwise(_parts(comparator, len(points))):
        here = points[start : start + 1]
        total += float(np.abs(_values(after, here) - _values(before, here))[0])
    return total


# --- checks ---------------------------------------------------------------------------------------


def _checked(loss: object, slot_loss: object) -> tuple[Floats, Floats]:
    bank_loss = check.floats("loss", loss, _REMEDY)
    alone = check.floats("slot_loss", slot_loss, _REMEDY)
    if bank_loss.ndim != 1 or not len(bank_loss):
        raise check.refuse("loss", "have the shape (n,) with n >= 1", bank_loss.shape, _REMEDY)
    if alone.ndim != 2 or len(alone) != len(bank_loss) or not alone.shape[1]:
        rule = f"have the shape ({len(bank_loss)}, P), as loss has"
        raise check.refuse("slot_loss", rule, alone.shape, _REMEDY)
    for name, values in (("loss", bank_loss), ("slot_loss", alone)):
        if np.isnan(values).any():
            raise check.refuse(name, "have no NaN", values, "Leave these samples or slots out.")
    return bank_loss, alone


def _is_functions(comparator: object) -> TypeGuard[Function | Sequence[tuple[int, Function]]]:
    if callable(comparator):
        return True
    return (
        isinstance(comparator, Sequence)
        and len(comparator) > 0
        and all(
            isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1]) for pair in comparator
        )
    )


def _predictions(comparator: object, length: int | None) -> Floats:
    remedy = "Give (n,) predictions, (n, K) for several, a function, or pairs (start, function)."
    values = check.floats("comparator", comparator, remedy)
    if values.ndim not in (1, 2) or (length is not None and len(values) != length):
        rule = f"have {'one' if length is None else length} prediction for each sample"
        raise check.refuse("comparator", rule, values.shape, remedy)
    check.within_range("comparator", values)
    return values


def _parts(
    comparator: Function | Sequence[tuple[int, Function]], length: int
) -> list[tuple[int, int, Function]]:
    """(start, end, function) of each interval."""
    pairs = [(0, comparator)] if callable(comparator) else list(comparator)
    remedy = "Give ascending numbers of samples, the first of them 0."
    starts = [
        check.count("comparator", start, "comparator_loss", remedy, least=0, most=length - 1)
        for start, _ in pairs
    ]
    if starts[0] != 0 or any(start >= following for start, following in pairwise(starts)):
        raise check.refuse("comparator", "have ascending starts, the first 0", starts, remedy)
    ends: Iterator[int] = iter([*starts[1:], length])
    return [
        (start, next(ends), function) for start, (_, function) in zip(starts, pairs, strict=True)
    ]


def _values(function: Function, points: Floats) -> Floats:
    remedy = "It gets an (m, d) array of inputs, and must return (m,) numbers."
    values = check.floats("comparator", function(points.copy()), remedy)
    if values.shape != (len(points),):
        rule = f"return {len(points)} values for {len(points)} inputs"
        raise check.refuse("comparator", rule, values.shape, remedy)
    check.within_range("comparator", values)
    return values
