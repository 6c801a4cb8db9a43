"""The simplex program of every sample of a block, from sums over the shards' slots.

With curvature a_p and loss on the window b_p the weights are

    w_p = max(0, v - b_p) / (2 a_p),   mass(v) = sum_p w_p = 1,

with one threshold v per sample. mass is convex in v. For all samples of a block at once the driver

1. gets from every shard a threshold at which its slots alone reach mass 1, and begins at the least;
2. sends the threshold, gets mass and slope of the slots below it, and takes a Newton step down,
   which never passes the solution;
3. gets the slots below the threshold, when few are left, and solves their program like `Simplex`.

The weights have the bits of `Simplex` on all slots: step 3 checks that no other slot can have
weight, and gets all slots where rounding misled the search. `CandidateSlots` is the shard's side,
`solve_weights` the driver's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....combiners import distributed_threshold as native
from ....combiners.simplex_qp import HUGE, solve_scratch
from ....utils.validation import Floats
from ...slot_metrics import mask_nonfinite
from .wire import PackedWeights, index_type

SlotLists = tuple[np.ndarray, np.ndarray, Floats, Floats]
"""starts (n + 1,), and the slots, a and b of sample t at starts[t] .. starts[t + 1] - 1.

Slots are int64 while lists are narrowed, and int32 when they are sent.
"""

AskShards = Callable[[str, Floats], list[Any]]
"""Calls a method of every shard's `CandidateSlots` with thresholds (n,); returns the answers."""

_MAX_STEPS = 12
_NEAR_MASS = (
    8.0  # from here one step leaves so few slots that another would cost more than it saves
)
_FAR_SHARE = 0.1  # share of the samples that may have more mass when the slots are collected


# --- a shard's side -------------------------------------------------------------------------------


class CandidateSlots:
    """The slots of a shard that may have weight after each sample: fewer with every threshold.

    curvature, linear : a and b, (n, P) for the shard's P slots. b = inf: the slot is out.
    """

    def __init__(self, curvature: Floats, linear: Floats) -> None:
        samples, slots = curvature.shape
        self._all = {"samples": samples, "slots": slots, "a": curvature, "b": linear}
        self._lists: SlotLists | None = None

    def bounds(self) -> Floats:
        """(3, n): a threshold with mass >= 1, the least b without curvature, the largest |b|."""
        out = np.empty((3, self._all["samples"]))
        native.threshold_bounds(**self._all, scratch=np.empty((2, self._all["slots"])), out=out)
        return out

    def narrow(self, threshold: Floats) -> Floats:
        """(2, n): mass and slope of the slots up to the thresholds; the others are dropped."""
        if self._lists is None:
            self._lists = self._list_below(threshold)
        out = np.empty((2, len(threshold)))
        names = ("starts", "indices", "a", "b")
        lists = dict(zip(names, self._lists, strict=True))
        native.narrow(samples=len(threshold), **lists, threshold=threshold, out=out)
        return out

    def collect(self, threshold: Floats) -> SlotLists:
        """The slots up to these thresholds, which are not above earlier ones."""
        if self._lists is None:
            return self.collect_all(threshold)
        self.narrow(threshold)
        starts, slots, a, b = self._lists
        end = starts[-1]
        return starts, slots[:end].astype(np.int32), a[:end], b[:end]

    def collect_all(self, threshold: Floats) -> SlotLists:
        """The slots up to these thresholds, dropped ones included."""
        starts, slots, a, b = self._list_below(threshold)
        return starts, slots.astype(np.int32), a, b

    def _list_below(self, threshold: Floats) -> SlotLists:
        starts = np.empty(len(threshold) + 1, dtype=np.int64)
        block = {name: value for name, value in self._all.items() if name != "a"}
        native.count_below(**block, threshold=threshold, starts=starts)
        members = int(starts[-1])
        slots, a, b = np.empty(members, dtype=np.int64), np.empty(members), np.empty(members)
        native.list_below(
            **self._all, members=members, threshold=threshold, indices=slots, some_a=a, some_b=b
        )
        return starts, slots, a, b


# --- the driver's side ----------------------------------------------------------------------------


class SparseWeights(NamedTuple):
    """Entries of a table (n, P) of weights that is mostly zero."""

    samples: np.ndarray
    slots: np.ndarray
    values: Floats

    def pack_columns(self, slots: np.ndarray, count: int) -> PackedWeights:
        """Pack the columns of some slots, given in rising order, for `count` samples."""
        columns = np.searchsorted(slots, self.slots)
        own = (columns < len(slots)) & (slots[np.minimum(columns, len(slots) - 1)] == self.slots)
        own &= self.values != 0
        shape = (count, len(slots))
        indices = self.samples[own] * len(slots) + columns[own]
        return shape, indices.astype(index_type(count * len(slots))), self.values[own]


def solve_weights(
    ask: AskShards, bounds: list[Floats], slots: list[np.ndarray], count: int
) -> SparseWeights:
    """Return the weights after each of `count` samples, in the order of samples, then of slots.

    bounds : `CandidateSlots.bounds` of each shard. slots : the slot indices of each shard.
    """
    threshold = _first_threshold(np.array(bounds))
    for _ in range(_MAX_STEPS):
        mass, slope = np.sum(ask("narrow", threshold), axis=0)
        before, threshold = threshold, _step_down(threshold, mass, slope)
        if np.mean(mass > _NEAR_MASS) < _FAR_SHARE or np.array_equal(threshold, before):
            break
    found, solved = _solve_lists(ask("collect", threshold), slots, threshold)
    if solved.all():
        return found
    every = np.where(solved, -np.inf, np.inf)  # rounding misled the search: collect all slots
    rest, _ = _solve_lists(ask("collect_all", every), slots, np.full(count, np.inf))
    good = solved[found.samples]
    parts = [np.concatenate([old[good], new]) for old, new in zip(found, rest, strict=True)]
    order = np.lexsort((parts[1], parts[0]))
    return SparseWeights(*(part[order] for part in parts))


def _first_threshold(bounds: np.ndarray) -> Floats:
    """(n,): thresholds with mass >= 1, infinite where b is too large to search."""
    bound, flat = bounds[:, native.BOUND].min(axis=0), bounds[:, native.FLAT].min(axis=0)
    with np.errstate(invalid="ignore"):  # infinity, where no slot takes part
        bound = bound + 1e-15 * np.abs(bound)
    threshold = np.minimum(bound, flat)
    return np.where(bounds[:, native.LARGEST].max(axis=0) > HUGE, np.inf, threshold)


def _step_down(threshold: Floats, mass: Floats, slope: Floats) -> Floats:
    """The thresholds after one Newton step, (n,)."""
    out = np.empty_like(threshold)
    native.step_down(samples=len(threshold), threshold=threshold, mass=mass, slope=slope, out=out)
    return out


def _solve_lists(
    answers: list[SlotLists], slots: list[np.ndarray], threshold: Floats
) -> tuple[SparseWeights, np.ndarray]:
    """Solve the program of each sample on the shards' lists; (n,) whether no other slot counts."""
    count = len(threshold)
    of_sample = [np.repeat(np.arange(count), np.diff(starts)) for starts, *_ in answers]
    of_slot = [own[found] for own, (_, found, _, _) in zip(slots, answers, strict=True)]
    samples, indices = np.concatenate(of_sample), np.concatenate(of_slot)
    order = np.lexsort((indices, samples))
    samples, indices = samples[order], indices[order]
    a = np.concatenate([part for _, _, part, _ in answers])[order]
    b = np.concatenate([part for _, _, _, part in answers])[order]
    starts = np.searchsorted(samples, np.arange(count + 1))
    weights, solved = np.empty(len(a)), np.zeros(count, dtype=np.int64)
    native.solve_lists(
        samples=count,
        members=len(a),
        starts=starts,
        a=a,
        b=b,
        threshold=threshold,
        weights=weights,
        right=solved,
        **solve_scratch(int(np.diff(starts).max())),
    )
    return SparseWeights(samples, indices, weights), solved == 1


def weights_before(
    after: SparseWeights,
    weights: Floats,
    nonfinite: list[tuple[np.ndarray, np.ndarray]],
    count: int,
) -> tuple[SparseWeights, Floats]:
    """Return the weights before each sample, and (P,) the weights after the last one.

    after : weights after each sample. weights : (P,) before the block. nonfinite : by shard, the
    samples and slots of non-finite predictions; these slots get no weight for that sample.
    """
    newest = np.zeros(len(weights))
    last = after.samples == count - 1
    newest[after.slots[last]] = after.values[last]
    initial = np.flatnonzero(weights)
    before = SparseWeights(
        np.concatenate([np.zeros(len(initial), dtype=np.int64), after.samples[~last] + 1]),
        np.concatenate([initial, after.slots[~last]]),
        np.concatenate([weights[initial], after.values[~last]]),
    )
    bad_samples = np.concatenate([samples for samples, _ in nonfinite])
    bad_slots = np.concatenate([slots for _, slots in nonfinite])
    for sample in np.unique(bad_samples):
        bad = bad_slots[bad_samples == sample]
        before = _without_nonfinite(before, int(sample), bad, len(weights))
    return before, newest


def _without_nonfinite(
    rows: SparseWeights, sample: int, bad: np.ndarray, slots: int
) -> SparseWeights:
    """Take the weight of the slots `bad` at one sample, as the driver does on dense weights."""
    own = rows.samples == sample
    weights, predictions = np.zeros((1, slots)), np.zeros((1, slots))
    weights[0, rows.slots[own]] = rows.values[own]
    predictions[0, bad] = np.nan
    mask_nonfinite(1, slots=slots, on_simplex=True, weights=weights, predictions=predictions)
    left = np.flatnonzero(weights[0])
    return SparseWeights(
        np.concatenate([rows.samples[~own], np.full(len(left), sample)]),
        np.concatenate([rows.slots[~own], left]),
        np.concatenate([rows.values[~own], weights[0, left]]),
    )
