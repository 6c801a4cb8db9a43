"""Named benchmarks: from files and packages, by checksum; nothing is downloaded."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import FileRefused, KernelBankError, KernelBankWarning
from kernelbank.research.datasets import benchmarks
from support.streams import write_text

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


@pytest.mark.parametrize(
    "name", [n for n, b in BENCHMARKS.items() if b.package in ("river", "sklearn")]
)
def test_rows_in_no_order_are_not_correlated_with_the_row_before(name):
    stream = kb.datasets.load(name)
    columns = np.column_stack([stream.X, stream.y])
    columns = columns[:, columns.std(axis=0) > 0]
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    correlated = np.abs((columns[1:] * columns[:-1]).mean(axis=0)).max() > 4 / len(stream) ** 0.5
    if name != "SP500Stocks":  # days in their order, of which nothing can be predicted
        assert correlated == (BENCHMARKS[name].order == "time")


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
    with pytest.raises(KernelBankError, match="install the package statsmodels"):
        kb.datasets.load("elnino_sst")
    with pytest.raises(FileRefused, match="no such folder"):
        kb.datasets.load("santafe_laser", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="'name' of load must be one of"):
        kb.datasets.load("laser")


@pytest.mark.filterwarnings("error")  # other numbers would warn
@pytest.mark.parametrize(
    "name", [n for n, b in BENCHMARKS.items() if b.package in ("river", "sklearn")]
)
def test_streams_of_river_and_scikit_learn_have_their_numbers(name):
    one, stream = BENCHMARKS[name], kb.datasets.load(name)
    assert stream.X.shape == (one.rows, one.inputs)
    assert stream.task == one.task


def test_package_with_other_numbers_warns(monkeypatch):
    one = replace(BENCHMARKS["iris"], sha256="0" * 64)
    monkeypatch.setitem(BENCHMARKS, "iris", one)
    with pytest.warns(KernelBankWarning, match="iris: the installed sklearn has other numbers"):
        assert len(kb.datasets.load("iris")) == 150


def _fake_package(tmp_path, monkeypatch, path, content):
    """A package that holds one file."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    monkeypatch.setattr(benchmarks, "_file", lambda package, name: tmp_path / name)


def test_months_of_statsmodels_become_lags_and_a_cycle(tmp_path, monkeypatch):
    years = ["YEAR,...", *(f"{y},{','.join(str(y + m / 100) for m in range(12))}" for y in (1, 2))]
    content = "\n".join(years).encode()
    _fake_package(tmp_path, monkeypatch, "datasets/elnino/elnino.csv", content)
    table = benchmarks.table_of("elnino_sst", "statsmodels")
    assert table.shape == (12, 15)
    assert table[0, :12].tolist() == [1 + m / 100 for m in range(11, -1, -1)]
    assert table[3, [0, 11, 12, 14]].tolist() == [2.02, 1.03, 1.0, 2.03]


def test_glucose_rows_need_values_without_a_gap(tmp_path, monkeypatch):
    minutes = [*range(0, 100, 5), *range(500, 600, 5)]  # 20 values, a gap, 20 values
    lines = [f"0,2010-01-02 {m // 60:02}:{m % 60:02}:00,{m}" for m in minutes]
    text = "\n".join(["isig,datetime,glucose", *lines])
    content = gzip.compress(text.encode())
    _fake_package(tmp_path, monkeypatch, "_data/CGM.csv.gz", content)
    table = benchmarks.table_of("glucose_30min", "bokeh_sampledata")
    assert table[:, 0].tolist() == [60, 65, 560, 565]
    assert table[0, :6].tolist() == [60, 55, 50, 45, 30, 0]
    assert table[:, -1].tolist() == [90, 95, 590, 595]
    assert table[0, 6] == pytest.approx(np.sin(2 * np.pi / 24), rel=1e-7)


def test_checksum_depends_on_every_number_and_not_on_the_sign_of_zero():
    X, y = TABLE[:, :2], TABLE[:, 2]
    before = benchmarks.checksum(X, y)
    assert before == benchmarks.checksum(X, np.abs(y))
    for place in np.ndindex(X.shape):
        other = X.copy()
        other[place] = np.nextafter(other[place], 9)
        assert benchmarks.checksum(other, y) != before


def test_page_lists_every_benchmark_as_it_is():
    import benchmark_table

    page = (Path(__file__).parents[2] / "docs/benchmarks.md").read_text()
    for part in benchmark_table.tables():
        assert part in page, "run docs/generate/benchmark_table.py and paste what it prints"
