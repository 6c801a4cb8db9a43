"""Names of components and slots."""

from functools import reduce
from operator import add

import kernelbank as kb
from kernelbank.bank.slot import kernel_name, method_name, short_name
from support.status_views import SCRIPT, numbers, shown, sine, small_auto

K = kb.kernels
Norma = kb.learners.Norma


def test_kernel_name_is_a_formula():
    g, p = K.Gaussian(1 / 3), K.Periodic(24.0)
    assert kernel_name(g) == "Gaussian(width=0.3333)"
    assert kernel_name(g + p) == "Gaussian(width=0.3333) + Periodic(period=24, width=1)"
    assert kernel_name((g + p) * g).startswith("(Gaussian(width=0.3333) + Per")
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
