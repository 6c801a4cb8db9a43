"""The status of a bank is true, harmless and changes nothing, in every state."""

import threading
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.slot import kernel_name, method_name, short_name
from kernelbank.utils.rendering import number
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
    assert not {"engine", "quarantined"} & set(facts)
    ledger, weights = bank.ledger, bank.weights
    best, least = int(np.argmin(ledger.slot_loss)), ledger.slot_cumulative_cost.min()
    for fact, value, place, alone in (
        ("mean loss", ledger.mean_loss, best, ledger.slot_loss[best] / 200),
        ("cumulative cost", ledger.cumulative_cost, ledger.best_slot, least),
    ):
        assert facts[fact].startswith(f"{value:.4g}  (best slot alone, [{place}] Gaussian")
        assert facts[fact].endswith(f": {alone:.4g})")
    order = np.argsort(-np.abs(weights), kind="stable")
    with_weight = int((weights != 0).sum())
    count = min(5, with_weight)
    names = [f"[{p}] Gaussian(width={bank.slots[p].kernel.width:.4g})" for p in order[:count]]
    assert bars == tuple(zip(names, weights[order[:count]], strict=True))
    if with_weight > count:
        share = weights[order[count:with_weight]].sum()
        assert f"{number(share)} on {with_weight - count} other" in lines[-1]
    if with_weight < 20:
        assert lines[-1].endswith(f"{20 - with_weight} without weight")


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
    assert repr(bank.fresh()) == line
    auto = kb.AutoBank(lags=1)
    assert repr(auto) == "AutoBank('regression', lags=1; 0 samples)"
    auto.predict_one([1.0, 2.0])
    assert repr(auto) == "AutoBank('regression', lags=1; 63 slots; 0 samples)"
    assert repr(kb.from_bytes(auto.to_bytes())) == repr(auto)
    for empty in (bank, kb.AutoBank()):
        assert [e.tag for e in parsed_html(empty._repr_html_())] == ["pre"]


def test_auto_bank_status_shows_error_change_and_weights():
    X, y = numbers(300)
    y[200:] = -4 * X[200:, 0]
    bank = small_auto()
    bank.run(X, y)
    lines, facts, bars = shown(bank)
    assert lines[0] == "AutoBank('regression', size='small'; 41 slots; 300 samples)"
    mean, naive = bank.ledger.mean_loss, bank.ledger.baseline_loss
    assert facts["RMSE"] == (
        f"{mean**0.5:.4g} over 299 predictions  (baseline (last value): {naive**0.5:.4g})"
    )
    last, count = bank.ledger.changes[-1], len(bank.ledger.changes)
    assert facts["last change"].startswith(f"{last.what} after row {last.row} of 300 (the ")
    assert facts["last change"].endswith("only one)" if count == 1 else f"last of {count})")
    weights = bank.bank.weights
    order = np.argsort(-weights, kind="stable")[: min(5, (weights != 0).sum())]
    assert bars == tuple((bank.names[p], weights[p]) for p in order)
    assert "  weights" in lines


def test_auto_bank_status_with_three_classes_shows_mean_weights():
    bank = small_auto("classification")
    bank.run(*three(200))
    lines, facts, bars = shown(bank)
    assert facts["classes"] == f"3: {', '.join(map(repr, bank.classes))}"
    wrong, naive = bank.ledger.mean_loss, bank.ledger.baseline_loss
    error = f"{wrong:.2%} over 199 predictions  (baseline (last value): {naive:.2%})"
    assert facts["error rate"] == error
    assert "  weights, mean of 3 classes" in lines
    assert len({weights.tobytes() for weights in bank.bank.weights}) == 3
    np.testing.assert_allclose(bank.weights[bank._model.members], bank.bank.weights.mean(axis=0))
    for name, share in bars:
        assert share == bank.weights[bank.names.index(name)]
    assert bars[0][1] == bank.weights.max()


def test_auto_bank_status_before_the_slots_start_says_why():
    bank = small_auto()
    bank.run(*numbers(1))
    lines, facts, _ = shown(bank)
    assert "baseline" not in facts["RMSE"]
    assert lines[-1].strip() == "none yet: the slots start after 5 rows"
    bank.run(*numbers(3))
    assert "baseline" in shown(bank)[1]["RMSE"]
    one = small_auto("classification")
    one.run(numbers(50)[0], ["on"] * 50)
    assert shown(one)[0][-1].strip() == "none yet: there is only one class"


# --- odd states ---------------------------------------------------------------------------------


class Wordless(kb.combiners.Combiner):
    def __repr__(self):
        raise RuntimeError("no words")

    def combine(self, objective, evidence, state, weights):
        return np.repeat(weights[None], len(evidence.slot_cost), axis=0)


MUTE = [
    kb.Slot(K.NoKernel(), kb.learners.Adapter(Mute())),
    kb.Slot(K.Gaussian(1.0), Norma()),
]
DEEP = [
    reduce(add, [0.5 * K.Gaussian(1.0 + w / 300) for w in range(100)]),
    K.Custom(lambda X, Z: np.exp(-((X - Z.T) ** 2)), SCRIPT),
]
DIVERGING = [K.Linear(1.0), K.Polynomial(3), K.Gaussian(1.0)]


def far_targets():
    X, y = numbers(60)
    y[57:] = 1e140
    X[30:, 0] = np.nan
    return X, y


ODD_LABELS = [True, "", 2.5, 10**5000, "\n", -3]
STATES = {
    "all out": lambda: (kb.KernelBank(DIVERGING, Norma(20.0, 20)), *sine(300)),
    "a model that fails": lambda: (kb.KernelBank(slots=MUTE), *sine(30)),
    "wordless": lambda: (kb.KernelBank(combiner=Wordless()), *sine(30)),
    "deep": lambda: (kb.KernelBank(DEEP), *sine(20)),
    "threads": lambda: (kb.KernelBank(engine=kb.engines.Threads(2)), *sine(5)),
    "models of classes": lambda: (
        small_auto("classification", slots=MUTE, classes=["low", "mid", "high"]),
        *three(60),
    ),
    "far targets": lambda: (small_auto(lags=2), *far_targets()),
    "labels of all kinds": lambda: (
        small_auto("classification"),
        numbers(60)[0],
        ODD_LABELS * 10,
    ),
    "hostile labels": lambda: (
        small_auto("classification"),
        *three(40, (SCRIPT, "\x1b[2J\n", "\ud800&")),
    ),
}
FACTS = {
    "all out": ("quarantined", "3 of 3: [0] Linear(offset=1), "),
    "a model that fails": ("quarantined", "1 of 2: [0] NoKernel(), Adapter(model=Mute)"),
    "threads": ("engine", "Threads(threads=2"),
    "models of classes": (
        "quarantined",
        "1 of 2: [0] NoKernel(), Adapter(model=Mute) (for 3 of 3 classes)",
    ),
    "labels of all kinds": ("classes", r"6: True, '', 2.5, int, '\n', -3"),
}


@quiet
@pytest.mark.parametrize("name", STATES)
def test_status_is_short_and_harmless_in_every_state(name):
    bank, X, y = STATES[name]()
    bank.run(X, y)
    lines, facts, bars = shown(bank)
    assert f"{bank.samples} samples)" in lines[0]
    assert len(lines) < 20
    assert max(map(len, lines[1:])) <= 140
    assert "<script" not in bank._repr_html_()
    if name in FACTS:
        fact, start = FACTS[name]
        assert facts[fact].startswith(start)
    if name == "all out":
        assert "best slot" not in facts["mean loss"] + facts["cumulative cost"]
        assert lines[-1].strip() == "no slot has any weight"
        assert not bars


def test_status_draws_weights_of_any_sign_and_size():
    """Those of a rule off the simplex may be negative, and grow beyond all floats."""

    def bank_with(*weights):
        bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=Fixed(weights))
        bank.run(*sine(5))
        return bank

    lines, _, bars = shown(bank_with(0.1, -0.9, 0.3, 0.0, 0.0, -0.2, 0.05, 0.01))
    assert [share for _, share in bars] == [-0.9, 0.3, -0.2, 0.1, 0.05]
    assert "-0.900 -------------------- [1] Gaussian" in "\n".join(lines)
    assert lines[-1].strip() == "0.010 on 1 other, 2 without weight"
    assert shown(bank_with(*[1e308] * 8))[0][-1].strip() == "inf on 3 others"


@dataclass(frozen=True)
class Fixed(kb.combiners.Combiner):
    """Weights of the user's."""

    weights: tuple = ()
    on_simplex = False

    def combine(self, objective, evidence, state, weights):
        return np.tile(self.weights, (len(evidence.slot_loss), 1))


@quiet
@pytest.mark.parametrize("kind", ["kernel", "threads", "numbers", "labels"])
def test_status_changes_no_bit(kind):
    X, y = three(50) if kind == "labels" else numbers(50)
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
    before = looked.to_bytes()
    repr(looked), looked._repr_html_()
    assert looked.to_bytes() == before == alone.to_bytes()


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


THIRD, MANY = K.Gaussian(1 / 3), reduce(add, [K.Gaussian(float(w)) for w in range(1, 31)])
FROM_THE_RIGHT = reduce(
    lambda total, k: k + total, [K.Gaussian(float(w)) for w in range(30, 0, -1)]
)
NAMES = {
    THIRD: "Gaussian(width=0.3333)",
    THIRD + K.Periodic(24.0): "Gaussian(width=0.3333) + Periodic(period=24, width=1)",
    (THIRD + K.Linear())
    * THIRD: "(Gaussian(width=0.3333) + Linear(offset=1)) * Gaussian(width=0.3333)",
    THIRD + THIRD + THIRD: " + ".join(["Gaussian(width=0.3333)"] * 3),
    0.5 * (THIRD + K.Linear()): "0.5 * (Gaussian(width=0.3333) + Linear(offset=1))",
    K.ActiveDims(THIRD, [0, 2]): "Gaussian(width=0.3333) on [0, 2]",
    K.ActiveDims(THIRD, range(9)): "Gaussian(width=0.3333) on [0, 1, 2, 3, 4,...",
    MANY: " + ".join(f"Gaussian(width={w})" for w in range(1, 31)),
    FROM_THE_RIGHT: " + ".join(f"Gaussian(width={w})" for w in range(1, 31)),
    K.Custom(max, name=SCRIPT): f'Custom(name="{SCRIPT}")',
}


def test_kernel_name_is_a_formula():
    assert {kernel: kernel_name(kernel) for kernel in NAMES} == NAMES


def test_method_name_has_settings_that_differ_from_defaults():
    assert short_name(Norma()) == "Norma()"
    assert short_name(Norma(learning_rate=0.02)) == "Norma(learning_rate=0.02)"
    tree = kb.learners.PartitionTree(nodes=63)
    slot = kb.Slot(K.TreeKernel(), tree, loss="huber", residual_of=0)
    assert method_name(slot) == "PartitionTree(nodes=63), loss Huber(), residual of [0]"


def test_slot_names_have_the_learner_where_learners_differ():
    slots = [kb.Slot(MANY, Norma(0.001)), kb.Slot(MANY, Norma(0.002))]
    bank = kb.KernelBank(slots=slots, combiner=kb.combiners.Uniform())
    bank.run(*sine(20))
    _, facts, bars = shown(bank)
    assert bars[1][0].startswith("[1] Gaussian(width=1) + ")
    assert bars[1][0].endswith("..., Norma(learning_rate=0.002)")
    assert "learner" not in facts
    auto = small_auto(slots=slots[:1])
    auto.run(*numbers(20))
    assert shown(auto)[2] == (
        ("[0] Gaussian(width=1) + Gaussian(width=2) + Gaussian(widt...", 1.0),
    )
