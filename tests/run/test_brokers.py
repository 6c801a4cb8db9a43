"""`kernelbank run` with Redis and Kafka, and a Redis that loses what it confirmed."""

import csv
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner

import kernelbank as kb
from kernelbank.cli.commands import cli
from kernelbank.cli.run import StopFlag
from kernelbank.io import redis as redis_sink
from kernelbank.io.redis import RedisSink
from support import run_command
from support.marks import slow
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
from support.source_fixtures import KafkaFixture, RedisServer, needs_redis_server

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


# --- No outcome of `kernelbank run` prints or writes a password. ---


SECRET = "s3cr%40t-Mark3r"
PLAIN = "s3cr@t-Mark3r"
MARK = "Mark3r"


@pytest.fixture(scope="module")
def server_secret(tmp_path_factory):
    needs_redis_server()
    server_secret = RedisServer(tmp_path_factory.mktemp("redis"))
    server_secret.client.acl_setuser(
        "me", enabled=True, passwords=[f"+{PLAIN}"], keys=["*"], commands=["+@all"]
    )
    yield server_secret
    server_secret.client.close()
    server_secret.stop()


@pytest.fixture
def stream(server_secret):
    """The name of a stream of 60 rows."""
    name = uuid.uuid4().hex
    for (a, b), y in zip(X[:60].tolist(), Y[:60].tolist(), strict=True):
        server_secret.client.xadd(name, {"a": a, "b": b, "y": y})
    return name


@pytest.fixture
def stop_at_once(monkeypatch):
    """As if a signal had come during the first block."""

    def is_set(flag):
        flag.signal_number = signal.SIGTERM
        return True

    monkeypatch.setattr(StopFlag, "is_set", is_set)


def written(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def options_secret(server_secret, stream, tmp_path, password=f":{SECRET}"):
    """The words of a command whose addresses have a password."""
    place = f"redis://me{password}@127.0.0.1:{server_secret.port}"
    out = ["--predictions", f"{place}/{stream}-out", "--state", tmp_path / "run"]
    more = ["--report", tmp_path / "report.html", "--stop-when-idle", 0.05, "--target", "y"]
    return [f"{place}/{stream}", *out, *more]


def add_bad_rows(server_secret, stream, count=1):
    for _ in range(count):
        server_secret.client.xadd(stream, {"a": "x", "b": 1, "y": 1})


@pytest.mark.parametrize("log", [(), slow(("--log-json",))])
@pytest.mark.parametrize(
    "outcome",
    ["end", "bad row", "bad rows", "skipped", "other options", "other output", "live", "lost", "wrong"],
)  # fmt: skip
def test_no_outcome_shows_a_password(server_secret, stream, tmp_path, outcome, log):
    words = [*options_secret(server_secret, stream, tmp_path), *log]
    codes = {0, 2}
    if outcome == "bad row":
        add_bad_rows(server_secret, stream)
    elif outcome in ("bad rows", "skipped"):
        add_bad_rows(server_secret, stream, 1 if outcome == "skipped" else 700)
        words += ["--on-bad-row", "skip"]
    elif outcome == "live":
        words += ["--live"]
    elif outcome == "wrong":
        words = [str(word).replace(f"me:{SECRET}", f"you:{SECRET}") for word in words]
    done = [run(*words)]
    if outcome == "other options":
        done.append(run(*words, "--lags", 3))
    elif outcome == "other output":
        done.append(run(*(str(word).replace("-out", "-other") for word in words)))
    elif outcome == "lost":
        server_secret.client.delete(f"{stream}-out", stream)
        done.append(run(*words))
    for one in done:
        assert one.code in codes
        assert "Traceback" not in one.err
        assert MARK not in one.err + one.out
    if len(done) == 2 or outcome in ("bad row", "bad rows", "wrong"):
        assert done[-1].code == 2
    assert MARK.encode() not in written(tmp_path)


@pytest.mark.usefixtures("stop_at_once")
@pytest.mark.parametrize("log", [(), ("--log-json",)])
def test_stopped_run_suggests_a_command_without_its_password(server_secret, stream, tmp_path, log):
    words = [*options_secret(server_secret, stream, tmp_path), *log]
    done = run(*words)
    assert done.code == 128 + signal.SIGTERM
    assert MARK not in done.err
    place = f"redis://me@127.0.0.1:{server_secret.port}/{stream}"
    assert f"kernelbank run {place} --predictions {place}-out --state" in done.err
    if not log:
        assert "--redis-password-file" in done.err
    else:
        assert place in json.loads(done.err.splitlines()[-1])["command"]
    without_state = [word for word in words if word not in ("--state", tmp_path / "run")]
    done = run(*(str(word).replace("-out", "-two") for word in without_state))
    assert done.code == 128 + signal.SIGTERM
    assert MARK not in done.err


@pytest.mark.parametrize("way", ["file", "environment"])
def test_password_of_file_or_environment_is_in_no_command(
    server_secret, stream, tmp_path, way, monkeypatch
):
    """The same file or variable serves the source and the predictions, and a run resumes."""
    words = options_secret(server_secret, stream, tmp_path, password="")
    if way == "file":
        secret = tmp_path.parent / f"{stream}.secret"
        secret.write_text(f"{PLAIN}\n")
        secret.chmod(0o600)
        words += ["--redis-password-file", secret]
    else:
        monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", PLAIN)
    done = succeed(*words)
    assert MARK not in " ".join(map(str, words)) + done.err
    assert server_secret.client.xlen(f"{stream}-out") == 60
    assert MARK.encode() not in written(tmp_path)
    done = succeed(
        *options_secret(server_secret, stream, tmp_path)
    )  # the password does not make it another run
    assert "Resuming after 60 rows" in done.err
    if way == "file":
        secret.chmod(0o644)
        assert "chmod 600" in run(*words).err


@pytest.mark.parametrize(
    "words",
    [
        [f"redis://me:{SECRET}@h/s", f"redis://me:{SECRET}@h/t"],
        [f"redis://me:{SECRET}@h/s", "--lags", f"redis://me:{SECRET}@h/s"],
        [f"redis://me:{SECRET}@h/s", f"--no-such=redis://me:{SECRET}@h/s"],
        ["a.csv", "--predictions", f"http://me:{SECRET}@h/s"],
        ["a.csv", "--predictions", f"redis://me:{SECRET}@h"],
        ["a.csv", "--predictions", f"redis://me:{SECRET}/@h/s"],
        [f"amqp://me:{SECRET}@h/s"],
        [f"kafka://h/t?sasl.password={SECRET}&no.such=1"],
        [f"kafka://h/t?sasl.password={SECRET}&enable.auto.commit=1"],
        [f"kafka://h/t?sasl.password={SECRET}&sasl.username=me&security.protocol={SECRET}"],
        [f"kafka://me:{SECRET}@h/t"],
    ],
)
def test_wrong_usage_shows_no_password(words):
    done = run(*words, "--target", "y")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert MARK not in done.err


@pytest.mark.usefixtures("stop_at_once")
def test_password_of_kafka_is_not_shown(kafka_broker, tmp_path):
    rows = [{"a": a, "y": y} for a, y in zip(X[:20, 0].tolist(), Y[:20].tolist(), strict=True)]
    topic = KafkaFixture(kafka_broker, rows)
    address = f"{topic.address}?sasl.username=me&sasl.password={SECRET}"
    done = run(address, "--target", "y", "--state", tmp_path / "run")
    assert done.code == 128 + signal.SIGTERM
    assert MARK not in done.err
    assert f"'{topic.address}?sasl.username=me'" in done.err
    assert "KERNELBANK_KAFKA_PASSWORD" in done.err
    assert MARK.encode() not in written(tmp_path)


@pytest.mark.slow
def test_processes_of_a_run_do_not_have_the_password_in_their_command(
    server_secret, stream, tmp_path
):
    """As `ps` shows it: the run, and the server of the live page."""
    secret = tmp_path / "secret"
    secret.write_text(PLAIN)
    secret.chmod(0o600)
    words = [
        *options_secret(server_secret, stream, tmp_path, password=""),
        "--redis-password-file",
        secret,
    ]
    words[words.index("--stop-when-idle") + 1] = 60
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelbank", "run", *map(str, [*words, "--live"])],
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while server_secret.client.xlen(f"{stream}-out") < 60 and time.monotonic() < deadline:
            time.sleep(0.05)
        shown = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, check=True).stdout
        assert stream.encode() in shown
        assert MARK.encode() not in shown
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert MARK.encode() not in err
