"""How large models are: memory and file size of AutoBank, by number of classes and inputs.

Each model is made in a process of its own, which learns as many rows as make it complete, saves it,
and says by how much its memory has grown. Prints the table of docs/auto.md.

    python benchmarks/model_sizes.py [--size default] [--rows 300]

With --stream it prints the time per row and the most memory of a whole stream of many classes,
which are named from the start, or (--late) appear one after the other:

    python benchmarks/model_sizes.py --stream 1000 20000 [--late]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

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


def measure_stream(size: str, classes: int, rows: int, *, late: bool) -> None:
    """Print time and memory of a stream of clusters, one per class, with 5 inputs."""
    import numpy as np

    import kernelbank as kb

    draw = np.random.default_rng(0)
    centres = 2 * draw.normal(size=(classes, 5))
    labels = draw.integers(classes, size=rows)
    if late:
        first = np.linspace(0, 0.95 * rows, classes).astype(int)
        known = np.searchsorted(first, np.arange(rows), side="right")
        labels = (draw.random(rows) * known).astype(int)
        labels[first] = np.arange(classes)
    X = centres[labels] + 0.3 * draw.normal(size=(rows, 5))
    options = {"max_classes": classes} if late else {"classes": range(classes)}
    bank = kb.AutoBank("classification", size=size, **options)
    part = max(rows // 10, 1)
    begin = time.process_time()
    for start in range(0, rows, part):
        before = time.process_time()
        trace = bank.run(X[start : start + part], labels[start : start + part])
        took = 1e3 * (time.process_time() - before) / len(trace)
        wrong = np.mean(trace.predictions != labels[start : start + part])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        outputs = 0 if bank.bank is None else bank.bank.outputs
        print(
            f"to row {start + len(trace):,}: {took:.1f} ms per row, {wrong:.1%} wrong, "
            f"{outputs} classes, at most {memory:,.0f} MB",
            flush=True,
        )
    total = 1e3 * (time.process_time() - begin) / rows
    print(f"all {rows:,} rows: {total:.1f} ms of processor time per row")


def main() -> None:
    """Print the table, or the figures of one model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="default")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--one", nargs=2, type=int, metavar=("CLASSES", "INPUTS"))
    parser.add_argument("--stream", nargs=2, type=int, metavar=("CLASSES", "ROWS"))
    parser.add_argument("--late", action="store_true")
    given = parser.parse_args()
    if given.stream:
        measure_stream(given.size, *given.stream, late=given.late)
        return
    if given.one:
        print(*measure(given.size, given.rows, *given.one))
        return
    head = [f"{what}, {inputs} inputs" for inputs in INPUTS for what in ("memory", "file")]
    print(f"| classes | {' | '.join(head)} |\n|---|{'---|' * len(head)}")
    for classes in (0, *CLASSES):
        cells = []
        for inputs in INPUTS:
            words = [sys.executable, __file__, "--size", given.size, "--rows", given.rows]
            words += ["--one", classes, inputs]
            done = subprocess.run(
                [str(word) for word in words], check=True, capture_output=True, text=True
            )
            cells += [f"{float(number):,.0f} MB" for number in done.stdout.split()]
        print(f"| {classes or 'a number'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
