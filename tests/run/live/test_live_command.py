"""`kernelbank run --live`: the page of a running run."""

import json
import socket
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

from support.live_command import LiveCommand, X, Y
from support.run_command import refusal, succeed, write_csv


def is_listening(address):
    url = urlsplit(address)
    with socket.socket() as opened:
        opened.settimeout(5)
        return opened.connect_ex((url.hostname, url.port)) == 0


def test_live_page_shows_the_rows_of_the_run_until_it_ends():
    with LiveCommand("--log-json") as command:
        assert json.loads(command.lines[-1])["event"] == "live"
        assert urlsplit(command.address).hostname == "127.0.0.1"
        command.send(0, 100)
        command.wait_for_rows(100)
        command.send(100, 150)
        command.wait_for_rows(150)
        assert command.finish() == 0
        assert not is_listening(command.address)
    assert json.loads(command.lines[-1])["rows"] == 150


@pytest.mark.slow
def test_live_page_of_a_killed_run_stops_listening():
    with LiveCommand("--quiet") as command:  # the address is printed all the same
        command.send(0, 10)
        command.wait_for_rows(10)
    for _ in range(200):
        if not is_listening(command.address):
            return
        time.sleep(0.05)
    pytest.fail("the server outlives the run")


@pytest.mark.slow
def test_live_page_for_other_machines_prints_a_note():
    with LiveCommand("--live-host", "0.0.0.0") as command:
        command.send(0, 10)
        assert command.finish() == 0
        assert "not encrypted" in "".join(command.lines)


def test_run_with_taken_port_or_missing_extra_is_refused(tmp_path, monkeypatch):
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X[:9], Y[:9]]))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port}" in refusal(source, "--target", "y", "--live", port)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "kernelbank[live]" in refusal(source, "--target", "y", "--live")


def test_live_before_the_source_does_not_swallow_it(tmp_path):
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X[:9], Y[:9]]))
    assert "Live page: http://" in succeed("--live", source, "--target", "y").err
