"""How large models are: memory and file size of AutoBank, by number of classes and inputs.

Each model is made in a process of its own, which learns as many rows as make it complete, saves it,
and says by how much its memory has grown. Prints the table of docs/auto.md.

    python benchmarks/model_sizes.py [--size default] [--rows 300]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile

CLASSES = (2, 10, 30, 60, 100, 1000)
INPUTS = (5, 50)
ROWS = 300
"""After the last restart (128 rows) nothing grows any more before the first revision, after 512."""


def measure(size: str, rows: int, classes: int, inputs: int) -> tuple[float, float]:
    """Megabytes of memory and of the file; classes is 0 for regression."""
    import numpy as np

    import kernelbank as kb

    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, inputs))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draw.normal(size=rows)
    task = "classification" if classes else "regression"
    kb.AutoBank("regression", size=size).run(X[:10], X[:10, 0])  # what every process needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bank = kb.AutoBank(task, size=size, classes=range(classes) if classes else None)
    bank.run(X, np.arange(rows) % classes if classes else y)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bank.kb")
        bank.save(path)
        return memory * 1024 / 1e6, os.path.getsize(path) / 1e6


def main() -> None:
    """Print the table, or the figures of one model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="default")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--one", nargs=2, type=int, metavar=("CLASSES", "INPUTS"))
    chosen = parser.parse_args()
    if chosen.one:
        print(*measure(chosen.size, chosen.rows, *chosen.one))
        return
    head = [f"{what}, {inputs} inputs" for inputs in INPUTS for what in ("memory", "file")]
    print(f"| classes | {' | '.join(head)} |\n|---|{'---|' * len(head)}")
    for classes in (0, *CLASSES):
        cells = []
        for inputs in INPUTS:
            words = [sys.executable, __file__, "--size", chosen.size, "--rows", chosen.rows]
            words += ["--one", classes, inputs]
            done = subprocess.run(
                [str(word) for word in words], check=True, capture_output=True, text=True
            )
            cells += [f"{float(number):,.0f} MB" for number in done.stdout.split()]
        print(f"| {classes or 'a number'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
