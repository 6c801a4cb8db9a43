"""Who can be compared: banks, anything that predicts and learns one sample at a time, baselines.

Every player plays a stream prequentially: it predicts a sample, and only then is told its target.
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..utils import validation as check
from ..utils.validation import Floats

BANK, RIVAL, BASELINE = "bank", "rival", "baseline"
PERSISTENCE, RUNNING_MEAN = "persistence", "running mean"


@dataclass(frozen=True)
class Played:
    """One pass over a stream. Only a bank is charged a cost."""

    predictions: Floats
    seconds_per_sample: float
    cumulative_cost: float | None = None


@dataclass(frozen=True)
class Player:
    """A name, and how to play one stream from nothing."""

    name: str
    kind: str
    seeded: bool
    """Whether another seed can make another result on the same stream."""

    play: Callable[[int, Floats, Floats], Played]


def baselines() -> list[Player]:
    """What every learner should beat: the last target, and the mean of all so far."""
    return [
        Player(PERSISTENCE, BASELINE, False, _timed(_last)),
        Player(RUNNING_MEAN, BASELINE, False, _timed(_mean)),
    ]


def as_player(name: str, given: Any) -> Player:
    """A player from a bank, a model with predict_one and learn_one, or a maker of either."""
    owner = f"banks[{name!r}]"
    if name in (PERSISTENCE, RUNNING_MEAN):
        remedy = "Choose another name: this baseline stands in every table."
        raise check.refuse("banks", "not use a baseline's name", name, remedy, "compare")
    if isinstance(given, KernelBank):
        if given.samples:
            rule = f"have learned nothing (it has seen {given.samples} samples)"
            raise check.refuse(owner, rule, given, "Give bank.fresh().", "compare")
        return Player(name, BANK, False, lambda _, X, y: _play_bank(given.fresh, X, y))
    if not isinstance(given, type) and _is_model(given):
        return Player(name, RIVAL, False, lambda _, X, y: _play_model(_copy(given), X, y))
    if callable(given):
        return Player(name, _kind_of(owner, given), True, _player_of_maker(owner, given))
    raise _refuse(owner, given)


def _player_of_maker(owner: str, maker: Callable[[int], Any]) -> Callable[..., Played]:
    def play(seed: int, X: Floats, y: Floats) -> Played:
        made = maker(seed)
        if isinstance(made, KernelBank):
            if made.samples:
                rule = f"make banks that have learned nothing (one has seen {made.samples})"
                remedy = "Let it return a new bank each time, or bank.fresh()."
                raise check.refuse(owner, rule, made, remedy, "compare")
            return _play_bank(made.fresh, X, y)
        if not _is_model(made):
            raise _refuse(owner, made)
        return _play_model(made, X, y)

    return play


def _kind_of(owner: str, maker: Callable[[int], Any]) -> str:
    """What a maker makes; a wrong one is refused before anything is played."""
    try:
        inspect.signature(maker).bind(0)
    except (TypeError, ValueError):
        raise _refuse(owner, maker) from None
    made = maker(0)
    if isinstance(made, KernelBank):
        return BANK
    if isinstance(made, type) or not _is_model(made):
        raise _refuse(owner, made)
    return RIVAL


def _refuse(owner: str, given: Any) -> Exception:
    return check.refuse(
        owner,
        "be a bank, a model with predict_one and learn_one, or a function from a seed to one",
        given,
        "Give for example kb.KernelBank(), or lambda seed: kb.KernelBank().",
        "compare",
    )


def _is_model(given: Any) -> bool:
    methods = (getattr(given, name, None) for name in ("predict_one", "learn_one"))
    return all(callable(method) for method in methods)


def _copy(model: Any) -> Any:
    """The model as it was given: River's own copy without what it has learned, or a deep one."""
    return model.clone() if callable(getattr(model, "clone", None)) else copy.deepcopy(model)


def _play_bank(make: Callable[[], KernelBank], X: Floats, y: Floats) -> Played:
    make().run(X[:2], y[:2], record=())  # compiles what the stream needs, outside the timer
    bank = make()
    start = time.perf_counter()
    trace = bank.run(X, y, record=["predictions"])
    seconds = time.perf_counter() - start
    return Played(trace.predictions, seconds / len(y), bank.ledger.cumulative_cost)


def _play_model(model: Any, X: Floats, y: Floats) -> Played:
    """One sample after the other. River's models take dictionaries, all others (d,) arrays."""
    rows: list[Any] = list(X)
    if _of_river(model):
        names = [f"x{place}" for place in range(X.shape[1])]
        rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    targets = y.tolist()
    predictions = np.full(len(y), math.nan)
    start = time.perf_counter()
    try:
        for n, (row, target) in enumerate(zip(rows, targets, strict=True)):
            predicted = model.predict_one(row)
            predictions[n] = 0.0 if predicted is None else predicted
            model.learn_one(row, target)
    except ArithmeticError:  # it diverged: what follows has no prediction
        pass
    except Exception as error:  # it broke: likewise, and its owner should know
        warnings.warn(f"{type(model).__name__} failed at sample {n}: {error!r}", stacklevel=2)
    return Played(predictions, (time.perf_counter() - start) / len(y))


def _of_river(model: Any) -> bool:
    river = sys.modules.get("river.base")  # a model of River cannot come from anywhere else
    return river is not None and isinstance(model, river.Base)


def _timed(predict: Callable[[Floats], Floats]) -> Callable[[int, Floats, Floats], Played]:
    def play(seed: int, X: Floats, y: Floats) -> Played:  # noqa: ARG001
        start = time.perf_counter()
        predictions = predict(y)
        return Played(predictions, (time.perf_counter() - start) / len(y))

    return play


def _last(y: Floats) -> Floats:
    return np.concatenate([[0.0], y[:-1]])


def _mean(y: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(y[:-1]) / np.arange(1, len(y))])
