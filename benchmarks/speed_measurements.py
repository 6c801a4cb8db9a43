"""The measurements of `make bench`: what is measured, against what, and the goals."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import reference_loops
from measuring import (
    WIDTHS,
    Measurement,
    ar1,
    interleaved,
    microseconds,
    noise,
    paper_bank,
    run_seconds,
    timed,
)
from speed_auto import auto_bank
from speed_other_libraries import one_by_one, other_libraries
from speed_outputs import several_outputs

import kernelbank as kb


def scheme_against_c(repeats: int) -> Iterator[Measurement]:
    library = reference_loops.build()
    samples = 4000
    regular, irregular, y = ar1(samples)
    cost = reference_loops.scheme_in_c(library, regular[:1000].copy(), y[:1000].copy(), WIDTHS)
    assert abs(cost - 3410.491) < 1e-3, "the C loop does not compute the paper's costs"
    for name, x, goal, stretch_goal in (
        ("run, irregular x, against the C loop", irregular, 0.42, 0.35),
        ("run, regular x, against the C loop", regular, 0.27, 0.18),
    ):
        times = interleaved(
            {
                "C": lambda x=x: timed(
                    lambda: reference_loops.scheme_in_c(library, x, y, WIDTHS), samples
                ),
                "kernelbank": lambda x=x: run_seconds(x, y),
            },
            repeats,
        )
        ratio = times["kernelbank"] / times["C"]
        detail = (
            f"{microseconds(times['kernelbank'])} against {microseconds(times['C'])} per sample"
        )
        yield Measurement(
            name, ratio, "ratio", goal, stretch_goal, detail=detail, noise=noise(times)
        )
    values = 101 * 20
    times = interleaved(
        {
            "exp": lambda: timed(
                lambda: reference_loops.exponentials(library, 2000, 101, WIDTHS), 2000 * values
            ),
            "run": lambda: run_seconds(irregular, y) / values,
        },
        repeats,
    )
    share = times["exp"] / times["run"]
    detail = (
        f"{1e-6 / times['run'].best:.0f} of {1e-6 / times['exp'].best:.0f} million kernel values a "
        "second, all other work of the scheme included"
    )
    yield Measurement(
        "roofline: share of what the exponentials alone allow",
        share,
        "share",
        detail=detail,
        noise=noise(times),
    )


def quadratic_program(repeats: int) -> Iterator[Measurement]:
    draw = np.random.default_rng(0)
    a, b = draw.uniform(0.01, 1.01, 10**6), draw.normal(size=10**6)
    kb.simplex_qp(a, b, method="pivot")
    for name, scale, goal, stretch_goal in (
        ("simplex_qp by pivots, a million kernels, against numpy.sort", 1.0, 0.3, 0.1),
        ("the same with most kernels active (a times a million)", 1e6, 3.0, 1.5),
    ):
        scaled = scale * a
        times = interleaved(
            {
                "sort": lambda: timed(lambda: np.sort(b)),
                "pivot": lambda s=scaled: timed(lambda: kb.simplex_qp(s, b, method="pivot")),
            },
            2 * repeats,
        )
        detail = f"{times['pivot'].best * 1e3:.1f} ms against {times['sort'].best * 1e3:.1f} ms"
        yield Measurement(
            name,
            times["pivot"] / times["sort"],
            "ratio",
            goal,
            stretch_goal,
            detail=detail,
            noise=noise(times),
        )


def threads(repeats: int) -> Iterator[Measurement]:
    _, x, y = ar1(1500)
    times = interleaved(
        {
            **{
                name: lambda name=name: run_seconds(
                    x, y, slots=640, engine=name, spacing="geometric"
                )
                for name in ("serial", "threads")
            },
            "half": lambda: run_seconds(x, y, slots=320, spacing="geometric"),
            "halves": lambda: _side_by_side(x, y, slots=320, spacing="geometric"),
        },
        2 * repeats,
    )
    ceiling = 2 * (times["half"] / times["halves"])
    detail = (
        f"{microseconds(times['serial'])} against {microseconds(times['threads'])} per sample; two "
        f"banks of half the size that share nothing gain {ceiling:.2f}"
    )
    yield Measurement(
        f"threads against serial, 640 kernels, {os.cpu_count()} cores",
        times["serial"] / times["threads"],
        "times faster",
        1.7,
        1.9,
        larger_is_better=True,
        detail=detail,
        noise=noise(times),
    )


def _side_by_side(x, y, **options) -> float:
    """Seconds per sample of two banks in two threads, which share nothing."""
    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(lambda _: run_seconds(x, y, **options), range(2)))


def blocks(repeats: int) -> Iterator[Measurement]:
    _, x, y = ar1(1500)
    sizes = (8, 16, 32, 64, 128, 256)
    engines = {str(size): kb.engines.Serial(block=size) for size in sizes}
    times = interleaved(
        {
            name: lambda engine=engine: run_seconds(
                x, y, slots=640, engine=engine, spacing="geometric"
            )
            for name, engine in {**engines, "chosen": kb.engines.Serial()}.items()
        },
        repeats,
    )
    best = min(sizes, key=lambda size: times[str(size)].best)
    yield Measurement(
        "the chosen block length against the best, 640 kernels",
        times["chosen"] / times[str(best)],
        "ratio",
        detail=f"best of {sizes}: {best}; same bits at any",
        noise=noise(times),
        curve={
            "block length": [float(size) for size in sizes],
            "us per sample": [times[str(size)].best * 1e6 for size in sizes],
        },
    )


def dictionaries(repeats: int) -> Iterator[Measurement]:
    sizes = {20: 3000, 200: 1500, 2000: 700, 20_000: 400}
    _, x, y = ar1(max(sizes.values()))
    times = interleaved(
        {
            str(slots): lambda slots=slots, samples=samples: (
                run_seconds(x[:samples], y[:samples], slots=slots, spacing="geometric") / slots
            )
            for slots, samples in sizes.items()
        },
        repeats,
    )
    curve = {
        "kernels": [float(n) for n in sizes],
        "ns per kernel and sample": [t.best * 1e9 for t in times.values()],
    }
    for slots, goal in ((2000, 1.4), (20_000, 2.0)):
        detail = f"{times[str(slots)].best * 1e9:.0f} ns against {times['20'].best * 1e9:.0f} ns"
        yield Measurement(
            f"time per slot and sample, {slots} kernels against 20",
            times[str(slots)] / times["20"],
            "ratio",
            goal,
            1.2,
            detail=detail,
            noise=noise(times),
            curve=curve if slots == 2000 else {},
        )


def long_streams(repeats: int) -> Iterator[Measurement]:
    samples = 10**6
    draw = np.random.default_rng(0)
    young, old = paper_bank(), paper_bank()
    memory, counts, seconds = [], [], []
    block = 10_000

    def feed(own, count) -> float:
        x = own.samples + np.cumsum(draw.uniform(0.5, 1.5, count))
        y = draw.normal(size=count)
        return timed(lambda: own.run(x, y, record=()), count)

    for start in range(0, samples, block):
        seconds.append(feed(old, block))
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        counts.append(float(start + block))
    feed(young, block)
    times = interleaved(
        {"young": lambda: feed(young, 1000), "old": lambda: feed(old, 1000)}, 3 * repeats
    )
    yield Measurement(
        "time per sample at a million samples against ten thousand",
        times["old"] / times["young"],
        "ratio",
        1.1,
        detail=f"{microseconds(times['old'])} against {microseconds(times['young'])}",
        noise=noise(times),
        curve={"samples seen": counts, "us per sample": [s * 1e6 for s in seconds]},
    )
    yield Measurement(
        "memory over a million samples in blocks",
        memory[-1] - memory[1],
        "MB more",
        1.0,
        detail=f"{memory[1]:.0f} MB after 20,000 samples, {memory[-1]:.0f} MB at the end",
    )


def budgets(repeats: int) -> Iterator[Measurement]:
    sizes = (50, 100, 200, 500, 1000, 2000)
    _, x, y = ar1(3500)
    times = interleaved(
        {
            str(budget): lambda budget=budget: run_seconds(
                x[: budget + 900], y[: budget + 900], warm=budget + 100, budget=budget
            )
            for budget in sizes
        },
        repeats,
    )
    per_term = [times[str(budget)].best / budget * 1e9 for budget in sizes]
    yield Measurement(
        "time per sample and term, budget 2,000 against 50",
        per_term[-1] / per_term[0],
        "ratio",
        1.0,
        detail=", ".join(f"{n}: {t:.0f} ns" for n, t in zip(sizes, per_term)),
        noise=noise(times),
        curve={"budget": [float(n) for n in sizes], "ns per term and sample": per_term},
    )


def first_call(repeats: int) -> Iterator[Measurement]:
    first = (
        "import numpy, kernelbank as kb; X = numpy.random.default_rng(0).normal(size=(300, 4)); "
        "bank = kb.AutoBank(); bank.run(X, X.sum(axis=1)); bank.predict_one(X[0])"
    )
    names = (
        "import time, numpy; start = time.perf_counter(); import kernelbank as kb; "
        "[getattr(kb, n) for n in kb.__all__]; print(time.perf_counter() - start)"
    )

    def process(code: str) -> tuple[float, str]:
        start = time.perf_counter()
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
        return time.perf_counter() - start, done.stdout

    whole, imports = [], []
    # Python's own compiled files, as every installation has them.
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        process(first), process(names)
        for _ in range(repeats):
            whole.append(process(first)[0])
            imports.append(float(process(names)[1]))
    yield Measurement(
        "start of Python to the first prediction of AutoBank after 300 rows",
        min(whole),
        "s",
        1.0,
        0.5,
        noise=max(whole) / min(whole),
    )
    yield Measurement(
        "import of everything, beyond numpy",
        min(imports),
        "s",
        0.15,
        noise=max(imports) / min(imports),
    )


def second_order(repeats: int) -> Iterator[Measurement]:
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(400, 5)), draw.normal(size=400)
    for size in (104, 504, 1000, 3000):
        slot = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.FourierRLS(size))
        count = 100 if size <= 1000 else 10
        source = draw.normal(size=size * (size + 1) // 2)
        target = np.empty_like(source)

        def rls(slot=slot, count=count) -> float:
            own = kb.KernelBank(slots=[slot])
            own.run(X[:20], y[:20], record=())
            return timed(lambda: own.run(X[20 : 20 + count], y[20 : 20 + count], record=()), count)

        def copy(source=source, target=target, count=count) -> float:
            return timed(lambda: [np.copyto(target, source) for _ in range(count)], count)

        times = interleaved({"rls": rls, "copy": copy}, repeats)
        # Half of the covariance is kept, and read and written once per sample, as in a copy.
        share = times["copy"] / times["rls"]
        rate = 16 * len(source) / times["rls"].best / 1e9
        yield Measurement(
            f"recursive least squares on {size} features: share of the speed of a copy",
            share,
            "share",
            detail=f"{rate:.1f} GB/s, {times['rls'].best * 1e6:.0f} us per sample",
            noise=noise(times),
        )


SECTIONS: dict[str, Callable[[int], Iterator[Measurement]]] = {
    "the scheme against C": scheme_against_c,
    "one sample at a time": one_by_one,
    "the quadratic program": quadratic_program,
    "threads": threads,
    "blocks": blocks,
    "large dictionaries": dictionaries,
    "long streams": long_streams,
    "budgets": budgets,
    "first call": first_call,
    "second-order slots": second_order,
    "several outputs": several_outputs,
    "AutoBank": auto_bank,
    "other libraries": other_libraries,
}
