"""`kernelbank run --live`: the page of a run that is at work."""

import json
import socket
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

from support.live_run import Command, X, Y
from support.running import as_csv, refused, run


def listens(address):
    place = urlsplit(address)
    with socket.socket() as one:
        one.settimeout(5)
        return one.connect_ex((place.hostname, place.port)) == 0


def test_the_page_follows_the_run():
    with Command("--log-json") as command:
        assert json.loads(command.said[-1])["event"] == "live"
        assert urlsplit(command.address).hostname == "127.0.0.1"
        command.send(0, 100)
        command.until(100)
        command.send(100, 150)
        command.until(150)
        assert command.finish() == 0
        assert not listens(command.address)
    assert json.loads(command.said[-1])["rows"] == 150


@pytest.mark.slow
def test_it_ends_with_a_run_that_is_killed():
    with Command("--quiet") as command:  # the address is said all the same
        command.send(0, 10)
        command.until(10)
    for _ in range(200):
        if not listens(command.address):
            return
        time.sleep(0.05)
    pytest.fail("the server outlives the run")


@pytest.mark.slow
def test_a_page_for_other_machines_is_pointed_out():
    with Command("--live-host", "0.0.0.0") as command:
        command.send(0, 10)
        assert command.finish() == 0
        assert "not encrypted" in "".join(command.said)


def test_what_is_refused(tmp_path, monkeypatch):
    source = as_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X[:9], Y[:9]]))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(source, "--target", "y", "--live", port)
    done = run("--live", source, "--target", "y")
    assert done.code == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "kernelbank[live]" in refused(source, "--target", "y", "--live")
