"""Adaptive dictionaries: by their definition, for any blocks, with every learner and combiner."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.slot_history import Selection, continued_slots
from kernelbank.errors import InvalidArgument, KernelBankError
from support import instances
from support.every_bank import NORMAS
from support.marks import refuses
from support.naive.adaptive import Pool

K, L, C = kb.kernels, kb.learners, kb.combiners

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

X, Y = instances.stream(3, 700, 2)
POOL = kb.gaussian_grid(0.05, 5, 30)
EVERY = 60


def dictionary(**options):
    return kb.AdaptiveDictionary(POOL, **{"size": 6, "every": EVERY, "threshold": 0.5} | options)


def make(**options):
    given = {"dictionary": dictionary(), "learner": NORMAS[0], "window": 5}
    return kb.KernelBank(**given | options)


def members(bank):
    """The positions of the slots' kernels in the pool."""
    return tuple(list(POOL).index(slot.kernel) for slot in bank.slots)


@pytest.mark.parametrize(
    "options",
    [
        {"size": 4, "every": 25, "threshold": 0.9, "retire": 0.3, "patience": 1},
        {"size": 5, "every": 40, "threshold": 0.9, "retire": 1.0, "patience": 2},
        {"size": 1, "every": 50, "threshold": 1.0, "retire": 0.1, "patience": 1},
        {"size": 12, "every": 45, "threshold": 1.0, "retire": 0.4, "patience": 1},
    ],
)
def test_kernels_run_as_the_naive_rules_say(options):
    every, rows = options["every"], 400
    bank = make(dictionary=kb.AdaptiveDictionary(POOL, **options))
    pool, counts = Pool(len(POOL), options["size"]), []
    rules = {name: options[name] for name in ("threshold", "retire", "patience")}
    for end in range(every, rows, every):
        assert members(bank) == tuple(pool.members)
        weights = bank.run(X[end - every : end], Y[end - every : end]).weights
        sums = weights.sum(axis=0)
        exchanged = pool.revise(sums / sums.sum(), end, **rules)
        counts.append(len(exchanged))
        # New slots begin without weight, and have learned the samples that the bank holds.
        assert bank.weights.sum() == pytest.approx(1)
        none_left = np.ptp(bank.weights) == 0  # the others had no weight either: equal shares
        assert none_left or not bank.weights[exchanged].any()
        held = max(0, (end - 1) // 256 * 256 - NORMAS[0].budget)
        alone = kb.KernelBank([POOL[k] for k in pool.members], NORMAS[0], window=5)
        alone.run(X[held:end], Y[held:end])
        found, expected = (one.predict_slots(X[:9])[:, exchanged] for one in (bank, alone))
        assert found == pytest.approx(expected, abs=1e-9)
    assert options["size"] == 1 or sum(map(bool, counts)) > 3


# --- what can be seen -----------------------------------------------------------------------------


def test_ledger_tells_which_kernel_was_where():
    bank = make()
    trace = bank.run(X, Y)
    names = list(trace.names)
    for change in bank.ledger.slot_changes:
        row = change.sample
        assert row % EVERY == 0
        if change.kind == "retired":
            assert names[change.index] == f"[{change.index}] {change.name}"
            assert "of the weight" in change.reason
        else:
            names[change.index] = f"[{change.index}] {change.name}"
            assert change.reason == "exploration" or "refinement near slot" in change.reason
    assert tuple(names) == bank.names
    assert trace.names == make().names
    kinds = [change.kind for change in bank.ledger.slot_changes]
    assert kinds.count("added") == kinds.count("retired") > 5


def test_status_tells_of_the_pool():
    bank = make()
    bank.run(X, Y)
    tried = sum(tries > 0 for tries in bank._settings.selection.tries)
    exchanged = bank.ledger.slot_change_count // 2
    assert bank.status().notes["dictionary"] == (
        f"6 of 30 kernels; {tried} tried, {exchanged} exchanged"
    )
    assert "30 kernels" in repr(bank)


def test_quarantined_slot_is_replaced_though_it_was_not_idle():
    kernels = [K.Gaussian(1.0), 1e9 * K.Gaussian(1.0), *(K.Gaussian(0.1 + i) for i in range(4))]
    pool = kb.AdaptiveDictionary([kernels[1], *kernels[2:], kernels[0]], 2, 50, threshold=0.0)
    bank = kb.KernelBank(pool, L.Norma(0.5, 30), window=5)
    bank.run(X[:49], Y[:49])
    assert bank.quarantined == (0,)
    bank.run(X[49:120], Y[49:120])
    assert bank.quarantined == ()
    assert next(c.reason for c in bank.ledger.slot_changes) == "quarantined"


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("single", [False, True])
def test_revision_that_fails_is_made_before_the_next_sample(single, monkeypatch):
    bank, expected = make(), make()
    expected.run(X[:200], Y[:200])
    bank.run(X[: EVERY - 1], Y[: EVERY - 1])
    with monkeypatch.context() as patch:

        def fail(*_, **__):
            raise Interrupted

        patch.setattr("kernelbank.bank.bank.continue_with_slots", fail)
        with pytest.raises(Interrupted):
            bank.learn_one(X[EVERY - 1], float(Y[EVERY - 1]))
    assert bank.samples == EVERY
    assert bank.ledger.slot_changes == ()
    for n in range(EVERY, EVERY + 30 * single):
        bank.learn_one(X[n], float(Y[n]))
    bank.run(X[bank.samples : 200], Y[bank.samples : 200])
    assert bank.to_bytes() == expected.to_bytes()


def test_groups_that_join_are_too_new_to_be_judged():
    joined = Selection.first([1, 4], 6).with_new([0, 4])
    assert joined.running == (0, 1, 4)
    assert joined.idle == (-1, 0, 0, 0, -1, 0)
    assert joined.judge(9, [0, 1, 4]).idle == (0, 1, 0, 0, 0, 0)


def test_slots_go_on_if_they_are_the_same_whatever_the_index_of_their_base():
    def slot(width, residual_of=None):
        return kb.Slot(kb.kernels.Gaussian(width), kb.learners.Norma(), residual_of=residual_of)

    before = {3: slot(1.0), 5: slot(2.0), 8: slot(3.0, residual_of=1)}
    after = {2: slot(4.0), 5: slot(2.0), 8: slot(3.0, residual_of=1), 9: slot(3.0)}
    assert continued_slots(before, after) == [None, 1, 2, None]
    moved = {5: slot(2.0), 8: slot(3.0, residual_of=0)}
    assert continued_slots(before, moved) == [1, 2]
    assert continued_slots(before, moved, anew=[5, 9]) == [None, 2]
    assert continued_slots(before, {3: slot(1.5)}) == [None]


def test_wrong_pools_are_refused():
    refuses("hold only kernels", kb.AdaptiveDictionary, [1, 2], 1)
    with pytest.raises(InvalidArgument, match="kernel"):
        make(dictionary=kb.AdaptiveDictionary([K.Gaussian(1.0), K.TreeKernel()], 1))
    refuses("can continue with other slots", lambda: make(combiner=kb.rivals.AdaRaker(kernels=2)))


def test_inputs_and_slots_are_not_changed_from_outside():
    bank = make()
    bank.run(X[:20], Y[:20])
    for change in (lambda: bank.with_inputs(3), lambda: bank.with_slots(bank.slots, range(6))):
        with pytest.raises(KernelBankError, match="must be a plain one"):
            change()
