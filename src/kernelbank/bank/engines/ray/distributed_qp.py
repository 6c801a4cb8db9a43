"""Less to send: the weights of a block from sums over the shards' slots.

Every shard tells a level at which its slots alone would take all weight. For every sample of the
block at once, the driver sends the least, and each shard says how much its slots up to there would
take, and how fast that accepts_new_inputs. The weight of the whole bank is a convex function of the level, so
Newton's steps come down to it from above and never pass it. When few slots are left they are sent,
and the driver solves for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....combiners import distributed_threshold as hot
from ....combiners.qp import HUGE
from ....utils.validation import Floats
from ...bank_cost import admit
from .wire import Packed, Parts

Ask = Callable[..., list[Any]]
"""Puts a question to all shards; returns their answers."""

_ROUNDS = 12
_NEAR = 8.0  # from such a mass one step leaves so few that another round would cost more
_SHARE = 0.1  # of the samples may be farther


class Rows:
    """Weights after, or before, each sample: rows of a table that is mostly zero."""

    def __init__(self, samples: np.ndarray, places: np.ndarray, weights: Floats) -> None:
        self.samples = samples
        self.places = places
        self.weights = weights


def solved(ask: Ask, outlines: list[Floats], owned: list[np.ndarray], count: int) -> Rows:
    """The weights after each sample. `owned`: the places of the slots of each shard."""
    level = _first_level(outlines)
    for _ in range(_ROUNDS):
        mass, slope = np.sum(ask("narrow", level), axis=0)
        before, level = level, hot.step_down(level, mass, slope)
        if np.mean(mass > _NEAR) < _SHARE or np.array_equal(level, before):
            break
    samples, places, a, b = _merged(ask("take", level), owned, count)
    starts = np.searchsorted(samples, np.arange(count + 1))
    weights, right = np.empty(len(a)), np.zeros(count, dtype=np.bool_)
    hot.solve_lists(starts, a, b, level, weights, right)
    rows = Rows(samples, places, weights)
    if right.all():
        return rows
    whole = np.where(right, -np.inf, np.inf)  # rounding has misled the search: send all of these
    samples, places, a, b = _merged(ask("take_anew", whole), owned, count)
    starts = np.searchsorted(samples, np.arange(count + 1))
    more = np.empty(len(a))
    hot.solve_lists(starts, a, b, np.full(count, np.inf), more, np.zeros(count, dtype=np.bool_))
    kept = right[rows.samples]
    return _sorted(
        np.concatenate([rows.samples[kept], samples]),
        np.concatenate([rows.places[kept], places]),
        np.concatenate([rows.weights[kept], more]),
    )


def _first_level(outlines: list[Floats]) -> Floats:
    told = np.array(outlines)
    bound, flat = told[:, hot.BOUND].min(axis=0), told[:, hot.FLAT].min(axis=0)
    with np.errstate(invalid="ignore"):  # infinity, where no slot takes part
        bound = bound + 1e-15 * np.abs(bound)
    level = np.minimum(bound, flat)
    return np.where(told[:, hot.LARGEST].max(axis=0) > HUGE, np.inf, level)


def _merged(
    answers: list[Any], owned: list[np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray, Floats, Floats]:
    """The shards' lists as one, in the order of the samples and then of the slots."""
    samples = [np.repeat(np.arange(count), np.diff(starts)) for starts, *_ in answers]
    places = [own[found] for own, (_, found, _, _) in zip(owned, answers, strict=True)]
    where, what = np.concatenate(samples), np.concatenate(places)
    order = np.lexsort((what, where))
    a = np.concatenate([found for _, _, found, _ in answers])[order]
    b = np.concatenate([found for _, _, _, found in answers])[order]
    return where[order], what[order], a, b


def _sorted(samples: np.ndarray, places: np.ndarray, weights: Floats) -> Rows:
    order = np.lexsort((places, samples))
    return Rows(samples[order], places[order], weights[order])


def proposed(
    chosen: Rows, weights: Floats, spoiled: list[tuple[np.ndarray, np.ndarray]], count: int
) -> tuple[Rows, Floats]:
    """The weights before each sample, and (P,) those after the last one.

    weights : (P,) those before the block. spoiled : samples and places of predictions that are not
        finite, by shard.
    """
    last = np.zeros(len(weights))
    final = chosen.samples == count - 1
    last[chosen.places[final]] = chosen.weights[final]
    begin = np.flatnonzero(weights)
    rows = Rows(
        np.concatenate([np.zeros(len(begin), dtype=np.int64), chosen.samples[~final] + 1]),
        np.concatenate([begin, chosen.places[~final]]),
        np.concatenate([weights[begin], chosen.weights[~final]]),
    )
    bad_samples = np.concatenate([samples for samples, _ in spoiled])
    bad_places = np.concatenate([places for _, places in spoiled])
    for sample in np.unique(bad_samples):
        out = bad_places[bad_samples == sample]
        rows = _admitted(rows, int(sample), out, len(weights))
    return rows, last


def _admitted(rows: Rows, sample: int, out: np.ndarray, slots: int) -> Rows:
    """Take the weight of slots that are not finite at a sample, as `propose` does."""
    own = rows.samples == sample
    row, values = np.zeros((1, slots)), np.zeros((1, slots))
    row[0, rows.places[own]] = rows.weights[own]
    values[0, out] = np.nan
    admit(row, values, True)
    places = np.flatnonzero(row[0])
    return Rows(
        np.concatenate([rows.samples[~own], np.full(len(places), sample)]),
        np.concatenate([rows.places[~own], places]),
        np.concatenate([rows.weights[~own], row[0, places]]),
    )


def of_shard(rows: Rows, owned: np.ndarray, count: int) -> Packed:
    """The columns of a shard's slots, as they travel."""
    found = np.searchsorted(owned, rows.places)
    own = (found < len(owned)) & (owned[np.minimum(found, len(owned) - 1)] == rows.places)
    own &= rows.weights != 0
    flat = rows.samples[own] * len(owned) + found[own]
    kind = np.int32 if count * len(owned) < 2**31 else np.int64
    return (count, len(owned)), flat.astype(kind), rows.weights[own][:, None]


def added(answers: list[Parts], leaves: list[list[int]], totals: Floats) -> None:
    """totals[t] = the leaves' parts of each sample, added in the order of the leaves.

    A leaf that is not in the answers has no weight there, and its part is an exact zero.
    """
    totals[...] = 0.0
    if all(len(parts) == shape[0] * shape[1] for shape, _, parts in answers):
        part_of = {
            number: part
            for (shape, _, parts), own in zip(answers, leaves, strict=True)
            for number, part in zip(own, parts.reshape(shape), strict=True)
        }
        for number in sorted(part_of):
            totals += part_of[number]
        return
    numbers, samples, rows = [], [], []
    for (shape, places, parts), own in zip(answers, leaves, strict=True):
        numbers.append(np.asarray(own)[places // shape[1]])
        samples.append(places % shape[1])
        rows.append(parts)
    order = np.argsort(np.concatenate(numbers), kind="stable")
    hot.add_rows(
        np.concatenate(samples).astype(np.int64)[order], np.concatenate(rows)[order], totals
    )
