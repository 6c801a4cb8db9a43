"""Regret: how much more a bank has lost than comparators that were chosen in hindsight.

Every function takes the losses, or the costs, of each sample: `trace.loss` and `trace.slot_loss` of
a run, or `trace.cost` and `trace.slot_cost`. Entry n of a result is the regret after sample n. It
is negative where the bank was better. Against the best slot:

- `best_slot`: one slot for all samples so far (static regret);
- `best_slot_per_interval`: another slot in each interval of a given length;
- `best_slot_sequence`: the best sequence of slots with a given number of switches.

Against a comparator of your own (dynamic regret), predictions of any function that may change with
time: `np.cumsum(trace.loss - kb.losses.Squared().value(predictions, y))`. For a bank that runs
without a trace, `kb.Ledger.since` has the totals of an interval, and so the regret against its best
slot.

Reference: Zinkevich, Online convex programming and generalized infinitesimal gradient ascent, ICML
2003; Herbster and Warmuth, Tracking the best expert, Machine Learning 1998.
"""

from __future__ import annotations

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats

__all__ = ["best_slot", "best_slot_per_interval", "best_slot_sequence"]

_REMEDY = "Give trace.loss and trace.slot_loss, or trace.cost and trace.slot_cost."


def best_slot(loss: object, slot_loss: object) -> Floats:
    """(n,): the sum of the losses minus the sum of the best slot so far.

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
    """(n,): the sum of the losses minus the sum of the best slot of each interval.

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
    """(n,): the sum of the losses minus the sum of the best sequence of slots with few switches.

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
