"""`make against OTHER=…/python`: time per sample beside another version of kernelbank.

OTHER is the interpreter of an environment in which the other version is installed. Each case runs
in a process of each, in turn; the best of several repeats counts, with the spread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

GOALS = {
    "P = 640, block": 1.0,
    "FourierRLS 100 x 8, Stacking, block": 1.0,
    "FourierRLS 100 x 8, Stacking, one by one": 0.8,
}


def cases():
    """By name: a function that returns seconds of the processor per unit of work."""
    import kernelbank as kb

    draw = np.random.default_rng(0)
    x, X = np.cumsum(draw.uniform(0.5, 1.5, 6000)), draw.normal(size=(3000, 5))
    y, Y = np.sin(x) + 0.1 * draw.normal(size=6000), np.sin(X.sum(axis=1))

    def paper(slots):
        learner = kb.learners.Norma(0.05, 100)
        return kb.KernelBank(kb.gaussian_grid(0.1, 10, slots), learner)

    def least_squares():
        kernels = [kb.kernels.Gaussian(w) for w in np.geomspace(0.3, 3, 8)]
        rule = kb.combiners.Stacking()
        return kb.KernelBank(kernels, kb.learners.FourierRLS(100), rule, window=1)

    def block(make, X, y, warm=500):
        bank = make()
        bank.run(X[:warm], y[:warm], record="light")
        start = time.process_time()
        bank.run(X[warm:], y[warm:], record="light")
        return (time.process_time() - start) / (len(y) - warm)

    def singles(make, X, y, warm=500):
        bank = make()
        bank.run(X[:warm], y[:warm], record="light")
        rows = list(zip(list(X[warm:]), y[warm:].tolist(), strict=True))
        start = time.process_time()
        for point, target in rows:
            bank.predict_one(point)
            bank.learn_one(point, target)
        return (time.process_time() - start) / len(rows)

    def opened():
        start = time.process_time()
        for _ in range(50):
            kb.KernelBank().learn_one(0.0, 1.0)
        return (time.process_time() - start) / 50

    def copied():
        import copy

        bank = paper(20)
        for point, target in zip(x[:300].tolist(), y[:300].tolist(), strict=True):
            bank.learn_one(point, target)
        start = time.process_time()
        for _ in range(50):
            copy.deepcopy(bank)
        return (time.process_time() - start) / 50

    def auto(one_by_one):
        bank = kb.AutoBank()
        bank.run(X[:1000], Y[:1000])
        start = time.process_time()
        if one_by_one:
            for point, target in zip(X[1000:2000], Y[1000:2000].tolist(), strict=True):
                bank.predict_one(point)
                bank.learn_one(point, target)
        else:
            bank.run(X[1000:2000], Y[1000:2000], record="light")
        return (time.process_time() - start) / 1000

    return {
        "P = 20, irregular, block": lambda: block(lambda: paper(20), x, y),
        "P = 20, regular, block": lambda: block(lambda: paper(20), np.arange(6000) / 2, y),
        "P = 20, one by one": lambda: singles(lambda: paper(20), x.tolist(), y),
        "P = 640, block": lambda: block(lambda: paper(640), x[:1500], y[:1500]),
        "FourierRLS 100 x 8, Stacking, block": lambda: block(least_squares, X, Y),
        "FourierRLS 100 x 8, Stacking, one by one": lambda: singles(least_squares, X, Y),
        "open + first sample": opened,
        "deepcopy": copied,
        "AutoBank, block": lambda: auto(one_by_one=False),
        "AutoBank, one by one": lambda: auto(one_by_one=True),
    }


def worker():
    """Answer the names of cases on standard input by seconds."""
    import warnings

    warnings.simplefilter("ignore")
    known = cases()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        print(json.dumps(known[json.loads(line)]()), flush=True)


class Version:
    """A process with one version of kernelbank."""

    def __init__(self, python):
        command = [python, __file__, "--worker"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names = json.loads(self.process.stdout.readline())

    def seconds(self, name):
        print(json.dumps(name), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", nargs="?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", action="store_true")
    chosen = parser.parse_args()
    if chosen.worker:
        worker()
        return
    here, other = Version(sys.executable), Version(chosen.other)
    print(f"{'what':42} {'here':>10} {'other':>10} {'ratio':>6} {'goal':>5}  spread")
    for name in here.names:
        if chosen.only not in name:
            continue
        pairs = [(here.seconds(name), other.seconds(name)) for _ in range(chosen.repeats)]
        ours, theirs = (min(times) for times in zip(*pairs, strict=True))
        spread = max(max(times) / min(times) for times in zip(*pairs, strict=True))
        goal = f"{GOALS[name]:g}" if name in GOALS else ""
        figures = f"{ours * 1e6:8.1f}us {theirs * 1e6:8.1f}us {ours / theirs:6.2f} {goal:>5}"
        print(f"{name:42} {figures}  x{spread:.2f}", flush=True)


if __name__ == "__main__":
    main()
