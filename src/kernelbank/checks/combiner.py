"""`check_combiner`: what a bank requires of a rule for the weights."""

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
from .bank_fixture import BankFixture, figures, quiet, run_in_blocks
from .combiner_harness import CombinerHarness, SyntheticEvidence, synthetic_evidence
from .context import CheckContext, first_difference, same_bits, shown

EPS = float(np.finfo(float).eps)
_SAMPLES = 80
_CUTS = (1, 2, 5, 6, 30, 31, 32, 64)
_RAISES = (
    "See the exception above this one for the line. Evidence must not be changed; `values` "
    'are there only if the class has needs = frozenset(["values"]).'
)
_REPAIR_STATE = (
    "Keep what the next sample needs in the arrays that `shapes` declares and `combine` gets as "
    "`state` (state[name][...] = ...), not in the combiner, its class or its module."
)


def check_combiner(combiner: Combiner) -> None:
    """Check that a combiner does what a bank requires; a failure says why and what to do.

    Checked on synthetic evidence, with one slot and with several, and in small banks: settings are
    frozen, hashable and come back from a file; weights are finite, and on the simplex if
    `on_simplex` says so; a quarantined slot has no weight, even if all are quarantined; blocks
    equal single samples, and a rule that continues from a copy of its state, or from a file, equals
    one that never stopped, bit for bit; two runs do not affect each other; `diagnostics` returns
    new arrays at any time; targets from before the first sample, which do not exist, have no
    influence: a rule that takes the target of another sample for that of its own reads them. The
    evidence is always the same.

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
    context = CheckContext("check_combiner", combiner)
    context.check_settings()
    never = _SAMPLES
    cases = {
        "five slots": synthetic_evidence(5, _SAMPLES),
        "one slot": synthetic_evidence(1, _SAMPLES),
        "two slots that are quarantined": synthetic_evidence(
            5, _SAMPLES, out=[never, 20, never, 45, never]
        ),
        "all slots quarantined at some time": synthetic_evidence(3, _SAMPLES, out=[10, 50, 30]),
        "a slot that is quarantined from the start": synthetic_evidence(
            3, _SAMPLES, out=[0, never, never]
        ),
    }
    if combiner.on_simplex:  # a rule without bounds may well overflow
        cases["huge losses"] = synthetic_evidence(4, _SAMPLES, size=1e6)
        cases["tiny losses"] = synthetic_evidence(4, _SAMPLES, size=1e-6)
    for name, evidence in cases.items():
        _check_case(context, combiner, evidence, name)
    _check_banks(context, combiner)


def _check_case(
    context: CheckContext, combiner: Combiner, evidence: SyntheticEvidence, case: str
) -> None:
    slots = evidence.shape[1]
    with context.works(f"with {case}, before the first sample", _RAISES):
        first = np.asarray(combiner.first_weights(slots), dtype=float)
        _check_report(context, combiner, CombinerHarness(combiner, evidence))
    if first.shape != (slots,):
        raise context.fails(
            "of one weight per slot",
            f"first_weights({slots}) has the shape {first.shape}.",
            "The first prediction needs a weight for every slot.",
            "Return np.full(slots, 1 / slots), or another array of that shape.",
        )
    everyone = np.ones((1, slots), dtype=bool)
    _check_weights(context, combiner, first[None], everyone, "before the first sample")
    with context.works(f"with {case}", _RAISES):
        weights = CombinerHarness(combiner, evidence).run()
        again = CombinerHarness(combiner, evidence).run()
    why = "The same stream must give the same bits, whatever else was computed before."
    name = "a function of its evidence and state"
    _compare(context, name, weights, again, "in a second, equal run", why, _REPAIR_STATE)
    active = np.isfinite(evidence.window_loss)
    _check_weights(context, combiner, weights, active, f"with {case}")
    _check_state(context, combiner, evidence)
    _check_targets(context, combiner, evidence, weights)
    _check_cuts(context, combiner, evidence, case, weights)


def _check_weights(
    context: CheckContext, combiner: Combiner, weights: Floats, active: np.ndarray, case: str
) -> None:
    if not np.isfinite(weights).all():
        n, p = (int(i) for i in np.argwhere(~np.isfinite(weights))[0])
        raise context.fails(
            "finite",
            f"{case}, the weights after sample {n} are {shown(weights[n])}.",
            "Every later prediction would be NaN.",
            "Quarantined slots have infinite losses: leave them out of sums and differences "
            "(inf - inf is NaN). Subtract the least loss before an exponential.",
        )
    if (weights[~active] != 0).any():
        n, p = (int(i) for i in np.argwhere(~active & (weights != 0))[0])
        raise context.fails(
            "without weight on quarantined slots",
            f"{case}, slot {p} is quarantined (its window_loss is infinite) at sample {n}, and "
            f"has the weight {float(weights[n, p])!r}.",
            "Its values are NaN or infinite, and would make the prediction so.",
            "End with weights[np.isinf(evidence.window_loss)] = 0, and divide by the sum if it is "
            "not 0.",
        )
    if not combiner.on_simplex:
        return
    # If all slots are quarantined, all weights are 0.
    wanted = active.any(axis=1).astype(float)
    off = np.abs(weights.sum(axis=1) - wanted)
    if weights.min() < 0 or off.max() > 64 * weights.shape[1] * EPS:
        n = int(np.argmax(np.maximum(off, -2 * weights.min(axis=1))))
        raise context.fails(
            "on the simplex",
            f"{case}, the weights after sample {n} are {shown(weights[n])}, with the sum "
            f"{float(weights[n].sum())!r} (the sum over the active slots must be {wanted[n]:g}).",
            "The cost of the mixture is bounded by the slots' costs for convex weights only, and "
            "the ledger reports that bound.",
            "Divide by the sum, and let no weight be negative; or set on_simplex = False.",
        )


def _check_state(context: CheckContext, combiner: Combiner, evidence: SyntheticEvidence) -> None:
    """Continuing from a copy of the state equals not having stopped, also beside another run."""
    half = evidence.shape[0] // 2
    with context.works("continuing from a copy of its state", _RAISES):
        one = CombinerHarness(combiner, evidence)
        one.run_block(half)
        other = CombinerHarness(combiner, evidence, resumed=one)
        expected = one.run()
        rest = other.run()
    why = "A loaded bank continues from the arrays of the state, and from nothing else."
    name = "complete in its state"
    way = f"continuing from a copy of the state after {half} samples"
    _compare(context, name, expected, rest, way, why, _REPAIR_STATE, start=half)


def _check_targets(
    context: CheckContext, combiner: Combiner, evidence: SyntheticEvidence, weights: Floats
) -> None:
    """What stands for samples before the first one has no influence."""
    with context.works("with other numbers for targets before the first sample", _RAISES):
        other = CombinerHarness(combiner, evidence.with_other_past()).run()
    name = "right about which target belongs to a sample"
    way = "if the targets before the first sample, which do not exist, are other numbers"
    why = "Errors and losses would be those of other samples, and the first ones of none."
    repair = (
        "evidence.targets begins with the window - 1 targets before the block: the target of "
        "sample t is evidence.targets[window - 1 + t], or evidence.targets[-n:][t] in a block of "
        "n. On the window of sample t only min(evidence.first + t + 1, window) samples exist."
    )
    _compare(context, name, weights, other, way, why, repair)


def _check_cuts(
    context: CheckContext,
    combiner: Combiner,
    evidence: SyntheticEvidence,
    case: str,
    weights: Floats,
) -> None:
    samples = evidence.shape[0]
    single: Sequence[int] = range(1, samples)
    name = "the same for blocks and sample by sample"
    why = "Blocks are for speed only; how a stream is cut must not change any bit."
    repair = (
        "Go from sample to sample, with the weights before the block as the first; no mean or "
        "maximum over evidence[:n], no np.cumsum from the start of a block, no step counted by "
        "blocks (the number of sample t is evidence.first + t). Sums continue from the state."
    )
    for cuts, way in ((single, "sample by sample"), (_CUTS, f"in blocks that end at {_CUTS}")):
        with context.works(f"with {case}, {way}", _RAISES):
            harness = CombinerHarness(combiner, evidence)
            other = harness.run(cuts)
            _check_report(context, combiner, harness)
        _compare(context, name, weights, other, way, why, repair)


def _check_report(context: CheckContext, combiner: Combiner, harness: CombinerHarness) -> None:
    before = {name: array.copy() for name, array in harness.state.items()}
    report = combiner.diagnostics(harness.state, harness.weights)
    why = "bank.evidence() returns it to users, at any time, and they may write to it."
    repair = "Return {name: array.copy(), ...}, made from state and weights."
    fine = isinstance(report, dict) and all(
        isinstance(name, str) and isinstance(array, np.ndarray) for name, array in report.items()
    )
    if not fine:
        found = f"diagnostics returned {type(report).__name__}: {report!r:.80}"
        raise context.fails("able to give diagnostics", found, why, repair)
    for array in report.values():
        array[...] = 7.0
    for name, array in before.items():
        if not same_bits(array, harness.state[name]):
            found = f"writing to what diagnostics returned has changed state[{name!r}]."
            raise context.fails("able to give diagnostics", found, why, repair)


def _compare(
    context: CheckContext,
    name: str,
    one: Floats,
    other: Floats,
    way: str,
    why: str,
    repair: str,
    start: int = 0,
) -> None:
    if not same_bits(one, other):
        raise _differ(context, name, one, other, way, why, repair, start)


def _differ(
    context: CheckContext,
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
    return context.fails(name, found, why, repair)


def _check_banks(context: CheckContext, combiner: Combiner) -> None:
    """In a bank: blocks, single samples and a file."""
    slot = Slot(Gaussian(0.5), Norma(0.02, 20))
    fixture = BankFixture(slot, Squared(), 4, 0.05, 2, combiner)
    X, y = fixture.stream(_SAMPLES)
    half = _SAMPLES // 2
    with quiet(), context.works("in a bank", _RAISES):
        whole, cut = fixture.bank(twice=True), fixture.bank(twice=True)
        whole.evidence()
        expected = figures(run_in_blocks(whole, X, y))["weights"]
        weights = figures(run_in_blocks(cut, X[:half], y[:half], _CUTS))["weights"]
        again = fixture.reloaded(cut)
        rest = figures([again.run(X[n : n + 1], y[n : n + 1]) for n in range(half, _SAMPLES)])
        again.evidence()
    why = "A loaded bank must continue as if it had never been saved."
    name = "the same after saving and loading"
    joined = np.vstack([weights, rest["weights"]])
    way = f"in a bank that was saved and loaded after {half} samples"
    _compare(context, name, expected, joined, way, why, _REPAIR_STATE)
