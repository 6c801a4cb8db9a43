"""`check_loss`: what a bank requires of a loss."""

from __future__ import annotations

import numpy as np

from ..losses import Custom, Loss, as_loss
from ..losses.envelope import inside
from ..utils.validation import Floats
from .context import CheckContext, first_difference, same_bits, shown

EPS = float(np.finfo(float).eps)
_STEP = 2.0**-16
_RAISES = "Let both functions take two arrays of one shape and return an array of that shape."


def check_loss(loss: Loss) -> None:
    """Check that a loss does what a bank requires; a failure says why and what to do.

    Checked on a grid of predictions and some targets (-1 and +1 for losses of labels): values and
    derivatives are finite, element by element, the same each time, and change no argument;
    the loss is convex in the prediction; the derivative lies between the slopes on either side and
    is a subgradient, l(g) >= l(f) + l'(f) (g - f), everywhere; it changes by no more than
    `curvature` per unit. A grid can miss a fault. A loss with `smoothing` is checked as the bank
    uses it, and its functions inside its `domain`; targets lie in `targets` of the loss.

    Parameters
    ----------
    loss : one of kb.losses, its name, or your own: `kb.losses.Custom(value, derivative)`.

    Raises `kb.errors.CheckFailed`; returns None if nothing was found.

    >>> import kernelbank as kb
    >>> halved = kb.losses.Custom(lambda f, y: (f - y) ** 2, lambda f, y: f - y, name="halved")
    >>> try:
    ...     kb.checks.check_loss(halved)
    ... except kb.errors.CheckFailed as error:
    ...     print(error.failed)
    consistent with its derivative
    """
    checked = as_loss(loss)
    context = CheckContext("check_loss", checked)
    context.check_settings()
    draw = np.random.default_rng(0)
    few = np.concatenate([np.arange(-32, 33) / 8, [-50.0, -12.0, 12.0, 50.0]])
    fine = np.arange(-320, 321) / 64
    more = np.round(draw.normal(size=40) * 3, 3)
    for y in (-1.0, 1.0) if checked.labels else _targets(checked):
        centre = 0.0 if checked.labels else y
        f = np.unique(np.concatenate([centre + few, few, more]))
        _check_plain(context, checked, np.concatenate([f, [-1000.0, 1000.0]]), y)
        _check_convex(context, checked, f, y)
        _check_derivative(context, checked, f, y)
        _check_curvature(context, checked, np.unique(np.concatenate([centre + fine, f])), y)


def _targets(loss: Loss) -> list[float]:
    """Some targets for which the loss is defined."""
    least, most = loss.targets
    tried = [y for y in (0.0, 0.75, -2.5, 20.0) if least <= y <= most]
    if np.isfinite(least) and np.isfinite(most):
        tried += [least, (least + most) / 2, most]
    elif not tried:
        tried = [least + 1, least + 20] if np.isfinite(least) else [most - 1, most - 20]
    return list(dict.fromkeys(tried))


def _both(context: CheckContext, loss: Loss, f: Floats, y: float) -> tuple[Floats, Floats]:
    targets = np.full(f.shape, y)
    with context.works(f"for predictions such as {f.flat[0]} and the target {y}", _RAISES):
        return np.asarray(loss.value(f, targets)), np.asarray(loss.derivative(f, targets))


def _check_plain(context: CheckContext, loss: Loss, f: Floats, y: float) -> None:
    """Finite, element by element, deterministic, and without changing the arguments."""
    if isinstance(loss, Custom):
        _check_arguments(context, loss, f, y)
    together = _both(context, loss, f, y)
    again = _both(context, loss, f, y)
    alone = [np.array(pair) for pair in zip(*(_one(context, loss, v, y) for v in f), strict=True)]
    turned = [array[::-1] for array in _both(context, loss, f[::-1].copy(), y)]
    for index, what in enumerate(("value", "derivative")):
        values = together[index]
        if not np.isfinite(values).all():
            i = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise context.fails(
                "finite",
                f"the {what} is {values[i]} for the prediction {f[i]} and the target {y}.",
                "One such value and the slot is quarantined for good, even if it predicts well.",
                "Write the formula so that nothing overflows on the way: np.logaddexp(0, -y * f) "
                "instead of np.log(1 + np.exp(-y * f)). If the loss is infinite outside a domain, "
                "or grows too fast, give kb.losses.Custom smoothing=..., and domain=...",
            )
        if not same_bits(values, again[index]):
            i = first_difference(values, again[index])[0]
            raise context.fails(
                "deterministic",
                f"the {what} is {values[i]!s}, and {again[index][i]!s} in a second call, for the "
                f"prediction {f[i]} and the target {y}.",
                "A bank that is saved and loaded, or runs in blocks, must give the same bits.",
                "Let the functions depend on their arguments only: no random numbers, no counters.",
            )
        for other, way in ((alone[index], "alone"), (turned[index], "in the reverse order")):
            if not same_bits(values, other):
                i = first_difference(values, other)[0]
                raise context.fails(
                    "computed element by element",
                    f"the {what} for the prediction {f[i]} and the target {y} is "
                    f"{float(values[i])!r} among {len(f)}, but {float(other[i])!r} {way}.",
                    "Predictions of several slots and samples come in one array; they have "
                    "nothing to do with each other.",
                    "Use NumPy's elementwise functions; no mean, sum, sort or maximum over f.",
                )


def _one(context: CheckContext, loss: Loss, prediction: float, y: float) -> tuple[float, float]:
    value, slope = _both(context, loss, np.array([prediction]), y)
    return float(value[0]), float(slope[0])


def _check_arguments(context: CheckContext, loss: Custom, f: Floats, y: float) -> None:
    for function in (loss.value_function, loss.derivative_function):
        f = np.clip(f, *inside(loss.domain))
        given, targets = f.copy(), np.full(f.shape, y)
        with context.works(f"for predictions such as {f[0]} and the target {y}", _RAISES):
            function(given, targets)
        if not (same_bits(given, f) and (targets == y).all()):
            raise context.fails(
                "leaving its arguments unchanged",
                "predictions or targets were other numbers after the call.",
                "They are the slots' own values, and are used again.",
                "Write r = f - y, which makes a new array, instead of f -= y.",
            )


def _check_convex(context: CheckContext, loss: Loss, f: Floats, y: float) -> None:
    values, _ = _both(context, loss, f, y)
    middles, _ = _both(context, loss, (f[:, None] + f[None, :]) / 2, y)
    chords = (values[:, None] + values[None, :]) / 2
    above = middles - chords - 1e-12 * (1 + np.abs(values[:, None]) + np.abs(values[None, :]))
    if above.max() > 0:
        i, j = _nearest(f, above > 0)
        raise context.fails(
            "convex",
            f"for the target {y}: l({f[i]}) = {values[i]:.6g} and l({f[j]}) = {values[j]:.6g}, but "
            f"halfway l({(f[i] + f[j]) / 2}) = {middles[i, j]:.6g}, more than their mean.",
            "The bound on which the weights rest is Jensen's inequality; learners descend by "
            "slopes and must not stop at a false minimum.",
            "Use a convex loss that is like it, such as kb.losses.Huber or kb.losses.Absolute "
            "instead of a bounded one.",
        )


def _check_derivative(context: CheckContext, loss: Loss, f: Floats, y: float) -> None:
    why = "Learners descend along it; with a wrong one they end elsewhere, or diverge."
    values, slopes = _both(context, loss, f, y)
    below, _ = _both(context, loss, f - _STEP, y)
    beyond, _ = _both(context, loss, f + _STEP, y)
    # For a convex loss the derivative, or any subgradient, lies between the slopes on both sides.
    left, right = (values - below) / _STEP, (beyond - values) / _STEP
    rounding = 64 * EPS * (1 + np.abs(values)) / _STEP
    wrong = (slopes < left - rounding) | (slopes > right + rounding)
    if wrong.any():
        i = int(np.argmin(np.where(wrong, np.abs(np.abs(f - y) - 1), np.inf)))  # a plain example
        raise context.fails(
            "consistent with its derivative",
            f"at the prediction {f[i]} and the target {y} the derivative is {slopes[i]:.6g}, but "
            f"the value grows by {left[i]:.6g} per unit on the left, {right[i]:.6g} on the right.",
            why,
            "Differentiate the value in the prediction f, not in the target y (that has the other "
            "sign), and mind constant factors.",
        )
    lines = values[:, None] + slopes[:, None] * (f[None, :] - f[:, None])
    size = 1 + np.abs(values[:, None]) + np.abs(lines) + np.abs(values[None, :])
    above = lines - values[None, :] - 1e-11 * size
    if above.max() > 0:
        i, j = _nearest(f, above > 0)
        raise context.fails(
            "a subgradient everywhere",
            f"for the target {y}: the tangent at {f[i]}, with the derivative {slopes[i]:.6g}, is "
            f"{lines[i, j]:.6g} at {f[j]}, above the loss {values[j]:.6g}.",
            why,
            "At a kink give a number between the slopes of both sides, best the one nearest to 0.",
        )


def _check_curvature(context: CheckContext, loss: Loss, f: Floats, y: float) -> None:
    if loss.curvature is None:
        return
    _, slopes = _both(context, loss, f, y)
    growth = np.abs(slopes[:, None] - slopes[None, :])
    apart = np.abs(f[:, None] - f[None, :])
    size = 1 + np.abs(slopes[:, None]) + np.abs(slopes[None, :])
    above = growth - loss.curvature * apart - 1e-12 * size
    if above.max() > 0:
        i, j = _nearest(f, above > 0)
        raise context.fails(
            "within its curvature",
            f"for the target {y} the derivative goes from {slopes[i]:.6g} at {shown(f[i])} to "
            f"{slopes[j]:.6g} at {shown(f[j])}: by {growth[i, j] / apart[i, j]:.6g} per unit, more "
            f"than the stated {loss.curvature:g}.",
            "Banks warn of unstable steps and solve for the weights by this bound.",
            "State the largest second derivative, or None if there is a kink or no bound.",
        )


def _nearest(f: Floats, found: np.ndarray) -> tuple[int, int]:
    """The pair of predictions that lies closest together, of those found."""
    apart = np.where(found, np.abs(f[:, None] - f[None, :]), np.inf)
    i, j = np.unravel_index(np.argmin(apart), apart.shape)
    return int(i), int(j)
