"""`check_combiner`: what a bank takes for granted about a rule for the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..bank.layout import Slot
from ..combiners import Combiner
from ..errors import CheckFailed
from ..kernels import Gaussian
from ..learners import Norma
from ..losses import Squared
from ..utils import validation as check
from ..utils.validation import Floats
from .game import Game, figures, played, quiet
from .stage import Made, Stage, made
from .subject import Subject, first_difference, same_bits, shown

EPS = float(np.finfo(float).eps)
_SAMPLES = 80
_CUTS = (1, 2, 5, 6, 30, 31, 32, 64)
_RAISES = (
    "See the exception above this one for the line. Evidence must not be changed; `values` is "
    "there only if the class says needs_values = True."
)
_REPAIR_STATE = (
    "Keep what one sample leaves for the next in the arrays that `shapes` tells and `combine` gets "
    "as `state` (state[name][...] = ...), not in the combiner, its class or its module."
)


def check_combiner(combiner: Combiner) -> None:
    """Whether a combiner keeps what a bank takes for granted; a failure says why and what to do.

    Checked on made evidence, with one slot and with several, and in small banks: settings are
    frozen, hashable and come back from a file; weights are finite, and on the simplex if
    `on_simplex` says so; a slot that is out has no weight, even if all are out; blocks equal single
    samples, and a rule that goes on from a copy of its state, or from a file, equals one that was
    never stopped, bit for bit; games do not disturb each other; `diagnostics` gives new arrays at any
    time. Takes well below a second; always the same evidence.

    Parameters
    ----------
    combiner : one of kb.combiners, or your own.

    Raises `kb.errors.CheckFailed`; returns None if nothing was found.

    >>> import kernelbank as kb
    >>> kb.checks.check_combiner(kb.combiners.Hedge())
    """
    if not isinstance(combiner, Combiner):
        remedy = "Derive your class from kb.combiners.Combiner, and give an instance."
        raise check.refuse("combiner", "be a combiner", combiner, remedy, "check_combiner")
    subject = Subject("check_combiner", combiner)
    subject.check_settings()
    never = _SAMPLES
    games = {
        "five slots": made(5, _SAMPLES),
        "one slot": made(1, _SAMPLES),
        "two slots that go out": made(5, _SAMPLES, out=[never, 20, never, 45, never]),
        "all slots going out": made(3, _SAMPLES, out=[10, 50, 30]),
        "a slot that is out from the start": made(3, _SAMPLES, out=[0, never, never]),
    }
    if combiner.on_simplex:  # a rule without bounds may well overflow
        games["huge losses"] = made(4, _SAMPLES, size=1e6)
        games["tiny losses"] = made(4, _SAMPLES, size=1e-6)
    for name, evidence in games.items():
        _check_game(subject, combiner, evidence, name)
    _check_banks(subject, combiner)


def _check_game(subject: Subject, combiner: Combiner, evidence: Made, game: str) -> None:
    slots = evidence.shape[1]
    with subject.works(f"with {game}, before the first sample", _RAISES):
        first = np.asarray(combiner.first_weights(slots), dtype=float)
        _check_report(subject, combiner, Stage(combiner, evidence))
    if first.shape != (slots,):
        raise subject.fails(
            "of one weight a slot",
            f"first_weights({slots}) has the shape {first.shape}.",
            "The first proposal needs a weight for every slot.",
            "Return np.full(slots, 1 / slots), or another array of that shape.",
        )
    everyone = np.ones((1, slots), dtype=bool)
    _check_weights(subject, combiner, first[None], everyone, "before the first sample")
    with subject.works(f"with {game}", _RAISES):
        weights = Stage(combiner, evidence).play_all()
        again = Stage(combiner, evidence).play_all()
    why = "The same stream must give the same bits, whatever else was computed before."
    name = "a function of its evidence and state"
    _compare(subject, name, weights, again, "in a second, equal game", why, _REPAIR_STATE)
    _check_weights(subject, combiner, weights, np.isfinite(evidence.window_loss), f"with {game}")
    _check_state(subject, combiner, evidence)
    _check_cuts(subject, combiner, evidence, game, weights)


def _check_weights(
    subject: Subject, combiner: Combiner, weights: Floats, living: np.ndarray, game: str
) -> None:
    if not np.isfinite(weights).all():
        n, p = (int(i) for i in np.argwhere(~np.isfinite(weights))[0])
        raise subject.fails(
            "finite",
            f"{game}, the weights after sample {n} are {shown(weights[n])}.",
            "Every later proposal would be NaN.",
            "Slots that are out have infinite losses: leave them out of sums and differences "
            "(inf - inf is NaN). Subtract the least loss before an exponential.",
        )
    if (weights[~living] != 0).any():
        n, p = (int(i) for i in np.argwhere(~living & (weights != 0))[0])
        raise subject.fails(
            "free of weight on slots that are out",
            f"{game}, slot {p} is out (its window_loss is infinite) at sample {n}, and has the "
            f"weight {float(weights[n, p])!r}.",
            "Its values are NaN or infinite, and would be all that is left of the proposal.",
            "End with weights[np.isinf(evidence.window_loss)] = 0, and divide by the sum if it is "
            "not 0.",
        )
    if not combiner.on_simplex:
        return
    # If all slots are out there is nothing to share.
    wanted = living.any(axis=1).astype(float)
    off = np.abs(weights.sum(axis=1) - wanted)
    if weights.min() < 0 or off.max() > 64 * weights.shape[1] * EPS:
        n = int(np.argmax(np.maximum(off, -2 * weights.min(axis=1))))
        raise subject.fails(
            "on the simplex",
            f"{game}, the weights after sample {n} are {shown(weights[n])}, with the sum "
            f"{float(weights[n].sum())!r} (that of the slots in play must be {wanted[n]:g}).",
            "The cost of the mixture is bounded by the slots' costs for convex weights only, and "
            "the ledger states that bound.",
            "Divide by the sum, and let no weight be negative; or say on_simplex = False.",
        )


def _check_state(subject: Subject, combiner: Combiner, evidence: Made) -> None:
    """Going on from a copy of the state equals not having stopped, also beside another game."""
    half = evidence.shape[0] // 2
    with subject.works("going on from a copy of its state", _RAISES):
        one = Stage(combiner, evidence)
        one.play(half)
        other = Stage(combiner, evidence, resumed=one)
        expected = one.play_all()
        rest = other.play_all()
    why = "A bank that is loaded goes on from the arrays of the state, and from nothing else."
    name = "complete in its state"
    way = f"going on from a copy of the state after {half} samples"
    _compare(subject, name, expected, rest, way, why, _REPAIR_STATE, start=half)


def _check_cuts(
    subject: Subject, combiner: Combiner, evidence: Made, game: str, weights: Floats
) -> None:
    samples = evidence.shape[0]
    single: Sequence[int] = range(1, samples)
    name = "the same for blocks and sample by sample"
    why = "Blocks are a matter of speed; how a stream is cut must not show in any bit."
    repair = (
        "Go from sample to sample, with the weights before the block as the first; no mean or "
        "maximum over evidence[:n], no np.cumsum from the start of a block, no step counted by "
        "blocks (the number of sample t is evidence.first + t). Sums go on from the state."
    )
    for cuts, way in ((single, "sample by sample"), (_CUTS, f"in blocks that end at {_CUTS}")):
        with subject.works(f"with {game}, {way}", _RAISES):
            stage = Stage(combiner, evidence)
            other = stage.play_all(cuts)
            _check_report(subject, combiner, stage)
        _compare(subject, name, weights, other, way, why, repair)


def _check_report(subject: Subject, combiner: Combiner, stage: Stage) -> None:
    before = {name: array.copy() for name, array in stage.state.items()}
    report = combiner.diagnostics(stage.state, stage.weights)
    why = "bank.evidence() hands it to people, at any time, and they may write to it."
    repair = "Return {name: array.copy(), ...}, made from state and weights."
    fine = isinstance(report, dict) and all(
        isinstance(name, str) and isinstance(array, np.ndarray) for name, array in report.items()
    )
    if not fine:
        found = f"diagnostics returned {type(report).__name__}: {report!r:.80}"
        raise subject.fails("able to report", found, why, repair)
    for array in report.values():
        array[...] = 7.0
    for name, array in before.items():
        if not same_bits(array, stage.state[name]):
            found = f"writing to what diagnostics returned has changed state[{name!r}]."
            raise subject.fails("able to report", found, why, repair)


def _compare(
    subject: Subject,
    name: str,
    one: Floats,
    other: Floats,
    way: str,
    why: str,
    repair: str,
    start: int = 0,
) -> None:
    if not same_bits(one, other):
        raise _differ(subject, name, one, other, way, why, repair, start)


def _differ(
    subject: Subject,
    name: str,
    one: Floats,
    other: Floats,
    way: str,
    why: str,
    repair: str,
    start: int,
) -> CheckFailed:
    n = first_difference(one, other)[0]
    found = (
        f"the weights after sample {start + n} are {shown(one[n])}, but {shown(other[n])} {way}."
    )
    return subject.fails(name, found, why, repair)


def _check_banks(subject: Subject, combiner: Combiner) -> None:
    """In a bank: blocks, the loop and a file."""
    slot = Slot(Gaussian(0.5), Norma(0.02, 20))
    game = Game(slot, Squared(), 4, 0.05, 2, combiner)
    X, y = game.stream(_SAMPLES)
    half = _SAMPLES // 2
    with quiet(), subject.works("in a bank", _RAISES):
        whole, cut = game.bank(twice=True), game.bank(twice=True)
        whole.evidence()
        expected = figures(played(whole, X, y))["weights"]
        weights = figures(played(cut, X[:half], y[:half], _CUTS))["weights"]
        again = game.reloaded(cut)
        rest = figures([again.run(X[n : n + 1], y[n : n + 1]) for n in range(half, _SAMPLES)])
        again.evidence()
    why = "A bank that is loaded must go on as if it had never been away."
    name = "the same after saving and loading"
    joined = np.vstack([weights, rest["weights"]])
    way = f"in a bank that was saved and loaded after {half} samples"
    _compare(subject, name, expected, joined, way, why, _REPAIR_STATE)
