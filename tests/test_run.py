"""`kernelbank run`: the answers are the bank's own, from every source, with every option."""

import gzip
import json
import sys
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.service.intake import LEVELS, PERIODS, periodic
from kernelbank.service.settings import Settings
from running import (
    as_csv,
    as_jsonl,
    column,
    good,
    numbers,
    objects,
    one_line,
    refused,
    run,
    same,
    saved,
    table,
)

ROWS = 300
X, Y = numbers(ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def source(folder):
    return as_csv(folder / "plain.csv", ["a", "b", "y"], np.column_stack([X, Y]))


@pytest.fixture(scope="module")
def trace():
    return kb.AutoBank(size="small").run(X, Y)


def check_answers(path, trace, targets=Y):
    header, rows = table(path)
    assert header == ["row", "prediction", "lower", "upper", "target"]
    assert [row[0] for row in rows] == [str(n + 1) for n in range(len(targets))]
    assert same(column(path, "prediction"), trace.predictions)
    assert same(column(path, "lower"), trace.lower)
    assert same(column(path, "upper"), trace.upper)
    assert same(column(path, "target"), targets)


# --- sources --------------------------------------------------------------------------------------


def test_csv(source, trace, tmp_path):
    good(source, "--target", "y", "--predictions", tmp_path / "out.csv")
    check_answers(tmp_path / "out.csv", trace)


@pytest.mark.parametrize("kind", ["csv.gz", "jsonl", "jsonl.gz", "parquet"])
def test_other_files(kind, source, trace, tmp_path):
    path = tmp_path / f"rows.{kind}"
    names, rows = ["a", "b", "y"], np.column_stack([X, Y])
    if kind == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(dict(zip(names, rows.T, strict=True))), path)
    else:
        plain = source if kind == "csv.gz" else as_jsonl(tmp_path / "r.jsonl", names, rows)
        text = plain.read_bytes()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    good(path, "--target", "y", "--predictions", tmp_path / "out.csv")
    check_answers(tmp_path / "out.csv", trace)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_standard_input(kind, source, trace, tmp_path):
    if kind == "jsonl":
        source = as_jsonl(tmp_path / "r.jsonl", ["a", "b", "y"], np.column_stack([X, Y]))
    good("-", "--target", "y", "--predictions", tmp_path / "out.csv", stdin=source)
    check_answers(tmp_path / "out.csv", trace)


def test_closed_standard_input_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in refused("-", "--target", "y")


def test_parts_are_written_however_a_run_ends(source, trace, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    good(source, "--target", "y", "--predictions", tmp_path / "all.parquet")
    found = parquet.read_table(tmp_path / "all.parquet")
    assert found.column_names == ["row", "prediction", "lower", "upper", "target"]
    assert same(found["prediction"].to_numpy(), trace.predictions)
    state = ("--state", tmp_path / "state")
    some = tmp_path / "some.parquet"
    good(source, "--target", "y", "--predictions", some, *state, "--max-rows", 100)
    assert parquet.read_table(some)["row"].to_pylist() == list(range(1, 101))
    good(source, "--target", "y", "--predictions", some, *state)
    assert parquet.read_table(some).equals(found)


def test_another_delimiter(source, trace, tmp_path):
    rows = np.column_stack([X, Y])
    path = as_csv(tmp_path / "semicolons.csv", ["a", "b", "y"], rows, delimiter=";")
    good(path, "--target", "y", "--delimiter", ";", "--predictions", tmp_path / "out.csv")
    check_answers(tmp_path / "out.csv", trace)
    assert "delimiter" in refused(path, "--target", "y", "--delimiter", ";;")


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "settings", "playing"),
    [
        (("--lags", 3), {"lags": 3}, {}),
        (("--coverage", 0.5), {}, {"coverage": 0.5}),
        (("--delay", 7), {}, {"delay": 7}),
        (("--delay", 7, "--lags", 2), {"lags": 2}, {"delay": 7}),
        (("--engine", "threads"), {}, {}),
        (("--size", "default"), {"size": "default"}, {}),
    ],
)
def test_options_of_the_bank(options, settings, playing, source, tmp_path):
    good(
        source,
        "--target",
        "y",
        "--predictions",
        tmp_path / "out.csv",
        "--size",
        "small",
        *options,
        size=None,
    )
    bank = kb.AutoBank(**{"size": "small", **settings})
    check_answers(tmp_path / "out.csv", bank.run(X, Y, **playing))


def test_the_papers_slots(source, tmp_path):
    good(source, "--target", "y", "--preset", "paper", "--predictions", tmp_path / "out.csv")
    kernels = kb.gaussian_grid(0.1, 10, 20)
    bank = kb.AutoBank(
        size="small",
        slots=[kb.Slot(kernel, kb.learners.Norma()) for kernel in kernels],
        combiner=kb.combiners.Simplex(),
        window=10,
        regularization=0.01,
    )
    check_answers(tmp_path / "out.csv", bank.run(X, Y))


def test_a_long_delay_and_equal_rows(tmp_path):
    """Questions outnumber those that a bank remembers by itself, and look alike."""
    inputs = np.round(X[:, :1])
    rows = np.tile(inputs, (5, 1))[:1400]
    targets = np.arange(1400.0) % 11
    path = as_csv(tmp_path / "s.csv", ["a", "y"], np.column_stack([rows, targets]))
    good(
        path,
        "--target",
        "y",
        "--delay",
        1200,
        "--predictions",
        tmp_path / "out.csv",
        "--state",
        tmp_path / "s",
    )
    check_answers(tmp_path / "out.csv", kb.AutoBank(size="small").run(rows, targets, 1200), targets)
    assert good(
        path,
        "--target",
        "y",
        "--delay",
        1200,
        "--predictions",
        tmp_path / "out.csv",
        "--state",
        tmp_path / "s",
    )


def test_persistence_knows_no_target_before_it_comes(tmp_path):
    targets = np.arange(50.0)
    path = as_csv(tmp_path / "s.csv", ["a", "y"], np.column_stack([X[:50, 0], targets]))
    for delay in (0, 4):
        done = good(path, "--target", "y", "--delay", delay, "--log-json")
        assert json.loads(done.err.splitlines()[-1])["persistence"] == delay + 1


@pytest.mark.parametrize("delay", [0, 3])
def test_labels(delay, tmp_path):
    count = 1100  # more than the first snapshot needs
    inputs, _ = numbers(count)
    labels = np.where(inputs[:, 0] * inputs[:, 1] > 0, "yes", "no").astype(object)
    labels[500::50] = "perhaps, so"
    path = as_csv(
        tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([inputs.astype(object), labels])
    )
    options = ("--target", "y", "--task", "classification", "--delay", delay)
    files = []
    for every in (10_000, 400):
        files.append(tmp_path / f"{every}.csv")
        good(path, *options, "--predictions", files[-1], "--checkpoint-every", every)
    assert files[0].read_bytes() == files[1].read_bytes()
    header, rows = table(files[0])
    assert header == ["row", "prediction", "probability", "target"]
    assert [row[3] for row in rows] == labels.tolist()
    assert all(row[1:3] == ["", ""] for row in rows[: delay + 1])  # no class was known
    trace = kb.AutoBank("classification", size="small").run(inputs, labels, delay)
    assert [row[1] for row in rows[delay + 1 :]] == list(trace.predictions[delay + 1 :])
    sure = trace.probabilities.max(axis=1)[delay + 1 :]
    assert same([float(row[2]) for row in rows[delay + 1 :]], sure)


def test_only_lags(tmp_path):
    path = as_csv(tmp_path / "s.csv", ["y"], Y[:, None])
    assert "--lags" in refused(path, "--target", "y")
    good(path, "--target", "y", "--lags", 2, "--predictions", tmp_path / "out.csv")
    trace = kb.AutoBank(size="small", lags=2).run(np.zeros((ROWS, 1)), Y)
    check_answers(tmp_path / "out.csv", trace)


# --- columns --------------------------------------------------------------------------------------


def test_features_have_the_order_of_the_option(source, tmp_path):
    good(source, "--target", "y", "--features", " b, a", "--predictions", tmp_path / "o.csv")
    check_answers(tmp_path / "o.csv", kb.AutoBank(size="small").run(X[:, ::-1], Y))
    good(source, "--target", "y", "--features", "b", "--predictions", tmp_path / "one.csv")
    check_answers(tmp_path / "one.csv", kb.AutoBank(size="small").run(X[:, 1:], Y))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "z"), "--target: there is no column 'z'. There are: a, b, y."),
        (("--target", "y", "--features", "a,c"), "--features: there is no column 'c'"),
        (("--target", "y", "--categorical", "c"), "--categorical: there is no column 'c'"),
        (("--target", "y", "--time", "c"), "--time: there is no column 'c'"),
        (("--target", "y", "--features", "a,a"), "--features: column 'a' is named twice"),
        (("--target", "y", "--features", "y"), "--target and --features: column 'y'"),
        (("--target", "y", "--categorical", "y"), "--target and --categorical: column 'y'"),
        (("--target", "y", "--categorical", "a,a"), "--categorical: column 'a'"),
        (("--target", "y", "--time", "y"), "--target and --time: column 'y'"),
    ],
)
def test_columns_that_cannot_be(options, said, source, tmp_path):
    assert said in refused(source, *options)
    # A state that nothing was written to does not hold the mistake.
    more = ("--state", tmp_path / "state", "--predictions", tmp_path / "out.csv")
    assert said in refused(source, *options, *more)
    good(source, "--target", "y", "--max-rows", 5, *more)


def test_categories_that_come_late(tmp_path):
    words = np.array(["north", "south"], dtype=object)[(X[:, 1] > 0).astype(int)]
    words[200:] = 'été, "2"'
    path = as_csv(tmp_path / "s.csv", ["a", "site", "y"], zip(X[:, 0], words, Y, strict=True))
    options = ("--target", "y", "--categorical", "site")
    good(path, *options, "--predictions", tmp_path / "out.csv")
    bank = kb.AutoBank(size="small")
    is_level = [words == level for level in dict.fromkeys(words)]
    inputs = np.column_stack([X[:, 0], *is_level]).astype(float)
    second = int(np.flatnonzero(words != words[0])[0])
    parts = [
        bank.run(inputs[:second, :2], Y[:second]),
        bank.run(inputs[second:200, :3], Y[second:200], added=1),
        bank.run(inputs[200:], Y[200:], added=1),
    ]
    found = column(tmp_path / "out.csv", "prediction")
    assert same(found, np.concatenate([part.predictions for part in parts]))
    # Gone on with in the middle of a block, before a category that is in the same block.
    state = ("--state", tmp_path / "state", "--predictions", tmp_path / "two.csv")
    good(path, *options, *state, "--max-rows", 150)
    good(path, *options, *state)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_too_many_categories_are_none_of_the_first(tmp_path, monkeypatch):
    words = [f"k{n % 130}" for n in range(ROWS)]
    path = as_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:, 0], words, Y, strict=True))
    monkeypatch.setattr(Settings, "bank", one_line)
    out = tmp_path / "out.csv"
    options = ("--target", "y", "--categorical", "k", "--state", tmp_path / "state")
    good(path, *options, "--predictions", out)
    header, _ = saved(tmp_path / "state")
    assert header["levels"] == [["k", f"k{n}"] for n in range(LEVELS)]
    assert header["bank"]["dimension"] == 1 + LEVELS
    bank, found = one_line(), []
    for n, word in enumerate(words):
        known = min(n + 1, LEVELS)
        x = [X[n, 0], *(float(word == f"k{level}") for level in range(known))]
        found.append(bank.run([x], Y[n : n + 1], added=int(0 < n < LEVELS)).predictions[0])
    assert same(column(out, "prediction"), found)


def test_times_in_all_their_forms(tmp_path):
    start = datetime(2024, 2, 28, 22, 30, tzinfo=UTC)
    moments = [start + timedelta(minutes=17 * n) for n in range(ROWS)]
    east = timezone(timedelta(hours=5, minutes=30))
    forms = {
        "epoch": [repr(moment.timestamp()) for moment in moments],
        "zulu": [moment.isoformat().replace("+00:00", "Z") for moment in moments],
        "none": [moment.replace(tzinfo=None).isoformat(sep=" ") for moment in moments],
        "east": [moment.astimezone(east).isoformat() for moment in moments],
    }
    waves = np.array([periodic(repr(moment.timestamp())) for moment in moments])
    trace = kb.AutoBank(size="small").run(np.column_stack([X[:, 0], waves]), Y)
    for name, cells in forms.items():
        path = as_csv(
            tmp_path / f"{name}.csv", ["t", "a", "y"], zip(cells, X[:, 0], Y, strict=True)
        )
        good(path, "--target", "y", "--time", "t", "--predictions", tmp_path / f"{name}.out.csv")
        check_answers(tmp_path / f"{name}.out.csv", trace)


def test_waves_of_a_time():
    assert list(PERIODS) == ["day", "week", "year"]
    noon = periodic("1970-01-01T12:00:00")
    assert np.allclose(noon[:2], [0, -1])
    assert np.allclose(periodic("1970-01-01T08:00:00+02:00"), periodic(str(6 * 3600)))
    assert np.allclose(periodic("-86400")[:2], [0, 1])
    for cell in ("", "soon", "nan", "inf", "1e300", "1_000", "2024-13-01", None):
        with pytest.raises(ValueError):  # noqa: PT011  (whatever it says, it is told anew)
            periodic(cell)


# --- how many rows --------------------------------------------------------------------------------


def test_max_rows(source, trace, tmp_path):
    good(source, "--target", "y", "--max-rows", 123, "--predictions", tmp_path / "out.csv")
    assert same(column(tmp_path / "out.csv", "prediction"), trace.predictions[:123])


@pytest.mark.parametrize("delay", [0, 5])
def test_rows_without_a_target(delay, tmp_path):
    targets = [repr(y) if n % 10 else "" for n, y in enumerate(Y.tolist())]
    path = as_csv(tmp_path / "s.csv", ["a", "b", "y"], zip(*X.T, targets, strict=True))
    options = ("--target", "y", "--delay", delay)
    assert "line 2, column 'y': '' is missing" in refused(path, *options)
    out = tmp_path / "out.csv"
    done = good(path, *options, "--predict-missing", "--predictions", out, "--log-json")
    assert json.loads(done.err.splitlines()[-1])["rows_without_target"] == ROWS // 10
    _, rows = table(out)
    assert len(rows) == ROWS
    assert [row[4] for row in rows] == targets
    bank, found, waiting = kb.AutoBank(size="small"), [], []
    for n, x in enumerate(X):
        if n % 10:
            found.append(bank.answer_one(x).predictions[0])
        else:
            found.append(bank.predict(x[None])[0])
        waiting.append(n)
        if len(waiting) > delay and (late := waiting.pop(0)) % 10:
            bank.learn_one(X[late], Y[late])
    assert same(column(out, "prediction"), found)


def test_labels_without_a_target(tmp_path):
    rows = [(0.5, ""), (1.0, "up"), (2.0, ""), (1.5, "up"), (0.1, "down"), (0.2, "")]
    path = as_csv(tmp_path / "s.csv", ["a", "y"], rows)
    out = tmp_path / "out.csv"
    good(
        path, "--target", "y", "--task", "classification", "--predict-missing", "--predictions", out
    )
    _, found = table(out)
    assert found[0] == ["1", "", "", ""]
    assert found[1] == ["2", "", "", "up"]
    assert found[2] == ["3", "up", "1.0", ""]
    assert len(found) == 6


def test_missing_inputs(tmp_path):
    inputs = X.copy()
    inputs[5::7, 0] = np.nan
    cells = [["" if np.isnan(x) else repr(x) for x in row] for row in inputs.tolist()]
    cells[12][0], cells[19][0] = "NaN", "null"
    rows = [(*row, y) for row, y in zip(cells, Y.tolist(), strict=True)]
    path = as_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    assert "line 7, column 'a': '' is missing" in refused(path, "--target", "y")
    good(path, "--target", "y", "--allow-missing", "--predictions", tmp_path / "out.csv")
    check_answers(tmp_path / "out.csv", kb.AutoBank(size="small").run(inputs, Y))


def test_missing_categories_say_nothing(tmp_path):
    words = ["u" if n % 2 else "" if n % 6 == 4 else "v" for n in range(100)]
    path = as_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:100, 0], words, Y[:100], strict=True))
    out = tmp_path / "out.csv"
    good(path, "--target", "y", "--categorical", "k", "--allow-missing", "--predictions", out)
    coded = {"v": (1.0, 0.0), "u": (0.0, 1.0), "": (np.nan, np.nan)}
    inputs = np.array([[x, *coded[word]] for x, word in zip(X[:100, 0], words, strict=True)])
    bank = kb.AutoBank(size="small")
    first = bank.run(inputs[:1, :2], Y[:1]).predictions
    rest = bank.run(inputs[1:], Y[1:100], added=1).predictions
    assert same(column(out, "prediction"), np.concatenate([first, rest]))


# --- what is said and kept ------------------------------------------------------------------------


def test_quiet_prints_nothing(source, tmp_path):
    out = tmp_path / "out.csv"
    state = ("--state", tmp_path / "state")
    for _ in range(2):  # and nothing of going on, either
        assert good(source, "--target", "y", "--quiet", "--predictions", out, *state).err == ""
    assert len(table(out)[1]) == ROWS
    assert "no column" in refused(source, "--target", "z", "--quiet")


def test_log_prints_objects_and_nothing_else(source, tmp_path):
    options = (
        "--target",
        "y",
        "--log-json",
        "--state",
        tmp_path / "s",
        "--predictions",
        tmp_path / "o.csv",
    )
    first = [
        json.loads(line) for line in good(source, *options, "--max-rows", 100).err.splitlines()
    ]
    assert [one["event"] for one in first] == ["progress", "end"]
    assert first[-1]["reason"] == "--max-rows"
    second = [json.loads(line) for line in good(source, *options).err.splitlines()]
    assert [one["event"] for one in second] == ["resumed", "progress", "end"]
    assert second[0]["rows"] == 100
    end = second[-1]
    assert (end["reason"], end["rows"], end["bad_rows"]) == ("end", ROWS, 0)
    assert end["predictions"] == str(tmp_path / "o.csv")
    wrong = run(source, "--target", "z", "--log-json")
    assert wrong.code == 2
    assert json.loads(wrong.err)["event"] == "error"


def test_warnings_are_notes(source, monkeypatch):
    import warnings

    def warn(settings, engine):
        warnings.warn("a slot\nis out", kb.errors.SlotQuarantined, stacklevel=1)
        return kb.AutoBank(size="small", engine=engine)

    monkeypatch.setattr(Settings, "bank", warn)
    assert good(source, "--target", "y").err.startswith("note: a slot is out\n")
    assert good(source, "--target", "y", "--quiet").err == ""
    first = good(source, "--target", "y", "--log-json").err.splitlines()[0]
    assert json.loads(first) == {"event": "note", "message": "a slot is out"}


def test_a_missing_library_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "kernelbank.sources.parquet", raising=False)
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    assert "kernelbank[files]" in refused(tmp_path / "s.parquet", "--target", "y")


@pytest.mark.parametrize("delay", [0, 2])
def test_neither_blocks_nor_checkpoints_change_a_bit(delay, tmp_path):
    count = 1060
    inputs, targets = numbers(count)
    words = [f"k{n // 500}" for n in range(count)]
    path = as_csv(
        tmp_path / "s.csv", ["a", "k", "y"], zip(inputs[:, 0], words, targets, strict=True)
    )
    options = ("--target", "y", "--categorical", "k", "--lags", 1, "--delay", delay)
    found = {}
    for every in (10_000, 700, 190):
        out, state = tmp_path / f"{every}.csv", tmp_path / f"{every}"
        good(path, *options, "--predictions", out, "--state", state, "--checkpoint-every", every)
        header, arrays = saved(state)
        found[every] = (out.read_bytes(), header["history"], header["levels"], arrays)
    first = found.pop(10_000)
    assert first[1]["snapshots"] == [[1024, [0]]]
    for other in found.values():
        assert other[:3] == first[:3]
        assert other[3].keys() == first[3].keys()
        assert all(same(other[3][name], first[3][name]) for name in first[3])


def test_bad_rows_of_a_run_that_skips_them_stand_beside_the_predictions(tmp_path):
    path = as_csv(tmp_path / "s.csv", ["a", "y"], [(1, 2), ("x", 3), (4, 5)])
    done = good(path, "--target", "y", "--on-bad-row", "skip", "--predictions", tmp_path / "o.csv")
    assert f"1 set aside, in {tmp_path}/o.csv.bad-rows.jsonl" in done.err
    assert len(objects(tmp_path / "o.csv.bad-rows.jsonl")) == 1
    done = good(path, "--target", "y", "--on-bad-row", "skip")
    assert "1 set aside, not kept" in done.err
