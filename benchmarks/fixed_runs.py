"""Fingerprints of a fixed set of runs: do two states of the code give the same bits?

    python benchmarks/fixed_runs.py > before.txt      # in the one state
    python benchmarks/fixed_runs.py > after.txt       # in the other
    diff before.txt after.txt                         # silent: every bit is the same

One line per run: its name and a SHA-256 of its predictions, weights and costs. No figure is kept in
the repository: fingerprints may differ between processors and versions of the libraries, so both
states are run on one machine. `--only TEXT` runs those whose names contain the text, and
may be given several times.
"""

import argparse
import csv
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import kernelbank as kb

K, L, C, S = kb.kernels, kb.learners, kb.combiners, kb.Slot


def fingerprint(*arrays):
    """SHA-256 of shapes and bytes; labels and other objects by their text."""
    result = hashlib.sha256()
    for values in arrays:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            array = np.array([str(value) for value in array.ravel()])
        result.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return result.hexdigest()[:32]


def stream(samples, dimension=2, seed=0, labels=False):
    """Inputs in [0, 1.5], where every kernel is defined, and a bounded target."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(0, 1.5, (samples, dimension))
    y = np.sin(3 * X).sum(axis=1) / dimension + 0.1 * draw.normal(size=samples)
    return X, np.where(y >= np.median(y), 1.0, -1.0) if labels else y


def autoregression(samples, seed=0):
    """The stream of the paper's experiment."""
    noise = np.random.RandomState(seed).normal(0, np.sqrt(0.71519837), samples)
    y = np.zeros(samples)
    for n in range(samples):
        y[n] = (0.5488135 * y[n - 1] if n else 0.0) + noise[n]
    return np.arange(1.0, samples + 1), y


def of_bank(bank, X, y):
    """What a bank made of a stream, and what it would say now."""
    trace = bank.run(X, y)
    X = np.asarray(X).reshape(len(y), -1)
    return fingerprint(
        *(getattr(trace, name) for name in trace.fields),
        bank.weights,
        bank.predict(X[:20] * 0.9),
        bank.predict_variance_slots(X[:20] * 0.9),
        bank.ledger.slot_cumulative_cost,
        bank.ledger.dropped,
        *bank.evidence().values(),
    )


def of_auto(bank, X, y, **options):
    """The same for an AutoBank."""
    trace = bank.run(X, y, record="all", **options)
    probabilities = bank.predict_proba(X[:20]) if bank.task == "classification" else []
    intervals = bank.predict_at(X[:20], 0.8) if bank.task == "regression" else []
    return fingerprint(
        *(getattr(trace, name) for name in trace.fields),
        bank.predict(X[:20]),
        probabilities,
        intervals,
        *(inner.weights for inner in bank.banks),
        [tuple(change) for change in bank.ledger.changes],
    )


# --- the paper, kernels, losses, learners, combiners --------------------------------------------


def paper(combiner):
    dictionary = kb.gaussian_grid(0.1, 10, 20, spacing="linear")
    return kb.KernelBank(dictionary, L.Norma(0.05, 100), combiner, window=10, regularization=0.01)


def cauchy(X, Z):
    return 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2))


KERNELS = {
    "Gaussian": K.Gaussian(0.8),
    "Laplacian": K.Laplacian(1.5),
    "Matern 1/2": K.Matern(1.2, nu=0.5),
    "Matern 3/2": K.Matern(1.2, nu=1.5),
    "Matern 5/2": K.Matern(1.2, nu=2.5),
    "RationalQuadratic": K.RationalQuadratic(0.9, alpha=1.7),
    "Periodic": K.Periodic(2.5, width=1.1),
    "Linear": K.Linear(0.7),
    "Polynomial": K.Polynomial(3, offset=0.5, scale=0.3),
    "Spline": K.Spline(),
    "Custom": K.Custom(cauchy),
    "sum": K.Gaussian(0.5) + 0.25 * K.Linear(1.0),
    "product": K.Gaussian(2.0) * (K.Periodic(1.5, 1.0) + K.Custom(cauchy)),
    "ActiveDims": K.ActiveDims(K.Gaussian(0.8) + 0.5 * K.Linear(0.3), [0]),
    "Additive": K.Additive(K.Matern(1.1), 2) + K.ActiveDims(K.Spline(), [0]),
}

LOSSES = {
    "absolute": (kb.losses.Absolute(), False),
    "huber": (kb.losses.Huber(0.4), False),
    "epsilon": (kb.losses.EpsilonInsensitive(0.2), False),
    "pinball": (kb.losses.Pinball(0.8), False),
    "logistic": (kb.losses.Logistic(), True),
    "hinge": (kb.losses.Hinge(), True),
    "squared hinge": (kb.losses.SquaredHinge(), True),
}

TREE = S(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=31, split_after=5))

LEARNERS = {
    "FixedBudgetKRLS": L.FixedBudgetKRLS(budget=12, ridge=0.02),
    "FixedBudgetKRLS label_rate": L.FixedBudgetKRLS(budget=12, ridge=0.02, label_rate=0.1),
    "Forgetron": L.Forgetron(budget=9),
    "FourierRLS": L.FourierRLS(features=12, ridge=0.05),
    "FourierRLS forgetting": L.FourierRLS(features=12, ridge=0.05, forgetting=0.98),
    "FourierRLS prior": L.FourierRLS(features=12, ridge=0.05, forgetting=0.98, forget="prior"),
    "FourierSGD": L.FourierSGD(features=12, learning_rate=0.2),
    "FourierSGD adagrad": L.FourierSGD(
        features=12, learning_rate=0.2, step_size="adagrad", restart=50
    ),
    "KLMS": L.KLMS(0.1, budget=25),
    "KNLMS": L.KNLMS(0.2, coherence=0.8, budget=20),
    "KRLS": L.KRLS(novelty=0.01, budget=15),
    "KRLSTracker": L.KRLSTracker(budget=15, forgetting=0.99, noise=0.02),
    "Norma": L.Norma(0.05, 30),
    "Norma inverse_sqrt": L.Norma(0.2, 30, step_size="inverse_sqrt"),
    "Norma adagrad": L.Norma(0.2, 30, step_size="adagrad"),
    "NystromSGD": L.NystromSGD(landmarks=15, learning_rate=0.2, novelty=0.01),
    "POLK": L.POLK(0.2, compression=0.05, budget=20),
    "Projectron": L.Projectron(tolerance=0.3, budget=15),
    "QKLMS": L.QKLMS(0.1, quantization=0.3, budget=25),
    "SlidingWindowKRLS": L.SlidingWindowKRLS(budget=15, ridge=0.02),
}

LINEAR = {
    "LinearRLS": L.LinearRLS(),
    "LinearRLS forgetting": L.LinearRLS(forgetting=0.97),
    "LinearRLS prior": L.LinearRLS(forgetting=0.99, forget="prior", constant_forgetting=0.8),
}

COMBINERS = {
    "Simplex": C.Simplex(),
    "Simplex prequential": C.Simplex(evidence="prequential", horizon=7),
    "Uniform": C.Uniform(),
    "Best": C.Best(),
    "OMKR": C.OMKR(),
    "OMKR printed": C.OMKR(gradient="printed"),
    "Hedge": C.Hedge(),
    "Hedge rate": C.Hedge(learning_rate=2.0),
    "Hedge cost": C.Hedge(learning_rate=2.0, evidence="cost"),
    "AdaRaker": C.AdaRaker(kernels=2),
    "OMKLGF": C.OMKLGF(draws=3, nodes=2),
    "OMKLSFG": C.OMKLSFG(graph=3),
    "FixedShare": C.FixedShare(learning_rate=1.5, share=0.05),
    "Intervals": C.Intervals(learning_rate=0.8, levels=5),
    "Joint": C.Joint(ridge=0.3),
    "Joint prequential": C.Joint("prequential", horizon=7, discount=0.9, ridge=0.1),
    "Stacking": C.Stacking(discount=0.9, ridge=0.2),
    "NewtonStacking": C.NewtonStacking(discount=0.9, ridge=0.2, caution=3.0),
}


def mixed_slots():
    """Slots of several methods; one learns another's residual, one a loss of its own."""
    return [
        S(K.Linear(0.5), L.LinearRLS()),
        S(K.Gaussian(0.6), L.Norma(0.05, 30)),
        S(K.Gaussian(0.9), L.Norma(0.05, 30)),
        TREE,
        S(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=0),
        S(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5), residual_of=4),
        S(K.Gaussian(0.6), L.FourierRLS(features=12)),
    ]


def squared_beside_absolute():
    """Second-order slots that learn by squares in a bank for another loss."""
    squared = kb.losses.Squared()
    return [
        S(K.Gaussian(0.6), L.FourierSGD(features=12)),
        S(K.Gaussian(0.6), L.KRLS(budget=15), loss=squared),
        S(K.Linear(0.5), L.LinearRLS(), loss=squared, residual_of=1),
    ]


def basic_runs():
    """Runs of `KernelBank`, by name."""
    X, y = stream(330)
    _, labels = stream(330, labels=True)
    for name, rule in (("Simplex", C.Simplex()), ("OMKR", C.OMKR()), ("Joint", C.Joint())):
        yield f"paper {name}", lambda rule=rule: of_bank(paper(rule), *autoregression(1000))
    for name, kernel in KERNELS.items():
        bank = lambda kernel=kernel: kb.KernelBank(kernel, L.Norma(0.05, 40))  # noqa: E731
        yield f"kernel {name}", lambda bank=bank: of_bank(bank(), X, y)
    for name, (loss, discrete) in LOSSES.items():
        bank = lambda loss=loss: kb.KernelBank(kb.gaussian_grid(0.3, 2, 6), loss=loss)  # noqa: E731
        yield f"loss {name}", lambda bank=bank, t=(labels if discrete else y): of_bank(bank(), X, t)
    for name, learner in LEARNERS.items():
        if name in ("Forgetron", "Projectron"):
            continue  # for labels only, below
        bank = lambda m=learner: kb.KernelBank(kb.gaussian_grid(0.3, 1.5, 3), m)  # noqa: E731
        yield f"learner {name}", lambda bank=bank: of_bank(bank(), X, y)
    for name in ("KRLS", "FourierRLS", "Projectron", "Forgetron", "KLMS", "Norma"):
        bank = lambda m=LEARNERS[name]: kb.KernelBank(  # noqa: E731
            kb.gaussian_grid(0.3, 1.5, 3), m, loss="logistic"
        )
        yield f"logistic {name}", lambda bank=bank: of_bank(bank(), X, labels)
    for name, learner in LINEAR.items():
        bank = lambda m=learner: kb.KernelBank(K.Linear(0.5), m)  # noqa: E731
        yield f"learner {name}", lambda bank=bank: of_bank(bank(), X, y)
    yield "learner PartitionTree", lambda: of_bank(kb.KernelBank(slots=[TREE]), X, y)
    for name, rule in COMBINERS.items():
        bank = lambda rule=rule: kb.KernelBank(slots=mixed_slots(), combiner=rule)  # noqa: E731
        yield f"combiner {name}", lambda bank=bank: of_bank(bank(), X, y)
    yield (
        "slots with losses of their own",
        lambda: of_bank(kb.KernelBank(slots=squared_beside_absolute(), loss="absolute"), X, y),
    )
    yield (
        "threads",
        lambda: of_bank(kb.KernelBank(slots=mixed_slots(), engine=kb.engines.Threads(2)), X, y),
    )
    yield "one by one", lambda: one_by_one(X, y)
    yield "late targets", lambda: late_targets(X, y)
    yield "saved and loaded", lambda: saved_and_loaded(X, y)
    yield "wider inputs", lambda: wider(X, y)
    yield "raker", lambda: of_bank(kb.presets.raker(features=20), X, y)
    yield "adaraker", lambda: of_bank(kb.presets.adaraker(features=20), X, y)
    yield "omkl_gf", lambda: of_bank(kb.presets.omkl_gf(features=20), X, y)
    yield "omkl_sfg", lambda: of_bank(kb.presets.omkl_sfg(features=20), X, y)
    yield "vaw", lambda: of_bank(kb.presets.vaw(features=20), X, y)
    yield "doebe", lambda: of_bank(kb.presets.doebe(features=20), X, y)


def one_by_one(X, y):
    bank, said = kb.KernelBank(slots=mixed_slots()), []
    for x, target in zip(X, y, strict=True):
        said.append(bank.predict_one(x))
        bank.learn_one(x, float(target))
    return fingerprint(said, bank.weights, bank.ledger.slot_loss)


def late_targets(X, y):
    bank, said, questions = kb.KernelBank(slots=mixed_slots()), [], []
    for t in range(len(X)):
        value, slots = bank.predict_slots_one(X[t])
        said.append(value)
        questions.append(slots)
        if t >= 3:
            bank.learn_one(X[t - 3], float(y[t - 3]), questions[t - 3])
    return fingerprint(said, questions, bank.weights)


def saved_and_loaded(X, y):
    bank = kb.KernelBank(slots=mixed_slots(), combiner=C.Stacking())
    bank.run(X[:150], y[:150])
    with tempfile.TemporaryDirectory() as folder:
        bank.save(Path(folder) / "bank.kb")
        bank = kb.load(Path(folder) / "bank.kb")
    return of_bank(bank, X[150:], y[150:])


def wider(X, y):
    bank = kb.KernelBank(K.Linear(1.0), L.LinearRLS())
    bank.run(X[:100], y[:100])
    bank = bank.with_inputs(3)
    return of_bank(bank, np.column_stack([X, X[:, 0] ** 2])[100:], y[100:])


# --- AutoBank -----------------------------------------------------------------------------------


def auto_runs():
    """Runs of `AutoBank`, by name."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(700, 3))
    y = 50 + 5 * np.sin(2 * X[:, 0]) * X[:, 1] + np.cumsum(draw.normal(size=700)) * 0.2
    missing = np.where(draw.random(X.shape) < 0.1, np.nan, X)
    jump = y + np.where(np.arange(700) >= 400, 2000.0, 0.0)
    jump[[200, 300, 301]] += [5e3, 9e9, -700]
    two = np.where(y > np.median(y), "high", "low")
    three = np.digitize(X[:, 0] * X[:, 1] + 0.3 * X[:, 2], [-0.4, 0.4])
    A = kb.AutoBank
    yield "auto", lambda: of_auto(A(), X, y)
    yield "auto small, lags", lambda: of_auto(A(lags=3, size="small"), X, y)
    yield "auto large, missing", lambda: of_auto(A(size="large"), missing[:300], y[:300])
    yield "auto lags, late, missing", lambda: of_auto(A(lags=2), missing, y, delay=3)
    yield "auto seasons, late", lambda: of_auto(A(seasons=(7, 24)), missing, y, delay=3)
    wave = y + 20 * np.sin(np.arange(700) * 2 * np.pi / 24)
    yield "auto seasons found", lambda: of_auto(A(seasons="auto", size="small"), X, wave)
    yield "auto far targets", lambda: of_auto(A(lags=1), X, jump)
    yield "auto far targets, late", lambda: of_auto(A(size="small"), X, jump, delay=2)
    yield "auto pinball", lambda: of_auto(A(loss=kb.losses.Pinball(0.9), size="small"), X, y)
    yield "auto two classes", lambda: of_auto(A("classification"), X, two)
    yield (
        "auto two classes, lags, late, missing",
        lambda: of_auto(A("classification", lags=2, size="small"), missing, two, delay=2),
    )
    yield (
        "auto three classes",
        lambda: of_auto(A("classification", size="small"), X[:300], three[:300]),
    )
    yield "auto threads", lambda: of_auto(A(engine="threads"), X[:300], y[:300])
    yield "auto one by one", lambda: auto_one_by_one(X, jump)
    yield "auto saved and loaded", lambda: auto_saved(missing, y)
    yield "auto added inputs", lambda: auto_added(X, y)
    yield (
        "auto own slots",
        lambda: of_auto(A(slots=mixed_slots(), combiner=C.Simplex(), window=5), X, y),
    )
    yield "forecast with lags", lambda: forecast(y)


def auto_one_by_one(X, y):
    bank, said = kb.AutoBank(lags=1, size="small"), []
    for x, target in zip(X, y, strict=True):
        said.append((bank.predict_one(x), *bank.predict_interval_one(x, 0.8)))
        bank.learn_one(x, float(target))
    return fingerprint(said, bank.banks[0].weights)


def auto_saved(X, y):
    bank = kb.AutoBank(lags=2, size="small")
    bank.run(X[:333], y[:333])
    asked = [bank.predict_one(x) for x in X[333:336]]
    with tempfile.TemporaryDirectory() as folder:
        bank.save(Path(folder) / "bank.kb")
        bank = kb.load(Path(folder) / "bank.kb")
    for x, target in zip(X[333:336], y[333:336], strict=True):
        bank.learn_one(x, float(target))
    return fingerprint(asked) + of_auto(bank, X[336:], y[336:])


def auto_added(X, y):
    bank = kb.AutoBank(size="small")
    bank.run(X[:250, :2], y[:250])
    return of_auto(bank, X[250:], y[250:], added=1)


def forecast(y):
    bank = kb.AutoBank(lags=4, size="small")
    bank.run(np.arange(600.0), y[:600])
    return fingerprint(bank.predict(np.arange(600.0, 640.0)), bank.input_ranges())


# --- other libraries, and the command ------------------------------------------------------------


def library_runs():
    """Runs through scikit-learn and River, where they are installed."""
    X, y = stream(250, 3)
    try:
        from kernelbank.sklearn import KernelBankClassifier, KernelBankRegressor

        yield (
            "sklearn",
            lambda: fingerprint(
                KernelBankRegressor(size="small").fit(X, y).predict(X),
                KernelBankClassifier(size="small").fit(X, y > 0).predict_proba(X),
            ),
        )
        from kernelbank.river import KernelBankRegressor as RiverRegressor
    except ImportError:
        return

    def river():
        model, said = RiverRegressor(size="small"), []
        for n, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            x = dict(zip("abc" if n > 50 else "ab", row, strict=False))
            said.append(model.predict_one(x))
            model.learn_one(x, target)
        return fingerprint(said)

    yield "river", river


COMMAND = ["--target", "y", "--time", "t", "--categorical", "kind", "--lags", "2"]
COMMAND += ["--allow-missing", "--on-bad-row", "skip", "--checkpoint-every", "300", "--quiet"]


def write_table(path, rows):
    """Sensor rows with times, categories that appear late, missing cells and bad rows."""
    draw = np.random.default_rng(3)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["t", "a", "b", "kind", "y"])
        for n in range(rows):
            a, b = draw.normal(size=2)
            kind = ["north", "south", "west"][int(draw.integers(3 if n > 700 else 2))]
            cells = [f"2024-01-{1 + n // 96 % 28:02d}T{n // 4 % 24:02d}:{n % 4 * 15:02d}:00", a, b]
            cells += [kind, 10 + 3 * np.sin(a) * b + (kind == "south") + n / 500]
            if n % 97 == 50:
                cells[1] = ""
            if n % 211 == 200:
                cells[2] = "broken"
            table.writerow(cells)


def of_command(delay, kills):
    """The predictions of a run that is killed so often and started again each time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "rows.csv", 2500)
        command = [sys.executable, "-m", "kernelbank", "run", str(folder / "rows.csv"), *COMMAND]
        command += ["--delay", str(delay), "--state", str(folder / "state")]
        command += ["--predictions", str(folder / "out.csv")]
        saved = folder / "state" / "state.kb"
        for _ in range(kills):
            before = saved.stat().st_mtime_ns if saved.exists() else 0
            process = subprocess.Popen(command, env=os.environ)
            while process.poll() is None:
                if saved.exists() and saved.stat().st_mtime_ns > before and random_moment():
                    process.send_signal(signal.SIGKILL)
                    process.wait()
        subprocess.run(command, check=True)
        return fingerprint([(folder / "out.csv").read_text()])


def random_moment():
    time.sleep(0.05)
    return True


def command_runs():
    """Runs of `kernelbank run`, by name."""
    for delay in (0, 3):
        yield f"command, delay {delay}", lambda d=delay: of_command(d, 0)
        yield f"command, delay {delay}, killed", lambda d=delay: of_command(d, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="TEXT")
    only = parser.parse_args().only or [""]
    warnings.simplefilter("ignore")
    for runs in (basic_runs, auto_runs, library_runs, command_runs):
        for name, run in runs():
            if any(text in name for text in only):
                print(f"{name:40} {run()}", flush=True)


if __name__ == "__main__":
    main()
