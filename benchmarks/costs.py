"""`make costs`: time per step of every learner against its size, the inputs' width and the slots.

The exponents are slopes in logarithms between the largest sizes, where the leading term shows. A
small learner is mostly overhead, so an exponent below that of docs/learners.md is expected; one
above is not.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from measuring import interleaved, timed
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import kernelbank as kb

SIZES = (24, 50, 100, 200, 400)
DIMENSIONS = (1, 10, 100, 400)
SLOTS = (1, 4, 16, 64)
SIZE_NAMES = ("budget", "features", "landmarks")
WINDOW = 10


@dataclass(frozen=True)
class Sweep:
    """Microseconds per step while one quantity grows, and the slope of its logarithm."""

    learner: str
    what: str
    at: dict[int, float]
    spread: float

    @property
    def exponent(self) -> float:
        sizes = [size for size in sorted(self.at) if 4 * size >= max(self.at)]
        if len(sizes) < 2:
            sizes = sorted(self.at)[-2:]
        x = np.log(sizes)
        y = np.log([self.at[size] for size in sizes])
        x -= x.mean()
        return float((x * y).sum() / (x * x).sum())


@dataclass(frozen=True)
class LearnerCase:
    """A learner that can be timed, with a loss and kernels that it accepts."""

    learner: kb.learners.Learner
    loss: str
    kernel: Callable[[float], kb.kernels.Kernel]

    @property
    def size_name(self) -> str | None:
        names = [field.name for field in fields(self.learner)]
        return next((name for name in SIZE_NAMES if name in names), None)

    def sized(self, size: int) -> kb.learners.Learner:
        name = self.size_name
        return self.learner if name is None else replace(self.learner, **{name: size})

    def bank(self, size: int, slots: int) -> kb.KernelBank:
        kernels = [self.kernel(width) for width in np.geomspace(0.5, 2, slots)]
        return kb.KernelBank(
            kernels, self.sized(size), kb.combiners.Uniform(), self.loss, window=WINDOW
        )


def cases(names: list[str]) -> list[LearnerCase]:
    """Every built-in learner, with the first loss and kernel that it accepts."""
    found = []
    shapes: list[Callable[[float], kb.kernels.Kernel]] = [
        kb.kernels.Gaussian,
        kb.kernels.Linear,
        lambda width: kb.kernels.TreeKernel(scale=width),
    ]
    for kind in kb.learners.standalone():
        if names and kind.__name__ not in names:
            continue
        options = [
            LearnerCase(kind(), loss, shape) for shape in shapes for loss in ("squared", "logistic")
        ]
        accepted = [case for case in options if _works(case)]
        if accepted:
            found.append(accepted[0])
    return found


def _works(case: LearnerCase) -> bool:
    try:
        case.bank(SIZES[0], 1)
    except kb.errors.InvalidArgument:
        return False
    return True


def stream(case: LearnerCase, samples: int, dimension: int):
    """Inputs so far apart that every one is new: sparsified dictionaries fill their budget."""
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 10.0 * samples if dimension == 1 else 30.0, (samples, dimension))
    y = np.sign(draw.normal(size=samples)) if case.loss == "logistic" else draw.normal(size=samples)
    return X, y


def seconds(case: LearnerCase, size: int, dimension: int, slots: int, steps: int) -> float:
    """Seconds per step after a warm-up that fills the budget."""
    warm = size + 64
    X, y = stream(case, warm + steps, dimension)
    bank = case.bank(size, slots)
    bank.run(X[:warm], y[:warm], record=())
    return timed(lambda: bank.run(X[warm:], y[warm:], record=()), steps)


def sweeps(case: LearnerCase, repeats: int, steps: int) -> list[Sweep]:
    """The three sweeps of one learner, all their points timed in turn."""
    middle = 100
    points = {
        (case.size_name or "size"): {s: (s, 10, 1) for s in SIZES} if case.size_name else {},
        "dimension": {d: (middle, d, 1) for d in DIMENSIONS},
        "slots": {p: (middle, 10, p) for p in SLOTS},
    }
    name = type(case.learner).__name__
    sweeps = []
    seconds(case, SIZES[0], 1, 1, 8)
    for what, settings in points.items():
        if not settings:
            continue
        runs = {
            str(at): (lambda chosen=chosen: seconds(case, *chosen, steps))
            for at, chosen in settings.items()
        }
        times = interleaved(runs, repeats)
        at = {at: times[str(at)].best * 1e6 for at in settings}
        sweeps.append(Sweep(name, what, at, max(t.spread for t in times.values())))
    return sweeps


def table(rows: list[Sweep]) -> Table:
    result = Table(title="Time per step, measured on this machine", title_justify="left")
    for name in ("learner", "grows", "us per step at", "exponent", "noise"):
        result.add_column(name, justify="right" if name in ("exponent", "noise") else "left")
    for row in rows:
        points = "  ".join(f"{at}: {value:.3g}" for at, value in row.at.items())
        noise = f"x{row.spread:.2f}"
        result.add_row(row.learner, row.what, points, f"{row.exponent:.2f}", noise)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=512)
    parser.add_argument("--only", nargs="*", default=[], help="names of learners")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    found = cases(chosen.only)
    rows: list[Sweep] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(found))
        for case in found:
            progress.update(task, description=type(case.learner).__name__)
            rows += sweeps(case, chosen.repeats, chosen.steps)
            progress.advance(task)
    console.print(table(rows))
    chosen.out.mkdir(parents=True, exist_ok=True)
    facts = [asdict(row) | {"exponent": row.exponent} for row in rows]
    (chosen.out / "costs.json").write_text(json.dumps(facts, indent=1))
    console.print(f"Written to {chosen.out.resolve()}", markup=False)


if __name__ == "__main__":
    main()
