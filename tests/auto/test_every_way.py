"""An AutoBank has the same bits in one run and row by row, through files and with late targets.

`tests/test_same_bits.py` runs each kind of AutoBank in blocks, threads and copies; here are streams
in which something happens: far targets and levels, classes that come late, seasons that are found,
slots that are revised.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.slots import FIRST_REVISION
from support.auto_streams import (
    SMALL,
    assert_same_state,
    labelled,
    late_classes,
    numbers,
    troubled,
    troubled_targets,
)
from support.naive.seasons import daily_and_weekly


class Way(NamedTuple):
    """Settings of a bank, its stream, how late targets are, after which rows it is saved."""

    settings: dict[str, Any]
    stream: tuple[np.ndarray, np.ndarray]
    delay: int = 0
    files: tuple[int, ...] = ()


def seasonal(rows, task="regression"):
    X, y = daily_and_weekly(rows)
    if task == "classification":
        return X, np.digitize(y, [45, 55])
    y[[150, 300 % rows]] = 1e6
    y[310:] += 3000.0
    return X, y


LABELS = {"task": "classification"}
AUTO = {"seasons": "auto", "lags": 2}
REVISION = (FIRST_REVISION - 2, FIRST_REVISION - 1, FIRST_REVISION)
WAYS = {
    "troubled numbers": Way({}, troubled(180), 0, (1, 4, 60, 121, 152)),
    "troubled numbers, late": Way({"lags": 2}, troubled(180), 3, (1, 4, 60, 121, 152)),
    "three classes": Way({**LABELS, "lags": 1}, labelled(200, "three"), 0, (3, 40, 95)),
    "a second class that comes late": Way(
        {**LABELS, "lags": 1}, labelled(200, "late"), 2, (3, 40, 95)
    ),
    "classes that come late, revised": Way(LABELS, late_classes(), 0, (140, 155, *REVISION, 570)),
    "revised, late": Way({}, numbers(FIRST_REVISION + 30), 5, REVISION),
    "quantiles, late": Way({"quantiles": (0.1, 0.9)}, numbers(100), 3, (4, 40)),
    "several targets": Way({"lags": 2}, troubled_targets(134), 3, (2, 130)),
    "several targets with seasons, revised": Way(
        {"lags": 2, "seasons": (5, 12)}, troubled_targets(600), 1, (2, 130)
    ),
    "seasons": Way(AUTO, seasonal(540), 0, (3, 198, 199, 200, 497)),
    "seasons, late": Way(AUTO, seasonal(240), 2, (10, 199, 200, 202)),
    "seasons of classes, late": Way(
        {**LABELS, "seasons": (7, 24)}, seasonal(300, "classification"), 30, (10, 199, 200, 230)
    ),
    "forecasts, late": Way({"lags": 3, "horizons": (1, 3, 8)}, numbers(150), 3, (3, 13, 140)),
    "forecasts with known inputs": Way(
        {"lags": 3, "horizons": (1, 3, 8), "known": [0]}, numbers(150), 0, (20, 100)
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_run_equals_single_rows_through_files(name, tmp_path):
    settings, (X, y), delay, files = WAYS[name]
    whole, single = (kb.AutoBank(**SMALL, **settings) for _ in range(2))
    record = "light" if "several" in name else "all"  # slots that do not run yet show a mean
    trace = whole.run(X, y, delay=delay, record=record)
    for row in range(len(y) + delay):
        if row < len(y):
            answer = single.predict_trace_one(X[row], record=record)
            for field in set(answer.fields) & set(trace.fields):
                found, expected = getattr(answer, field)[0], getattr(trace, field)[row]
                if row > delay and np.shape(found) == np.shape(expected):  # slots, classes may come
                    same = np.array_equal(
                        found, expected, equal_nan=trace.predictions.dtype == float
                    )
                    assert same, (field, row)
        if row >= delay:
            single.learn_one(X[row - delay], y[row - delay])
        if row in files:
            single = kb.from_bytes(single.to_bytes())
    for bank in (whole, single):
        bank._pending.clear()  # of rows without any target
    assert_same_state(whole, single)
    if "revised" in name:
        assert single.ledger.slot_changes
    if "horizons" in settings and "known" not in settings:
        np.testing.assert_array_equal(single.forecast().point, trace.forecasts[-1])


def play(bank, X, y, rows):
    """Answers in all orders: twice, of other rows, late, and with targets that never come."""
    answers = []
    for n in rows:
        answers.append(bank.predict_one(X[n]))
        if n % 5 == 1:
            answers.append(bank.predict_one(X[n - 1]))
        if n % 3 == 1 and bank.task == "regression":
            answers.append(bank.predict_interval_one(X[n], 0.8))
        if n % 13 == 7:
            answers.append(bank.predict(X[:3]).tolist())
        if n % 17 == 3:
            bank.run(X[n : n + 1], y[n : n + 1])
        elif n % 11 != 5:
            bank.learn_one(list(X[n]), y[n])
    return answers


@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_a_loaded_bank_goes_on_in_any_order_with_the_same_bits(kind):
    X, y = troubled(210) if kind == "numbers" else labelled(210, kind)
    task = "regression" if kind == "numbers" else "classification"
    bank = kb.AutoBank(task, lags=1, **SMALL)
    play(bank, X, y, range(152))
    again = kb.from_bytes(bank.to_bytes())
    later = range(152, 210)
    assert repr(play(bank, X, y, later)) == repr(play(again, X, y, later))
    assert bank.to_bytes() == again.to_bytes()


STREAMS = {"numbers": troubled, "several": troubled_targets}
ROW_FORMS = {
    "array": lambda row: row,
    "every second number of an array": lambda row: np.repeat(row, 2)[::2],
    "list": list,
    "tuple": tuple,
    "whole numbers": lambda row: [int(value) if value == 1.0 else value for value in row.tolist()],
    "dictionary": lambda row: dict(zip(("c", "a", "b"), row[[2, 0, 1]], strict=True)),
}


@pytest.mark.parametrize("form", ROW_FORMS)
@pytest.mark.parametrize("kind", ["numbers", "several", "two", "three"])
def test_rows_that_the_core_reads_alone_leave_what_checked_rows_do(kind, form):
    labels = kind in ("two", "three")
    X, y = labelled(150, kind) if labels else STREAMS[kind](150)
    X[:, 2] = 1.0
    alone, checked = (
        kb.AutoBank("classification" if labels else "regression", lags=1, **SMALL) for _ in range(2)
    )
    checked._is_plain = False
    answers = {alone: [], checked: []}
    for bank, said in answers.items():
        if form == "dictionary":
            bank.name_columns(["a", "b", "c"])
        rows = [ROW_FORMS[form](row) for row in X]
        for n, target in enumerate(y.tolist()):
            if n % 7 != 3:
                said.append(bank.predict_one(rows[n]))
            if n % 5 == 2:
                said.append(bank.predict_one(rows[n - 2]))
            if n % 11 == 4 and not labels:
                said.append(bank.predict_interval_one(rows[n], 0.5))
            if n % 13 != 5:
                bank.learn_one(rows[n], target)
    assert repr(answers[alone]) == repr(answers[checked])
    assert alone.ledger.changes == checked.ledger.changes
    assert alone.to_bytes() == checked.to_bytes()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2.0, 3.0], 1.0),
        ([1.0, 1e151], 1.0),
        ([1.0, float("inf")], 1.0),
        ([1.0, 10**400], 1.0),
        ({"a": 1.0}, 1.0),
        (["1", "2"], 1.0),
        ([1.0, 2.0], float("nan")),
        ([1.0, 2.0], float("inf")),
        ([1.0, 2.0], -0.5),
        ([1.0, 2.0], "1"),
        ([1.0, 2.0], [1.0, 2.0]),
    ],
)
def test_rows_that_do_not_fit_are_refused_as_ever_and_change_nothing(x, y):
    X, targets = numbers(60)
    bank = kb.AutoBank(lower=0.0, **SMALL)
    bank.run(X[:, :2], np.abs(targets))
    before = bank.to_bytes()
    with pytest.raises(kb.errors.InvalidArgument):
        bank.learn_one(x, y)
    assert bank.to_bytes() == before
