"""`kernelbank run` says once what is probably not what its user means, and goes on."""

import numpy as np
import pytest

from support.run_command import make_rows, read_csv, refusal, run, succeed, write_csv

ROWS = 150


def notes(folder, columns, table, *options):
    """What a command notes about a table, without the summary."""
    path = write_csv(folder / "rows.csv", columns, table)
    done = succeed(path, "--target", "y", *options)
    return [line for line in done.err.splitlines() if line.startswith("note: ")]


@pytest.fixture
def table():
    X, y = make_rows(ROWS)
    return np.column_stack([X, y])


def test_ordinary_columns_are_not_noted(tmp_path, table):
    flags = np.arange(ROWS) % 50 == 0  # 0 and 1, of which one is rare
    rain = np.where(np.arange(ROWS) % 4, 0, table[:, 1] ** 2)
    columns = np.column_stack([table, flags, rain])
    assert notes(tmp_path, ["a", "b", "y", "flag", "rain"], columns) == []


@pytest.mark.parametrize(("code", "column"), [(-999, 0), (9999, 1), (-999, 2)])
def test_far_value_that_repeats_is_noted_once(tmp_path, table, code, column):
    table[10::20, column] = code
    name = "aby"[column]
    [note] = notes(tmp_path, ["a", "b", "y"], table, "--missing", "NA")
    assert note.startswith(f"note: {code} has come ")
    assert f"times in {name!r}, far from all other values" in note
    assert note.endswith(f"use --missing NA,{code}.")
    more = ("--missing", f"NA,{code}", "--predict-missing")
    assert notes(tmp_path, ["a", "b", "y"], table, *more) == []


def test_columns_of_one_value_or_none_are_noted(tmp_path, table):
    columns = np.column_stack([table, np.full(ROWS, 7), np.full(ROWS, np.nan)])
    found = notes(tmp_path, ["a", "b", "y", "seven", "empty"], columns, "--allow-missing")
    assert found == [
        "note: column 'seven' has been 7 in all 150 rows so far.",
        "note: column 'empty' has had no value in 150 rows so far.",
    ]
    table[:, 2] = 3
    [note] = notes(tmp_path, ["a", "b", "y"], table)
    assert note.endswith("'y' has been 3 in all 150 rows so far. Is --target the right column?")


def test_long_numbers_are_noted(tmp_path, table):
    ids = 2**55 + 8 * np.arange(ROWS)
    [note] = notes(tmp_path, ["a", "b", "y", "id"], np.column_stack([table, ids]))
    assert "column 'id' has whole numbers beyond 2^53, which are rounded" in note


def test_times_that_repeat_or_run_backwards_are_noted_with_their_row(tmp_path, table):
    times = ["2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T01:00", "2024-01-01T00:30"]
    times += [f"2024-01-0{2 + n // 24}T{n % 24:02}:00" for n in range(ROWS - 4)]
    rows = [[time, *row] for time, row in zip(times, table.tolist(), strict=True)]
    same, back = notes(tmp_path, ["t", "a", "b", "y"], rows, "--time", "t")
    assert same.startswith("note: rows.csv, line 4: its time is that of the row before.")
    assert back.startswith("note: rows.csv, line 5: its time is before that of the row before.")


def test_hours_of_a_changed_clock_are_noted(tmp_path, table):
    days = ("2024-03-31T01:30", "2024-03-31T02:30", "2024-10-27T02:00", "2024-10-27T02:30")
    times = [*days, "2024-10-27T02:00", "2024-10-27T02:30", "2024-10-27T03:00"]
    rows = [[time, *row] for time, row in zip(times, table.tolist(), strict=False)]
    options = ("--time", "t", "--timezone", "Europe/Berlin")
    never, twice = notes(tmp_path, ["t", "a", "b", "y"], rows, *options)
    assert "line 3: the clock of Europe/Berlin shows this time never" in never
    assert "line 4: the clock of Europe/Berlin shows this time twice" in twice


def test_first_line_that_looks_like_a_row_is_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1.5,2.5\n1,2\n3,4\n")
    done = succeed(path, "--target", "2.5")
    assert "line 1: the first line looks like a row, not like the names" in done.err


def test_folder_that_is_not_there_is_named(tmp_path, table):
    path = write_csv(tmp_path / "rows.csv", ["a", "b", "y"], table)
    place = tmp_path / "nodir" / "p.csv"
    text = refusal(path, "--target", "y", "--predictions", place)
    assert f"there is no folder {place.parent}. Create it, or give another name." in text


def test_refused_run_leaves_no_output_that_only_has_a_header(tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "p.csv"
    path.write_text("a,y\nx,1\n2,3\n")
    refusal(path, "--target", "y", "--predictions", place)
    assert not place.exists()
    place.write_text("row,prediction,probability,target\n")  # of a run with other options
    path.write_text("a,y\n1,1\n2,3\n")
    succeed(path, "--target", "y", "--predictions", place)
    assert len(read_csv(place)[1]) == 2
    refusal(path, "--target", "y", "--predictions", place)
    assert len(read_csv(place)[1]) == 2


def test_resume_is_not_an_option_but_explained(tmp_path):
    done = run(tmp_path / "rows.csv", "--target", "y", "--resume")
    assert done.code == 2
    assert "the same command resumes, if it has --state" in done.err
