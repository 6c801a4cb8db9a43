"""The measurements of `make bench`: what is measured, against what, and the goals."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
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
from speed_outputs import several_outputs

import kernelbank as kb

# --- the scheme in C, which ours is measured against ---------------------------------------------


def _c_loops() -> ctypes.CDLL:
    """Compile roofline.c for this machine."""
    source = Path(__file__).with_name("roofline.c")
    folder = Path(tempfile.mkdtemp(prefix="kernelbank-bench-"))
    library = folder / "roofline.so"
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.scheme.restype = ctypes.c_double
    loaded.exponentials.restype = ctypes.c_double
    return loaded


def _pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def scheme_in_c(library, x, y, widths, window=10, budget=100, rate=0.05, ridge=0.01) -> float:
    """The scheme in C; returns the cumulative cost."""
    predictions = np.empty(len(x))
    return library.scheme(
        ctypes.c_long(len(x)),
        _pointer(x),
        _pointer(y),
        ctypes.c_long(len(widths)),
        _pointer(widths),
        ctypes.c_long(window),
        ctypes.c_long(budget),
        ctypes.c_double(rate),
        ctypes.c_double(ridge),
        _pointer(predictions),
    )


def exponentials(library, rows, terms, widths) -> float:
    """Only the exponentials of `rows` rows of kernel values."""
    distances = np.random.default_rng(0).uniform(0, 50, terms + 8)
    constants = -0.5 / widths**2 / np.log(2)
    return library.exponentials(
        ctypes.c_long(rows),
        ctypes.c_long(terms),
        ctypes.c_long(len(widths)),
        _pointer(distances),
        _pointer(constants),
    )


def scheme_against_c(repeats: int) -> Iterator[Measurement]:
    library = _c_loops()
    samples = 4000
    regular, irregular, y = ar1(samples)
    cost = scheme_in_c(library, regular[:1000].copy(), y[:1000].copy(), WIDTHS)
    assert abs(cost - 3410.491) < 1e-3, "the C loop does not compute the paper's costs"
    for name, x, goal, stretch_goal in (
        ("run, irregular x, against the C loop", irregular, 0.42, 0.35),
        ("run, regular x, against the C loop", regular, 0.27, 0.18),
    ):
        times = interleaved(
            {
                "C": lambda x=x: timed(lambda: scheme_in_c(library, x, y, WIDTHS), samples),
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
            "exp": lambda: timed(lambda: exponentials(library, 2000, 101, WIDTHS), 2000 * values),
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


# --- beside River and scikit-learn ----------------------------------------------------------------


def one_by_one(repeats: int) -> Iterator[Measurement]:
    from river import linear_model, preprocessing

    regular, irregular, y = ar1(4000)
    targets = y.tolist()

    def ours(x) -> float:
        own = paper_bank()
        own.run(x[:300], y[:300], record=())
        points = x.tolist()
        return timed(lambda: _loop(own, points, targets, 300), len(points) - 300)

    def river(x) -> float:
        model = preprocessing.StandardScaler() | linear_model.LinearRegression()
        points = [{"x": value} for value in x.tolist()]
        return timed(lambda: _loop(model, points, targets, 0), len(points))

    for name, x, goal, stretch_goal in (
        (
            "predict_one + learn_one, regular x, against River's scaled linear model",
            regular,
            0.8,
            0.6,
        ),
        ("the same, irregular x", irregular, None, None),
    ):
        times = interleaved(
            {"kernelbank": lambda x=x: ours(x), "river": lambda x=x: river(x)}, repeats
        )
        detail = f"{microseconds(times['kernelbank'])} against {microseconds(times['river'])}"
        yield Measurement(
            name,
            times["kernelbank"] / times["river"],
            "ratio",
            goal,
            stretch_goal,
            detail=detail,
            noise=noise(times),
        )


def _loop(model, points, targets, start) -> None:
    predict, learn = model.predict_one, model.learn_one
    for n in range(start, len(points)):
        predict(points[n])
        learn(points[n], targets[n])


def other_libraries(repeats: int) -> Iterator[Measurement]:
    from river import forest, linear_model, neighbors, preprocessing
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDRegressor

    regular, _, y = ar1(400)
    points = [{"x": value} for value in regular.tolist()]
    targets = y.tolist()
    scale = preprocessing.StandardScaler
    models: dict[str, Callable[[], object]] = {
        "River, scaled linear": lambda: scale() | linear_model.LinearRegression(),
        "River, scaled kNN": lambda: scale() | neighbors.KNNRegressor(),
        "River, adaptive random forest": lambda: forest.ARFRegressor(seed=0),
        "River, aggregated Mondrian forest": lambda: forest.AMFRegressor(seed=0),
    }

    def sklearn_run() -> float:
        features = RBFSampler(n_components=100, random_state=0).fit(regular[:1, None])
        model = SGDRegressor(random_state=0)
        model.partial_fit(features.transform(regular[:1, None]), y[:1])

        def work():
            for n in range(1, len(y)):
                row = features.transform(regular[n : n + 1, None])
                model.predict(row)
                model.partial_fit(row, y[n : n + 1])

        return timed(work, len(y) - 1)

    def ours() -> float:
        own = paper_bank()
        own.run(regular[:300], y[:300], record=())
        return timed(lambda: _loop(own, regular.tolist(), targets, 300), len(y) - 300)

    runs: dict[str, Callable[[], float]] = {"kernelbank, 20 kernels": ours}
    for name, make in models.items():
        runs[name] = lambda make=make: timed(lambda: _loop(make(), points, targets, 0), len(y))
    runs["scikit-learn, RBFSampler + SGDRegressor"] = sklearn_run
    runs["the scheme in plain NumPy"] = lambda: timed(
        lambda: kb.reference.run(regular[:150], y[:150], [*map(kb.reference.gaussian, WIDTHS)]), 150
    )
    times = interleaved(runs, max(2, repeats // 2))
    for name, taken in times.items():
        yield Measurement(
            f"predict and learn one by one: {name}",
            taken.best * 1e6,
            "us per sample",
            noise=taken.spread,
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
