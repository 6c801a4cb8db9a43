"""The scheme in C and in plain NumPy, which ours is measured against."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def build() -> ctypes.CDLL:
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


def scheme_in_numpy(x, y, widths, window=10, budget=100, rate=0.05, ridge=0.01) -> float:
    """The scheme in straightforward NumPy: arrays over slots and terms, recomputed every step."""
    slots = len(widths)
    alpha = np.zeros((slots, 0))
    weights = np.full(slots, 1 / slots)
    total = 0.0

    def gram(one, other):
        squares = (one[:, None] - other[None, :]) ** 2
        return np.exp(-squares[None] / (2 * widths[:, None, None] ** 2))

    for n in range(len(x)):
        start = max(0, n + 1 - window)
        terms = x[n - alpha.shape[1] : n]
        values = np.einsum("pwt,pt->pw", gram(x[start : n + 1], terms), alpha)
        norms = np.einsum("ps,pst,pt->p", alpha, gram(terms, terms), alpha)
        mixed = weights @ values
        total += ((mixed - y[start : n + 1]) ** 2).sum() + ridge / 2 * (weights**2 @ norms)
        alpha = np.hstack([(1 - rate * ridge) * alpha, np.zeros((slots, 1))])
        alpha[:, -(n + 1 - start) :] -= rate * 2 * (values - y[start : n + 1])
        alpha = alpha[:, -budget:]
        terms = x[n + 1 - alpha.shape[1] : n + 1]
        values = np.einsum("pwt,pt->pw", gram(x[start : n + 1], terms), alpha)
        b = ((values - y[start : n + 1]) ** 2).sum(axis=1)
        a = ridge / 2 * np.einsum("ps,pst,pt->p", alpha, gram(terms, terms), alpha) + 1e-12
        order = np.argsort(b)
        inverse, shifted = np.cumsum(1 / a[order]), np.cumsum(b[order] / a[order])
        last = np.flatnonzero(b[order] - (2 + shifted) / inverse < 0)[-1]
        level = (2 + shifted[last]) / inverse[last]
        weights = np.maximum((level - b) / (2 * a), 0)
    return total
