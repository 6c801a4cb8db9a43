"""A run with a live page in a process of its own, fed by hand."""

import json
import re
import subprocess
import sys
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from support.running import numbers

X, Y = numbers(4000)


class Command:
    """A run on standard input, in a process of its own, with a live page."""

    def __init__(self, *options, header="a,b,y"):
        words = [sys.executable, "-m", "kernelbank", "run", "-", "--target", "y", "--size", "small"]
        self.process = subprocess.Popen(
            [*words, "--live", *map(str, options)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.process.stdin.write(f"{header}\n")
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
        code = self.process.wait(180)
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
        for _ in range(3600):
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
