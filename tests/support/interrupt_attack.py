"""Interrupts of banks at random moments, as a soft timeout by SIGALRM makes them.

Each bank learns a short stream, is interrupted again and again, goes on after the rows that it has
learned, and must end with the bits of a bank that nobody has interrupted.
"""

from __future__ import annotations

import random
import signal
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import kernelbank as kb
from support.auto_streams import assert_same_state as assert_same_auto
from support.auto_streams import labelled, troubled
from support.instances import cauchy
from support.same_bits import assert_same_state

LONGEST = 0.02
"""Seconds until an interrupt, at most."""


class Interrupt(Exception):
    """What the handler raises."""


def learn_rows(bank: Any, X: Any, y: Any) -> None:
    for row, target in zip(X, y, strict=True):
        bank.predict_one(row)
        bank.learn_one(row, target)


def run(bank: Any, X: Any, y: Any) -> None:
    bank.run(X, y, record="light")


def run_pieces(bank: Any, X: Any, y: Any) -> None:
    for begin in range(0, len(X), 17):
        bank.run(X[begin : begin + 17], y[begin : begin + 17], record="light")


def named(count: int) -> tuple[list[dict[str, Any]], Any]:
    """Rows with categories that come up one after the other."""
    X, y = troubled(count)
    kinds = ["uvwxyz"[min(n // 40, 5) * (n % 3) // 2] for n in range(count)]
    rows = [{"a": float(x[0]), "kind": kind} for x, kind in zip(X, kinds, strict=True)]
    return rows, y


Case = tuple[Callable[[], Any], Any, Any]


@cache
def cases() -> dict[str, Case]:
    """Banks of every kind: how each is made, its inputs and its targets."""
    X, y = troubled(300)
    three = labelled(300, "late")
    wide = np.arange(2000.0), np.sin(np.arange(2000.0) / 7)
    grid = kb.gaussian_grid(0.1, 10, 13)
    own = [kb.Slot(kb.kernels.Custom(cauchy), kb.learners.Norma(0.05, 20))]
    rows, targets = named(250)
    return {
        "numbers": (lambda: kb.AutoBank(size="small", lags=2), X, y),
        "forecasts": (
            lambda: kb.AutoBank(size="small", lags=2, horizons=(1, 4), known=[0], seasons="auto"),
            X,
            y,
        ),
        "classes": (lambda: kb.AutoBank("classification", size="small"), *three),
        "categories": (lambda: kb.AutoBank(size="small"), rows, targets),
        "threads": (lambda: kb.AutoBank(size="small", engine=kb.engines.Threads(2)), X, y),
        "own kernel": (lambda: kb.AutoBank(slots=own), X[:80], y[:80]),
        "bank": (lambda: kb.KernelBank(grid, window=4), *wide),
        "bank in threads": (
            lambda: kb.KernelBank(grid, window=4, engine=kb.engines.Threads(2)),
            *wide,
        ),
    }


@cache
def undisturbed(name: str) -> Any:
    make, X, y = cases()[name]
    bank = make()
    (learn_rows if isinstance(X, list) else run)(bank, X, y)
    return bank


def attack(count: int, seed: int, names: tuple[str, ...] | None = None) -> Counter[str]:
    """Interrupt banks `count` times, and compare each at its end; how often for each kind."""
    draw = random.Random(seed)
    found: Counter[str] = Counter()

    def interrupt(*_: Any) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
            while found["interrupts"] < count:
                name = draw.choice(names or tuple(cases()))
                number = _interrupted_run(name, draw)
                found[name] += number
                found["interrupts"] += number
                found["banks"] += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return found


def _interrupted_run(name: str, draw: random.Random) -> int:
    """How often one bank was interrupted on its stream."""
    make, X, y = cases()[name]
    wanted, bank, interrupts = undisturbed(name), make(), 0
    # One way for each bank: `run` does not score what `predict_one` has predicted before.
    learn = learn_rows if isinstance(X, list) else draw.choice([learn_rows, run, run_pieces])
    while bank.samples < len(y):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, LONGEST))
                learn(bank, X[bank.samples :], y[bank.samples :])
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)  # the signal may come before that
        except Interrupt:
            interrupts += 1
    same = assert_same_auto if isinstance(bank, kb.AutoBank) else assert_same_state
    same(bank, wanted)
    return interrupts
