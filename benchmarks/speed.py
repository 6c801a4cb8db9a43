"""`make bench`: all figures of speed, measured in one run; a table, a JSON file and plots."""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
from measuring import Measurement
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from speed_measurements import SECTIONS

import kernelbank as kb
from kernelbank.research import plots


def table(rows: list[Measurement]) -> Table:
    result = Table(title="kernelbank, measured on this machine", title_justify="left")
    result.add_column("what")
    for name in ("figure", "goal", "stretch", "reached", "noise"):
        result.add_column(name, justify="right")
    result.add_column("in numbers")
    for row in rows:
        result.add_row(
            row.name,
            f"{row.value:.3g} {row.unit}",
            "" if row.goal is None else f"{row.goal:g}",
            "" if row.stretch_goal is None else f"{row.stretch_goal:g}",
            row.reached(),
            f"x{row.noise:.2f}",
            row.detail,
        )
    return result


def markdown(rows: list[Measurement]) -> str:
    """The table for docs/performance.md."""
    lines = ["| what | figure | to reach | noise | in numbers |", "|---|---|---|---|---|"]
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:g}"
        figure = f"{row.value:.3g} {row.unit}".strip()
        lines.append(f"| {row.name} | {figure} | {goal} | x{row.noise:.2f} | {row.detail} |")
    return "\n".join(lines) + "\n"


@plots.styled
def curves(rows: list[Measurement], folder: Path) -> list[Path]:
    """The scaling curves: block, dictionary, length of the stream, budget."""
    found = [row for row in rows if row.curve]
    if not found:
        return []
    figure, axes = plots.new_figure(3.6 * len(found), 3.2, len(found), squeeze=False)
    for axis, row in zip(axes[0], found, strict=True):
        (x_name, x), (y_name, y) = row.curve.items()
        axis.plot(x, y, "o-" if len(x) < 20 else "-", color=plots.BLUE, lw=1.6, ms=4)
        axis.set(xlabel=x_name, ylim=(0, 1.25 * float(np.percentile(y, 98))))
        axis.set_title(y_name)
        if len(x) < 20:
            axis.set_xscale("log")
    return plots.save(figure, folder, "scaling")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    rows: list[Measurement] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(chosen.only))
        for name in chosen.only:
            progress.update(task, description=name)
            rows.extend(SECTIONS[name](chosen.repeats))
            progress.advance(task)
    console.print(table(rows))
    chosen.out.mkdir(parents=True, exist_ok=True)
    facts = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernelbank": kb.__version__,
        "rows": [asdict(row) | {"reached": row.reached()} for row in rows],
    }
    (chosen.out / "bench.json").write_text(json.dumps(facts, indent=1))
    (chosen.out / "bench.md").write_text(markdown(rows))
    curves(rows, chosen.out)
    console.print(f"Written to {chosen.out.resolve()}", markup=False)


if __name__ == "__main__":
    main()
