"""`kernelbank run` with Redis and Kafka, whose passwords nobody sees."""

import os
import signal
import subprocess
import sys
import uuid

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.cli.run import StopFlag
from support import run_command
from support.live_viewers import wait_until
from support.marks import slow
from support.run_command import X, Y, read_state, refusal, run, succeed, write_csv
from support.source_fixtures import KafkaFixture, RedisFixture

source, folder = run_command.source, run_command.folder


@pytest.mark.parametrize("kind", ["redis", slow("kafka")])
def test_stream_read_in_two_runs_gives_every_prediction_of_the_model_once(
    kind, redis_server, tmp_path, request
):
    half, rows = 50, [{"a": a, "b": b, "y": y} for (a, b), y in zip(X[:100], Y, strict=False)]
    name = uuid.uuid4().hex
    out = f"redis://127.0.0.1:{redis_server.port}/{name}"
    options = ["--target", "y", "--predictions", out, "--state", tmp_path / "run"]
    if kind == "redis":
        stream = RedisFixture(redis_server, rows[:half])
    else:
        stream = KafkaFixture(request.getfixturevalue("kafka_broker"), rows[:half])
    succeed(stream.address, *options, "--stop-when-idle", 1)
    stream.add(rows[half:])
    succeed(stream.address, *options, "--stop-when-idle", 1)
    trace = kb.AutoBank(size="small").run(X[:100], Y[:100])
    entries = [fields for _, fields in redis_server.client.xrange(name)]
    assert [int(fields[b"row"]) for fields in entries] == list(range(1, 101))
    for field, array in ((b"prediction", trace.predictions), (b"upper", trace.upper)):
        assert entries[0][field] == b""  # nothing is known yet
        assert [float(fields[field]) for fields in entries[1:]] == array[1:].tolist()


def test_trimmed_source_is_refused_or_its_missing_rows_are_counted(redis_server, tmp_path):
    entries = [{"a": a, "b": b, "y": y} for (a, b), y in zip(X[:100], Y, strict=False)]
    stream = RedisFixture(redis_server, entries[:50])
    address = stream.address
    words = ["--target", "y", "--state", tmp_path / "run", "--predictions", tmp_path / "out.csv"]
    words += ["--stop-when-idle", 0.05]
    succeed(address, *words)
    stream.add(entries[50:])
    redis_server.client.xtrim(stream.name, 20, approximate=False)
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


# --- No outcome of `kernelbank run` prints or writes a password. ---


SECRET = "s3cr%40t-Mark3r"
PLAIN = "s3cr@t-Mark3r"
MARK = "Mark3r"


@pytest.fixture
def guarded_server(redis_server):
    """A server with a user who has a password."""
    redis_server.client.acl_setuser(
        "me", enabled=True, passwords=[f"+{PLAIN}"], keys=["*"], commands=["+@all"]
    )
    return redis_server


@pytest.fixture
def stream(guarded_server):
    """The name of a stream of 60 rows."""
    rows = [{"a": a, "b": b, "y": y} for (a, b), y in zip(X[:60], Y, strict=False)]
    return RedisFixture(guarded_server, rows).name


@pytest.fixture
def stop_at_once(monkeypatch):
    """As if a signal had come during the first block."""

    def is_set(flag):
        flag.signal_number = signal.SIGTERM
        return True

    monkeypatch.setattr(StopFlag, "is_set", is_set)


def written(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def options_with_password(guarded_server, stream, tmp_path, password=f":{SECRET}"):
    """The words of a command whose addresses have a password."""
    place = f"redis://me{password}@127.0.0.1:{guarded_server.port}"
    out = ["--predictions", f"{place}/{stream}-out", "--state", tmp_path / "run"]
    more = ["--report", tmp_path / "report.html", "--stop-when-idle", 0.05, "--target", "y"]
    return [f"{place}/{stream}", *out, *more]


def add_bad_rows(guarded_server, stream, count=1):
    for _ in range(count):
        guarded_server.client.xadd(stream, {"a": "x", "b": 1, "y": 1})


@pytest.mark.parametrize("log", [(), slow(("--log-json",))])
@pytest.mark.parametrize(
    "outcome",
    ["end", "bad row", "bad rows", "skipped", "other options", "other output", "live", "lost", "wrong"],
)  # fmt: skip
def test_no_outcome_shows_a_password(guarded_server, stream, tmp_path, outcome, log):
    words = [*options_with_password(guarded_server, stream, tmp_path), *log]
    codes = {0, 2}
    if outcome == "bad row":
        add_bad_rows(guarded_server, stream)
    elif outcome in ("bad rows", "skipped"):
        add_bad_rows(guarded_server, stream, 1 if outcome == "skipped" else 700)
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
        guarded_server.client.delete(f"{stream}-out", stream)
        done.append(run(*words))
        assert "has lost rows 1 to 60, which were written" in done[1].err
        assert "Nothing is lost" not in done[1].err
    for one in done:
        assert one.code in codes
        assert "Traceback" not in one.err
        assert MARK not in one.err + one.out
    if len(done) == 2 or outcome in ("bad row", "bad rows", "wrong"):
        assert done[-1].code == 2
    assert MARK.encode() not in written(tmp_path)


@pytest.mark.usefixtures("stop_at_once")
@pytest.mark.parametrize("log", [(), ("--log-json",)])
@pytest.mark.parametrize("state", [True, False])
def test_stopped_run_shows_no_password(guarded_server, stream, tmp_path, log, state):
    words = [*options_with_password(guarded_server, stream, tmp_path), *log]
    words = [word for word in words if state or word not in ("--state", tmp_path / "run")]
    done = run(*words)
    assert done.code == 128 + signal.SIGTERM
    assert MARK not in done.err


def test_password_of_the_environment_is_in_no_command(
    guarded_server, stream, tmp_path, monkeypatch
):
    """It serves the source and the predictions, and a run resumes."""
    words = options_with_password(guarded_server, stream, tmp_path, password="")
    monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", PLAIN)
    done = succeed(*words)
    assert MARK not in " ".join(map(str, words)) + done.err
    assert guarded_server.client.xlen(f"{stream}-out") == 60
    assert MARK.encode() not in written(tmp_path)
    done = succeed(
        *options_with_password(guarded_server, stream, tmp_path)
    )  # the password does not make it another run
    assert "Resuming after 60 rows" in done.err


@pytest.mark.usefixtures("stop_at_once")
def test_password_of_kafka_is_not_shown(kafka_broker, tmp_path):
    rows = [{"a": a, "y": y} for a, y in zip(X[:20, 0].tolist(), Y[:20].tolist(), strict=True)]
    topic = KafkaFixture(kafka_broker, rows)
    address = f"{topic.address}?sasl.username=me&sasl.password={SECRET}"
    done = run(address, "--target", "y", "--state", tmp_path / "run")
    assert done.code == 128 + signal.SIGTERM
    assert MARK not in done.err
    assert MARK.encode() not in written(tmp_path)


@pytest.mark.slow
def test_password_of_the_environment_is_not_in_the_commands_of_a_run(
    guarded_server, stream, tmp_path
):
    """As `ps` shows them: the run, and the server of the live page."""
    words = options_with_password(guarded_server, stream, tmp_path, password="")
    words[words.index("--stop-when-idle") + 1] = 60
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelbank", "run", *map(str, [*words, "--live"])],
        env={**os.environ, "KERNELBANK_REDIS_PASSWORD": PLAIN},
    )
    try:
        assert wait_until(lambda: guarded_server.client.xlen(f"{stream}-out") == 60, 60)
        shown = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, check=True).stdout
        assert stream.encode() in shown
        assert MARK.encode() not in shown
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize(
    "words",
    [
        [f"redis://me:{SECRET}@h/s", f"redis://me:{SECRET}@h/t"],
        [f"redis://me:{SECRET}@h/s", f"--no-such=redis://me:{SECRET}@h/s"],
        ["a.csv", "--predictions", f"http://me:{SECRET}@h/s"],
        ["a.csv", "--predictions", f"redis://me:{SECRET}/@h/s"],
        [f"kafka://h/t?sasl.password={SECRET}&no.such=1"],
        [f"kafka://h/t?sasl.password={SECRET}&sasl.username=me&security.protocol={SECRET}"],
        [f"kafka://me:{SECRET}@h/t"],
    ],
)
def test_wrong_usage_shows_no_password(words):
    done = run(*words, "--target", "y")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert MARK not in done.err
