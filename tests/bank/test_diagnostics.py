"""Warnings while a bank learns."""

import warnings

import numpy as np
import pytest

import kernelbank as kb
from support import naive

K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_unstable_steps_are_warned_of_with_their_bound():
    x = np.linspace(0, 1, 60)
    with pytest.warns(kb.errors.UnstableStep, match="the bound .* at most") as record:
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20), window=10).run(x, np.sin(9 * x))
    assert len(record) == 1  # said once
    message = str(record[0].message)
    bound = float(message.split("at most ")[1].split(". Lower", maxsplit=1)[0])
    gram = K.Gaussian(5.0)(x[:10], x[:10])
    true_bound = 2 / (2 * np.linalg.eigvalsh(gram).max() + 0.01)
    # g'Kg / g'g never exceeds the largest eigenvalue, so what is named is above the true bound.
    assert true_bound * (1 - 1e-9) <= bound < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.05, 60), window=10).run(x, np.sin(9 * x))
        # no curvature, no bound
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 60), loss="absolute").run(x, np.sin(9 * x))


def test_truncation_is_warned_of_when_it_matters():
    x, y = naive.ar1(0, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the paper's objective: what is dropped is far away
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20, spacing="linear"))
        bank.run(x, y)
    assert (bank.ledger.dropped > 0).all()
    with pytest.warns(kb.errors.TruncationMatters, match="Raise budget") as record:
        kb.KernelBank([K.Gaussian(30.0)], Norma(0.01, 12), window=5).run(x, y)
    assert len(record) == 1


def test_truncation_has_the_same_figure_for_any_blocks():
    x, y = naive.ar1(0, 600)

    def learn_singly(bank):
        for point, target in zip(x, y, strict=True):
            bank.learn_one(point, target)

    def learn_in_parts(bank):
        for start, end in ((0, 14), (14, 15), (15, 16), (16, 200), (200, 600)):
            bank.run(x[start:end], y[start:end])

    def told(learn, engine="serial"):
        bank = kb.KernelBank([K.Gaussian(30.0)], Norma(0.01, 12), window=5, engine=engine)
        with pytest.warns(kb.errors.TruncationMatters) as record:
            learn(bank)
        return str(record[0].message)

    whole = told(lambda bank: bank.run(x, y))
    assert told(lambda bank: bank.run(x, y), "threads") == whole
    assert told(learn_in_parts) == told(learn_singly) == whole


def test_warnings_point_to_the_callers_line():
    x = np.linspace(0, 1, 60)
    with pytest.warns(kb.errors.UnstableStep) as record:
        kb.KernelBank([K.Gaussian(5.0)], Norma(0.5, 20), window=10).run(x, x)
    assert record[0].filename == __file__
