"""Data sets: synthetic streams, tables, and named benchmarks by checksum."""

import gzip
import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import FileRefused, KernelBankError, KernelBankWarning
from kernelbank.research import lorenz
from kernelbank.research.datasets import benchmarks
from kernelbank.research.datasets.synthetic import lorenz_path
from support.marks import slow_unless
from support.streams import noisy_stream, write_text

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


def test_friedman_and_sine_drift_as_their_formulas_say():
    X, y = kb.datasets.friedman(0, 900)
    a, b, c, d, e = X[:, :5].T
    noise = y - (10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e)
    assert noise[:300].std() == pytest.approx(1, rel=0.1)
    assert min(noise[300:600].std(), noise[600:].std()) > 3  # other inputs matter there
    X, y = kb.datasets.sine(0, 1000, noise=0.0, periods=0.5)
    assert y[-1] == pytest.approx(-np.sin(2 * np.pi * X[-1, 0]), abs=0.01)


def test_lorenz_series_equals_the_file_of_the_toolbox():
    X, y = lorenz.stream()
    assert X.shape == (10_000, 6)
    assert X[0].tolist() == [35.0, 0, 0, 0, 0, 0]
    assert y[:4].round(6).tolist() == [34.766667, 34.443866, 34.040837, 33.568386]
    assert y[2007].round(6) == 27.55775
    assert y[-3:].round(6).tolist() == [13.304219, 14.489282, 15.888197]
    assert X[9].tolist() == y[8:2:-1].tolist()


def test_runge_kutta_with_half_the_step_has_a_sixteenth_of_the_error():
    def end(step):
        return lorenz_path((1.0, 2.0, 20.0), round(0.5 / step) + 1, step)[-1]

    exact = end(0.0005)
    errors = [np.abs(end(step) - exact).max() for step in (0.01, 0.005)]
    assert 12 < errors[0] / errors[1] < 20


def test_lorenz_runs_every_learner_that_takes_the_squared_loss():
    """Settings that a learner does not have would raise here."""
    names = {type(learner).__name__ for learner, _ in lorenz.setups()}
    assert "Norma" in names
    results = list(lorenz.run_learners(80))
    assert {result.name for result in results} == names
    assert all(len(result.errors) == 79 for result in results)
    assert lorenz.decibels(100.0) == 20
    assert lorenz.decibels(0.0) == -math.inf
    assert lorenz.decibels(math.nan) == math.inf


@pytest.mark.slow
def test_lorenz_errors_reach_the_published_ones():
    for result in lorenz.run_learners():
        if result.published is not None:
            assert result.decibels < result.published + 1.5, result.learner


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_file_plain_or_gzip_is_read(tmp_path, name):
    path = write_text(tmp_path / name, "a, b ,y\n1,2,3\n\n4,5e0,-6\n7,8,9\n")
    X, y = kb.datasets.read_csv(path)
    assert X.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert y.tolist() == [3, -6, 9]
    X, y = kb.datasets.read_csv(path, target="a", inputs=["y"], samples=2)
    assert X.tolist() == [[3], [-6]]
    assert y.tolist() == [1, 4]
    found = kb.compare({"a": kb.KernelBank()}, {"t": path}, target="b")
    assert found.of("t")[0].samples == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a,y\n", "no rows"),
        ("a,y\n1,2\n1,x\n", "line 3, column 'y': 'x' is"),
        ("a,y\n1,2\n\n,3\n", "line 4, column 'a': '' is missing"),
        ("a,y\n1,inf\n", "line 2, column 'y': 'inf'"),
        ("a,y\n1,1e200\n", "line 2, column 'y': '1e200'"),
        ("a,y\n1,2,3\n", "line 2: .* 3 cells under 2 columns"),
        ("a,a\n1,2\n", "no input|more than one"),
        ("y\n1\n", "no input column"),
        ("a,a,y\n1,2,3\n", "line 1: more than one column is called 'a'"),
    ],
)
def test_bad_csv_file_is_refused_with_line_and_column(tmp_path, text, words):
    path = write_text(tmp_path / "t.csv", text)
    with pytest.raises(ValueError, match=words) as caught:
        kb.datasets.read_csv(path)
    assert str(path) in str(caught.value)


def test_file_that_is_not_a_table_is_refused(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(b"not gzip")
    whole = gzip.compress(b"a,y\n" + b"1,2\n" * 5000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.csv").write_bytes(b"a,y\n\xff\xfe,1\n")
    (tmp_path / "d.csv").mkdir()
    write_text(tmp_path / "ok.csv", "a,y\n1,2\n")
    for name, words in [
        ("t.csv.gz", "gzip"),
        ("cut.csv.gz", "gzip"),
        ("b.csv", "line 2, column 'a'"),
        ("d.csv", "folder"),
        ("none.csv", "no such file"),
        ("t.txt", "end with .csv"),
    ]:
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


BENCHMARKS = kb.datasets.BENCHMARKS
TABLE = np.array([[1.0, 2.5, -0.0], [3.0, 4.0, 1.0], [0.1, 6.0, 1e-3]])
TEXT = "a,b,y\n1,2.5,0\n3,4,1\n0.1,6,0.001\n"


@pytest.fixture
def known(monkeypatch):
    """A benchmark `tiny` that is known by its numbers."""
    sha256 = hashlib.sha256((TABLE + 0.0).tobytes()).hexdigest()
    tiny = replace(BENCHMARKS["kin40k"], name="tiny", rows=3, inputs=2, sha256=sha256)
    monkeypatch.setitem(BENCHMARKS, "tiny", tiny)


def test_every_benchmark_says_what_and_whence_it_is():
    assert sum(one.seen for one in BENCHMARKS.values()) == 16
    for name, one in BENCHMARKS.items():
        assert one.name == name
        assert one.task in ("regression", "classification")
        assert one.order in ("time", "iid")
        assert one.rows >= 144
        assert one.inputs >= 1
        assert len(one.sha256) == 64
        assert one.about
        assert one.source.startswith(("GitHub ", "PyPI ", "StatLib"))
        assert one.licence
        assert one.package or len(one.file_sha256) == 64
        assert "/" not in name


@pytest.mark.parametrize("place", ["tiny.csv", "tiny.csv.gz", "deeper/tiny.csv.gz"])
def test_file_is_recognised_by_its_numbers_however_it_is_written(tmp_path, known, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    text = TEXT if place == "tiny.csv" else TEXT.replace("0.001", "1e-3").replace(",4,", ",4.00,")
    write_text(path, text)
    stream = kb.datasets.load("tiny", tmp_path)
    assert stream.X.tolist() == TABLE[:, :2].tolist()
    assert stream.y.tolist() == [0.0, 1.0, 0.001]
    assert stream.task == "regression"
    assert len(kb.datasets.load("tiny", str(tmp_path), samples=2)) == 2
    found = kb.compare({"a": kb.KernelBank()}, ["tiny"], folder=tmp_path)
    assert found.of("tiny")[0].samples == 3


def test_file_with_other_numbers_is_refused_with_the_remedy(tmp_path, known):
    write_text(tmp_path / "tiny.csv", TEXT.replace("2.5", "2.6"))
    with pytest.raises(FileRefused, match="not the numbers of 'tiny'") as caught:
        kb.datasets.load("tiny", tmp_path)
    for words in (BENCHMARKS["tiny"].file_sha256, BENCHMARKS["tiny"].source, "read_csv"):
        assert words in str(caught.value)


def test_what_is_not_there_says_where_it_comes_from(tmp_path, monkeypatch):
    with pytest.raises(KernelBankError, match=r"santafe_laser: .*kafbox.*santafe_laser\.csv\.gz"):
        kb.datasets.load("santafe_laser", tmp_path)
    monkeypatch.setattr(benchmarks, "find_spec", lambda name: None)
    with pytest.raises(KernelBankError, match="install the package sklearn"):
        kb.datasets.load("iris")
    with pytest.raises(FileRefused, match="no such folder"):
        kb.datasets.load("santafe_laser", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="'name' of load must be one of"):
        kb.datasets.load("laser")


@pytest.mark.filterwarnings("error")  # other numbers would warn
@pytest.mark.parametrize(
    "name",
    slow_unless(
        lambda name: BENCHMARKS[name].rows < 2000, [n for n in BENCHMARKS if BENCHMARKS[n].package]
    ),
)
def test_streams_of_river_and_scikit_learn_have_their_numbers_and_order(name):
    benchmark, stream = BENCHMARKS[name], kb.datasets.load(name)
    assert stream.X.shape == (benchmark.rows, benchmark.inputs)
    assert stream.task == benchmark.task
    # Rows in no order are not correlated with the row before.
    columns = np.column_stack([stream.X, stream.y])
    columns = columns[:, columns.std(axis=0) > 0]
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    correlated = np.abs((columns[1:] * columns[:-1]).mean(axis=0)).max() > 4 / len(stream) ** 0.5
    if name != "SP500Stocks":  # days in their order, of which nothing can be predicted
        assert correlated == (benchmark.order == "time")


def test_package_with_other_numbers_warns(monkeypatch):
    one = replace(BENCHMARKS["iris"], sha256="0" * 64)
    monkeypatch.setitem(BENCHMARKS, "iris", one)
    with pytest.warns(KernelBankWarning, match="iris: the installed sklearn has other numbers"):
        assert len(kb.datasets.load("iris")) == 150


def test_checksum_depends_on_every_number_and_not_on_the_sign_of_zero():
    X, y = TABLE[:, :2], TABLE[:, 2]
    before = benchmarks.checksum(X, y)
    assert before == benchmarks.checksum(X, np.abs(y))
    for place in np.ndindex(X.shape):
        other = X.copy()
        other[place] = np.nextafter(other[place], 9)
        assert benchmarks.checksum(other, y) != before
