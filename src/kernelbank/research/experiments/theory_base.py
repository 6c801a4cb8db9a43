"""What the experiments of the theory share: certificates, and the bank of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...bank.bank import KernelBank
from ...combiners import Combiner
from ...learners import Norma
from . import paper

LEARNING_RATE, REGULARIZATION, BUDGET = 0.05, 0.01, 100

ROUNDING = 1e-9
"""Of sums of some thousand terms, as a share of the bound."""


@dataclass(frozen=True)
class Certificate:
    """A bound that theory proves, and what was measured."""

    name: str
    bound: float
    measured: float
    held: bool


def certificate(name: str, bound: float, measured: float) -> Certificate:
    """A certificate of one bound."""
    return Certificate(name, bound, measured, is_below(measured, bound))


def is_below(measured: float, bound: float) -> bool:
    """Whether a bound held, up to rounding."""
    return bool(measured <= bound + ROUNDING * (1 + abs(bound)))


def bank(combiner: Combiner, budget: int) -> KernelBank:
    """The paper's bank with another budget."""
    own = paper.bank(combiner)
    learner = Norma(learning_rate=LEARNING_RATE, budget=max(budget, own.window))
    return KernelBank(own.dictionary, learner, combiner, own.loss, own.window, own.regularization)


def tightest(name: str, certificates: Sequence[tuple[float, float]]) -> Certificate:
    """The certificate of the largest share of its bound; it holds if all hold."""
    bound, measured = max(certificates, key=lambda pair: pair[1] / max(pair[0], 1e-300))
    return Certificate(name, bound, measured, all(is_below(m, b) for b, m in certificates))
