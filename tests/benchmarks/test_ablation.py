"""`make ablation`: which slots are taken out, and ratios."""

import math

import ablation
import ablation_variants as variants
import numpy as np
import pytest

import kernelbank as kb
from kernelbank.research.results import Comparison
from support.results import result_row

ROWS = 170


def _stream(task="regression", lags=0, rows=ROWS):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * random.normal(size=rows)
    if task == "classification":
        y = (y > 0) * 1.0
    return kb.datasets.Stream(X, y, task, lags)


def _variant(name):
    return next(variant for variant in variants.VARIANTS if variant.name == name)


def _predictions(name, stream):
    return _variant(name).run(0, stream).predictions


def _pool(stream, name="full"):
    """The pool of a variant's bank."""
    variant = _variant(name)
    with variant.in_force():
        bank = variant.bank(stream)
        bank.run(stream.X[:6], stream.y[:6])
        return bank._model.pool


SCALED = ("standard:", "asinh:", "rank:")
SLOTS = [variant.name for variant in variants.VARIANTS if variant.part == "slots"]


def test_slot_variants_leave_out_what_their_names_say():
    stream = _stream()
    pools = {name: _pool(stream, name) for name in SLOTS}
    running = {
        name: sum(
            pool.names[i].startswith(SCALED) and "nearest" not in pool.names[i] for i in initial
        )
        // 3
        for name, pool in pools.items()
        for initial in [pool.members(pool.initial_groups)]
    }
    assert running == {
        "no random features, no forgetting": 13 - 1 - 2,
        "no random features, forgetting": 13 - 1,
        "no random features, adaptive bias": 13 - 1 - 2,
        "no adaptive bias": 13 - 2 - 4,
        "no linear": 13 - 2 - 2,
        "no random features": 13 - 3 - 4,
        "no trees": 5,
        "trees on the target only": 5 + 2,
        "one tree of each kind": 5 + 4,
        "no nearest neighbors": 13,
        "no last value": 13,
        "no relevant columns": 13,
        "nothing on the past": 13,
        "no reserves": 13,
    }
    assert not any("nearest" in name for name in pools["no nearest neighbors"].names)
    assert not any("last value" in name for name in pools["no last value"].names)
    assert all(group.initial for group in pools["no reserves"].groups)
    assert not all(group.initial for group in pools["no trees"].groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "lags"), [("regression", 0), ("regression", 3), ("classification", 0)]
)
def test_full_variant_has_the_bits_of_an_auto_bank(task, lags):
    stream = _stream(task, lags)
    plain = kb.AutoBank(task, lags=lags).run(stream.X, stream.y)
    assert (_predictions("full", stream)[1:] == plain.predictions[1:]).all()
    other = kb.AutoBank(task, lags, seed=2).run(stream.X, stream.y).predictions
    assert (_predictions("full, seed 2", stream)[1:] == other[1:]).all()


def _found(table, to_rival=None):
    """A comparison with these losses: name -> one for each stream."""
    streams = [f"set {r}" for r in range(2)]
    results = []
    for index, stream in enumerate(streams):
        results += [result_row(stream, name, values[index]) for name, values in table.items()]
        if to_rival is not None:
            results.append(result_row(stream, "rival", to_rival, "rival"))
    return Comparison("normalised error", 0, 0, (0,), tuple(results), ())


def test_summary_and_spread_of_seeds_equal_plain_sums():
    seeds = [seed.name for seed in variants.OTHER_SEEDS]
    table = {
        "full": [1.0, 1.0],
        seeds[0]: [1.1, 1.0],
        seeds[1]: [0.9, 0.8],
        seeds[2]: [1.0, 1.25],
        "no trees": [1.2, 0.9],
        "Hedge": [0.5, 0.7],
    }
    comparison = _found(table, to_rival=1.0)
    found = ablation.summarise(comparison, _variant("no trees"))
    assert found.geometric_mean == pytest.approx(math.sqrt(1.2 * 0.9))
    assert (found.worst, found.worst_stream) == (1.2, "set 0")
    assert (found.best, found.best_stream) == (0.9, "set 1")
    assert (found.least, found.most) == (pytest.approx(0.9), pytest.approx(1.2))
    assert found.median == pytest.approx(1.05)
    assert (found.worse, found.better) == (1, 0)
    assert (found.first, found.rival_streams) == (1, 2)
    assert found.to_rival == pytest.approx(math.sqrt(1.2 * 0.9))
    found = ablation.summarise(comparison, _variant("Hedge"))
    assert (found.worse, found.better) == (0, 2)
    assert ablation.summarise(comparison, _variant("full")).worse is None
    spread = ablation.seed_spread(comparison)
    assert spread.least == pytest.approx(math.sqrt(0.72))
    assert spread.most == pytest.approx(math.sqrt(1.25))
    logs = [np.log([1.0, 1.1, 0.9, 1.0]), np.log([1.0, 1.0, 0.8, 1.25])]
    sums = [((one - one.mean()) ** 2).sum() / 3 for one in logs]
    assert spread.error == pytest.approx(math.sqrt(2 * sum(sums)) / 2)
    assert ablation.seed_spread(_found({"full": [1.0, 1.0]})) is None
