"""`kernelbank run` with Redis and Kafka, and a Redis that loses what it confirmed."""

import csv
import json
import random
import re
import threading
import uuid
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner

import kernelbank as kb
from kernelbank.cli.commands import cli
from kernelbank.io import redis as redis_sink
from kernelbank.io.redis import RedisSink
from support import run_command
from support.run_command import (
    X,
    Y,
    make_rows,
    read_state,
    refusal,
    run,
    same_bits,
    succeed,
    write_csv,
)
from support.source_fixtures import RedisServer, needs_redis_server

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


def quiet_run(source, *options):
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
        quiet_run(address, *options)
    predictions = client.xrange(f"{name}-predictions")
    trace = expected()
    assert [int(fields[b"row"]) for _, fields in predictions] == list(range(1, ROWS + 1))
    for field, array in ((b"prediction", trace.predictions), (b"upper", trace.upper)):
        assert predictions[0][1][field] == b""  # nothing is known yet
        found = [float(fields[field]) for _, fields in predictions[1:]]
        assert found == array[1:].tolist()


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
    quiet_run(address, *options, "--on-bad-row", "skip")
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
        quiet_run(address, *options)
    assert same_bits(predictions(out), expected().predictions)


# --- `kernelbank run` with predictions in a Redis that loses them, and a source that is trimmed ---


ALL = list(range(1, ROWS + 1))
source, folder = run_command.source, run_command.folder


@pytest.fixture
def server(tmp_path):
    needs_redis_server()
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis")
    yield server
    server.client.close()
    server.stop()


@pytest.fixture
def at_commit(monkeypatch):
    """Functions that are called before the commit of that number."""
    actions, count = {}, [0]
    commit = RedisSink.commit

    def with_action(sink):
        count[0] += 1
        actions.get(count[0], lambda: None)()
        return commit(sink)

    monkeypatch.setattr(RedisSink, "commit", with_action)
    return actions


def numbers(server, stream="out"):
    return [int(fields[b"row"]) for _, fields in server.client.xrange(stream)]


def options(server, tmp_path):
    out = f"redis://127.0.0.1:{server.port}/out"
    more = ["--target", "y", "--predictions", out, "--state", tmp_path / "run"]
    return [*more, "--checkpoint-every", 60]


def test_predictions_that_redis_has_lost_are_written_again(server, at_commit, source, tmp_path):
    """The first commit is that of the start, the second sends rows 1 to 60, and so on."""
    at_commit[3] = server.client.save
    at_commit[5] = server.lose
    done = succeed(source, *options(server, tmp_path))
    assert numbers(server) == ALL
    assert done.err.count("(appendonly no)") == 1
    assert re.search(r"note: .* has lost rows 61 to 180, .* They are written again\.", done.err)


@pytest.mark.parametrize("moment", [5, 7])
def test_predictions_that_are_lost_for_good_end_the_run(
    server, at_commit, source, tmp_path, monkeypatch, moment
):
    """During the run, and at its end."""
    monkeypatch.setattr(redis_sink, "REWRITABLE_ROWS", 0, raising=False)
    at_commit[3] = server.client.save
    at_commit[moment] = server.lose
    error = refusal(source, *options(server, tmp_path), "--quiet")
    lost = 180 if moment == 5 else 300
    assert f"has lost rows 61 to {lost}, which it had acknowledged" in error
    assert "Nothing is lost" not in error
    assert numbers(server) == ALL[:60]
    error = refusal(source, *options(server, tmp_path), "--quiet")
    assert f"has lost rows 61 to {lost}, which were written." in error
    assert "Nothing is lost" not in error


def test_run_without_replicas_stops_before_its_checkpoint(server, source, tmp_path, monkeypatch):
    monkeypatch.setattr(redis_sink, "WAIT_SECONDS", 0.1, raising=False)
    error = refusal(source, *options(server, tmp_path), "--redis-wait", 1, "--quiet")
    assert "0 of 1 replicas have the rows after 0.1 seconds (--redis-wait)" in error
    succeed(source, *options(server, tmp_path), "--quiet")
    assert numbers(server) == ALL


def test_trimmed_source_is_refused_or_its_missing_rows_are_counted(redis_server, tmp_path):
    name = uuid.uuid4().hex
    address = f"redis://127.0.0.1:{redis_server.port}/{name}"

    def add(begin, end):
        for (a, b), y in zip(X[begin:end].tolist(), Y[begin:end].tolist(), strict=True):
            redis_server.client.xadd(name, {"a": a, "b": b, "y": y})

    words = ["--target", "y", "--state", tmp_path / "run", "--predictions", tmp_path / "out.csv"]
    words += ["--stop-when-idle", 0.05]
    add(0, 50)
    succeed(address, *words)
    add(50, 100)
    redis_server.client.xtrim(name, 20, approximate=False)
    error = refusal(address, *words, "--quiet")
    assert "30 entries are missing after id" in error
    assert error.endswith("Restore them, or go on without them with --allow-gaps.\n")
    report = tmp_path / "report.html"
    done = succeed(address, *words, "--allow-gaps", "--report", report)
    assert "missing rows             30, deleted before they were read" in done.err
    assert read_state(tmp_path / "run")[0]["missing_rows"] == 30
    assert '"missing_rows":30' in report.read_text()
    done = succeed(address, *words, "--log-json")
    assert '"missing_rows": 30' in done.err.splitlines()[-1]
    rows = np.column_stack([X, Y])
    kept = write_csv(
        tmp_path / "kept.csv", ["a", "b", "y"], np.delete(rows[:100], range(50, 80), 0)
    )
    succeed(kept, "--target", "y", "--predictions", tmp_path / "same.csv")
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "same.csv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("keeps", [("--appendonly", "yes"), ("--save", "1 1")])
def test_server_that_is_killed_again_and_again(tmp_path, keeps, seed):
    """Every row once, or an error that says which rows are lost; with `appendonly yes` no error."""
    needs_redis_server()
    (tmp_path / "redis").mkdir()
    server = RedisServer(tmp_path / "redis", *keeps)
    X, Y = make_rows(20_000, seed)
    file = write_csv(tmp_path / "rows.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    draw, ended = random.Random(seed), threading.Event()

    def kill():
        while not ended.wait(draw.uniform(0.05, 1.0)):
            server.lose()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        words = [*options(server, tmp_path)[:-1], draw.choice([500, 5000])]
        with mock.patch.object(redis_sink, "REWRITABLE_ROWS", draw.choice([0, 10_000])):
            done = run(file, *words, "--quiet")
    finally:
        ended.set()
        killer.join()
    if done.code == 0:
        # A kill after the last commit may lose rows where the server does not keep them.
        found = numbers(server)
        assert found == list(range(1, len(found) + 1))
        assert len(found) == 20_000 or keeps[0] == "--save"
    else:
        assert keeps[0] == "--save"
        assert "has lost rows" in done.err
    server.client.close()
    server.stop()
