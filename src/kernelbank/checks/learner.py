"""`check_learner`: what a bank takes for granted about a learner."""

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
from .game import HOSTILE, Game, figures, played, quiet
from .learner_offers import RAISES, check_offers
from .subject import Subject, first_difference, same_bits, shown

LONG, SHORT = 280, 60  # the longer one crosses the end of a page of 256 samples
_CUTS = (1, 2, 3, 7, 8, 50, 51, 120, 255, 256, 257)


def check_learner(
    learner: Learner, kernel: Kernel | None = None, loss: Loss | str | None = None
) -> None:
    """Whether a learner keeps what a bank takes for granted; a failure says why and what to do.

    Checked in small banks, on made streams: settings are frozen, hashable and come back from a
    file; kernels and losses that it does not take are refused by name; f is 0 before the first
    sample; two banks have nothing in common; nothing of a block is kept but copies; predicting
    changes nothing and predicts what is learned with; blocks equal the loop, and a bank that was
    saved and loaded equals one that was not, bit for bit; values on the window are those of the
    present function; norm^2 is finite and not negative; memory does not grow; a slot does not
    depend on those beside it; hostile streams raise nothing. Takes a second or so (longer for
    learners in Python whose values are slow); always the same streams.

    Parameters
    ----------
    learner : one of kb.learners, or your own.
    kernel : the kernel to try it with; by default the first that it takes of Gaussian, Linear,
        TreeKernel and NoKernel.
    loss : the loss, or its name; by default all built-in ones are offered, and the first that it
        takes, "squared" before the others, is tried in full.

    Raises `kb.errors.CheckFailed`; returns None if nothing was found.

    >>> import kernelbank as kb
    >>> kb.checks.check_learner(kb.learners.KLMS(learning_rate=0.1, budget=20))
    """
    if not isinstance(learner, Learner):
        remedy = "Derive your class from kb.learners.PythonLearner, and give an instance."
        raise check.refuse("learner", "be a learner", learner, remedy, "check_learner")
    subject = Subject("check_learner", learner)
    by_value = type(learner).__eq__ is not object.__eq__
    subject.check_settings(file=learner.saveable and by_value)
    with quiet():
        game = check_offers(subject, learner, kernel, loss)
        _check_alone(subject, game)
        _check_looking(subject, game)
        state.check_window(subject, game)
        state.check_memory(subject, game)
        undisturbed = _check_blocks(subject, game)
        if learner.saveable:
            _check_file(subject, game, *undisturbed)
        _check_hostile(subject, game)


# --- the same bits --------------------------------------------------------------------------------


def _check_alone(subject: Subject, game: Game) -> None:
    """Nothing outside the bank: other banks, other slots, the caller's arrays."""
    X, y = game.stream(SHORT)
    with subject.works("while learning", RAISES):
        plain = figures(played(game.bank(), X, y))
        again = figures(played(game.bank(), X, y))
    why = "One learner may serve many banks; each goes on from its own state only."
    repair = (
        "Keep what changes in the state (group.state, or what `start` returns), not in the "
        "learner, its class or its module; draw random numbers from a seed."
    )
    name = "free of state outside its bank"
    _compare(subject, game, name, plain, again, "in a second, equal bank", why, repair)
    one, other = game.bank(), game.bank()
    mixed = []
    with subject.works("while two banks learned in turn", RAISES):
        for n in range(SHORT):
            mixed += played(one, X[n : n + 1], y[n : n + 1])
            played(other, X[::-1][n : n + 1].copy(), y[::-1][n : n + 1].copy())
    lonely = game.bank()
    with subject.works("while learning sample by sample", RAISES):
        loop = figures([lonely.run(X[n : n + 1], y[n : n + 1]) for n in range(SHORT)])
    other_way = "when learning in turn with another bank"
    _compare(subject, game, name, loop, figures(mixed), other_way, why, repair)
    _check_copies(subject, game, X, y)
    with subject.works("with two such slots in a bank", RAISES):
        twice = figures(played(game.bank(twice=True), X, y))
    why = "Slots are grouped, and dealt to shards and threads; that must not show."
    repair = "Use every leaf's and lane's own part of each array, and clear scratch in between."
    name = "independent of the slots beside it"
    _compare(subject, game, name, plain, twice, "beside another such slot", why, repair)


def _check_copies(subject: Subject, game: Game, X: Floats, y: Floats) -> None:
    """The workspace is written over by the next block; whoever keeps a view of it sees that."""
    half = SHORT // 2
    kept, written_over = game.bank(), game.bank()
    with subject.works("while learning", RAISES):
        for bank in (kept, written_over):
            bank.run(X[:half], y[:half])
        assert written_over._work is not None
        written_over._work.workspace.points[...] = 0.625
        written_over._work.workspace.new_targets[...] = 1.0
        values = [bank.predict_slots(X)[:, game.place] for bank in (kept, written_over)]
        rest = [figures(played(bank, X[half:], y[half:])) for bank in (kept, written_over)]
    name = "keeping copies of what it is given"
    way = "after the arrays of the last block had been written over"
    why = "The arrays of a block (block.points, block.targets) are used again for the next one."
    repair = "Copy what you keep: state[...] = x, or x.copy()."
    if not same_bits(*values):
        n = first_difference(*values)[0]
        found = f"f({shown(X[n])}) = {values[0][n]!s}, but {values[1][n]!s} {way}."
        raise subject.fails(name, found, why, repair)
    _compare(subject, game, name, rest[0], rest[1], way, why, repair)


def _check_looking(subject: Subject, game: Game) -> None:
    X, y = game.stream(SHORT)
    looking, still = game.bank(), game.bank()
    watched, undisturbed, values, single = [], [], [], []
    with subject.works("while predicting and learning in turn", RAISES):
        for n in range(SHORT):
            single.append(looking.predict_one(X[n]))
            values.append(looking.predict_slots(X[n : n + 1])[0, game.place])
            if n % 20 == 7:
                looking.predict(X)
            watched.append(looking.run(X[n : n + 1], y[n : n + 1]))
            undisturbed.append(still.run(X[n : n + 1], y[n : n + 1]))
    why = "People predict when they like; what a bank learns must not depend on it."
    repair = "Let evaluate (or value) read the state and write to arrays of its own."
    name = "unchanged by predicting"
    plain = figures(undisturbed)
    _compare(subject, game, name, plain, figures(watched), "with predictions between", why, repair)
    repair = "Compute values in one function, which both learn and evaluate (value) call."
    for got, field in ((np.array(single), "predictions"), (np.array(values), "slot_predictions")):
        expected = plain[field] if field == "predictions" else plain[field][:, game.place]
        if not same_bits(got, expected):
            n = first_difference(got, expected)[0]
            raise subject.fails(
                "predicting what it learns with",
                f"before sample {n}, at x = {shown(X[n])}, predicting gives {float(got[n])!r} and "
                f"learning {float(expected[n])!r}.",
                "The proposal that a bank is charged for must be the one it would have made.",
                repair,
            )
    with subject.works("while predicting", RAISES):
        together = looking.predict_slots(X)[:, game.place]
        apart = np.array([looking.predict_slots(x[None])[0, game.place] for x in X[::-1]])[::-1]
    if not same_bits(together, apart):
        n = first_difference(together, apart)[0]
        raise subject.fails(
            "predicting each input by itself",
            f"at x = {shown(X[n])} it predicts {float(together[n])!r} among {SHORT} inputs and "
            f"{float(apart[n])!r} alone.",
            "A prediction follows from the state and its input.",
            "Work through the points one by one; matrix products round by the shape of a call.",
        )


def _check_blocks(subject: Subject, game: Game) -> tuple[KernelBank, dict[str, Floats]]:
    X, y = game.stream(LONG)
    whole, ragged, loop = game.bank(), game.bank(engine=Serial(2, block=64)), game.bank()
    with subject.works("while learning in blocks of several lengths", RAISES):
        expected = figures(played(whole, X, y))
        cut = figures(played(ragged, X, y, _CUTS))
        for x, target in zip(X, y, strict=True):
            loop.learn_one(x, target)
    why = (
        "Blocks are a matter of speed; a stream must give the same bits in one call, in many, or "
        "sample by sample."
    )
    repair = (
        "Go through the block sample by sample and use nothing of a later one. Refreshes go by the "
        "number of the sample (block.first + t), sums by one fixed order, never by the block."
    )
    name = "the same for blocks and sample by sample"
    ends = [b - a for a, b in pairwise([0, *_CUTS, LONG])]
    _compare(subject, game, name, expected, cut, f"in blocks of {ends}", why, repair)
    _compare_states(subject, name, whole, loop, "with learn_one", why, repair)
    return whole, expected


def _check_file(
    subject: Subject, game: Game, whole: KernelBank, undisturbed: dict[str, Floats]
) -> None:
    X, y = game.stream(LONG)
    moment = int(np.random.default_rng(1).integers(150, 250))
    first = game.bank()
    repair = (
        "Keep everything that the next sample depends on in the arrays of the state; what is in "
        "group.parts, group.scratch or the learner is not saved. Or say saveable = False."
    )
    with subject.works("while being saved and loaded", repair, "saveable"):
        first.run(X[:moment], y[:moment])
        again = game.reloaded(first)
        rest = figures(played(again, X[moment:], y[moment:]))
    expected = {field: array[moment:] for field, array in undisturbed.items()}
    why = "A bank that is loaded must go on as if it had never been away."
    name = "the same after saving and loading"
    way = f"loaded from a file after {moment} samples"
    _compare(subject, game, name, expected, rest, way, why, repair, start=moment)
    _compare_states(subject, name, whole, again, way, why, repair)


def _check_hostile(subject: Subject, game: Game) -> None:
    X, y = game.stream(SHORT)
    for kind, spoil in HOSTILE.items():
        points, targets = spoil(X, y)
        if game.loss.labels:
            targets = y
        bank = game.bank()
        repair = "Guard divisions, roots and solves; a ridge on the diagonal helps with both."
        with subject.works(f"on {kind}", repair, "unshaken by hostile data"):
            trace = bank.run(points, targets)
            ahead = bank.predict_slots(points[-3:])[:, game.place]
        alive = game.place not in bank.quarantined
        values = np.concatenate([trace.slot_predictions[:, game.place], ahead])
        if not np.isfinite(trace.predictions).all() or (alive and not np.isfinite(values).all()):
            raise subject.fails(
                "unshaken by hostile data",
                f"on {kind} it predicted {shown(values[~np.isfinite(values)][:1])} without being "
                "put out of the bank.",
                "A bank puts a slot out when its values or norm are not finite, and can only see "
                "what the learner writes down.",
                "Write the true values, NaN too, to group.values, norms and predictions.",
            )


# --- telling differences --------------------------------------------------------------------------


def _compare(
    subject: Subject,
    game: Game,
    name: str,
    one: dict[str, Floats],
    other: dict[str, Floats],
    way: str,
    why: str,
    repair: str,
    start: int = 0,
) -> None:
    """Refuse figures of the slot that are not the same bits; tell the first sample that differs."""
    places: list[tuple[int, str, Any, Any]] = []
    for field in ("slot_predictions", "curvature", "window_loss", "slot_cost"):
        left, right = (side[field][:, game.place] for side in (one, other))
        if not same_bits(left, right):
            n = first_difference(left, right)[0]
            places.append((n, field, float(left[n]), float(right[n])))
    if places:
        n, field, left, right = min(places)
        words = {"slot_predictions": "prediction", "curvature": "regularization / 2 * norm^2"}
        what = words.get(field, field.replace("_", " "))
        found = f"at sample {start + n} its {what} is {left!r}, but {right!r} {way}."
        raise subject.fails(name, found, why, repair)


def _compare_states(
    subject: Subject,
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
            raise subject.fails(name, found, why, repair)
