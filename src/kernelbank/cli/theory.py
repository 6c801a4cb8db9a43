"""`kernelbank theory`: bounds that theory proves beside what was measured."""

from __future__ import annotations

import warnings

from rich.console import Console
from rich.table import Table

from ..errors import KernelBankWarning
from ..research import theory as experiment
from ..research.theory import Certificate


def theory(seeds: int, samples: int) -> bool:
    """Run all seeds and print the table; whether every bound held."""
    console = Console(highlight=False)
    runs: list[list[Certificate]] = []
    with console.status("Running ...") as status, warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelBankWarning)  # truncation is what is measured
        for run in experiment.run_seeds(seeds, samples):
            runs.append(run)
            status.update(f"Running: {len(runs)} of {seeds} seeds")
    console.print(_table(runs, samples))
    failed = sorted({one.name for run in runs for one in run if not one.held})
    if failed:
        console.print(f"Not every bound held: {'; '.join(failed)}.")
    else:
        console.print("Every bound held, on every seed.")
    console.print("Statements, proofs and references: docs/theory.md.")
    return not failed


def _table(runs: list[list[Certificate]], samples: int) -> Table:
    table = Table(
        title=f"Bounds and measurements, means over {len(runs)} seeds, {samples} samples",
        title_justify="left",
    )
    table.add_column("part, compared with")
    for name in ("bound", "measured", "share", "held"):
        table.add_column(name, justify="right", no_wrap=True)
    for same in zip(*runs, strict=True):
        bound = sum(one.bound for one in same) / len(same)
        measured = sum(one.measured for one in same) / len(same)
        table.add_row(
            same[0].name,
            f"{bound:.4g}",
            f"{measured:.4g}",
            f"{100 * measured / bound:.3g} %" if bound > 0 else "",
            f"{sum(one.held for one in same)} of {len(same)}",
        )
    return table
