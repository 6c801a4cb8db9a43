"""Raker and AdaRaker on one stream without scaling: error relative to the target's variance.

    python benchmarks/rivals.py adaraker_air.csv.gz

Prints, over seeds, the mean squared error of the predictions divided by the variance of the
target; the first sample, which nothing can predict, is left out. The stream of the AdaRaker paper
(air quality, 7322 samples) is `dataset/AirData.mat` of the authors' repository N1cekiko/AdaRaker,
written as a table with the target in the last column.
"""

import argparse
import warnings

import numpy as np

import kernelbank as kb

R = kb.rivals


def competitors(dimension):
    """Banks by name, each from a seed.

    The authors' program of AdaRaker draws frequencies whose squared length has one degree of
    freedom instead of `dimension`: as if the widths were sqrt(dimension) times as large.
    """
    paper = kb.gaussian_grid(0.1, 10, 3)
    program = kb.gaussian_grid(0.1 * dimension**0.5, 10 * dimension**0.5, 3)
    rates = {"learning_rate": 1.0, "step_size": "inverse_sqrt"}
    adapted = {"learning_rate": 1.0, "step_size": "adagrad"}
    for name, kernels in (("paper's widths", paper), ("program's widths", program)):
        yield f"raker, {name}", lambda s, k=kernels: R.raker(k, seed=s)
        yield f"raker 1/sqrt(t), {name}", lambda s, k=kernels: R.raker(k, seed=s, **rates)
        yield f"raker adagrad, {name}", lambda s, k=kernels: R.raker(k, seed=s, **adapted)
        yield f"adaraker, {name}", lambda s, k=kernels: R.adaraker(k, seed=s)
        yield (
            f"adaraker restarted, {name}",
            lambda s, k=kernels: R.adaraker(k, seed=s, restart=True),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--target")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    X, y = kb.datasets.read_csv(options.path, options.target, None, options.samples)
    print(f"{'':40} {'mean':>8} {'least':>8} {'most':>8}")
    for name, make in competitors(X.shape[1]):
        errors = []
        for seed in range(options.seeds):
            predictions = make(seed).run(X, y, record=["predictions"]).predictions
            errors.append(np.square(predictions - y)[1:].mean() / y.var())
        print(f"{name:40} {np.mean(errors):8.4f} {min(errors):8.4f} {max(errors):8.4f}", flush=True)


if __name__ == "__main__":
    main()
