"""Every combiner on the paper's signals: the table of docs/combiners.md.

    python benchmarks/combiner_table.py

Cumulative cost after 1,000 samples, and mean squared error one step ahead, on seed 0 and on
average over 20 seeds; the noise is read as a variance. NORMA alone is chosen in hindsight.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import kernelbank as kb
from kernelbank.bank.slot import short_name
from kernelbank.combiners import BUILT_IN, OMKR, Joint, Simplex
from kernelbank.research import paper

VARIANTS = (
    Simplex(evidence="prequential"),
    Joint(evidence="prequential"),
    OMKR(gradient="printed"),
)
"""Shown besides every combiner with its default settings."""


@dataclass(frozen=True)
class RuleResult:
    """One combiner, or one NORMA alone: cumulative cost and mean loss of each seed."""

    name: str
    cost: list[float]
    loss: list[float]

    @property
    def line(self) -> str:
        """A line of a Markdown table."""
        mean_cost, mean_loss = (sum(values) / len(values) for values in (self.cost, self.loss))
        name = f"`{self.name}`" if "(" in self.name else self.name
        figures = f"{self.cost[0]:.1f} | {mean_cost:.1f} | {self.loss[0]:.4f} | {mean_loss:.4f}"
        return f"| {name} | {figures} |"


def results(runs: list[paper.PaperRun]) -> list[RuleResult]:
    """Every combiner on the signals of these runs, and NORMA alone; the least mean cost first."""
    rows = []
    for rule in (*(kind() for kind in BUILT_IN), *VARIANTS):
        banks = [paper.bank(rule) for _ in runs]
        for bank, run in zip(banks, runs):
            bank.run(run.x, run.y, record=())
        ledgers = [bank.ledger for bank in banks]
        cost = [ledger.cumulative_cost for ledger in ledgers]
        rows.append(RuleResult(short_name(rule), cost, [ledger.mean_loss for ledger in ledgers]))
    for name in ("best_by_cost", "best_by_loss", "worst_by_cost"):
        slots = [getattr(run, name) for run in runs]
        cost = [float(run.slot_cost[-1, p]) for run, p in zip(runs, slots)]
        loss = [run.mean_loss(p) for run, p in zip(runs, slots)]
        words = name.replace("_", " ").replace("loss", "error")
        rows.append(RuleResult(f"NORMA {words}", cost, loss))
    return sorted(rows, key=lambda row: sum(row.cost))


def main() -> None:
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    print("| rule | cost, seed 0 | cost, mean | error, seed 0 | error, mean |")
    print("|---|---:|---:|---:|---:|")
    for row in results(list(paper.run_seeds(20, 1000))):
        print(row.line)


if __name__ == "__main__":
    main()
