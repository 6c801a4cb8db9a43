"""Viewers of a live page, good and bad, made of sockets."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENT = 20.0
"""Seconds after which something that should happen has not."""


def until(happened: Callable[[], Any], seconds: float = PATIENT) -> Any:
    """Wait for something; what it was in the end."""
    deadline = time.monotonic() + seconds
    while not (found := happened()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs: one that nobody has asked after is dead, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def memory(pid: int, what: str = "VmRSS") -> int:
    """Bytes that a process has, or (VmHWM) ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))


def files(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def place(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def ask(
    address: str, path: str | None = None, method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One request; `path` instead of that of the address."""
    connection = http.client.HTTPConnection(*place(address), timeout=PATIENT)
    try:
        target = urlsplit(address).path if path is None else path
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, body, named)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def raw(address: str, *, buffer: int | None = None) -> socket.socket:
    """A connection that has said nothing; with a small buffer, if it is to be filled soon."""
    opened = socket.socket(socket.AF_INET)
    if buffer is not None:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    opened.settimeout(PATIENT)
    try:
        opened.connect(place(address))
    except OSError:
        opened.close()
        raise
    return opened


def cut_off(opened: socket.socket) -> bool:
    """Read to the end; whether there is one in time."""
    deadline = time.monotonic() + PATIENT
    try:
        while opened.recv(65_536):
            if time.monotonic() > deadline:
                return False
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def stuck(address: str, what: str = "events?after=0") -> socket.socket:
    """A viewer who asks for events, or the page (""), and takes nothing."""
    opened = raw(address, buffer=4096)
    host, port = place(address)
    target = urlsplit(address).path + what
    try:
        opened.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    except OSError:
        opened.close()
        raise
    return opened


class Viewer:
    """Follows events as a page does, and keeps what a page would know."""

    def __init__(self, address: str, after: str = "after=0", **headers: str) -> None:
        self.connection = http.client.HTTPConnection(*place(address), timeout=PATIENT)
        self.connection.sock = raw(address, buffer=16_384)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", f"{urlsplit(address).path}events?{after}", headers=named)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.status
        self.parts: dict[str, Any] = {}
        self.identity = 0
        self.ended = False
        self.comments = 0
        self.messages: list[dict[str, Any]] = []

    def step(self) -> bool:
        """Take lines until something is said; False at the end of the stream."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                self.comments += 1
                return True
            if text:
                name, _, value = text.partition(": ")
                assert name not in fields
                fields[name] = value
            elif "data" in fields:
                self._take(fields)
                return True
        return False

    def _take(self, fields: dict[str, str]) -> None:
        if fields.get("event") == "end":
            self.ended = True
            return
        news = json.loads(fields["data"])
        assert int(fields["id"]) > self.identity
        self.identity = int(fields["id"])
        self.messages.append(news)
        for name, value in news.items():
            if value is None:
                self.parts.pop(name, None)
            else:
                self.parts[name] = value

    def follow(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Take events until the story is as wanted."""
        deadline = time.monotonic() + PATIENT
        while not wanted(self.parts):
            assert self.step(), "the stream has ended"
            assert time.monotonic() < deadline, "it has not come"
        return self.parts

    def close(self) -> None:
        self.answer.close()
        self.connection.close()
