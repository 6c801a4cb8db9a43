"""Banks that continue with other slots: some go on bit for bit, others begin."""

import copy
import re

import numpy as np
import pytest
from river import linear_model

import kernelbank as kb
from kernelbank.bank import slot_history
from kernelbank.errors import InvalidArgument
from kernelbank.kernels import ActiveDims, Additive, Gaussian, Linear, NoKernel, TreeKernel
from kernelbank.learners import (
    KLMS,
    Adapter,
    FourierRLS,
    LinearRLS,
    Norma,
    PartitionTree,
)
from support import instances
from support.every_bank import LABELLED, NORMAS, X, bank_case, learners_and_losses, mixed_slots
from support.instances import LEARNERS
from support.late_inputs import FADING, LATE, ROWS, rounding, stream
from support.learner_cases import kernel_of
from support.marks import refuses

K, L, C = kb.kernels, kb.learners, kb.combiners

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

OF_SLOTS = ("slot_predictions", "slot_loss", "slot_cost", "curvature", "window_loss")
NEW = kb.Slot(K.Gaussian(0.3), L.Norma(0.05, 30))


def assert_go_on(found, expected, kept):
    """The columns of the slots that are kept have the same bits as without a change."""
    for name in OF_SLOTS:
        for index, before in enumerate(kept):
            if before is not None:
                one, other = getattr(found, name)[:, index], getattr(expected, name)[:, before]
                assert one.tobytes() == other.tobytes(), (name, index)


LEARNERS_OF: dict[str, list] = {}
for one, loss_name in learners_and_losses():
    LEARNERS_OF.setdefault(loss_name, []).append(one)


def slots_of(learners):
    return [kb.Slot(kernel_of(learner), learner) for learner in learners]


SLOW = pytest.mark.slow


@pytest.mark.parametrize("moment", [1, *(pytest.param(m, marks=SLOW) for m in (7, 256)), 290])
@pytest.mark.parametrize("loss", LEARNERS_OF)
def test_slots_of_every_learner_go_on_with_the_same_bits(loss, moment):
    slots = [slot for slot in slots_of(LEARNERS_OF[loss]) for _ in range(4)]
    case = bank_case(loss in LABELLED, slots=slots, loss=loss)
    bank = case.make("serial")
    bank.run(case.X[:moment], case.y[:moment])
    kept = [old for first in range(0, len(slots), 4) for old in (first + 3, None, first)]
    other = bank.with_slots(
        [slots[first] for first in range(0, len(slots), 4) for _ in "abc"], kept
    )
    found = other.run(case.X[moment:], case.y[moment:])
    assert_go_on(found, bank.run(case.X[moment:], case.y[moment:]), kept)


@pytest.mark.parametrize("engine", ["serial", kb.engines.Serial(11), kb.engines.Threads(2)])
@pytest.mark.parametrize("moment", [3, 256, 280])
def test_mixed_slots_go_on_in_another_order_and_with_another_history_length(engine, moment):
    slots = mixed_slots()
    case = bank_case(slots=slots)
    bank = case.make(engine)
    bank.run(case.X[:moment], case.y[:moment])
    kept = [6, 0, None, 7, 8, 3, None, None]
    tree, line, rest = (
        slots[6],
        slots[0],
        kb.Slot(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=1),
    )
    again = kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 30), residual_of=3)
    long = kb.Slot(K.Gaussian(0.9), L.Norma(0.05, 70))  # more terms than any before
    beside = kb.Slot(K.Gaussian(0.2), L.Norma(0.05, 30), residual_of=3)
    other = bank.with_slots([tree, line, long, rest, again, slots[3], beside, long], kept)
    found = other.run(case.X[moment:], case.y[moment:])
    expected = bank.run(case.X[moment:], case.y[moment:])
    assert_go_on(found, expected, kept)
    # and back: a shorter history
    fewer = other.with_slots([slots[0], slots[6]], [1, 0])
    assert fewer.predict_slots_one(X[0])[1].tolist() == [
        other.predict_slots_one(X[0])[1][i] for i in (1, 0)
    ]


def test_models_behind_adapters_go_on_or_begin():
    slot = kb.Slot(K.NoKernel(), L.Adapter(linear_model.LinearRegression()))
    bank = kb.KernelBank(slots=[slot, NEW, slot], window=3)
    y = instances.stream(3, len(X), 2)[1]
    bank.run(X[:100], y[:100])
    other = bank.with_slots([bank.slots[2], slot], [2, None])
    expected = kb.KernelBank(slots=[slot], window=3)
    expected.run(X[:100], y[:100])
    assert other.predict_slots_one(X[100])[1].tolist() == [expected.predict_one(X[100])] * 2
    other.run(X[100:], y[100:])
    expected.run(X[100:], y[100:])
    assert other.predict_slots_one(X[0])[1].tolist() == [expected.predict_one(X[0])] * 2


# --- new slots ----------------------------------------------------------------------------------


def is_steady(learner):
    """Whether its steps do not depend on the number of samples so far, nor on other slots."""
    return (
        getattr(learner, "restart", None) is None
        and getattr(learner, "step_size", "constant") != "inverse_sqrt"
        and not isinstance(learner, L.NearestNeighborGP)  # slots share what they keep
    )


@pytest.mark.parametrize("moment", [*(pytest.param(m, marks=SLOW) for m in (4, 256)), 280])
@pytest.mark.parametrize("loss", LEARNERS_OF)
def test_new_slots_have_learned_what_the_buffer_holds(loss, moment):
    learners = [learner for learner in LEARNERS_OF[loss] if is_steady(learner)]
    slots = slots_of(learners)
    count = len(slots)
    case = bank_case(loss in LABELLED, slots=slots, loss=loss)
    bank = case.make("serial")
    bank.run(case.X[:moment], case.y[:moment])
    other = bank.with_slots(slots * 2, [*range(count), *[None] * count])
    trace = other.run(case.X[moment:], case.y[moment:])
    # the same slots in a bank that gets these samples only, with the same random draws
    held = min(moment, bank._settings.history_length + (moment - 1) % 256 + 1)
    alone = kb.KernelBank(slots=slots * 2, loss=loss, window=5)
    expected = alone.run(case.X[moment - held :], case.y[moment - held :])
    for index, learner in enumerate(learners, start=count):
        if (
            getattr(learner, "forget", "") == "exponential"
            and learner.forgetting < 1 < held < moment
        ):
            continue  # the numbers of the samples decide which weights it keeps from fading
        for name in OF_SLOTS:
            one, two = getattr(trace, name)[:, index], getattr(expected, name)[held:, index]
            assert one == pytest.approx(two, rel=1e-6, abs=1e-8), (name, learner)
        assert moment == 4 or np.abs(trace.slot_predictions[:, index]).max() > 1e-3, learner


@pytest.mark.parametrize("learner", [L.KRLS(budget=15), L.LinearRLS(), *NORMAS[:1]], ids=repr)
def test_new_residual_slot_starts_as_its_base_and_learns_the_residual(learner):
    y = instances.stream(3, len(X), 2)[1]
    kernel = kernel_of(learner)
    bank = kb.KernelBank(slots=[LINE], window=5)
    bank.run(X[:200], y[:200])
    other = bank.with_slots([LINE, kb.Slot(kernel, learner, residual_of=0)], [0, None])
    base, rest = other.predict_slots_one(X[200])[1]
    assert base == rest != 0
    trace = other.run(X[200:], y[200:])
    residuals = y[200:] - trace.slot_predictions[:, 0]
    alone = kb.KernelBank([kernel], learner, window=5)
    if learner.learns_window:  # its window goes back to samples whose residual counts as 0
        alone.run(X[:200], np.zeros(200))
    found = alone.run(X[200:], residuals).predictions
    learned = trace.slot_predictions[:, 1] - trace.slot_predictions[:, 0]
    assert learned == pytest.approx(found, abs=1e-9)
    assert np.abs(learned).max() > 0.01


@pytest.mark.parametrize("window", [1, 10])
@pytest.mark.parametrize("given", [True, False])
def test_new_slots_on_the_residual_of_new_ones_learn_together_with_them(window, given):
    """They are then as in a bank that has had them from the first of these samples on."""
    X, y = np.linspace(0, 9, 180)[:, None], np.sin(np.linspace(0, 9, 180))
    slots = [NEW, kb.Slot(K.Gaussian(0.1), L.Norma(0.1, 20), residual_of=0)]
    before = kb.KernelBank(K.Gaussian(1.0), L.Norma(0.1, 20), window=window)
    before.run(X[:150], y[:150])
    bank = before.with_slots(slots, [None] * 2, replay=(X[:150], y[:150]) if given else None)
    expected = kb.KernelBank(slots=slots, window=window)
    expected.run(X[:150], y[:150])
    found, wanted = (one.run(X[150:], y[150:], record="all") for one in (bank, expected))
    assert_go_on(found, wanted, [0, 1])


def test_new_slot_learns_only_samples_that_the_bank_has_held():
    """A slot with a longer history was added shortly before: the buffer has room for more."""
    y = instances.stream(3, len(X), 2)[1]
    bank = kb.KernelBank(slots=[kb.Slot(K.Linear(0.5), L.LinearRLS())], window=5)
    bank.run(X[:280], y[:280])
    long = kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 70))
    bank = bank.with_slots([*bank.slots, long], [0, None])
    bank.run(X[280:290], y[280:290])
    bank = bank.with_slots([*bank.slots, long], [0, 1, None])
    alone = kb.KernelBank(slots=[long], window=5)
    alone.run(X[251:290], y[251:290])  # 280 - 24 - 5 = 251
    assert bank.predict_slots_one(X[0])[1][1:] == pytest.approx(alone.predict_one(X[0]), rel=1e-9)


RECURSIVE = [learner for learner in instances.LEARNERS if hasattr(learner, "forget")]


@pytest.mark.parametrize("moment", [pytest.param(200, marks=SLOW), 203, 206])
@pytest.mark.parametrize("learner", RECURSIVE, ids=repr)
def test_new_recursive_slot_begins_at_its_prior_in_the_middle_of_a_cycle(learner, moment):
    kernel, y = kernel_of(learner), X[:, 0]
    bank = kb.KernelBank(slots=[LINE], window=5)
    bank.run(X[:moment], y[:moment])
    other = bank.with_slots([LINE, kb.Slot(kernel, learner, residual_of=0)], [0, None])
    prior = kb.KernelBank(slots=[LINE, kb.Slot(kernel, learner)], window=5)
    prior.learn_one(X[0], y[0])
    found = other.predict_variance_slots(X[:5])
    expected = prior.new_output(0).predict_variance_slots(X[:5])[:, 1]
    assert found[:, 1] - found[:, 0] == pytest.approx(expected, rel=1e-9)


def test_slots_added_later_draw_features_of_their_own():
    slot, samples = kb.Slot(K.Gaussian(0.6), L.FourierRLS(features=12)), (X[:50], X[:50, 0])
    bank, whole = (kb.KernelBank(slots=[slot] * count) for count in (2, 4))
    for one in (bank, whole):
        one.run(*samples)
    for _ in range(2):
        bank = bank.with_slots([slot] * 2, [1, None], replay=samples)
    assert bank.identities == (2, 3)
    assert np.array_equal(bank.predict_slots(X), whole.predict_slots(X)[:, 2:])


# --- combiners, weights, ledger -----------------------------------------------------------------


@pytest.mark.parametrize("combiner", [c for c, _ in instances.COMBINERS], ids=repr)
def test_every_combiner_goes_on_or_refuses(combiner):
    case = bank_case(slots=mixed_slots(), combiner=combiner)
    bank = case.make("serial")
    bank.run(case.X[:200], case.y[:200])
    slots, kept = [NEW, *bank.slots[:7]], [None, 0, 1, 2, 3, 4, 5, 6]
    if combiner.fixed_slots:
        refuses("'combiner' must be one that can", bank.with_slots, slots, kept)
        return
    same = bank.with_slots(bank.slots, range(len(bank.slots)))
    found, expected = (b.run(case.X[200:], case.y[200:]) for b in (same, copy.deepcopy(bank)))
    for name in expected.fields:
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
    other = bank.with_slots(slots, kept)
    before = bank.weights[:7]
    if not combiner.on_simplex:
        assert np.array_equal(other.weights, [0, *before])
    elif before.any():
        assert other.weights == pytest.approx([0, *before / before.sum()])
    else:
        assert np.array_equal(other.weights, combiner.first_weights(8))
    trace = other.run(case.X[200:], case.y[200:])
    assert np.isfinite(trace.predictions).all()
    # A new slot does not take the weight before it has shown that it is good: 1e-3 is too slow.
    poor = kb.Slot(K.Gaussian(0.05), L.Norma(1e-3, 30))
    more = bank.with_slots([*bank.slots, poor], [*range(len(bank.slots)), None])
    found = more.run(case.X[200:], case.y[200:])
    assert found.loss.mean() <= 1.3 * expected.loss.mean()


def test_combiner_judges_a_new_slot_like_the_previous_one():
    case = bank_case(dictionary=kb.gaussian_grid(0.2, 2, 4), combiner=C.Stacking())
    bank = case.make("serial")
    bank.run(case.X[:200], case.y[:200])
    moments = bank.state()["output0/combiner/moments"]
    other = bank.with_slots([NEW, *bank.slots[1:]], [None, 1, 2, 3], previous=[2, None, None, None])
    source = [2, 1, 2, 3]
    assert np.array_equal(
        other.state()["output0/combiner/moments"], moments[np.ix_(source, source)]
    )
    assert np.array_equal(other.ledger.slot_loss, bank.ledger.slot_loss[source])
    worst = int(np.argmax(bank.ledger.slot_cumulative_cost))
    by_default = bank.with_slots([*bank.slots, NEW], [0, 1, 2, 3, None])
    assert by_default.ledger.slot_loss[4] == bank.ledger.slot_loss[worst]


def test_combiner_of_another_shape_is_refused():
    class Pairs(kb.combiners.Combiner):
        def shapes(self, slots):
            return {"pairs": (slots * (slots - 1) // 2,)}

        def combine(self, objective, evidence, state, weights):
            return np.tile(weights, (len(evidence.slot_loss), 1))

    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=Pairs())
    bank.learn_one(0.0, 1.0)
    refuses("its pairs are not one number per slot", lambda: bank.with_slots(bank.slots, range(4)))


def test_weights_are_those_of_the_start_if_all_slots_are_new_or_had_none():
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 4), combiner=C.Best())
    bank.run(X[:50], X[:50, 0])
    (best,) = np.flatnonzero(bank.weights)
    others = [i for i in range(4) if i != best]
    left = bank.with_slots([bank.slots[i] for i in others], others)
    assert left.weights.tolist() == [1 / 3] * 3
    assert bank.with_slots([NEW, NEW], [None, None]).weights.tolist() == [0.5, 0.5]


def test_quarantined_slot_is_never_the_previous_one_and_can_be_retired():
    bank = kb.KernelBank(slots=[NEW, kb.Slot(K.Gaussian(0.3), L.Norma(30.0, 30))], regularization=0)
    y = np.sin(X[:, 0])
    bank.run(X, y)
    assert bank.quarantined == (1,)
    other = bank.with_slots([bank.slots[0], NEW], [0, None], previous=[None, 1])
    assert other.quarantined == ()
    other.run(X, y)
    assert other.quarantined == ()
    assert np.isfinite(other.ledger.slot_cumulative_cost).all()
    lost = kb.KernelBank(slots=[kb.Slot(K.Gaussian(0.3), L.Norma(30.0, 30))], regularization=0)
    lost.run(X, y)
    new = lost.with_slots([NEW], [None])
    assert new.ledger.slot_loss.tolist() == [lost.ledger.loss]
    assert new.quarantined == ()


def test_ledger_tells_when_slots_were_added_and_retired(monkeypatch):
    most = 40
    monkeypatch.setattr(slot_history, "MOST_CHANGES", most)
    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3))
    bank.run(X[:20], X[:20, 0])
    other = bank.with_slots([bank.slots[2], NEW], [2, None])
    assert other.ledger.slot_since == (0, 20)
    shown = [(c.sample, c.kind, c.index, c.name) for c in other.ledger.slot_changes]
    assert shown == [
        (20, "retired", 0, "Gaussian(width=1)"),
        (20, "retired", 1, "Gaussian(width=1.414)"),
        (20, "added", 1, "Gaussian(width=0.3), Norma(budget=30)"),
    ]
    assert other.ledger.slot_changes == other.ledger.slot_changes
    assert other.fresh().ledger.slot_changes == ()
    assert other.with_inputs(2).ledger.slot_changes == other.ledger.slot_changes
    for replay in ((X[:5], X[:4, 0]), (X[:5], X[:5])):
        refuses("replay", other.with_slots, [NEW], [None], replay=replay)
    for _ in range(most // 2):
        other = other.with_slots(other.slots, [None, 1])
    assert len(other.ledger.slot_changes) == most
    assert other.ledger.slot_change_count == most + 3


def test_slots_can_change_before_the_first_sample():
    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3))
    other = bank.with_slots([NEW, bank.slots[1]], [None, 1])
    other.run(X, X[:, 0])
    expected = kb.KernelBank(slots=[NEW, bank.slots[1]])
    expected.run(X, X[:, 0])
    assert np.array_equal(other.weights, expected.weights)


# --- refusals -------------------------------------------------------------------------------------


LINE = kb.Slot(K.Linear(0.5), L.LinearRLS())
REST = kb.Slot(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=0)
REFUSED = [
    ([LINE], [0, 1], None, "'kept' of with_slots must have one entry per slot (1); got"),
    ([LINE], 3, None, "must have one entry per slot (1); got 3"),
    ([LINE], [2], None, "'kept' of with_slots must be a whole number >= 0 and <= 1; got 2"),
    ([LINE], ["a"], None, "'kept' of with_slots must be a whole number"),
    ([LINE, LINE], [0, 0], None, "must name no slot twice"),
    ([LINE], [0], [5], "'previous' of with_slots must be a whole number >= 0 and <= 1"),
    ([NEW], [0], None, "'slots' of with_slots must continue slot 0 at 0"),
    ([LINE, NEW], [None, 1], None, "must keep slot 0, whose residual slot 1 learns"),
    ([NEW, LINE, REST], [None, 0, 1], None, "must continue slot 1 at 2"),
    ([], [], None, "must be a list of at least one Slot"),
]


@pytest.mark.parametrize(("slots", "kept", "previous", "message"), REFUSED)
def test_wrong_arguments_are_refused(slots, kept, previous, message):
    bank = kb.KernelBank(slots=[LINE, REST], window=5)
    bank.run(X[:20], X[:20, 0])
    refuses(re.escape(message), bank.with_slots, slots, kept, previous)


def test_bank_with_an_initial_function_keeps_its_slots():
    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3), initial=(X[:3], np.ones(3)))
    with pytest.raises(InvalidArgument, match="'initial' of with_slots must be left out"):
        bank.with_slots(bank.slots, range(3))


def test_new_kernel_that_does_not_take_the_samples_is_refused():
    bank = kb.KernelBank(kb.gaussian_grid(1, 2, 3))
    bank.run(X[:20] - 1, X[:20, 0])
    with pytest.raises(InvalidArgument, match="slots"):
        bank.with_slots([kb.Slot(K.ActiveDims(K.Gaussian(1.0), [4]), L.Norma())], [None])


GROWING = [
    (Linear(1.0), LinearRLS()),
    (Linear(1.0), LinearRLS(ridge=1.0, **FADING)),
    (TreeKernel(), PartitionTree(nodes=31)),
    (Gaussian(2.0), Norma()),
    (Gaussian(2.0) + Linear(1.0), Norma(learning_rate=0.01)),
    (NoKernel(), Adapter(linear_model.LinearRegression())),
    *(
        (Gaussian(2.0), learner)
        for learner in LEARNERS
        if learner.accepts_new_inputs and isinstance(kernel_of(learner), Gaussian)
    ),
]


@pytest.mark.parametrize(("kernel", "learner"), GROWING)
@pytest.mark.parametrize("engine", ["serial", kb.engines.Threads(2)], ids=["serial", "threads"])
def test_bank_with_more_inputs_continues_as_if_they_had_been_zero(kernel, learner, engine):
    X, y = stream(0.0)
    slots = [kb.Slot(kernel, learner)]
    whole = kb.KernelBank(slots=slots, window=3)
    expected = whole.run(X, y)
    bank = kb.KernelBank(slots=slots, window=3, engine=engine)
    bank.run(X[:LATE, :3], y[:LATE])
    before = bank.state()
    wider = bank.with_inputs(4)
    found = wider.run(X[LATE:], y[LATE:])
    room = rounding(learner)
    for name in ("predictions", "slot_loss", "slot_cost"):
        assert np.abs(getattr(found, name) - getattr(expected, name)[LATE:]).max() <= room, name
    assert wider.samples == ROWS
    assert wider.ledger.loss == pytest.approx(whole.ledger.loss, rel=1e-9)
    # The column counts: without it, half of the target is unknown.
    assert np.abs(found.predictions - bank.run(X[LATE:, :3], y[LATE:]).predictions).max() > 0.1
    assert set(before) == set(bank.state())


def test_slots_that_cannot_use_new_columns_need_active_dims():
    X, y = stream(0.0)
    for slot in (
        kb.Slot(Gaussian(1.0), FourierRLS(features=20)),
        kb.Slot(Additive(Gaussian(1.0), 2), KLMS(budget=10)),
        kb.Slot(Additive(Gaussian(1.0), 2), Norma()),  # a mean over more subsets is another kernel
    ):
        bank = kb.KernelBank(slots=[slot])
        bank.run(X[:50, :3], y[:50])
        refuses("kernel on the columns that it knows", bank.with_inputs, 4)
        wider = bank.with_inputs(4, [kb.Slot(ActiveDims(slot.kernel, (0, 1, 2)), slot.learner)])
        assert wider.predict_one([1.0, 2.0, 3.0, 4.0]) == bank.predict_one([1.0, 2.0, 3.0])


def test_with_inputs_refuses_slots_that_do_not_continue():
    X, y = stream(0.0)
    slot = kb.Slot(Linear(1.0), LinearRLS())
    bank = kb.KernelBank(slots=[slot])
    bank.run(X[:50, :3], y[:50])
    wrong = [
        [slot, slot],
        [kb.Slot(Linear(1.0), LinearRLS(ridge=2.0))],
        [kb.Slot(ActiveDims(Linear(1.0), (1, 2, 3)), LinearRLS())],
        [kb.Slot(ActiveDims(Linear(2.0), (0, 1, 2)), LinearRLS())],
    ]
    for slots in wrong:
        refuses("'slots' of with_inputs", bank.with_inputs, 4, slots)
    refuses("'dimension' of with_inputs", bank.with_inputs, 2)
