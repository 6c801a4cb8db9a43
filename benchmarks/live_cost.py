"""What the live page costs a run: with nobody watching, with some who follow, with many stuck.

The same run in turn, several times each, always as a process of its own. Best and spread of the
rows a second; and, since whole runs differ by more than that, the share of its time that the run
itself spent on telling the page.
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

from run_cost import written


class Viewers:
    """So many who ask for events, and read them or not."""

    def __init__(self, address: str, count: int, *, reading: bool) -> None:
        place = urlsplit(address)
        asked = f"GET {place.path}events HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
        self.sockets = [
            socket.create_connection((place.hostname, place.port)) for _ in range(count)
        ]
        for one in self.sockets:
            one.sendall(asked)
            if reading:
                threading.Thread(target=self._read, args=[one], daemon=True).start()

    @staticmethod
    def _read(one: socket.socket) -> None:
        try:
            while one.recv(1 << 16):
                pass
        except OSError:
            pass

    def close(self) -> None:
        for one in self.sockets:
            one.close()


def played(path: Path, live: bool, viewers: int, reading: bool) -> tuple[float, float]:
    """Rows a second, and the share of time spent on the page."""
    words = [sys.executable, "-m", "kernelbank", "run", str(path), "--target", "load", "--log-json"]
    report = path.with_suffix(".html")
    words += ["--report", str(report), *(["--live"] if live else [])]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        watching, end = None, {}
        for line in process.stderr:
            told = json.loads(line)
            if told["event"] == "live" and viewers:
                watching = Viewers(told["address"], viewers, reading=reading)
            if told["event"] == "end":
                end = told
        if watching is not None:
            watching.close()
    text = report.read_text()
    story = json.loads(text.split('id="story">')[1].split("</script>")[0])
    spent = dict(story["now"]["time"])
    return end["rows_per_second"], spent["the live page"] / story["now"]["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    ways = {
        "no live page": (False, 0, False),
        "live, nobody watches": (True, 0, False),
        "live, 5 follow": (True, 5, True),
        "live, 50 are stuck": (True, 50, False),
    }
    try:
        path = folder / "stream.csv"
        written(path, given.rows)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for turn in range(given.repeats):
            for name, way in ways.items():
                found[name].append(played(path, *way))
            print(f"turn {turn + 1} of {given.repeats}", file=sys.stderr)
        print(f"{given.rows:,} rows, 4 inputs; best of {given.repeats}\n")
        print("| way | rows/s | spread | against none | spent on telling |\n|---|---|---|---|---|")
        plain = max(speed for speed, _ in found["no live page"])
        for name, pairs in found.items():
            speeds, shares = zip(*pairs)
            best = max(speeds)
            print(
                f"| {name} | {best:,.0f} | {min(speeds):,.0f} to {best:,.0f} | "
                f"{best / plain - 1:+.1%} | {max(shares):.1%} |"
            )
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
