"""Viewers of a live page, well-behaved and hostile, made of sockets."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.run_command import make_rows

TIMEOUT = 20.0
"""Seconds after which something that should happen has not."""


def wait_until(condition, seconds=TIMEOUT):
    """Wait until the condition holds or the time is over; its last value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def is_alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def memory(pid, field="VmRSS"):
    """Bytes of memory of a process now, or (VmHWM) at most so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def open_files(pid="self"):
    return len(os.listdir(f"/proc/{pid}/fd"))


def host_and_port(address):
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def request(address, path=None, method="GET", body=None, **headers):
    """Status, headers and body of one request; `path` replaces the path of the address."""
    connection = http.client.HTTPConnection(*host_and_port(address), timeout=TIMEOUT)
    try:
        target = urlsplit(address).path if path is None else path
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, body, named)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def connect(address, *, buffer=None):
    """A connection that has sent nothing; with a small receive buffer, if it is to fill soon."""
    opened = socket.socket(socket.AF_INET)
    if buffer is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    opened.settimeout(TIMEOUT)
    try:
        opened.connect(host_and_port(address))
    except OSError:
        opened.close()
        raise
    return opened


def is_dropped(opened):
    """Read to the end; whether the server ends the connection in time."""
    deadline = time.monotonic() + TIMEOUT
    try:
        while opened.recv(65_536):
            if time.monotonic() > deadline:
                return False
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def stuck_viewer(address, path="report"):
    """A viewer that requests the report, or the page (""), and reads nothing."""
    opened = connect(address, buffer=4096)
    host, port = host_and_port(address)
    target = urlsplit(address).path + path
    try:
        opened.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    except OSError:
        opened.close()
        raise
    return opened


class Viewer:
    """Follows a run as a page does."""

    def __init__(self, address):
        self.address = address
        self.tag = ""
        self.report: dict[str, Any] = {}

    def ask(self):
        """Ask for the next report; the status of the response."""
        path = f"{urlsplit(self.address).path}report"
        status, headers, body = request(self.address, path, If_None_Match=self.tag)
        if status == 200:
            assert headers["etag"] != self.tag
            self.tag, self.report = headers["etag"], json.loads(body)
        return status

    def follow_until(self, condition):
        """Ask for reports until one is as wanted."""
        deadline = time.monotonic() + TIMEOUT
        while not condition(self.report):
            self.ask()
            assert time.monotonic() < deadline, "it has not come"
        return self.report


# --- `kernelbank run --live` in a process of its own, fed through standard input ---


X, Y = make_rows(4000)


class LiveCommand:
    """A run of standard input with a live page."""

    def __init__(self, *options, header="a,b,y"):
        words = [sys.executable, "-m", "kernelbank", "run", "-", "--target", "y", "--size", "small"]
        self.process = subprocess.Popen(
            [*words, "--live", *map(str, options)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.process.stdin.write(f"{header}\n")
        self.lines = []
        while not (self.lines and "http" in self.lines[-1]):
            self.lines.append(self.process.stderr.readline())
            assert self.lines[-1], "it ended without an address"
        self.address = re.search(r"http://[^\s\"]+/", self.lines[-1]).group()

    def send(self, first, end):
        for row in range(first, end):
            self.process.stdin.write(f"{X[row, 0]},{X[row, 1]},{Y[row]}\n")
        self.process.stdin.flush()

    def finish(self):
        self.process.stdin.close()
        code = self.process.wait(180)
        self.lines += self.process.stderr.readlines()
        return code

    def rows(self):
        """The number of rows on the page."""
        page = request(self.address)[2].decode()
        found = re.search(r'id="report"[^>]*>(.*?)</script>', page, re.DOTALL)
        return json.loads(found.group(1)).get("status", {}).get("rows", 0)

    def wait_for_rows(self, rows):
        assert wait_until(lambda: self.rows() == rows, 180)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stderr.close()
