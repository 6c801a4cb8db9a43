"""The status of a KernelBank is true, harmless and changes nothing, in every state."""

import threading
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.slot import kernel_name, method_name, short_name
from kernelbank.utils.rendering import (
    number,
)
from support.status_views import (
    SCRIPT,
    Mute,
    finishes,
    numbers,
    parsed_html,
    shown,
    sine,
    small_auto,
    three,
)

K = kb.kernels
Norma = kb.learners.Norma
quiet = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@pytest.mark.parametrize("combiner", [None, kb.combiners.OMKR(), kb.combiners.Uniform()])
def test_kernel_bank_status_shows_ledger_and_weights(combiner):
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 20), Norma(0.02), combiner, window=4)
    bank.run(*sine())
    lines, facts, bars = shown(bank)
    title = f"KernelBank(20 slots, {bank.combiner!r}, Squared(), window=4, regularization=0.01, "
    assert lines[0] == title + "200 samples)"
    assert facts["inputs"] == "1 column"
    assert facts["learner"] == "Norma(learning_rate=0.02)"
    assert "engine" not in facts
    assert "quarantined" not in facts
    ledger, weights = bank.ledger, bank.weights
    assert facts["mean loss"].startswith(f"{ledger.mean_loss:.4g}  (best slot alone, ")
    best = int(np.argmin(ledger.slot_loss))
    assert f"[{best}] Gaussian" in facts["mean loss"]
    assert facts["mean loss"].endswith(f": {ledger.slot_loss[best] / 200:.4g})")
    assert facts["cumulative cost"].startswith(f"{ledger.cumulative_cost:.4g}  (best")
    least = ledger.slot_cumulative_cost.min()
    assert f"[{ledger.best_slot}] Gaussian" in facts["cumulative cost"]
    assert facts["cumulative cost"].endswith(f": {least:.4g})")
    order = np.argsort(-np.abs(weights), kind="stable")
    count = min(5, int((weights != 0).sum()))
    assert [share for _, share in bars] == weights[order[:count]].tolist()
    for place, (name, _) in zip(order[:count], bars, strict=True):
        assert name == f"[{place}] Gaussian(width={bank.slots[place].kernel.width:.4g})"
    others = int((weights != 0).sum()) - count
    if others:
        share = weights[order[count : count + others]].sum()
        assert f"{number(share)} on {others} other" in lines[-1]
    if (weights == 0).any():
        assert lines[-1].endswith(f"{(weights == 0).sum()} without weight")


def test_status_shows_settings_that_differ_from_defaults():
    bank = kb.KernelBank(engine=kb.engines.Threads(2))
    bank.run(*sine(5))
    _, facts, _ = shown(bank)
    assert facts["engine"].startswith("Threads(threads=2")


def test_status_before_the_first_sample_is_one_line():
    bank = kb.KernelBank()
    line = (
        "KernelBank(20 slots, Simplex(evidence='window', horizon=100, bound='direct sum'), Squared(), "
        "window=10, regularization=0.01, 0 samples)"
    )
    assert repr(bank) == line
    bank.predict_one(1.0)
    assert repr(bank) == line
    bank.learn_one(1.0, 1.0)
    assert "\n" in repr(bank)
    bank.reset()
    assert repr(bank) == repr(bank.fresh()) == line
    assert [element.tag for element in parsed_html(bank._repr_html_())] == ["pre", "details"]


# --- odd states ---------------------------------------------------------------------------------


class Wordless(kb.combiners.Combiner):
    def __repr__(self):
        raise RuntimeError("no words")

    def combine(self, objective, evidence, state, weights):
        return np.repeat(weights[None], len(evidence.slot_cost), axis=0)


def all_out():
    bank = kb.KernelBank([K.Linear(1.0), K.Polynomial(3), K.Gaussian(1.0)], Norma(20.0, 20))
    bank.run(*sine(300))
    assert len(bank.quarantined) == 3
    return bank


def models():
    adapter = kb.learners.Adapter(Mute())
    slots = [kb.Slot(K.NoKernel(), adapter), kb.Slot(K.Gaussian(1.0), Norma())]
    bank = kb.KernelBank(slots=slots)
    bank.run(*sine(30))
    assert bank.quarantined == (0,)
    return bank


def wordless():
    bank = kb.KernelBank(combiner=Wordless())
    bank.run(*sine(30))
    return bank


def deep():
    many = reduce(add, [0.5 * K.Gaussian(1.0 + w / 300) for w in range(100)])
    bank = kb.KernelBank([many, K.Custom(lambda X, Z: np.exp(-((X - Z.T) ** 2)), SCRIPT)])
    bank.run(*sine(20))
    return bank


STATES = [all_out, models, wordless, deep]


@quiet
@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__)
def test_status_is_short_and_harmless_in_every_state(make):
    bank = make()
    lines, facts, bars = shown(bank)
    assert f"{bank.samples} samples)" in lines[0]
    assert len(lines) < 20
    assert max(map(len, lines[1:])) <= 140
    assert "<script" not in bank._repr_html_()
    if make is all_out:
        assert facts["quarantined"].startswith("3 of 3: [0] Linear(offset=1), ")
        assert "best slot" not in facts["mean loss"] + facts["cumulative cost"]
        assert lines[-1].strip() == "no slot has any weight"
        assert not bars
    if make is models:
        assert facts["quarantined"] == "1 of 2: [0] NoKernel(), Adapter(model=Mute)"
        assert "[1] Gaussian" in facts["mean loss"]


def test_status_draws_weights_of_any_sign_and_size():
    """Those of a rule off the simplex may be negative, and grow beyond all floats."""

    def bank_with(*weights):
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=Fixed(weights))
        bank.run(*sine(5))
        return bank

    lines, _, bars = shown(bank_with(0.1, -0.9, 0.3, 0.0, 0.0, -0.2, 0.05, 0.01))
    assert [share for _, share in bars] == [-0.9, 0.3, -0.2, 0.1, 0.05]
    assert "-0.900 ░░░░░░░░░░░░░░░░░░░░ [1] Gaussian" in "\n".join(lines)
    assert lines[-1].strip() == "0.010 on 1 other, 2 without weight"
    assert shown(bank_with(*[1e308] * 8))[0][-1].strip() == "inf on 3 others"


@dataclass(frozen=True)
class Fixed(kb.combiners.Combiner):
    """Weights of the user's."""

    weights: tuple = ()
    on_simplex = False

    def combine(self, objective, evidence, state, weights):
        return np.tile(self.weights, (len(evidence.slot_loss), 1))


# --- no side effects ----------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("kind", ["kernel", "threads", "numbers", "labels"])
def test_status_changes_no_bit(kind):
    X, y = numbers(50)
    if kind == "labels":
        X, y = three(50)
    makers = {
        "kernel": lambda: kb.KernelBank(kb.gaussian_grid(0.1, 10, 7)),
        "threads": lambda: kb.KernelBank(kb.gaussian_grid(0.1, 10, 7), engine="threads"),
        "numbers": lambda: small_auto(lags=1),
        "labels": lambda: small_auto("classification"),
    }
    looked, alone = makers[kind](), makers[kind]()
    for x, target in zip(X, y, strict=True):
        repr(looked)
        assert repr(looked.predict_one(x)) == repr(alone.predict_one(x))  # NaN at first
        looked._repr_html_()  # between question and answer, where a bank keeps kernel values
        looked.learn_one(x, target)
        alone.learn_one(x, target)
    before = state_of(looked)
    repr(looked), looked._repr_html_()
    assert state_of(looked) == before == state_of(alone)


def state_of(bank):
    header, arrays = bank.describe()
    return header, {name: array.tobytes() for name, array in arrays.items()}


def test_status_from_inside_a_users_function_does_not_wait():
    """From another thread than the one that holds the lock, too: nobody waits for ever."""
    looks = set()

    def looking(f, y):
        looks.add((threading.get_ident(), bank._repr_html_(), repr(bank)))
        return (f - y) ** 2

    loss = kb.losses.Custom(looking, lambda f, y: 2 * (f - y))
    engine = kb.engines.Threads(2)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 400), loss=loss, engine=engine, window=2)
    assert finishes(lambda: bank.run(*sine(20)))
    assert bank.samples == 20
    assert len({thread for thread, *_ in looks}) == 2
    assert all("\n" not in text for *_, text in looks)


# --- naming ---------------------------------------------------------------------------------------


def test_kernel_name_is_a_formula():
    g, p = K.Gaussian(1 / 3), K.Periodic(24.0)
    assert kernel_name(g) == "Gaussian(width=0.3333)"
    assert kernel_name(g + p) == "Gaussian(width=0.3333) + Periodic(period=24, width=1)"
    assert kernel_name((g + p) * g).startswith("(Gaussian(width=0.3333) + Per")
    assert kernel_name(g + g + g) == " + ".join(["Gaussian(width=0.3333)"] * 3)
    assert (
        kernel_name(0.5 * (g + K.Linear())) == "0.5 * (Gaussian(width=0.3333) + Linear(offset=1))"
    )
    assert kernel_name(K.ActiveDims(g, [0, 2])) == "Gaussian(width=0.3333) on [0, 2]"
    assert (
        kernel_name(K.ActiveDims(g, range(9))) == "Gaussian(width=0.3333) on [0, 1, 2, 3, ... (9)]"
    )
    many = reduce(add, [K.Gaussian(float(w)) for w in range(1, 31)])
    assert kernel_name(many) == "Gaussian(width=1) + Gaussian(width=2) + 28 more"
    right = reduce(lambda total, k: k + total, [K.Gaussian(float(w)) for w in range(30, 0, -1)])
    assert kernel_name(right) == kernel_name(many)
    assert kernel_name(K.Custom(lambda X, Z: X @ Z.T, name=SCRIPT)) == f'Custom(name="{SCRIPT}")'


def test_method_name_has_settings_that_differ_from_defaults():
    assert short_name(Norma()) == "Norma()"
    assert short_name(Norma(learning_rate=0.02)) == "Norma(learning_rate=0.02)"
    tree = kb.learners.PartitionTree(nodes=63)
    slot = kb.Slot(K.TreeKernel(), tree, loss="huber", residual_of=0)
    assert method_name(slot) == "PartitionTree(nodes=63), loss Huber(), residual of [0]"


def test_slot_names_have_the_learner_where_learners_differ():
    many = reduce(add, [K.Gaussian(float(w)) for w in range(1, 31)])
    slots = [kb.Slot(many, Norma(0.001)), kb.Slot(many, Norma(0.002))]
    bank = kb.KernelBank(slots=slots, combiner=kb.combiners.Uniform())
    bank.run(*sine(20))
    lines, facts, bars = shown(bank)
    assert bars[1][0].startswith("[1] Gaussian(width=1) + ")
    assert bars[1][0].endswith("28 more, Norma(learning_rate=0.002)")
    assert "learner" not in facts
    assert max(map(len, lines[1:])) <= 140
    own = small_auto(slots=slots[:1])
    own.run(*numbers(20))
    assert shown(own)[2] == (("[0] Gaussian(width=1) + Gaussian(width=2) + 28 more", 1.0),)
