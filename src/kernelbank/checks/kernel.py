"""`check_kernel`: what a bank requires of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..errors import CheckFailed, InvalidArgument
from ..kernels import Custom, Kernel
from ..kernels.program import evaluate
from ..utils import validation as check
from ..utils.validation import Floats
from .context import CheckContext, first_difference, same_bits, shown

EPS = float(np.finfo(float).eps)
_POINTS = 20
_USUAL_WIDTHS = (1, 2, 5)
_UNUSUAL_WIDTHS = (*range(6, 65), 128, 256, 1024, 4096)
_RAISES = "Let it take any (n, d) and (m, d) arrays of floats and return an (n, m) array."


def check_kernel(kernel: Kernel, dimension: int | None = None) -> None:
    """Check that a kernel does what a bank requires; a failure says why and what to do.

    Checked on synthetic inputs in the kernel's domain: values are finite and of the right shape,
    the same bits each time and for calls of any number of rows; k(x, t) = k(t, x), k(x, x) >= 0
    and no negative eigenvalue of a Gram matrix beyond rounding; arguments are not changed. A check
    can find a fault, and cannot prove that there is none. The inputs are always the same.

    Parameters
    ----------
    kernel : one of kb.kernels, or your own: `kb.kernels.Custom(function)`.
    dimension : the width of the inputs; by default all of 1, 2 and 5 that the kernel accepts.

    Raises `kb.errors.CheckFailed`; returns None if nothing was found.

    >>> import numpy as np, kernelbank as kb
    >>> def distance(X, Z):
    ...     return np.abs(X[:, None] - Z[None]).sum(axis=2)
    >>> try:
    ...     kb.checks.check_kernel(kb.kernels.Custom(distance))
    ... except kb.errors.CheckFailed as error:
    ...     print(error.failed)
    positive semi-definite
    """
    if not isinstance(kernel, Kernel):
        remedy = "Wrap your function: check_kernel(kb.kernels.Custom(function))."
        raise check.refuse("kernel", "be a kernel", kernel, remedy, "check_kernel")
    if not kernel.pairwise:
        remedy = "There is nothing to check: its values depend on the stream."
        raise check.refuse("kernel", "be a function of two inputs", kernel, remedy, "check_kernel")
    if dimension is not None:
        check.count("dimension", dimension, "check_kernel", "Give the width of the inputs.")
    context = CheckContext("check_kernel", kernel)
    context.check_settings()
    for width in _widths(context, kernel, dimension):
        for index, X in enumerate(_inputs(kernel, width)):
            _check_on(context, kernel, X, rows=index < 3)


def _widths(context: CheckContext, kernel: Kernel, dimension: int | None) -> list[int]:
    """The widths of inputs that the kernel accepts."""
    if dimension is not None:
        with context.works(f"on inputs of width {dimension}", _RAISES):
            kernel(*2 * [next(_inputs(kernel, dimension))])
        return [dimension]
    accepted: list[int] = []
    errors: list[Exception] = []
    for width in (*_USUAL_WIDTHS, *_UNUSUAL_WIDTHS):
        if width > _USUAL_WIDTHS[-1] and accepted:
            break
        try:
            with np.errstate(all="ignore"):
                kernel(*2 * [next(_inputs(kernel, width))])
            accepted.append(width)
        except InvalidArgument as error:  # it needs coordinates that do not exist
            errors.append(error)
        except Exception as error:
            if "must return real numbers of shape" in str(error):
                why = "A bank writes the values into its own arrays of known size."
                raise context.fails("of the right shape", f"{error}", why, _RAISES) from error
            errors.append(error)
    if not accepted:
        with context.works("on inputs of every width", _RAISES):
            raise errors[0]
    return accepted


def _inputs(kernel: Kernel, width: int) -> Iterator[Floats]:
    """Several (n, width) arrays inside the kernel's domain.

    The first has all digits, so that sums of products are rounded, and the order of a sum shows.
    The others have short numbers, which are easy to read and to try again.
    """
    draw = np.random.default_rng(width)
    shift = 0.0 if "non-negative" in kernel.domains else 1.0
    size = (_POINTS, width)
    yield draw.uniform(0, 2, size) - shift
    yield np.round(8 * draw.uniform(0, 2, size)) / 8 - shift
    yield np.round(64 * draw.uniform(0, 20, size)) / 64 - 10 * shift
    yield np.repeat(np.arange(_POINTS)[:, None] / 4, width, axis=1)  # a regular grid
    close = np.repeat(np.round(8 * draw.uniform(0, 2, (_POINTS // 4, width))) / 8, 4, axis=0)
    yield close + np.tile([0.0, 0.0, 2.0**-10, 2.0**-6], _POINTS // 4)[:, None]
    yield 100 * np.round(draw.uniform(0, 10, size)) - 500 * shift


def _check_on(context: CheckContext, kernel: Kernel, X: Floats, *, rows: bool) -> None:
    where = f"on inputs such as {shown(X[0])}"
    kept = X.copy()
    with context.works(where, _RAISES):
        gram = kernel(X, X)
        again = kernel(X, X)
        _check_arguments(context, kernel, X)
    if not same_bits(X, kept):
        raise _changes(context, kept, X)
    _check_values(context, X, gram, again)
    if rows:  # many calls: on some of the inputs only
        _check_rows(context, kernel, X, gram)
    _check_symmetric(context, X, gram)
    _check_positive(context, X, gram)


def _customs(part: Any) -> Iterator[Custom]:
    """The user's functions inside a kernel."""
    if isinstance(part, Custom):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _customs(getattr(part, field.name))


def _check_arguments(context: CheckContext, kernel: Kernel, X: Floats) -> None:
    for custom in _customs(kernel):
        for columns in (X, X[:, :1]):  # inside `ActiveDims` a function sees some coordinates only
            left, right = columns.copy(), columns.copy()
            try:
                custom.function(left, right)
            except Exception:  # not made for this width: then it has been called with the other
                continue
            for given in (left, right):
                if not same_bits(given, columns):
                    raise _changes(context, columns, given)


def _changes(context: CheckContext, before: Floats, after: Floats) -> CheckFailed:
    index = first_difference(before, after)
    return context.fails(
        "leaving its arguments unchanged",
        f"X{list(index)} was {float(before[index])!r} before the call and is "
        f"{float(after[index])!r} after it.",
        "Inputs are kept for later samples and for other kernels.",
        "Write X = X / width, which makes a new array, instead of X /= width.",
    )


def _check_values(context: CheckContext, X: Floats, gram: Floats, again: Floats) -> None:
    if not np.isfinite(gram).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(gram))[0])
        raise context.fails(
            "finite",
            f"k(x, t) = {gram[i, j]} for x = {shown(X[i])}, t = {shown(X[j])}.",
            "A slot that is not finite once is quarantined for good.",
            "Look for a division by zero (x = t?), a root or logarithm of a negative number, or "
            'an overflow. A kernel for inputs >= 0 only sets domain = "non-negative" in its class.',
        )
    if not same_bits(gram, again):
        i, j = first_difference(gram, again)
        raise context.fails(
            "deterministic",
            f"k(x, t) = {gram[i, j]!s}, and {again[i, j]!s} in a second call, for "
            f"x = {shown(X[i])}, t = {shown(X[j])}.",
            "A bank evaluates a pair more than once and relies on equal values.",
            "Draw random numbers once, outside the function, from a generator with a seed.",
        )
    diagonal = np.diag(gram)
    if diagonal.min() < 0:
        i = int(np.argmin(diagonal))
        raise context.fails(
            "non-negative on the diagonal",
            f"k(x, x) = {float(diagonal[i])!r} for x = {shown(X[i])}.",
            "k(x, x) is the squared norm of k(x, .), and norms enter the weights of the slots.",
            "A kernel is an inner product: look for a wrong sign, or use exp(-distance).",
        )


def _check_rows(context: CheckContext, kernel: Kernel, X: Floats, gram: Floats) -> None:
    why = (
        "A bank evaluates one row at a time, as long as the slot with the longest memory needs; so "
        "a slot would depend on the number of samples in a block and on its neighbours."
    )
    repair = (
        "Let k(x, t) follow from x and t alone: nothing about the other rows (means, scales). If "
        "only the last digits differ, a matrix product (X @ Z.T, np.dot, cdist) sums in an order "
        "that depends on the shape: write (X[:, None] - Z[None]) and sum the last axis."
    )
    name = "the same for calls of any number of rows"
    calls = {
        "one row at a time": lambda: np.vstack([kernel(x[None], X) for x in X]),
        "one column at a time": lambda: np.hstack([kernel(X, t[None]) for t in X]),
        "seven columns at a time": lambda: np.hstack(
            [kernel(X, X[start : start + 7]) for start in range(0, len(X), 7)]
        ),
        "as in the loops of a bank": lambda: evaluate(kernel, X, X),
    }
    for way, call in calls.items():
        with context.works(f"when evaluated {way}", _RAISES):
            other = call()
            for callback in kernel.callbacks:
                callback.check()
        if not same_bits(gram, other):
            i, j = first_difference(gram, other)
            found = (
                f"k(x, t) = {float(gram[i, j])!r} in a matrix of {len(X)} rows, "
                f"{float(other[i, j])!r} {way}, for x = {shown(X[i])}, t = {shown(X[j])}."
            )
            raise context.fails(name, found, why, repair)


def _check_symmetric(context: CheckContext, X: Floats, gram: Floats) -> None:
    difference = np.abs(gram - gram.T)
    if difference.max() > 64 * EPS * np.abs(gram).max():
        i, j = np.unravel_index(np.argmax(difference), difference.shape)
        raise context.fails(
            "symmetric",
            f"k(x, t) = {float(gram[i, j])!r} but k(t, x) = {float(gram[j, i])!r} for "
            f"x = {shown(X[i])}, t = {shown(X[j])}.",
            "A bank computes each pair once, in either order.",
            "Treat both arguments alike; (k(x, t) + k(t, x)) / 2 is symmetric, though it may lack "
            "other properties.",
        )


def _check_positive(context: CheckContext, X: Floats, gram: Floats) -> None:
    # An eigenvalue moves by at most n times the largest error of an entry, and the entries of a
    # careful function are accurate to some hundred units in the last place.
    bound = len(X) * 1000 * EPS * np.abs(gram).max()
    gram = (gram + gram.T) / 2
    if _least_eigenvalue(gram) >= -bound:
        return
    kept = list(range(len(X)))
    for index in reversed(range(len(X))):  # as few inputs as possible
        fewer = [i for i in kept if i != index]
        if fewer and _least_eigenvalue(gram[np.ix_(fewer, fewer)]) < -bound:
            kept = fewer
    small = gram[np.ix_(kept, kept)]
    values, vectors = np.linalg.eigh(small)
    found = (
        f"for the inputs {shown(X[kept])} the Gram matrix {shown(small.round(6))} has the "
        f"eigenvalue {values[0]:.3g}: f = sum_i c_i k(x_i, .) with c = "
        f"{shown(vectors[:, 0].round(3))} would have that as its squared norm."
    )
    raise context.fails(
        "positive semi-definite",
        found,
        "Norms would be negative: costs have no minimum, and the combiner prefers the worst slot.",
        "Build it from kernels: sums, products, positive multiples, exp(-distance^p) with "
        "0 < p <= 2 for Euclidean distances. Other similarities (tanh, 1 - distance, minima of "
        "kernels) are mostly not kernels.",
    )


def _least_eigenvalue(matrix: Floats) -> float:
    return float(np.linalg.eigvalsh(matrix)[0])
