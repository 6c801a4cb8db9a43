"""`kernelbank run` on brokers: the same predictions as from a file, also in several runs."""

import csv
import json
import uuid

import numpy as np
import pytest
from click.testing import CliRunner

import kernelbank as kb
from kernelbank.cli.commands import cli
from kernelbank.io import checkpoint
from support.run_command import same_bits

ROWS = 300


def rows():
    draw = np.random.default_rng(5)
    X = draw.normal(size=(ROWS, 2)).round(4)
    y = (10 + np.sin(X[:, 0]) + X[:, 1]).round(4)
    return [
        {"wind": float(a), "rain": float(b), "load": float(t)}
        for (a, b), t in zip(X, y, strict=True)
    ]


def expected():
    some = rows()
    X = np.array([[row["wind"], row["rain"]] for row in some])
    return kb.AutoBank(size="small").run(X, [row["load"] for row in some])


def run(source, *options):
    words = ["run", source, "--target", "load", "--size", "small", "--quiet"]
    done = CliRunner().invoke(cli, [*words, *map(str, options)])
    assert done.exit_code == 0, done.output
    return done


def predictions(path):
    # The first row has no prediction: an empty cell.
    rows = csv.DictReader(path.read_text().splitlines())
    return [float(row["prediction"] or "nan") for row in rows]


@pytest.fixture
def weather(redis_server):
    """A stream of its own for every test."""
    name = f"weather-{uuid.uuid4().hex}"
    return name, f"redis://127.0.0.1:{redis_server.port}/{name}", redis_server.client


def test_redis_source_and_sink_in_two_runs_give_every_prediction_once(weather, tmp_path):
    """Half of the stream, then the rest; predictions to a file and to another stream."""
    name, address, client = weather
    out = f"{address}-predictions"
    half = ROWS // 2
    options = ["--state", tmp_path / "run", "--predictions", out, "--stop-when-idle", 0.5]
    for some in (rows()[:half], rows()[half:]):
        for row in some:
            client.xadd(name, row)
        run(address, *options)
    predictions = client.xrange(f"{name}-predictions")
    trace = expected()
    assert [int(fields[b"row"]) for _, fields in predictions] == list(range(1, ROWS + 1))
    for field, array in ((b"prediction", trace.predictions), (b"upper", trace.upper)):
        assert predictions[0][1][field] == b""  # nothing is known yet
        found = [float(fields[field]) for _, fields in predictions[1:]]
        assert found == array[1:].tolist()


def test_row_of_redis_that_the_model_refuses_is_named_by_its_id(weather, tmp_path):
    name, address, client = weather
    for number, row in enumerate(rows()[:12], 1):
        label = "c" if number == 8 else "ab"[number % 2]
        client.xadd(name, {**row, "load": label}, id=f"{number}-0")
    options = ["--state", tmp_path / "run", "--stop-when-idle", 0.5, "--classes", "a,b"]
    words = ["run", address, "--target", "load", "--size", "small", "--task", "classification"]
    done = CliRunner().invoke(cli, [*words, *map(str, options)])
    assert done.exit_code == 2
    assert "8-0, column 'load': 'c' is not one of the 2 classes" in done.output
    run(address, "--task", "classification", *options, "--on-bad-row", "skip")
    (bad,) = (tmp_path / "run" / "bad-rows.jsonl").read_text().splitlines()
    assert "8-0" in json.loads(bad)["where"]
    assert checkpoint.read(tmp_path / "run/state.kb")[0]["rows"] == 11


def test_bad_row_of_redis_is_named_by_its_id(weather, tmp_path):
    name, address, client = weather
    for number, row in enumerate(rows()[:20], 1):
        client.xadd(name, {**row, "wind": "calm"} if number == 7 else row, id=f"{number}-0")
    options = ["--state", tmp_path / "run", "--predictions", tmp_path / "out.csv"]
    options += ["--stop-when-idle", 0.5]
    words = ["run", address, "--target", "load", "--size", "small", *map(str, options)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code != 0
    assert "7-0" in done.output
    assert "'wind'" in done.output
    assert "'calm'" in done.output
    assert len(predictions(tmp_path / "out.csv")) == 6
    run(address, *options, "--on-bad-row", "skip")
    assert len(predictions(tmp_path / "out.csv")) == 19
    (bad,) = (tmp_path / "run" / "bad-rows.jsonl").read_text().splitlines()
    assert json.loads(bad)["row"] == 7


@pytest.mark.slow
def test_kafka_source_in_two_runs_gives_the_models_predictions(kafka_broker, tmp_path):
    topic = f"weather-{uuid.uuid4().hex}"
    address = f"kafka://{kafka_broker.servers}/{topic}"
    half = ROWS // 2
    out = tmp_path / "out.csv"
    options = ["--state", tmp_path / "run", "--predictions", out, "--stop-when-idle", 2]
    for some in (rows()[:half], rows()[half:]):
        for row in some:
            kafka_broker.produce(topic, json.dumps(row), 0)
        kafka_broker.flush()
        run(address, *options)
    assert same_bits(predictions(out), expected().predictions)
