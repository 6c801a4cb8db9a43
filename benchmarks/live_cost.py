"""What the live page costs a run: with nobody watching, with some who follow, with many stuck.

Whole runs differ by more than a page costs. So the page is told of one run in every other second
only, and the rows of each such second are compared with those of the second before and after it:
the median of the ratios, and its error. Beside it, the share of its time that the run spent on
telling, and the processor time of the server beside it.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import numpy as np
from run_cost import options, written

from kernelbank.app.cli import run as command
from kernelbank.app.live.live import Live
from kernelbank.app.live.publisher import Pictures
from kernelbank.app.runner.timings import PAGE

WAYS = {"nobody watches": (0, False), "5 follow": (5, True), "50 are stuck": (50, False)}


def watch(address: str, count: int, reading: bool) -> None:
    """Ask for events so many times, in a process of its own, and read them or not."""
    place = urlsplit(address)
    asked = f"GET {place.path}events HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
    viewers = [socket.create_connection((place.hostname, place.port)) for _ in range(count)]
    for viewer in viewers:
        viewer.sendall(asked)
        viewer.settimeout(0.05)
    while True:
        for viewer in viewers if reading else []:
            with suppress(TimeoutError):
                viewer.recv(1 << 16)
        time.sleep(0.05)


def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Seconds:
    """Tells the page in every other second, and notes when how many rows were done."""

    def __init__(self, count: int, reading: bool) -> None:
        self.viewers, self.reading = count, reading
        self.noted: list[tuple[float, int]] = []
        self.watching: subprocess.Popen[bytes] | None = None
        self.share = self.server = 0.0
        self._plain = Pictures.update

    def opened(self, live: Live) -> None:
        if self.viewers:
            words = [sys.executable, __file__, "--watch", live.address, str(self.viewers)]
            self.watching = subprocess.Popen([*words, *(["--reading"] if self.reading else [])])

    def update(self, pictures: Pictures, run: object) -> None:
        now = time.monotonic()
        if not self.noted:
            assert pictures._live is not None
            self.opened(pictures._live)
        self.noted.append((now, run.rows))  # type: ignore[attr-defined]
        if int(now) % 2:
            self._plain(pictures, run)  # type: ignore[arg-type]
        seconds = now - self.noted[0][0]
        if seconds:
            self.share = run.timings.seconds[PAGE] / seconds  # type: ignore[attr-defined]
            assert pictures._live is not None
            self.server = processor_time(pictures._live._process.pid) / seconds

    def ratios(self) -> np.ndarray:
        """Rows of the seconds with the page over those of their neighbours without."""
        times, rows = map(np.array, zip(*self.noted))
        edges = np.arange(np.ceil(times[0]) + 5, np.floor(times[-1]))  # after the start
        speeds = np.diff(np.interp(edges, times, rows))
        told = edges[:-1].astype(int) % 2 == 1
        inner = [k for k in range(1, len(speeds) - 1) if told[k]]
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
        print(f"{given.rows:,} rows, 4 inputs; told in every other second\n")
        print("| viewers | rows/s told over not told | seconds | spent on telling | the server |")
        print("|---|---|---|---|---|")
        for name, (count, reading) in WAYS.items():
            seconds = Seconds(count, reading)

            def update(pictures: Pictures, run: object, seconds: Seconds = seconds) -> None:
                seconds.update(pictures, run)

            with mock.patch.object(Pictures, "update", update):
                command.run(options(path, live=0))
            if seconds.watching is not None:
                seconds.watching.kill()
                seconds.watching.wait()
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
