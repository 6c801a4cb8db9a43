"""Small streams, and the files that hold them."""

import gzip

import numpy as np


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
