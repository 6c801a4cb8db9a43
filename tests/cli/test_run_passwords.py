"""No outcome of `kernelbank run` prints or writes a password."""

import json
import signal
import subprocess
import sys
import time
import uuid

import pytest

from kernelbank.cli.run import StopFlag
from support.marks import slow
from support.run_command import X, Y, run, succeed
from support.source_fixtures import KafkaFixture, RedisServer, needs_redis_server

SECRET = "s3cr%40t-Mark3r"
PLAIN = "s3cr@t-Mark3r"
MARK = "Mark3r"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    needs_redis_server()
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.client.acl_setuser(
        "me", enabled=True, passwords=[f"+{PLAIN}"], keys=["*"], commands=["+@all"]
    )
    yield server
    server.client.close()
    server.stop()


@pytest.fixture
def stream(server):
    """The name of a stream of 60 rows."""
    name = uuid.uuid4().hex
    for (a, b), y in zip(X[:60].tolist(), Y[:60].tolist(), strict=True):
        server.client.xadd(name, {"a": a, "b": b, "y": y})
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


def options(server, stream, tmp_path, password=f":{SECRET}"):
    """The words of a command whose addresses have a password."""
    place = f"redis://me{password}@127.0.0.1:{server.port}"
    out = ["--predictions", f"{place}/{stream}-out", "--state", tmp_path / "run"]
    more = ["--report", tmp_path / "report.html", "--stop-when-idle", 0.05, "--target", "y"]
    return [f"{place}/{stream}", *out, *more]


def add_bad_rows(server, stream, count=1):
    for _ in range(count):
        server.client.xadd(stream, {"a": "x", "b": 1, "y": 1})


@pytest.mark.parametrize("log", [(), slow(("--log-json",))])
@pytest.mark.parametrize(
    "outcome",
    ["end", "bad row", "bad rows", "skipped", "other options", "other output", "live", "lost", "wrong"],
)  # fmt: skip
def test_no_outcome_shows_a_password(server, stream, tmp_path, outcome, log):
    words = [*options(server, stream, tmp_path), *log]
    codes = {0, 2}
    if outcome == "bad row":
        add_bad_rows(server, stream)
    elif outcome in ("bad rows", "skipped"):
        add_bad_rows(server, stream, 1 if outcome == "skipped" else 700)
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
        server.client.delete(f"{stream}-out", stream)
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
def test_stopped_run_suggests_a_command_without_its_password(server, stream, tmp_path, log):
    words = [*options(server, stream, tmp_path), *log]
    done = run(*words)
    assert done.code == 128 + signal.SIGTERM
    assert MARK not in done.err
    place = f"redis://me@127.0.0.1:{server.port}/{stream}"
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
    server, stream, tmp_path, way, monkeypatch
):
    """The same file or variable serves the source and the predictions, and a run resumes."""
    words = options(server, stream, tmp_path, password="")
    if way == "file":
        secret = tmp_path.parent / f"{stream}.secret"
        secret.write_text(f"{PLAIN}\n")
        secret.chmod(0o600)
        words += ["--redis-password-file", secret]
    else:
        monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", PLAIN)
    done = succeed(*words)
    assert MARK not in " ".join(map(str, words)) + done.err
    assert server.client.xlen(f"{stream}-out") == 60
    assert MARK.encode() not in written(tmp_path)
    done = succeed(*options(server, stream, tmp_path))  # the password does not make it another run
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
def test_processes_of_a_run_do_not_have_the_password_in_their_command(server, stream, tmp_path):
    """As `ps` shows it: the run, and the server of the live page."""
    secret = tmp_path / "secret"
    secret.write_text(PLAIN)
    secret.chmod(0o600)
    words = [*options(server, stream, tmp_path, password=""), "--redis-password-file", secret]
    words[words.index("--stop-when-idle") + 1] = 60
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelbank", "run", *map(str, [*words, "--live"])],
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while server.client.xlen(f"{stream}-out") < 60 and time.monotonic() < deadline:
            time.sleep(0.05)
        shown = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, check=True).stdout
        assert stream.encode() in shown
        assert MARK.encode() not in shown
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert MARK.encode() not in err
