"""Skewed targets: which transform is chosen, who uses it, and that it changes no bit elsewhere."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.scaling import LEAST_ROWS, Scaling, is_plausible_shift, log_shift
from support.naive.transforms import shifted_log

T = kb.transforms


def skewed(rows, seed=0):
    """A target whose effects multiply."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 3))
    return X, np.exp(1.2 * X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.05 * draw.normal(size=rows))


def standard(y):
    return (y - y.mean()) / y.std()


# --- the shift ------------------------------------------------------------------------------------


def test_shift_of_a_skewed_target_puts_the_pole_below_its_low_end():
    z = standard(np.random.default_rng(0).exponential(size=400))
    shift = log_shift(z)
    low, middle = np.quantile(z, [0.02, 0.5])
    assert shift == pytest.approx(middle - 2 * low, rel=1e-12)
    assert -shift < z.min()
    assert log_shift(-z) == -shift
    assert is_plausible_shift(shift)
    even = T.ShiftedLog(shift).forward(z)
    assert abs((standard(even) ** 3).mean()) < 0.5 * (z**3).mean()


def test_even_short_and_constant_targets_have_no_shift():
    draw = np.random.default_rng(0)
    z = draw.exponential(size=LEAST_ROWS)
    assert log_shift(standard(z)) != 0
    assert log_shift(standard(z)[:-1]) == 0
    assert log_shift(standard(draw.normal(size=400))) == 0
    assert log_shift(np.zeros(400)) == 0


# --- who uses it ----------------------------------------------------------------------------------


def test_past_targets_among_the_relevant_columns_are_transformed():
    X, y = skewed(60)
    scaling = Scaling(3, 1, ("standard",), remembered=3, previous=3, relevant=True)
    scaling.fit(X, y[:, None])
    shift = scaling.statistics.target_shift()
    assert shift > 0
    scaling.relevance = np.linspace(0.5, 2.0, len(scaling.relevance))
    lagged = np.hstack([np.tile(y[:3], (5, 1)), X[:5]])
    rows = scaling.scale_rows(X[5:10], lagged)
    sources = rows[:, [*scaling.columns_of["standard"], *scaling.past_columns]]
    found = rows[:, list(scaling.relevant_columns)] / scaling.relevance
    targets = [3, 4, 5]  # after three inputs: one lagged target, two remembered ones
    for k in range(sources.shape[1]):
        expected = sources[:, k]
        if k in targets:
            expected = [shifted_log(z, shift) for z in expected]
        assert found[:, k] == pytest.approx(expected, rel=1e-14, abs=1e-15)


def slots_by_transform(bank):
    found = {}
    for index, name in enumerate(bank.names):
        found.setdefault(bank._model.pool.slots[index].transform, set()).add(name.split(":")[0])
    return found


def test_slots_on_ranks_and_relevant_columns_learn_the_logarithm_of_a_skewed_target():
    X, y = skewed(140)
    bank = kb.AutoBank()
    bank.run(X, y)
    by_transform = slots_by_transform(bank)
    (transform,) = set(by_transform) - {None}
    assert transform == T.ShiftedLog(bank._model.scaling.statistics.target_shift())
    assert {name.split(" + ")[0] for name in by_transform[transform]} == {"rank", "relevant"}
    for index, slot in zip(bank._model.members, bank.bank.slots, strict=True):
        uses = bank.names[index].startswith(("rank", "relevant"))
        assert slot.transform == (transform if uses else None)


def test_even_target_is_learned_as_it_is():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(140, 3))
    bank = kb.AutoBank()
    bank.run(X, X[:, 0] + 0.1 * draw.normal(size=140))
    assert set(slots_by_transform(bank)) == {None}


def test_labels_and_several_targets_have_no_transform():
    X, y = skewed(140)
    for bank, target in (
        (kb.AutoBank("classification"), y > np.median(y)),
        (kb.AutoBank(), np.column_stack([y, y])),
    ):
        bank.run(X, target)
        assert set(slots_by_transform(bank)) == {None}


# --- the same bits --------------------------------------------------------------------------------


def test_forged_shift_is_refused(tmp_path):
    from kernelbank.io import checkpoint

    X, y = skewed(200)
    bank = kb.AutoBank(size="small")
    bank.run(X, y)
    path = tmp_path / "bank.kb"
    bank.save(path)
    header, arrays = checkpoint.read(path)
    for value in (1e-300, -1.0, np.nan, 1e9, 2.5):  # the last one does not fit the bank's slots
        forged = {name: array.copy() for name, array in arrays.items()}
        forged["model/core/scaling/target_shift"][...] = value
        checkpoint.write(path, header, forged)
        with pytest.raises(kb.errors.FileRefused):
            kb.load(path)
