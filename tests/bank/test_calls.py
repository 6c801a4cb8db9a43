"""Calls of a bank: interrupts, threads, functions of the user's that fail or call back."""

import copy
import threading
import warnings

import numpy as np
import pytest

import kernelbank as kb
from support.instances import cauchy, stream
from support.same_bits import assert_same_state

K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def test_calls_from_several_threads_take_turns():
    x, y = np.arange(3000.0), np.sin(np.arange(3000.0))
    bank, alone = (kb.KernelBank(kb.gaussian_grid(0.1, 10, 9)) for _ in range(2))
    bank.learn_one(x[0], y[0])
    wrong = []

    def look():
        for n in range(300):
            value = bank.predict_one(float(n))
            wrong.extend([value] if not np.isfinite(value) else [])

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(1, 1500):
        bank.learn_one(x[n], y[n])
    bank.run(x[1500:], y[1500:])
    for thread in threads:
        thread.join()
    alone.run(x, y)
    assert not wrong
    assert_same_state(bank, alone)


def test_prediction_followed_by_learning_evaluates_a_kernel_once():
    calls = []

    def counted(X, Z):
        calls.append(1)
        return cauchy(X, Z)

    X, y = stream(0, 12, 2)
    bank, other = (kb.KernelBank([K.Custom(counted), K.Gaussian(1.0)]) for _ in range(2))
    for n in range(10):
        bank.predict_one(X[n])
        bank.learn_one(X[n], y[n])
    assert len(calls) == 10  # the bank's first prediction needs no kernel
    bank.predict_one(X[10])
    bank.predict_one(X[11])
    bank.learn_one(X[10], y[10])  # not what was looked at last: the memo must not be used
    bank.learn_one(X[11], y[11])  # looked at before the sample in between was learned
    other.run(X, y)
    assert_same_state(bank, other)


def failing_at_will(function):
    """The function, and a list: it raises once for every true value that is put there."""
    fail = []

    def shaky(*arguments):
        if fail and fail.pop():
            raise RuntimeError("for once")
        return function(*arguments)

    return shaky, fail


def failing_loss():
    value, fail = failing_at_will(lambda f, y: (f - y) ** 2)
    value.__name__ = "value"
    return kb.losses.Custom(value, lambda f, y: 2 * (f - y), curvature=2.0), fail


def test_failed_prediction_leaves_no_cached_values():
    shaky, fail = failing_at_will(cauchy)
    X, y = stream(0, 30, 2)
    bank, clean = (kb.KernelBank([K.Custom(shaky), K.Gaussian(1.0)]) for _ in range(2))
    for n in range(30):
        bank.predict_one(X[n])
        fail.append(n % 3 == 1)
        if n % 3 == 1:
            with pytest.raises(RuntimeError, match="for once"):
                bank.predict_one(X[(n + 1) % 30])
        fail.clear()
        bank.learn_one(X[n], y[n])
        clean.learn_one(X[n], y[n])
    assert_same_state(bank, clean)


CALLS = {
    "predict_one": lambda bank: bank.predict_one(0.5),
    "learn_one": lambda bank: bank.learn_one(0.5, 1.0),
    "samples": lambda bank: bank.samples,
    "copy": copy.copy,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("engine", ["serial", kb.engines.Threads(2)], ids=repr)
def test_user_function_that_calls_its_own_bank_is_refused(engine, adaptive, call):
    def meddling(f, y):
        CALLS[call](bank)
        return (f - y) ** 2

    loss = kb.losses.Custom(meddling, lambda f, y: 2 * (f - y))
    grid = kb.gaussian_grid(0.1, 1, 50)
    kernels = kb.AdaptiveDictionary(grid, size=40) if adaptive else grid
    bank = kb.KernelBank(kernels, loss=loss, engine=engine)
    with pytest.raises(kb.errors.KernelBankError, match="has called the same bank"):
        bank.run(np.arange(100.0), np.arange(100.0))  # in threads: there are enough slots
    assert bank.samples == 0


@pytest.mark.parametrize("moment", [0, 7])
def test_block_undone_after_a_failing_function_can_be_run_again(moment):
    loss, fail = failing_loss()
    bank, undisturbed = (kb.KernelBank(kb.gaussian_grid(0.5, 5, 5), loss=loss) for _ in range(2))
    x, y = np.arange(30.0), np.sin(np.arange(30.0))
    if moment:
        bank.run(x[:moment], y[:moment])
    fail.append(True)
    with pytest.raises(RuntimeError, match="for once"):
        bank.run(x[moment:], y[moment:])
    assert kb.from_bytes(bank.to_bytes(), components={"value": loss}).samples == moment
    if moment == 0:
        assert bank.predict_one([1.0, 2.0]) == 0.0  # not even the width is known
    bank.run(x[moment:], y[moment:])
    undisturbed.run(x, y)
    assert_same_state(bank, undisturbed)


def frozen(row):
    row.flags.writeable = False
    return row


WAYS = {
    "array": lambda row: row.copy(),
    "list": lambda row: row.tolist(),
    "read only": lambda row: frozen(row.copy()),
    "strided": lambda row: np.repeat(row, 2)[::2],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_inputs_of_every_form_are_learned_alike(way, loss):
    X, y = stream(5, 60, 2, loss == "logistic")
    expected, bank = (kb.KernelBank(loss=loss, window=3) for _ in range(2))
    trace = expected.run(X, y)
    for n in range(60):
        assert bank.predict_one(WAYS[way](X[n])) == trace.predictions[n]
        bank.learn_one(WAYS[way](X[n]), y[n] if n % 2 else y[n].item())
    assert_same_state(expected, bank)


@pytest.mark.parametrize(
    ("learner", "kinds"),
    [
        (Norma(1.9, 20), {kb.errors.UnstableStep, kb.errors.SlotQuarantined}),
        (Norma(1e-4, 9), {kb.errors.TruncationMatters}),
    ],
    ids=["steep", "short"],
)
def test_single_samples_give_the_warnings_of_blocks(learner, kinds):
    x = np.arange(600.0) / 50
    y = np.where(x > 4, 1e3, 1.0)

    def heard(play):
        bank = kb.KernelBank([K.Gaussian(1.0), K.Linear()], learner, window=8)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            play(bank)
        return [(w.category, str(w.message)) for w in said]

    def one_by_one(bank):
        for n in range(600):
            bank.learn_one(float(x[n]), float(y[n]))

    blocks = heard(lambda bank: [bank.run(x[n : n + 1], y[n : n + 1]) for n in range(600)])
    assert heard(one_by_one) == blocks
    assert {kind for kind, _ in blocks} == kinds
