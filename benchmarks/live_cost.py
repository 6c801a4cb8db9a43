"""What the live page costs a run: without viewers, with some that follow, with many stuck ones.

Whole runs differ by more than a page costs. So one run publishes to its page in every other second
only, and the rows of each such second are compared with the rows of the seconds before and after:
the median of the ratios, and its standard error. Also the share of its time that the run spent on
publishing, and the processor time of the server.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from unittest import mock
from urllib.error import HTTPError
from urllib.parse import urlsplit

import numpy as np
from run_cost import options, written

from kernelbank.cli import run as command
from kernelbank.run.live.page import LivePage, Publisher

CASES = {"none": (0, False), "5 that follow": (5, True), "50 stuck": (50, False)}


def follow(address: str) -> None:
    """Ask for one report after another, as a page does."""
    tag = ""
    while True:
        request = urllib.request.Request(f"{address}report", headers={"If-None-Match": tag})
        try:
            with urllib.request.urlopen(request) as response:
                tag = response.headers["ETag"]
                response.read()
        except HTTPError:  # 304: there is no newer one yet
            continue
        except OSError:  # the run is over
            return


def watch(address: str, count: int, reading: bool) -> None:
    """Open `count` viewers, which follow the run, or ask for a report and read nothing."""
    url = urlsplit(address)
    sent = f"GET {url.path}report HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
    stuck = []
    for _ in range(count):
        if reading:
            threading.Thread(target=follow, args=[address]).start()
        else:
            stuck.append(socket.create_connection((url.hostname, url.port)))
            stuck[-1].sendall(sent)
    time.sleep(3600)


def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Seconds:
    """Publishes in every other second, and records how many rows were done when."""

    def __init__(self, count: int, reading: bool) -> None:
        self.viewers, self.reading = count, reading
        self.recorded: list[tuple[float, int]] = []
        self.viewing: subprocess.Popen[bytes] | None = None
        self.share = self.server = self.publishing = 0.0
        self._update = Publisher.update

    def start_viewers(self, page: LivePage) -> None:
        if self.viewers:
            words = [sys.executable, __file__, "--watch", page.address, str(self.viewers)]
            self.viewing = subprocess.Popen([*words, *(["--reading"] if self.reading else [])])

    def update(self, publisher: Publisher, run: object) -> None:
        now = time.monotonic()
        if not self.recorded:
            assert publisher._page is not None
            self.start_viewers(publisher._page)
        self.recorded.append((now, run.rows))  # type: ignore[attr-defined]
        if int(now) % 2:
            self._update(publisher, run)  # type: ignore[arg-type]
            self.publishing += time.monotonic() - now
        seconds = now - self.recorded[0][0]
        if seconds:
            self.share = self.publishing / seconds
            assert publisher._page is not None
            self.server = processor_time(publisher._page._process.pid) / seconds

    def ratios(self) -> np.ndarray:
        """Rows of the seconds with publishing over the rows of their neighbours without."""
        times, rows = map(np.array, zip(*self.recorded))
        edges = np.arange(np.ceil(times[0]) + 5, np.floor(times[-1]))  # after the start
        speeds = np.diff(np.interp(edges, times, rows))
        publishing = edges[:-1].astype(int) % 2 == 1
        inner = [k for k in range(1, len(speeds) - 1) if publishing[k]]
        return np.array([2 * speeds[k] / (speeds[k - 1] + speeds[k + 1]) for k in inner])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--watch", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--reading", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.watch:
        watch(given.watch[0], int(given.watch[1]), given.reading)
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "stream.csv"
        written(path, given.rows)
        print(f"{given.rows:,} rows, 4 inputs; published in every other second\n")
        print("| viewers | rows/s with publishing over without | seconds | publishing | server |")
        print("|---|---|---|---|---|")
        for name, (count, reading) in CASES.items():
            seconds = Seconds(count, reading)

            def update(publisher: Publisher, run: object, seconds: Seconds = seconds) -> None:
                seconds.update(publisher, run)

            with mock.patch.object(Publisher, "update", update):
                command.run(options(path, live=0))
            if seconds.viewing is not None:
                seconds.viewing.kill()
                seconds.viewing.wait()
            ratios = seconds.ratios()
            draw = np.random.default_rng(0)
            medians = [np.median(draw.choice(ratios, len(ratios))) for _ in range(1000)]
            print(
                f"| {name} | {np.median(ratios) - 1:+.1%} ± {np.std(medians):.1%} | "
                f"{len(ratios)} | {2 * seconds.share:.1%} | {2 * seconds.server:.1%} |"
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
