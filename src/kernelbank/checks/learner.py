"""`check_learner`: what a bank requires of a learner."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.engines import Serial
from ..kernels import Kernel
from ..learners import Learner
from ..losses import Loss
from ..utils import validation as check
from ..utils.validation import Floats
from . import learner_state as state
from .bank_fixture import (
    EXTREME,
    BankFixture,
    figures,
    overwrite_block_arrays,
    quiet,
    run_in_blocks,
)
from .context import CheckContext, first_difference, same_bits, shown
from .learner_acceptance import RAISES, check_acceptance
from .learner_outputs import check_missing, check_outputs

LONG, SHORT = 280, 60  # the longer one crosses a slide of the buffers after 256 samples
_CUTS = (1, 2, 3, 7, 8, 50, 51, 120, 255, 256, 257)


def check_learner(
    learner: Learner, kernel: Kernel | None = None, loss: Loss | str | None = None
) -> None:
    """Check that a learner does what a bank requires; a failure says why and what to do.

    Checked in small banks, on synthetic streams: settings are frozen, hashable and come back from a
    file; kernels and losses that it does not accept are refused by name; f is 0 before the first
    sample; two banks share nothing; of the arrays of a block only copies are kept; predicting
    changes nothing and equals the prediction of learning; blocks equal single samples, and a bank
    that was saved and loaded equals one that was not, bit for bit; values on the window are values
    of the present function; norm^2 is finite, not negative, and not less than f(x)^2 / k(x, x) at
    any x, unless it is 0 throughout (no norm); memory does not grow; a slot does not depend on its
    neighbours; extreme streams raise no exception; if it says that slots of other outputs follow
    those of the first, or that it accepts missing targets, that is so. The streams are always the
    same.

    Parameters
    ----------
    learner : one of kb.learners, or your own.
    kernel : the kernel to check it with; by default the first that it accepts of Gaussian, Linear,
        TreeKernel and NoKernel.
    loss : the loss, or its name; by default all built-in ones are tried, and the first that it
        accepts, "squared" before the others, is checked in full.

    Raises `kb.errors.CheckFailed`; returns None if nothing was found.

    >>> import kernelbank as kb
    >>> kb.checks.check_learner(kb.learners.KLMS(learning_rate=0.1, budget=20))
    """
    if not isinstance(learner, Learner):
        remedy = "Derive your class from kb.learners.PythonLearner, and give an instance."
        raise check.refuse("learner", "be a learner", learner, remedy, "check_learner")
    context = CheckContext("check_learner", learner)
    by_value = type(learner).__eq__ is not object.__eq__
    context.check_settings(file=learner.saveable and by_value)
    with quiet():
        fixture = check_acceptance(context, learner, kernel, loss)
        _check_alone(context, fixture)
        _check_predicting(context, fixture)
        state.check_window(context, fixture)
        state.check_memory(context, fixture)
        undisturbed = _check_blocks(context, fixture)
        if learner.saveable:
            _check_file(context, fixture, *undisturbed)
        _check_extreme(context, fixture)
        check_outputs(context, fixture)
        check_missing(context, fixture)


# --- the same bits --------------------------------------------------------------------------------


def _check_alone(context: CheckContext, fixture: BankFixture) -> None:
    """Nothing outside the bank matters: other banks, other slots, the caller's arrays."""
    X, y = fixture.stream(SHORT)
    with context.works("while learning", RAISES):
        plain = figures(run_in_blocks(fixture.bank(), X, y))
        again = figures(run_in_blocks(fixture.bank(), X, y))
    why = "One learner may be used in many banks; each continues from its own state only."
    repair = (
        "Keep what changes in the state (group.state, or what `start` returns), not in the "
        "learner, its class or its module; draw random numbers from a seed."
    )
    name = "free of state outside its bank"
    _compare(context, fixture, name, plain, again, "in a second, equal bank", why, repair)
    one, other = fixture.bank(), fixture.bank()
    mixed = []
    with context.works("while two banks learned in turn", RAISES):
        for n in range(SHORT):
            mixed += run_in_blocks(one, X[n : n + 1], y[n : n + 1])
            run_in_blocks(other, X[::-1][n : n + 1].copy(), y[::-1][n : n + 1].copy())
    lonely = fixture.bank()
    with context.works("while learning sample by sample", RAISES):
        loop = figures([lonely.run(X[n : n + 1], y[n : n + 1]) for n in range(SHORT)])
    other_way = "when learning in turn with another bank"
    _compare(context, fixture, name, loop, figures(mixed), other_way, why, repair)
    _check_copies(context, fixture, X, y)
    with context.works("with two such slots in a bank", RAISES):
        twice = figures(run_in_blocks(fixture.bank(twice=True), X, y))
    why = "Slots are grouped, and distributed to shards and threads; that must change nothing."
    repair = "Use only the own leaf and lane of each array, and clear scratch in between."
    name = "independent of its neighbours"
    _compare(context, fixture, name, plain, twice, "beside another such slot", why, repair)


def _check_copies(context: CheckContext, fixture: BankFixture, X: Floats, y: Floats) -> None:
    """The next block overwrites the workspace, which shows in a learner that keeps a view of it."""
    half = SHORT // 2
    kept, overwritten = fixture.bank(), fixture.bank()
    with context.works("while learning", RAISES):
        for bank in (kept, overwritten):
            bank.run(X[:half], y[:half])
        overwrite_block_arrays(overwritten)
        values = [bank.predict_slots(X)[:, fixture.index] for bank in (kept, overwritten)]
        rest = [figures(run_in_blocks(bank, X[half:], y[half:])) for bank in (kept, overwritten)]
    name = "keeping copies of its arguments"
    way = "after the arrays of the last block were overwritten"
    why = "The arrays of a block (block.points, block.targets) are used again for the next one."
    repair = "Copy what you keep: state[...] = x, or x.copy()."
    if not same_bits(*values):
        n = first_difference(*values)[0]
        found = f"f({shown(X[n])}) = {values[0][n]!s}, but {values[1][n]!s} {way}."
        raise context.fails(name, found, why, repair)
    _compare(context, fixture, name, rest[0], rest[1], way, why, repair)


def _check_predicting(context: CheckContext, fixture: BankFixture) -> None:
    X, y = fixture.stream(SHORT)
    asked, undisturbed = fixture.bank(), fixture.bank()
    interrupted, plain_traces, values, single = [], [], [], []
    with context.works("while predicting and learning in turn", RAISES):
        for n in range(SHORT):
            single.append(asked.predict_one(X[n]))
            values.append(asked.predict_slots(X[n : n + 1])[0, fixture.index])
            if n % 20 == 7:
                asked.predict(X)
            interrupted.append(asked.run(X[n : n + 1], y[n : n + 1]))
            plain_traces.append(undisturbed.run(X[n : n + 1], y[n : n + 1]))
    why = "Users predict at any time; learning must not depend on it."
    repair = "Let evaluate (or value) read the state and write to arrays of its own."
    name = "unchanged by predicting"
    plain = figures(plain_traces)
    way = "with predictions between"
    _compare(context, fixture, name, plain, figures(interrupted), way, why, repair)
    repair = "Compute values in one function, which both learn and evaluate (value) call."
    for got, field in ((np.array(single), "predictions"), (np.array(values), "slot_predictions")):
        expected = plain[field] if field == "predictions" else plain[field][:, fixture.index]
        if not same_bits(got, expected):
            n = first_difference(got, expected)[0]
            raise context.fails(
                "consistent in predicting and learning",
                f"before sample {n}, at x = {shown(X[n])}, predicting gives {float(got[n])!r} and "
                f"learning {float(expected[n])!r}.",
                "A bank is charged for the prediction that it would have made.",
                repair,
            )
    with context.works("while predicting", RAISES):
        together = asked.predict_slots(X)[:, fixture.index]
        apart = np.array([asked.predict_slots(x[None])[0, fixture.index] for x in X[::-1]])[::-1]
    if not same_bits(together, apart):
        n = first_difference(together, apart)[0]
        raise context.fails(
            "predicting each input by itself",
            f"at x = {shown(X[n])} it predicts {float(together[n])!r} among {SHORT} inputs and "
            f"{float(apart[n])!r} alone.",
            "A prediction follows from the state and its input.",
            "Work through the points one by one; matrix products round by the shape of a call.",
        )


def _check_blocks(
    context: CheckContext, fixture: BankFixture
) -> tuple[KernelBank, dict[str, Floats]]:
    X, y = fixture.stream(LONG)
    whole, ragged, loop = fixture.bank(), fixture.bank(engine=Serial(2, block=64)), fixture.bank()
    with context.works("while learning in blocks of several lengths", RAISES):
        expected = figures(run_in_blocks(whole, X, y))
        cut = figures(run_in_blocks(ragged, X, y, _CUTS))
        for x, target in zip(X, y, strict=True):
            loop.learn_one(x, target)
    why = (
        "Blocks are for speed only; a stream must give the same bits in one call, in many, or "
        "sample by sample."
    )
    repair = (
        "Go through the block sample by sample and use nothing of a later one. Refreshes go by the "
        "number of the sample (block.first + t), sums by one fixed order, never by the block."
    )
    name = "the same for blocks and sample by sample"
    ends = [b - a for a, b in pairwise([0, *_CUTS, LONG])]
    _compare(context, fixture, name, expected, cut, f"in blocks of {ends}", why, repair)
    _compare_states(context, name, whole, loop, "with learn_one", why, repair)
    return whole, expected


def _check_file(
    context: CheckContext, fixture: BankFixture, whole: KernelBank, undisturbed: dict[str, Floats]
) -> None:
    X, y = fixture.stream(LONG)
    moment = int(np.random.default_rng(1).integers(150, 250))
    first = fixture.bank()
    repair = (
        "Keep everything that the next sample depends on in the arrays of the state; what is in "
        "group.models, group.scratch or the learner is not saved. Or set saveable = False."
    )
    with context.works("while being saved and loaded", repair, "saveable"):
        first.run(X[:moment], y[:moment])
        again = fixture.reloaded(first)
        rest = figures(run_in_blocks(again, X[moment:], y[moment:]))
    expected = {field: array[moment:] for field, array in undisturbed.items()}
    why = "A loaded bank must continue as if it had never been saved."
    name = "the same after saving and loading"
    way = f"loaded from a file after {moment} samples"
    _compare(context, fixture, name, expected, rest, way, why, repair, start=moment)
    _compare_states(context, name, whole, again, way, why, repair)


def _check_extreme(context: CheckContext, fixture: BankFixture) -> None:
    X, y = fixture.stream(SHORT)
    for kind, spoil in EXTREME.items():
        points, targets = spoil(X, y)
        if fixture.loss.labels:
            targets = y
        least, most = fixture.loss.targets
        targets = np.clip(targets, least, most)
        bank = fixture.bank()
        repair = "Guard divisions, roots and solves; a ridge on the diagonal helps with both."
        with context.works(f"on {kind}", repair, "robust on extreme data"):
            trace = bank.run(points, targets)
            ahead = bank.predict_slots(points[-3:])[:, fixture.index]
        alive = fixture.index not in bank.quarantined
        values = np.concatenate([trace.slot_predictions[:, fixture.index], ahead])
        if not np.isfinite(trace.predictions).all() or (alive and not np.isfinite(values).all()):
            raise context.fails(
                "robust on extreme data",
                f"on {kind} it predicted {shown(values[~np.isfinite(values)][:1])} without being "
                "quarantined.",
                "A bank quarantines a slot when its values or norm are not finite, and it sees "
                "only what the learner writes.",
                "Write the true values, NaN too, to group.values, norms and predictions.",
            )


# --- reporting differences ------------------------------------------------------------------------


def _compare(
    context: CheckContext,
    fixture: BankFixture,
    name: str,
    one: dict[str, Floats],
    other: dict[str, Floats],
    way: str,
    why: str,
    repair: str,
    start: int = 0,
) -> None:
    """Fail if the figures of the slot do not have the same bits; name the first such sample."""
    differences: list[tuple[int, str, Any, Any]] = []
    for field in ("slot_predictions", "curvature", "window_loss", "slot_cost"):
        left, right = (side[field][:, fixture.index] for side in (one, other))
        if not same_bits(left, right):
            n = first_difference(left, right)[0]
            differences.append((n, field, float(left[n]), float(right[n])))
    if differences:
        n, field, left, right = min(differences)
        labels = {"slot_predictions": "prediction", "curvature": "regularization / 2 * norm^2"}
        what = labels.get(field, field.replace("_", " "))
        found = f"at sample {start + n} its {what} is {left!r}, but {right!r} {way}."
        raise context.fails(name, found, why, repair)


def _compare_states(
    context: CheckContext,
    name: str,
    one: KernelBank,
    other: KernelBank,
    way: str,
    why: str,
    repair: str,
) -> None:
    left, right = one._state(), other._state()
    for array in left:
        if not same_bits(left[array], right[array]):
            found = f"after {one.samples} samples the array {array!r} of the state differs {way}."
            raise context.fails(name, found, why, repair)
