"""Drawings of a status, and traces as data frames."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from kernelbank.auto import model as models
from kernelbank.bank import trace as traces
from kernelbank.utils.rendering import CELLS, number, one_line, render_html, render_text
from support.status_views import SCRIPT, parsed_html


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308, -1e-300])
def test_values_of_any_size_are_drawn(value):
    bars = (("one", value), ("two", 0.5))
    text = render_text("title", bars=bars)
    assert number(value) in text
    parsed_html(render_html(text))


def test_bars_have_lengths_in_proportion_to_their_values():
    bars = (("all", 0.8), ("half", 0.4), ("a little", 1e-9), ("nothing", 0.0), ("less", -0.2))
    lines = render_text("title", (), "weights", bars).split("\n")
    found = [re.fullmatch(r"    +(\S+) (.{20}) (.*)", line).groups() for line in lines[2:]]
    assert [name for *_, name in found] == [name for name, _ in bars]
    drawn = [bar.rstrip() for _, bar, _ in found]
    assert drawn == ["#" * CELLS, "#" * 10, "#", "", "-" * 5]


def test_hostile_text_is_drawn_as_text_only():
    bad = f"{SCRIPT}\"'&amp;\n\x1b[31m\x00\u202e\ud800\tend"
    text = render_text(bad, ((bad, bad),), bad, ((bad, 0.5),), bad)
    page = render_html(text)
    assert len(text.split("\n")) == 5
    assert text.replace("\n", "").isprintable()
    assert "<script" not in page
    assert parsed_html(page)[0].text == text
    assert one_line(bad) in text
    assert page.encode("utf-8")
    assert unescape(page).count(SCRIPT) == 6


# --- traces as data frames ------------------------------------------------------------------------


def outputs_trace(record="all"):
    """Its frame has columns of slots by output."""
    x = np.arange(40) / 4
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 4, 3), outputs=2, window=5)
    return bank.run(x, np.column_stack([np.sin(x), np.cos(x)]), record)


def auto_trace(task, **options):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] if task == "regression" else np.where(X[:, 0] > 0, "up", "down")
    return kb.AutoBank(task, size="small", **options).run(X, y, record="all")


TRACES = {
    None: outputs_trace,
    "regression": lambda: auto_trace("regression", horizons=(1, 4)),
    "classification": lambda: auto_trace("classification"),
}


@pytest.mark.parametrize("task", TRACES)
def test_frame_is_a_copy_of_all_arrays_that_comes_back_from_parquet(task, tmp_path):
    trace = TRACES[task]()
    frame = trace.to_frame()
    fields = traces.FIELDS if task is None else models.FIELDS[task]
    assert set(frame.columns.str.split(":").str[0]) == set(fields) - {"quantiles"}
    frame.to_parquet(tmp_path / "trace.parquet")
    frame.loc[:, frame.select_dtypes("number").columns] = -1.0  # which does not change the trace
    frame = pd.read_parquet(tmp_path / "trace.parquet")
    assert len(frame) == len(trace)
    assert frame.index.name == "sample"
    assert frame.columns.is_unique
    width = 0
    for field in trace.fields:
        array = getattr(trace, field)
        array = array.reshape(len(array), -1) if array.ndim == 3 else array
        width += array.shape[1] if array.ndim == 2 else 1
        part = frame.filter(regex=f"^{field}: ")
        values = part.to_numpy() if part.shape[1] else frame[field].to_numpy()
        if array.dtype == object:  # labels: None before one is known
            array, values = (np.where(pd.isna(x), None, x) for x in (array, values))
        assert np.array_equal(values, array, equal_nan=array.dtype != object), field
    assert frame.shape[1] == width


def test_columns_are_named_by_output_slot_class_and_level():
    trace = outputs_trace()
    frame = trace.to_frame()
    assert list(frame)[:2] == ["predictions: output 0", "predictions: output 1"]
    column = frame["slot_loss: output 1: [2] Gaussian(width=4)"]
    assert np.array_equal(column, trace.slot_loss[:, 1, 2])
    bank = kb.AutoBank(size="small", quantiles=(0.25, 0.75))
    trace = bank.run(np.zeros(20), np.arange(20.0), record=["quantiles"])
    assert list(trace.to_frame()) == ["quantiles: 0.25", "quantiles: 0.75"]
    X = np.arange(40.0) % 2
    trace = kb.AutoBank("classification", size="small").run(X, [1 if x else "1" for x in X])
    assert list(trace.to_frame())[1:] == ["probabilities: 1", "probabilities: 1 (2)"]
    assert outputs_trace(()).to_frame().shape == (40, 0)
