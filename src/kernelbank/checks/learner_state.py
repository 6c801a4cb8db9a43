"""Checks of a learner's state: values on the window, norm^2, and its memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..utils.validation import Floats
from .bank_fixture import BankFixture, group_of
from .context import CheckContext, shown
from .learner_acceptance import RAISES

_MOMENTS = (1, 2, 3, 30, 120)


def check_window(context: CheckContext, fixture: BankFixture) -> None:
    """Values on the window are values of the present function; norm^2 is one."""
    X, y = fixture.stream(_MOMENTS[-1])
    bank = fixture.bank()
    repair = "Compute them anew after each step: O(window) values; or carry them along exactly."
    done = 0
    for moment in _MOMENTS:
        with context.works("while learning", RAISES):
            bank.run(X[done:moment], y[done:moment])
            seen = min(moment, fixture.window)
            present = bank.predict_slots(X[moment - seen : moment])[:, fixture.index]
        done = moment
        group, leaf, lane = group_of(bank, fixture.index)
        written = group.values[leaf, 0, fixture.window - seen :, lane]
        size = 1 + np.abs(present).max() + np.abs(y[:moment]).max()
        if not np.abs(written - present).max() <= 1e-6 * size:
            raise context.fails(
                "exact in its values on the window",
                f"after {moment} samples it wrote {shown(written)} for the last {seen} inputs, "
                f"oldest first, where it now predicts {shown(present)}.",
                "The loss on the window is computed from them, and it determines the weights.",
                repair + " The newest sample is the last; missing ones come first.",
            )
        norm = float(group.norms[leaf, 0, lane])
        if not 0 <= norm < np.inf:
            raise context.fails(
                "finite and non-negative in its norm",
                f"after {moment} samples its norm^2 is {norm!r}.",
                "norm^2 is the slot's curvature in the program for the weights: a negative one "
                "has no minimum.",
                "Compute it as a sum of squares, or take max(norm, 0) where rounding is at work.",
            )
        _check_size(context, fixture, bank, X, norm)


def _check_size(
    context: CheckContext, fixture: BankFixture, bank: KernelBank, X: Floats, norm: float
) -> None:
    """|f(x)|^2 <= norm^2 k(x, x), as for every function of the kernel's space."""
    slot = fixture.slot
    if norm == 0 or slot.residual_of is not None or not slot.kernel.pairwise:
        return
    if not slot.learner.saveable:
        return  # a foreign model has no norm: the user gives a number
    values = bank.predict_slots(X)[:, fixture.index]
    self_kernels = np.array([slot.kernel(x[None], x[None])[0, 0] for x in X])
    above = values**2 - norm * self_kernels * (1 + 1e-6)
    # Values and norm^2 are rounded, and both may be of terms that cancel.
    if above.max() > 1e-9 * (1 + np.abs(values).max() ** 2):
        n = int(np.argmax(above))
        raise context.fails(
            "large enough in its norm",
            f"after {bank.samples} samples f({shown(X[n])}) = {values[n]:.6g}, but its norm^2 is "
            f"{norm:.6g} and k(x, x) = {self_kernels[n]:.6g}: f(x)^2 is at most their product for "
            f"every function of the space of {slot.kernel!r}.",
            "norm^2 is the slot's curvature in the program for the weights: a slot that states too "
            "small a one gets too much weight.",
            "For f = sum_i c_i k(x_i, .) it is c'Kc. If f is not of the kernel's space, refuse the "
            "kernel in check_kernel, or let the norm be 0, which means none.",
        )


def check_memory(context: CheckContext, fixture: BankFixture) -> None:
    """The state does not change its shapes, and nothing beside it grows with the stream."""
    X, y = fixture.stream(_MOMENTS[-1], seed=2)
    bank = fixture.bank()
    half = len(X) // 2
    sizes: list[dict[str, int]] = []
    shapes = []
    for start in (0, half):
        with context.works("while learning", RAISES):
            bank.run(X[start : start + half], y[start : start + half])
        group, _, _ = group_of(bank, fixture.index)
        shapes.append({name: array.shape for name, array in group.state.items()})
        beside: dict[str, Any] = {"group.models": group.models}
        beside |= {f"group.scratch[{name!r}]": part for name, part in group.scratch.items()}
        beside["the learner"] = vars(fixture.slot.learner)
        sizes.append({name: _items(part, 5, set()) for name, part in beside.items()})
    why = "A stream has no end. Files, too, expect arrays of the shapes that `shapes` declares."
    repair = "Make arrays as large as they can get at the start, and drop or merge beyond that."
    if shapes[0] != shapes[1]:
        found = f"after {half} samples the state's shapes were {shapes[0]}, later {shapes[1]}."
        raise context.fails("bounded in memory", found, why, repair)
    if not fixture.slot.learner.saveable:
        return  # a foreign model: it may keep anything
    for name, size in sizes[0].items():
        grown = sizes[1][name] - size
        if grown >= half:
            found = (
                f"{name} held {size} items after {half} samples, and {grown} more as many later."
            )
            raise context.fails("bounded in memory", found, why, repair)


def _items(part: Any, depth: int, seen: set[int]) -> int:
    """The number of items in a container and in the containers inside it."""
    if depth == 0 or id(part) in seen:
        return 0
    seen.add(id(part))
    if isinstance(part, np.ndarray):
        return int(part.size)
    if isinstance(part, dict):
        return len(part) + sum(_items(value, depth - 1, seen) for value in part.values())
    if isinstance(part, str | bytes):
        return 0
    if hasattr(part, "__len__") and hasattr(part, "__iter__"):
        return len(part) + sum(_items(value, depth - 1, seen) for value in part)
    return _items(vars(part), depth - 1, seen) if hasattr(part, "__dict__") else 0
