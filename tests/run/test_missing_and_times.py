"""`kernelbank run` on files whose missing values and times are written in their own way."""

import math

import numpy as np
import pytest

from support.run_command import make_rows, read_column, refusal, succeed, write_csv

ROWS = 150


def outputs(folder, name):
    return ("--target", "y", "--predictions", folder / f"{name}.csv")


@pytest.fixture
def table():
    X, y = make_rows(ROWS)
    X[::7, 0] = math.nan
    y[::11] = math.nan
    return np.column_stack([X, y])


@pytest.mark.parametrize(
    ("words", "missing"), [(("-999", "-999.0", "-9.99e2"), "-999"), (("err", "", "-1"), "err,-1")]
)
def test_words_for_missing_values_are_read_as_empty_cells(tmp_path, table, words, missing):
    rows = [["" if math.isnan(value) else value for value in row] for row in table.tolist()]
    empty = write_csv(tmp_path / "empty.csv", ["a", "b", "y"], rows)
    coded = [
        [words[number % 3] if cell == "" else cell for cell in row]
        for number, row in enumerate(rows)
    ]
    codes = write_csv(tmp_path / "codes.csv", ["a", "b", "y"], coded)
    succeed(empty, *outputs(tmp_path, "p"), "--allow-missing", "--predict-missing")
    succeed(codes, *outputs(tmp_path, "q"), "--missing", missing, "--predict-missing")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()
    refused = refusal(codes, *outputs(tmp_path, "r"), "--missing", missing)
    assert "column 'y'" in refused
    assert "is missing. To predict rows without a target, use --predict-missing." in refused


def test_missing_words_hold_for_categories_and_labels(tmp_path):
    text = "k,y\n" + "north,up\n?,down\nsouth,?\n" * 20
    path, same = tmp_path / "codes.csv", tmp_path / "empty.csv"
    path.write_text(text)
    same.write_text(text.replace("?", ""))
    more = ("--categorical", "k", "--task", "classification", "--predict-missing")
    succeed(path, *outputs(tmp_path, "p"), *more, "--missing", "?")
    succeed(same, *outputs(tmp_path, "q"), *more, "--allow-missing")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("{:%d.%m.%Y %H:%M}", ()),
        ("{:%d/%m/%y %H:%M}", ("--time-format", "%d/%m/%y %H:%M")),
        ("{:%Y-%m-%d %H:%M}", ("--timezone", "Europe/Berlin")),
        ("{:%Y-%m-%dT%H:%M-01:00}", ("--timezone", "Etc/GMT+1")),
    ],
)
def test_times_in_other_formats_give_the_same_predictions(tmp_path, form, options):
    X, y = make_rows(ROWS)
    moments = np.datetime64("2024-01-30T00:00") + np.arange(ROWS) * np.timedelta64(37, "m")
    for name, write in (("iso", "{:%Y-%m-%dT%H:%M}"), ("other", form)):
        rows = [
            [write.format(moment), *x, target]
            for moment, x, target in zip(moments.tolist(), X.tolist(), y.tolist(), strict=True)
        ]
        path = write_csv(tmp_path / f"{name}-rows.csv", ["when", "a", "b", "y"], rows)
        more = options if name == "other" else ()
        succeed(path, *outputs(tmp_path, name), "--time", "when", *more)
    assert (tmp_path / "iso.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()
    assert np.isfinite(read_column(tmp_path / "iso.csv", "prediction")).sum() == ROWS - 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--time-format", "%d.%m.%Y"), "--time-format needs --time"),
        (("--timezone", "Europe/Berlin"), "--timezone needs --time"),
        (("--time", "t", "--time-format", "%H:%M"), "must name at least day, month and year"),
        (("--time", "t", "--time-format", "%d.%m.%q"), "must name at least day, month and year"),
        (("--time", "t", "--timezone", "Berlin"), "must be the name of a time zone"),
        (("--time", "t", "--timezone", "../etc/passwd"), "must be the name of a time zone"),
    ],
)
def test_impossible_formats_and_zones_are_refused(tmp_path, options, text):
    path = tmp_path / "rows.csv"
    path.write_text("t,y\n1.1.2024,2\n")
    assert text in refusal(path, *outputs(tmp_path, "p"), *options)
