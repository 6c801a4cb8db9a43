"""For tests of comparisons: small streams, the files that hold them, and results that nobody ran."""

import gzip

import numpy as np

from kernelbank.research.results import Result


def noisy_stream(seed, samples=120):
    """A smooth function of two inputs, with noise."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-2, 2, (samples, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * draw.normal(size=samples)


def write_text(path, text):
    """Write text to a file, packed if its name ends with .gz; returns the path."""
    if path.name.endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        path.write_text(text)
    return path


def result_row(stream, name, loss, kind="bank"):
    """A result with this mean loss on every sample, and nothing else of interest."""
    return Result(
        stream=stream,
        name=name,
        kind=kind,
        task="regression",
        inputs=2,
        lags=0,
        samples=3,
        runs=1,
        mean_loss=loss,
        mean_loss_deviation=None,
        cumulative_cost=None,
        seconds_per_sample=1e-5,
        note="",
        best=False,
        p_value=None,
        losses=loss * np.ones(3),
    )
