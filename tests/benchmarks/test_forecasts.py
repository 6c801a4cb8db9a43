"""`make forecasts`: AutoBank, kept runs, streams, and what the command writes."""

import gzip
import json
import math
from types import SimpleNamespace
from typing import ClassVar

import forecast_bank
import forecast_cache
import forecast_rivals as rivals
import forecast_streams as streams
import forecasts
import numpy as np
import pytest
from forecasters import Forecaster, Forecasts, Task

import kernelbank as kb

ROWS, START = 90, 40


def _stream(rows=ROWS, periods=(6, 12), known=(0,), name="waves"):
    random = np.random.default_rng(5)
    X = random.normal(size=(rows, 2))
    y = np.sin(np.arange(rows) * math.tau / 6) + X[:, 0] + 0.1 * random.normal(size=rows)
    return streams.ForecastStream(name, X, y, known, periods)


# --- AutoBank -------------------------------------------------------------------------------------


class StandIn:
    """Forecasts the last target; its intervals grow with the horizon."""

    made: ClassVar[list] = []

    def __init__(self, lags, horizons, seasons=None, known=None):
        self.settings = (lags, horizons, seasons, known)
        self.horizons = range(1, horizons + 1) if isinstance(horizons, int) else horizons
        StandIn.made.append(self)

    def run(self, X, y):
        assert X.shape[0] == len(y)
        values = np.repeat(y[:, None], len(self.horizons), axis=1)
        width = np.array(self.horizons)
        return SimpleNamespace(
            forecasts=values, forecast_lower=values - width, forecast_upper=values + width
        )


@pytest.fixture
def stand_in(monkeypatch):
    StandIn.made.clear()
    monkeypatch.setattr(kb, "AutoBank", StandIn, raising=False)


def test_bank_is_given_horizons_seasons_and_known_columns(stand_in):
    stream = _stream()
    run = forecast_bank.AUTO.run(forecast_bank.AUTO.task(stream, (1, 3), START))
    assert StandIn.made[-1].settings == (24, 3, (6, 12), [0])
    assert run.values[:, 2].tolist() == stream.y.tolist()
    assert (run.upper - run.lower)[0] == pytest.approx([2, 4, 6])
    plain = streams.ForecastStream("plain", np.zeros((ROWS, 0)), stream.y)
    forecast_bank.AUTO.run(Task(plain, (2, 6), START))
    assert StandIn.made[-1].settings == (24, (2, 6), None, None)


def test_bank_with_other_horizons_is_refused(stand_in, monkeypatch):
    def short(self, X, y):
        part = np.zeros((len(y), 2))
        return SimpleNamespace(forecasts=part, forecast_lower=part, forecast_upper=part)

    monkeypatch.setattr(StandIn, "run", short)
    with pytest.raises(ValueError, match=r"trace.forecasts: .*\(90, 3\), not \(90, 2\)"):
        forecast_bank.AUTO.run(Task(_stream(), (1, 2, 3), START))


# --- cache ----------------------------------------------------------------------------------------


def _counting(calls, **more):
    def run(task):
        calls.append(task)
        return rivals.last_value(task)

    return Forecaster("counted", run, "the last value", **({"libraries": ("numpy",)} | more))


def test_runs_are_kept_by_stream_horizons_start_and_description(tmp_path):
    calls = []
    cache, one = forecast_cache.ForecastCache(tmp_path), _counting(calls)
    task = Task(_stream(), (1, 2), START)
    first = forecast_cache.forecast(one, task, cache)
    again = forecast_cache.forecast(one, task, cache)
    assert len(calls) == 1
    assert np.array_equal(first.values, again.values)
    assert again.lower is None
    assert first.versions == again.versions == {"numpy": np.__version__}
    others = [
        Task(_stream(periods=(6,)), (1, 2), START),
        Task(_stream(), (1, 3), START),
        Task(_stream(), (1, 2), START + 1),
    ]
    assert len({cache.path(one, task), *(cache.path(one, other) for other in others)}) == 4
    forecast_cache.forecast(one, task, forecast_cache.ForecastCache(tmp_path, refresh=True))
    assert len(calls) == 2
    cache.path(one, task).write_bytes(b"damaged")
    forecast_cache.forecast(one, task, cache)
    assert len(calls) == 3


def test_kept_runs_are_used_without_the_library_but_not_with_another_version(tmp_path, monkeypatch):
    calls = []
    cache, one = forecast_cache.ForecastCache(tmp_path), _counting(calls)
    task = Task(_stream(), (1,), START)
    monkeypatch.setattr(forecast_cache, "version", lambda name: "1.0")
    forecast_cache.forecast(one, task, cache)
    monkeypatch.setattr(forecast_cache, "version", _not_installed)
    assert forecast_cache.forecast(one, task, cache).versions == {"numpy": "1.0"}
    assert forecast_cache.forecast(one, Task(_stream(), (2,), START), cache) is None
    assert len(calls) == 1
    monkeypatch.setattr(forecast_cache, "version", lambda name: "2.0")
    assert forecast_cache.forecast(one, task, cache).versions == {"numpy": "2.0"}
    assert len(calls) == 2


def _not_installed(name):
    raise forecast_cache.PackageNotFoundError(name)


# --- streams and the command ----------------------------------------------------------------------


def _write(folder, name):
    """A file with the columns of a stream; every cell tells its row and column."""
    source = streams.FILES[name]
    columns = [*source.inputs, "unused", source.target, *source.known]
    lines = [",".join(columns)]
    for row in range(150):
        wave = math.sin(row * math.tau / 12) + 0.01 * row
        cells = [wave if c == source.target else 100 * row + at for at, c in enumerate(columns)]
        lines.append(",".join(repr(float(cell)) for cell in cells))
    folder.mkdir(exist_ok=True)
    with gzip.open(folder / f"{source.file}.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")


def test_columns_of_files_are_found_by_name(tmp_path):
    _write(tmp_path, "elec2_demand")
    (found,) = streams.load_streams(tmp_path, 100, ["elec2_demand"])
    assert found.X.shape == (100, 2)
    assert found.X[7].tolist() == [703.0, 700.0]  # period, which is known in advance, and nswprice
    assert found.known == (0,)
    assert found.y[3] == pytest.approx(1.03)
    assert found.periods == (48, 336)


def test_files_and_streams_that_are_missing_are_named(tmp_path):
    with pytest.raises(SystemExit, match="there is no stream 'sea'"):
        streams.load_streams(tmp_path, 100, ["sea"])
    with pytest.raises(SystemExit, match=r"no file elec2.csv.gz, which elec2_demand needs"):
        streams.load_streams(tmp_path, 100, ["elec2_demand"])
    with pytest.raises(SystemExit, match=r"glucose is a file. Give its folder \(--data\)"):
        streams.load_streams(None, 100, ["glucose"])
    with gzip.open(tmp_path / "santafe_laser.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n")
    with pytest.raises(SystemExit, match=r"santafe_laser.csv.gz has no column 'y', only a, b"):
        streams.load_streams(tmp_path, 100, ["santafe_laser"])


def test_simulated_streams_are_what_they_are_called():
    walk, memory = streams.load_streams(None, 4000, [])
    assert (walk.name, memory.name) == ("random_walk", "ar_0.9")
    assert walk.X.shape == (4000, 0)
    steps = np.diff(walk.y)
    assert np.std(steps) == pytest.approx(1.0, abs=0.05)
    assert np.corrcoef(steps[1:], steps[:-1])[0, 1] == pytest.approx(0.0, abs=0.05)
    assert np.corrcoef(memory.y[1:], memory.y[:-1])[0, 1] == pytest.approx(0.9, abs=0.02)


def _run(tmp_path, *more):
    out = tmp_path / "out"
    options = ["--out", str(out), "--rows", "150", "--skip", "60", "--horizons", "1,6"]
    forecasts.main([*options, *more])
    return json.loads((out / "forecasts.json").read_text()), (out / "forecasts.md").read_text()


def test_command_writes_tables_and_figures(tmp_path, stand_in, capsys):
    _write(tmp_path / "data", "elnino_sst")
    data = ["--data", str(tmp_path / "data"), "--streams", "elnino_sst,ar_0.9"]
    content, text = _run(tmp_path, *data, "--rivals", "naive,ridge", "--refit", "30")
    assert content["summary"]["rows"] == 4
    names = {(one["stream"], one["name"]) for one in content["scores"]}
    assert names == {
        ("ar_0.9", "autobank"),
        ("ar_0.9", "last"),
        ("ar_0.9", "ridge"),
        ("elnino_sst", "autobank"),
        ("elnino_sst", "last"),
        ("elnino_sst", "seasonal"),
        ("elnino_sst", "ridge"),
    }
    own = [one for one in content["scores"] if one["name"] == "autobank"]
    assert [one["horizon"] for one in own] == [1, 2, 3, 4, 5, 6] * 2
    assert content["versions"]["ridge"] == {"numpy": np.__version__}
    assert "| stream | horizon | autobank | last | ridge | seasonal |" in text
    assert "intervals meant to hold 90%" in text
    assert "- ridge: ridge regression" in text
    assert "geometric mean to best" in capsys.readouterr().out
    kept = sorted(path.name for path in (tmp_path / "out" / "rivals").iterdir())
    assert [name.rsplit("-", 1)[0] for name in kept] == ["ar_0.9-ridge", "elnino_sst-ridge"]


def test_rival_that_is_not_installed_is_left_out_with_a_line(tmp_path, monkeypatch, capsys):
    def version(name):
        return _not_installed(name) if name == "statsforecast" else "1.0"

    monkeypatch.setattr(forecast_cache, "version", version)
    more = ["--rivals", "last,autoets", "--streams", "ar_0.9", "--no-bank"]
    content, text = _run(tmp_path, *more)
    assert {one["name"] for one in content["scores"]} == {"last"}
    line = "autoets on ar_0.9 needs statsforecast and numpy (pip install statsforecast)"
    assert f"Left out: {line}" in capsys.readouterr().out
    assert f"- left out: {line}" in text


def test_notes_of_kept_runs_stand_below_the_tables(tmp_path, monkeypatch):
    def run(task):
        return Forecasts(rivals.last_value(task).values, note="at 3 rows no model forecast")

    one = Forecaster("noted", run, "with a note", libraries=("numpy",))
    monkeypatch.setattr(forecasts, "chosen_rivals", lambda chosen: [one])
    for _ in ("new", "kept"):
        content, text = _run(tmp_path, "--streams", "ar_0.9", "--no-bank")
        assert content["notes"] == ["noted on ar_0.9: at 3 rows no model forecast"]
        assert "- note: noted on ar_0.9: at 3 rows no model forecast" in text
        monkeypatch.setattr(forecast_cache, "version", _not_installed)


def test_bank_without_horizons_is_left_out_with_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kb, "AutoBank", lambda lags=0: None, raising=False)
    content, _ = _run(tmp_path, "--rivals", "last", "--streams", "ar_0.9")
    assert content["left_out"] == {"autobank": "this AutoBank takes no horizons"}
    assert content["summary"] is None
    assert "Left out: autobank" in capsys.readouterr().out


def test_rivals_are_chosen_by_group_and_name():
    def names(text):
        return [one.name for one in forecasts.chosen_rivals(forecasts.options(["--rivals", text]))]

    assert names("direct,last") == ["last", "ridge", "lightgbm"]
    assert names("none") == []
    assert len(names("all")) == 9
    with pytest.raises(SystemExit, match="--rivals: there is no 'prophet'"):
        names("prophet")


def test_streams_without_rows_to_score_are_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"No stream has more than 166 rows. Raise --rows"):
        _run(tmp_path, "--skip", "160", "--rivals", "last", "--no-bank")


def test_table_of_the_module_lists_every_stream_as_it_is():
    lines = [line for line in streams.__doc__.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in cells] == [*streams.SIMULATED, *streams.FILES]
    for row in cells:
        source = streams.FILES.get(row[0])
        periods = () if source is None else source.periods
        assert row[2] == (", ".join(map(str, periods)) or "none")
        assert bool(row[3]) == (source is not None and bool(source.known))
        assert row[4]
