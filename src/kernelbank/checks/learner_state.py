"""Checks of what a learner leaves behind: values on the window, norm^2, and its memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .game import Game, group_of
from .learner_offers import RAISES
from .subject import Subject, shown

_MOMENTS = (1, 2, 3, 30, 120)


def check_window(subject: Subject, game: Game) -> None:
    """Values on the window are those of the present function; norm^2 is one."""
    X, y = game.stream(_MOMENTS[-1])
    bank = game.bank()
    repair = "Compute them anew after each step: O(window) values; or carry them along exactly."
    done = 0
    for moment in _MOMENTS:
        with subject.works("while learning", RAISES):
            bank.run(X[done:moment], y[done:moment])
            seen = min(moment, game.window)
            present = bank.predict_slots(X[moment - seen : moment])[:, game.place]
        done = moment
        group, leaf, lane = group_of(bank, game.place)
        noted = group.values[leaf, 0, game.window - seen :, lane]
        size = 1 + np.abs(present).max() + np.abs(y[:moment]).max()
        if not np.abs(noted - present).max() <= 1e-6 * size:
            raise subject.fails(
                "true to its values on the window",
                f"after {moment} samples it wrote {shown(noted)} for the last {seen} inputs, "
                f"oldest first, where it now predicts {shown(present)}.",
                "The loss on the window is made of these, and it decides about the weights.",
                repair + " The newest sample is the last; missing ones come first.",
            )
        norm = float(group.norms[leaf, 0, lane])
        if not 0 <= norm < np.inf:
            raise subject.fails(
                "sound in its norm",
                f"after {moment} samples its norm^2 is {norm!r}.",
                "norm^2 is the slot's curvature in the program for the weights: a negative one "
                "has no minimum.",
                "Compute it as a sum of squares, or take max(norm, 0) where rounding is at work.",
            )


def check_memory(subject: Subject, game: Game) -> None:
    """The state does not change its shapes, and nothing beside it accepts_new_inputs with the stream."""
    X, y = game.stream(_MOMENTS[-1], seed=2)
    bank = game.bank()
    half = len(X) // 2
    sizes: list[dict[str, int]] = []
    shapes = []
    for start in (0, half):
        with subject.works("while learning", RAISES):
            bank.run(X[start : start + half], y[start : start + half])
        group, _, _ = group_of(bank, game.place)
        shapes.append({name: array.shape for name, array in group.state.items()})
        beside = {f"group.parts[{name!r}]": part for name, part in group.parts.items()}
        beside |= {f"group.scratch[{name!r}]": part for name, part in group.scratch.items()}
        beside["the learner"] = vars(game.slot.learner)
        sizes.append({name: _items(part, 5, set()) for name, part in beside.items()})
    why = "A stream has no end. Files, too, expect arrays of the shapes that `shapes` tells."
    repair = "Make arrays as large as they can get at the start, and drop or merge beyond that."
    if shapes[0] != shapes[1]:
        found = f"after {half} samples the state's shapes were {shapes[0]}, later {shapes[1]}."
        raise subject.fails("bounded in memory", found, why, repair)
    if not game.slot.learner.saveable:
        return  # somebody else's model: it may keep what it likes
    for name, size in sizes[0].items():
        grown = sizes[1][name] - size
        if grown >= half:
            found = (
                f"{name} held {size} items after {half} samples, and {grown} more as many later."
            )
            raise subject.fails("bounded in memory", found, why, repair)


def _items(part: Any, depth: int, seen: set[int]) -> int:
    """How many things there are in a container and those within it."""
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
