"""`kernelbank run --live`: the page of a run that is at work."""

import json
import re
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest

from running import as_csv, numbers, refused, run

X, Y = numbers(2000)


class Command:
    """A run on standard input, in a process of its own, with a live page."""

    def __init__(self, *options):
        words = [sys.executable, "-m", "kernelbank", "run", "-", "--target", "y", "--size", "small"]
        self.process = subprocess.Popen(
            [*words, "--live", *map(str, options)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.process.stdin.write("a,b,y\n")
        self.said = []
        while not (self.said and "http" in self.said[-1]):
            self.said.append(self.process.stderr.readline())
            assert self.said[-1], "it ended without an address"
        self.address = re.search(r"http://[^\s\"]+/", self.said[-1]).group()

    def send(self, first, end):
        for row in range(first, end):
            self.process.stdin.write(f"{X[row, 0]},{X[row, 1]},{Y[row]}\n")
        self.process.stdin.flush()

    def finish(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.said += self.process.stderr.readlines()
        return code

    def get(self, path=""):
        place = urlsplit(self.address)
        connection = HTTPConnection(place.hostname, place.port, timeout=20)
        connection.request("GET", place.path + path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def rows(self):
        """How many rows the page tells of."""
        found = re.search(r'id="story"[^>]*>(.*?)</script>', self.get()[1], re.DOTALL)
        return json.loads(found.group(1)).get("now", {}).get("rows", 0)

    def until(self, rows):
        for _ in range(600):
            if self.rows() == rows:
                return
            time.sleep(0.05)
        pytest.fail(f"the page never told of {rows} rows")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stderr.close()


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


def test_it_ends_with_a_run_that_is_killed():
    with Command("--quiet") as command:  # the address is said all the same
        command.send(0, 10)
        command.until(10)
    for _ in range(200):
        if not listens(command.address):
            return
        time.sleep(0.05)
    pytest.fail("the server outlives the run")


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
