"""Data sets: synthetic streams and tables."""

import numpy as np
import pytest

import kernelbank as kb
from support.comparisons import noisy_stream, write_text

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@pytest.mark.parametrize("name", sorted(kb.datasets.BUILT_IN))
def test_synthetic_stream_with_same_seed_has_same_bits(name):
    maker = kb.datasets.BUILT_IN[name]
    X, y = maker(3, 50)
    again = maker(3, 50)
    assert (again[0] == X).all()
    assert (y == again[1]).all()
    assert len(X) == len(y) == 50
    assert np.isfinite(X).all()
    assert not (y == maker(4, 50)[1]).all()
    with pytest.raises(ValueError, match="'samples'"):
        maker(0, 0)
    with pytest.raises(ValueError, match="'seed'"):
        maker(-1, 5)


def test_sine_drifts_as_its_formula_says():
    X, y = kb.datasets.sine(0, 1000, noise=0.0, periods=0.5)
    assert y[-1] == pytest.approx(-np.sin(2 * np.pi * X[-1, 0]), abs=0.01)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_file_plain_or_gzip_is_read(tmp_path, name):
    path = write_text(tmp_path / name, "a, b ,y\n1,2,3\n\n4,5e0,-6\n7,8,9\n")
    X, y = kb.datasets.read_csv(path)
    assert X.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert y.tolist() == [3, -6, 9]
    X, y = kb.datasets.read_csv(path, target="a", inputs=["y"], samples=2)
    assert X.tolist() == [[3], [-6]]
    assert y.tolist() == [1, 4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a,y\n", "no rows"),
        ("a,y\n1,2\n\n,3\n", "line 4, column 'a': '' is missing"),
        ("a,y\n1,1e200\n", "line 2, column 'y': '1e200'"),
        ("y\n1\n", "no input column"),
    ],
)
def test_bad_csv_file_is_refused_with_line_and_column(tmp_path, text, words):
    path = write_text(tmp_path / "t.csv", text)
    with pytest.raises(ValueError, match=words) as caught:
        kb.datasets.read_csv(path)
    assert path.name in str(caught.value)


def test_file_or_column_that_is_not_there_is_refused(tmp_path):
    write_text(tmp_path / "ok.csv", "a,y\n1,2\n")
    for name, words in [("none.csv", "no such file"), ("t.txt", "end with .csv")]:
        with pytest.raises(ValueError, match=words):
            kb.datasets.read_csv(tmp_path / name)
    with pytest.raises(ValueError, match=r"no column 'z'\. It has 'a', 'y'"):
        kb.datasets.read_csv(tmp_path / "ok.csv", target="z")
    with pytest.raises(ValueError, match="target and an input"):
        kb.datasets.read_csv(tmp_path / "ok.csv", target="a", inputs=["a"])


def test_standardised_rows_do_not_depend_on_later_rows():
    X, y = noisy_stream(3, 200)
    X[:, 1] = 7.0  # a constant column
    scaled, targets = kb.datasets.standardised(1e6 + X, y, rows=50)
    assert (scaled[:80] == kb.datasets.standardised((1e6 + X)[:80], y[:80], rows=50)[0]).all()
    assert (scaled[:, 1] == 0).all()
    for n in (1, 50, 199):
        seen = X[: n + 1, 0]
        assert scaled[n, 0] == pytest.approx((X[n, 0] - seen.mean()) / seen.std(), abs=1e-5)
    assert targets[:50].mean() == pytest.approx(0, abs=1e-12)
    assert targets[:50].std() == pytest.approx(1)
    assert np.diff(targets) * y[:50].std() == pytest.approx(np.diff(y))
