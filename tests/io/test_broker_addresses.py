"""Passwords from files and the environment, and commands without them."""

import os
import warnings

import pytest

from kernelbank.errors import BrokerConnection, FileRefused, RunRefused, SourceLost
from kernelbank.io import brokers
from kernelbank.io.brokers import Retries, read_password, typed_without_password
from kernelbank.io.sources import open_source
from support import source_fixtures
from support.source_fixtures import read


def secret_file(path, content=b"s3cret\n", mode=0o600):
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("content", "password"),
    [(b"s3cret\n", "s3cret"), (b"s3cret", "s3cret"), (b" a b \r\n", " a b "), ("é@/\n".encode(), "é@/")],
)  # fmt: skip
@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600])
def test_password_is_the_line_of_a_file(tmp_path, content, password, mode):
    path = secret_file(tmp_path / "secret", content, mode)
    assert read_password(path, "--redis-password-file") == password
    link = tmp_path / "link"
    link.symlink_to(path)  # as secrets of containers are
    assert read_password(link, "--redis-password-file") == password


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o666, 0o601])
def test_file_that_others_may_read_is_refused(tmp_path, mode):
    path = secret_file(tmp_path / "secret", mode=mode)
    with pytest.raises(
        RunRefused, match=f"--x .* that others may not read; .* mode {mode:o}. Use chmod 600"
    ):
        read_password(path, "--x")


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a\nb\n", b"s3cret\xff", b"x" * 5000, b"s3\0cret"]
)
def test_file_without_a_password_is_refused(tmp_path, content):
    path = secret_file(tmp_path / "secret", content)
    with pytest.raises(RunRefused, match="one line of UTF-8") as caught:
        read_password(path, "--x")
    assert "s3" not in str(caught.value)


def test_what_is_no_regular_file_is_refused(tmp_path):
    with pytest.raises(RunRefused, match="--x: .*there is no such file"):
        read_password(tmp_path / "none", "--x")
    with pytest.raises(RunRefused, match="--x: .*a folder"):
        read_password(tmp_path, "--x")
    os.mkfifo(tmp_path / "pipe", 0o600)  # nobody writes to it: it must not be waited for
    with pytest.raises(RunRefused, match="regular file"):
        read_password(tmp_path / "pipe", "--x")


def test_address_wins_over_file_and_file_over_environment(monkeypatch):
    plain, full = "redis://me@host/s", "redis://me:own@host/s"
    assert brokers.redis_address(plain).password is None
    assert brokers.redis_address(plain, "file").password == "file"
    monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", "")
    assert brokers.redis_address(plain).password is None
    monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", "environment")
    assert brokers.redis_address(plain).password == "environment"
    assert brokers.redis_address(plain, "file").password == "file"
    assert brokers.redis_address(full, "file").password == "own"
    monkeypatch.setenv("KERNELBANK_KAFKA_PASSWORD", "environment")
    for settings, password in (
        ("", None),
        ("?sasl.username=me", "environment"),
        ("?sasl.username=me&sasl.password=own", "own"),
    ):
        found = brokers.kafka_address(f"kafka://host/t{settings}").settings
        assert found.get("sasl.password") == password


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("redis://me:s3cret@h:6379/s?db=1", "redis://me@h:6379/s?db=1"),
        ("rediss://:s3cret@[::1]:7000/s", "rediss://[::1]:7000/s"),
        ("--predictions=redis://me:s3%40cret@h/s", "--predictions=redis://me@h/s"),
        ("redis://me@h/s?db=0", "redis://me@h/s?db=0"),
        ("kafka://h/t?sasl.username=a%40b&sasl.password=s3cret", "kafka://h/t?sasl.username=a%40b"),
        ("kafka://h/t?ssl.key.password=s3cret&group.id=g", "kafka://h/t?ssl.key.password=***&group.id=g"),
        ("redis://me:a/s3cret@h/s", "redis://me@h/s"),
        ("redis://me:a?s3cret@h/s", "redis://me@h/s"),
        ("redis://me:a#s3cret@h/s", "redis://me@h/s"),
        ("redis://me:s3cret@[::1/s", "redis://me@[::1/s"),
        ("kafka://h/t?sasl.password=a@s3cret", "kafka://h/t"),
        ("kafka://me:s3cret@h/t", "kafka://me@h/t"),
        ("kafka://h/t?sasl.password=a&s3cret", "kafka://***"),
        ("kafka://me:a?s3cret@h/t", "kafka://***"),
        ("https://me:s3cret@h/x", "https://me@h/x"),
        ("sensors.csv", "sensors.csv"),
        ("--target=a:b@c", "--target=a:b@c"),
    ],
)  # fmt: skip
def test_command_is_shown_without_passwords(word, shown):
    assert typed_without_password(word) == shown
    assert "s3cret" not in brokers.without_password(word.rpartition("=redis")[2]) or shown == word


def test_password_of_the_environment_opens_redis(tmp_path, monkeypatch):
    source_fixtures.needs_redis_server()
    server = source_fixtures.RedisServer(tmp_path)
    try:
        server.client.config_set("requirepass", "s3cret")
        address = f"redis://127.0.0.1:{server.port}/s"
        with pytest.raises(FileRefused, match=r"--redis-password-file or in KERNELBANK_REDIS_PAS"):
            list(open_source(address).blocks())
        assert read(open_source(address, idle=0.05, redis_password="s3cret"))[0] == []
        monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", "s3cret")
        assert read(open_source(address, idle=0.05))[0] == []
        monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", "wr0ng")
        with pytest.raises(FileRefused, match="refuses the user or password") as caught:
            list(open_source(address).blocks())
        assert "wr0ng" not in str(caught.value)
    finally:
        server.client.close()
        server.stop()


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(brokers.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_pauses_grow_until_patience_ends(clock):
    attempts = Retries("redis://host", 30.0)
    pauses = []

    def fail_until_the_end():
        while True:
            attempts.failed("broken")
            pauses.append(attempts.seconds_left)
            clock.now += pauses[-1]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(SourceLost, match=r"^redis://host: no connection for 30 seconds"):
            fail_until_the_end()
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 8, 6.25]
    assert clock.now == 130
    assert len(told) == len(pauses)
    assert str(told[0].message) == (
        "redis://host cannot be reached (broken). Next attempt in 0.25 s; giving up in 30 s."
    )


def test_success_starts_again_with_short_pauses_but_keeps_the_time_for_an_answer(clock):
    attempts = Retries("redis://host", 30.0)
    assert attempts.timeout < 2
    for _ in range(5):
        with pytest.warns(BrokerConnection, match="cannot be reached"):
            attempts.failed("slow")
    assert attempts.timeout == 10.0
    with pytest.warns(BrokerConnection, match="redis://host is reached again"):
        attempts.succeeded()
    assert attempts.seconds_left == 0
    clock.now += 1000
    with pytest.warns(BrokerConnection, match="giving up in 30 s"):
        attempts.failed("slow")
    assert attempts.timeout == 10.0


def test_success_without_a_failure_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Retries("redis://host").succeeded()
