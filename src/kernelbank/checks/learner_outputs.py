"""What a bank with several outputs requires of a learner, if the learner says that it can do it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..combiners import Uniform
from ..losses.objective import Objective
from .bank_fixture import COMPARED, BankFixture
from .context import CheckContext, first_difference, same_bits, shown
from .learner_acceptance import RAISES

SAMPLES = 60


def check_outputs(context: CheckContext, fixture: BankFixture) -> None:
    """For a learner that `follows`: every output is what a bank of its own is, bit for bit."""
    objective = Objective(fixture.loss, fixture.window, fixture.regularization)
    if not fixture.slot.learner.follows(objective, objective):
        return
    X, y = fixture.stream(SAMPLES)
    targets = np.column_stack([y, np.roll(y, 7)])
    alone = [fixture.bank(), fixture.bank()]
    with context.works("while learning two outputs", RAISES):
        bank = fixture.bank(outputs=2)
        half = SAMPLES // 2
        parts = [bank.run(X[:half], targets[:half])]
        for x, target in zip(X[half:], targets[half:], strict=True):
            bank.predict_one(x)
            parts.append(bank.run(x[None], target[None]))
        expected = [own.run(X, targets[:, k]) for k, own in enumerate(alone)]
    for field in COMPARED:
        found = np.concatenate([getattr(part, field) for part in parts])
        for output, own in enumerate(expected):
            left, right = getattr(own, field), found[:, output]
            if not same_bits(left, right):
                n = first_difference(left, right)[0]
                raise context.fails(
                    "the same for several outputs",
                    f"at sample {n} the {field} of output {output} are {shown(right[n])}, and "
                    f"{shown(left[n])} in a bank of its own.",
                    "Slots that follow those of another output have the bits of a bank of their "
                    "own.",
                    "Share only what follows from the inputs alone (shared_arrays), and keep what "
                    "changes within a block in leader.scratch; or let follows return False.",
                )


def check_missing(context: CheckContext, fixture: BankFixture) -> None:
    """For a learner that `accepts_missing`: a missing target spoils no prediction."""
    if not fixture.slot.learner.accepts_missing:
        return
    X, y = fixture.stream(SAMPLES)
    targets = np.column_stack([y, np.roll(y, 7)])
    targets[5::4, 1] = np.nan
    with context.works("with missing targets", RAISES):
        bank = replace(fixture, window=1, combiner=Uniform()).bank(outputs=2)
        trace = bank.run(X, targets)
        ahead = bank.predict_slots(X)[:, 1, fixture.index]
    values = np.concatenate([trace.slot_predictions[:, 1, fixture.index], ahead])
    if not np.isfinite(values).all():
        n = int(np.flatnonzero(~np.isfinite(values))[0])
        raise context.fails(
            "able to leave out a missing target",
            f"after targets that are NaN, prediction number {n} is {values[n]!s}.",
            "accepts_missing says that a target of NaN leaves f as it was.",
            "Do not use a target that is NaN, or let accepts_missing be False.",
        )
