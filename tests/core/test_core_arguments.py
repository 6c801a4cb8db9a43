"""Arrays and descriptions that do not fit are refused by the core itself: nothing leaves an array."""

import copy

import numpy as np
import pytest

import kernelbank as kb
from support.core_banks import made
from support.marks import refuses

X = np.random.default_rng(0).normal(size=(20, 2))
Y = X @ [[1.0], [2.0]]


def bank(**options):
    grid = kb.gaussian_grid(0.3, 2, 6)
    return kb.KernelBank(grid, kb.learners.Norma(0.05, 30), window=4, **options)


def described(**changes):
    return bank()._settings.describe(2) | changes


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((X[:, :1].copy(), Y, None, {}), "X"),
        ((X[:, 0].copy(), Y, None, {}), "X"),
        ((X, Y[:10], None, {}), "y"),
        ((X, Y[:, 0].copy(), None, {}), "y"),
        ((X, np.column_stack([Y, Y]), None, {}), "y"),
        ((X, Y, np.zeros((20, 1, 5)), {}), "past"),
        ((X, Y, None, {"cost": np.zeros((19, 1))}), "cost"),
        ((X, Y, None, {"weights": np.zeros((20, 1, 7))}), "weights"),
        ((X, Y, None, {"weights": np.zeros((20, 6))}), "weights"),
        ((X, Y, None, {"cost": np.zeros((20, 1), dtype=np.float32)}), "cost"),
        ((X, Y, None, {"cost": np.zeros((20, 2))[:, :1]}), "cost"),
    ],
)
def test_learn_refuses_other_shapes(arguments, name):
    core = made(bank(), 2)
    refuses(f"^{name} ", core.learn, *arguments)
    assert core.samples == 0


@pytest.mark.parametrize("method", ["predict", "predict_slots", "variance_slots"])
def test_predictions_refuse_other_widths(method):
    core = made(bank(), 2)
    core.learn(X, Y, None, {})
    for wrong in (X[:, :1].copy(), X[0], np.zeros((0, 3)), np.zeros((2, 2, 2)), np.array(1.0)):
        refuses(r"^X has shape", getattr(core, method), wrong)
    assert len(getattr(core, method)(np.zeros((0, 2)))) == 0
    assert np.array_equal(getattr(core, method)(X[::2]), getattr(core, method)(X[::2].copy()), True)
    refuses(r"^x has shape", lambda: core.predict_slots_one(np.zeros(3)))


def test_begin_refuses_other_shapes():
    for arguments in (
        (np.zeros(3),),
        (X[0], np.zeros((4, 3)), np.zeros((4, 6))),
        (X[0], np.zeros((4, 2)), np.zeros((4, 5))),
        (X[0], np.zeros((0, 2)), np.zeros((0, 6))),
        (X[0], np.zeros((4, 2)), None),
        (X[0], np.zeros((31, 2)), np.zeros((31, 6))),  # beyond the budget
    ):
        refuses(r"\w", made(bank(), 2).begin, *arguments)


def altered_pack(index, **changes):
    packs = copy.copy(described()["packs"])
    packs[index] = packs[index] | changes
    return described(packs=packs)


@pytest.mark.parametrize(
    "description",
    [
        *(
            described(**{name: value})
            for name in ("window", "history", "dimension", "block", "slots")
            for value in (-1, 0, 5 if name == "slots" else 2**31 - 1)
        ),
        *(described(**{name: []}) for name in ("first_weights", "losses", "target_rules")),
        described(window=31),
        described(history=10),
        described(slots=7),
        described(threads=0),
        described(first_sample=-1),
        *(
            altered_pack(0, slots=[0, 1, 2, slot][:n])
            for slot, n in [(6, 4), (-1, 4), (4, 4), (0, 0)]
        ),
        *(altered_pack(1, base=base) for base in ([1, 0], [2, 0], [0, 4], [0, -1])),
        altered_pack(0, kernels=[]),
        altered_pack(0, settings={}),
        *(
            altered_pack(0, settings=described()["packs"][0]["settings"] | {"budget": budget})
            for budget in (0, -1, 1e300, float("nan"))
        ),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(description):
    with pytest.raises((ValueError, MemoryError, IndexError)):
        kb._core.Bank(description)


def test_threads_get_the_interpreters_lock_for_single_samples():
    """Python's functions in threads need the lock that the caller has."""
    # So many packs that threads are worth it for one sample.
    kernels = [
        kb.kernels.Custom(lambda A, B, w=w: np.exp(-abs(A - B.T) / w)) for w in range(1, 530)
    ]
    threads = kb.KernelBank(kernels, kb.learners.KLMS(), engine=kb.engines.Threads(2))
    alone = kb.KernelBank(kernels, kb.learners.KLMS())
    for x in np.linspace(0, 1, 3):
        for one in (threads, alone):
            one.predict_one(x)
            one.learn_one(x, np.sin(x))
    assert threads.predict_one(0.3) == alone.predict_one(0.3)
