"""`--lower` and `--upper`: predictions within, targets beyond are bad rows."""

import numpy as np
import pytest

from kernelbank.run.status import RunStatus
from support.run_command import make_rows, read_csv, refusal, succeed, write_csv

ROWS = 400
X, Y = make_rows(ROWS)


def bounded_source(folder, targets):
    return write_csv(folder / "s.csv", ["a", "b", "y"], np.column_stack([X, targets]))


def test_bounded_run_predicts_within_the_bounds_and_resumes(tmp_path):
    targets = np.maximum(0, Y - 20)
    source = bounded_source(tmp_path, targets)
    options = ["--target", "y", "--lower", 0, "--upper", 9, "--state", tmp_path / "state"]
    out = ["--predictions", tmp_path / "out.csv"]
    for rows in (150, ROWS):
        succeed(source, *options, *out, "--max-rows", rows)
    _, rows = read_csv(tmp_path / "out.csv")
    numbers = np.array([[float(cell or "nan") for cell in row[1:4]] for row in rows])
    assert np.nanmin(numbers) == 0.0
    assert np.nanmax(numbers) <= 9.0
    assert RunStatus.of_state(tmp_path / "state").bank.upper == 9.0
    other = refusal(source, "--target", "y", "--lower", 1, "--state", tmp_path / "state", *out)
    assert "--lower was 0.0, now 1.0" in other


def test_target_beyond_a_bound_is_a_bad_row(tmp_path):
    targets = Y.copy()
    targets[17], targets[30] = -3.5, 99.0
    source = bounded_source(tmp_path, targets)
    options = ["--target", "y", "--lower", 0, "--upper", 50, "--predictions", tmp_path / "out.csv"]
    message = refusal(source, *options)
    assert "line 19, column 'y': '-3.5' is below --lower 0: correct it" in message
    assert "--on-bad-row skip" in message
    (tmp_path / "out.csv").unlink()
    done = succeed(source, *options, "--on-bad-row", "skip")
    assert "2 skipped" in done.err
    assert len(read_csv(tmp_path / "out.csv")[1]) == ROWS - 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lower", 3, "--upper", 2], "--lower must be less than --upper; got 3 and 2."),
        (["--lower", "nan"], "--lower must be a number from"),
        (["--upper", 1, "--task", "classification"], "--upper is for numbers"),
    ],
)
def test_wrong_bounds_are_refused(options, words, tmp_path):
    source = bounded_source(tmp_path, Y)
    assert words in refusal(source, "--target", "y", *options)
