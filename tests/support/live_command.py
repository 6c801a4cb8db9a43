"""`kernelbank run --live` in a process of its own, fed through standard input."""

import json
import re
import subprocess
import sys
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from support.run_command import make_rows

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

    def get(self, path=""):
        url = urlsplit(self.address)
        connection = HTTPConnection(url.hostname, url.port, timeout=20)
        connection.request("GET", url.path + path)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def rows(self):
        """The number of rows on the page."""
        found = re.search(r'id="report"[^>]*>(.*?)</script>', self.get()[1], re.DOTALL)
        return json.loads(found.group(1)).get("status", {}).get("rows", 0)

    def wait_for_rows(self, rows):
        for _ in range(3600):
            if self.rows() == rows:
                return
            time.sleep(0.05)
        pytest.fail(f"the page never showed {rows} rows")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stderr.close()
