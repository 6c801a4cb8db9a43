"""Our own: AutoBank, which is to win, and banks of the literature, which are only shown."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

import kernelbank as kb

from .entries import CLASSIFICATION, Entry
from .players import HOUSE, OURS, Played, Player

_CLIP = 10.0
_FIRST_CALL = 200
"""Rows that are played before the timer starts, so that everything is compiled."""

COVERAGE = 0.9


def play_auto(X: np.ndarray, y: np.ndarray, task: str, lags: int) -> Played:
    """AutoBank with nothing but the task and the number of lags; it scales for itself."""
    record = ["predictions", "slot_predictions"]
    if task != CLASSIFICATION:
        record += ["lower", "upper"]
    elif len(np.unique(y)) > 2:
        record = ["predictions"]
    kb.AutoBank(task, lags).run(X[:_FIRST_CALL], y[:_FIRST_CALL], record=record)
    model = kb.AutoBank(task, lags)
    start = time.perf_counter()
    trace = model.run(X, y, record=record, coverage=COVERAGE)
    seconds = time.perf_counter() - start
    extras = {name: np.asarray(getattr(trace, name)) for name in record[1:]}
    if task == CLASSIFICATION and "slot_predictions" in extras and model.classes[0]:
        extras["slot_predictions"] = -extras["slot_predictions"]  # label 1 was seen first
    return Played(np.asarray(trace.predictions, dtype=np.float64), seconds, extras=extras)


def _play_ours(entry: Entry) -> Played:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        return play_auto(entry.X, entry.y, entry.task, entry.lags)


def _paper() -> kb.KernelBank:
    return kb.KernelBank()


def _omkr() -> kb.KernelBank:
    return kb.KernelBank(combiner=kb.combiners.OMKR())


def _raker() -> kb.KernelBank:
    return kb.presets.raker()


def _play_bank(make: Callable[[], kb.KernelBank], entry: Entry) -> Played:
    """A bank on standard units. Labels are learned as -1 and 1, and read from the sign."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        make().run(entry.inputs[:2], entry.y[:2], record=())
        bank = make()
        start = time.perf_counter()
        X, _ = kb.datasets.standardised(entry.inputs, entry.y)
        if entry.task == CLASSIFICATION:
            centre, scale, targets = 0.0, 1.0, 2 * entry.y - 1
        else:
            centre, scale = running_scale(entry.y)
            targets = np.clip((entry.y - centre) / scale, -_CLIP, _CLIP)
        predictions = bank.run(X, targets, record=["predictions"]).predictions * scale + centre
        if entry.task == CLASSIFICATION:
            predictions = np.where(np.isnan(predictions), np.nan, predictions > 0)
        return Played(predictions, time.perf_counter() - start)


def running_scale(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the targets before each row; 0 and 1 where there is none."""
    shifted = y - y[0]  # so that the squares below do not cancel far from zero
    count = np.arange(1.0, len(y))
    mean = np.cumsum(shifted[:-1]) / count
    variance = np.cumsum(shifted[:-1] ** 2) / count - mean**2
    floor = 1e-12 * np.maximum.accumulate(np.abs(shifted[:-1])) ** 2
    deviation = np.where(variance > floor, np.sqrt(np.maximum(variance, 0.0)), 1.0)
    return np.concatenate([[0.0], mean + y[0]]), np.concatenate([[1.0], deviation])


AUTO = Player("autobank", OURS, "kb.AutoBank(task, lags)", _play_ours)

BANKS = [
    Player(name, HOUSE, words, partial(_play_bank, make), many_classes=False)
    for name, words, make in (
        ("paper", "kb.KernelBank() on standard units: the paper's bank", _paper),
        ("omkr", "the same with combiners.OMKR()", _omkr),
        ("raker", "kb.presets.raker() on standard units", _raker),
    )
]
