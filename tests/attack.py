"""A long attack by hand: kills, failing calls, forged files, fuzzed sources, interrupts.

    python tests/attack.py --kills 1000 --faults 300 --forged 100000 --sources 100000 \\
        --interrupts 500 --seed 1 --jobs 2

The work is cut into pieces, each with a seed of its own, and shared by `--jobs` processes. A failure
is printed with the command that repeats its piece alone. The exit code is 1 if there was any.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

PIECE = {"kills": 20, "faults": 10, "forged": 5000, "sources": 2000, "interrupts": 50}
"""How much of each kind is one piece, with its own seed: it can be repeated alone."""


OUTCOMES = 12
"""How many outcomes of each kind are in the table, the most frequent ones."""


class Piece(NamedTuple):
    """Some attacks of one kind."""

    kind: str
    count: int
    seed: int

    @property
    def command(self) -> str:
        return f"python tests/attack.py --{self.kind} {self.count} --seed {self.seed} --jobs 1"


class Result(NamedTuple):
    """What came of a piece."""

    piece: Piece
    outcomes: Counter[str]
    seconds: float
    failure: str
    """The traceback, or nothing."""


# --- kinds of attacks -----------------------------------------------------------------------------


def kills(count: int, seed: int) -> Counter[str]:
    """Kill runs at random moments of the clock or of their events, several times in a row too."""
    from support.crash_scenarios import drawn_moment

    runs, draw, found = Runs.of_process(), random.Random(seed), Counter[str]()
    while found["kills"] < count:
        name = draw.choice(runs.names)
        runs.scenarios.undisturbed(name)
        moments = [drawn_moment(runs.scenarios, name, draw) for _ in range(draw.randint(1, 4))]
        found["kills"] += runs.scenarios.kill(name, moments)
        found[f"compared: {name}"] += 1
    return found


def faults(count: int, seed: int) -> Counter[str]:
    """Let calls of the system fail, in new runs and in resumed ones."""
    runs, draw = Runs.of_process(), random.Random(seed)
    checks = runs.scenarios
    checks.outcomes.clear()
    while checks.outcomes.total() < count:
        name, resumed = draw.choice(runs.names), draw.random() < 0.5
        chosen = [checks.draw(name, resumed, draw) for _ in range(draw.randint(1, 3))]
        checks.check(name, chosen, resumed=resumed)
    return Counter(checks.outcomes)


def forged(count: int, seed: int) -> Counter[str]:
    """Load files that were damaged or forged."""
    from support.forged_files import attack, failures

    found = attack(count, seed)
    assert not failures(found), failures(found)
    return found


def sources(count: int, seed: int) -> Counter[str]:
    """Read sources that were made at random."""
    from support.fuzzed_sources import attack

    return attack(count, seed)


def interrupts(count: int, seed: int) -> Counter[str]:
    """Interrupt banks by signals at random moments."""
    from support.interrupt_attack import attack

    return attack(count, seed)


KINDS: dict[str, Callable[[int, int], Counter[str]]] = {
    "kills": kills,
    "faults": faults,
    "forged": forged,
    "sources": sources,
    "interrupts": interrupts,
}


# --- in each process ------------------------------------------------------------------------------


class Runs:
    """The scenarios of a process, with servers and a folder of its own."""

    _own: Runs | None = None

    def __init__(self) -> None:
        from support.crash_scenarios import SCENARIOS, open_scenarios

        self._opened = ExitStack()
        root = Path(self._opened.enter_context(tempfile.TemporaryDirectory(prefix="attack-")))
        self.scenarios = self._opened.enter_context(open_scenarios(root))
        without = () if self.scenarios.redis is not None else ("redis",)
        self.names = [name for name in SCENARIOS if name not in without]

    @classmethod
    def of_process(cls) -> Runs:
        """Those of this process, opened when they are first needed."""
        if cls._own is None:
            cls._own = Runs()
            Finalize(None, cls.close, exitpriority=1)  # at the end of the process
        return cls._own

    @classmethod
    def close(cls) -> None:
        """Stop the servers; others may be opened after that."""
        if cls._own is not None:
            cls._own._opened.close()
            cls._own = None


def work(piece: Piece) -> Result:
    """Do a piece; whatever goes wrong is a failure of it."""
    warnings.simplefilter("ignore")
    start, outcomes, failure = time.monotonic(), Counter[str](), ""
    try:
        outcomes = KINDS[piece.kind](piece.count, piece.seed)
    except (Exception, SystemExit):
        failure = traceback.format_exc()
        Runs.close()
    return Result(piece, outcomes, time.monotonic() - start, failure)


# --- the command ----------------------------------------------------------------------------------


def cut(kind: str, count: int, seed: int) -> list[Piece]:
    """The pieces of one kind; the first has the seed itself, so that it can be repeated."""
    size = PIECE[kind]
    return [
        Piece(kind, min(size, count - first), seed + number)
        for number, first in enumerate(range(0, count, size))
    ]


def attack(pieces: list[Piece], jobs: int) -> list[Result]:
    """Do all pieces in some processes, and print how far it is."""
    found: list[Result] = []
    done = Counter[str]()
    start = shown = time.monotonic()
    context = get_context("spawn")  # nothing of one process is in another
    with ProcessPoolExecutor(jobs, context) as pool:
        for future in as_completed([pool.submit(work, piece) for piece in pieces]):
            result = future.result()
            found.append(result)
            done[result.piece.kind] += result.piece.count
            if result.failure:
                print(f"FAILED: {result.piece.command}\n{result.failure}", flush=True)
            if time.monotonic() - shown > 10 or len(found) == len(pieces):
                shown = time.monotonic()
                text = ", ".join(f"{kind} {number:,}" for kind, number in done.items())
                print(f"{shown - start:6.0f} s: {text}", flush=True)
    return found


def table(results: list[Result]) -> str:
    """What was done, what came of it, and how long it took."""
    lines = ["", f"{'attack':<12}{'count':>9}{'failed':>8}{'seconds':>9}  outcomes"]
    for kind in KINDS:
        own = [result for result in results if result.piece.kind == kind]
        if own:
            outcomes = sum((result.outcomes for result in own), Counter[str]())
            most = outcomes.most_common(OUTCOMES)
            text = ", ".join(f"{name} {number:,}" for name, number in most)
            if len(most) < len(outcomes):
                text += f", others {outcomes.total() - sum(dict(most).values()):,}"
            lines.append(
                f"{kind:<12}{sum(result.piece.count for result in own):>9,}"
                f"{sum(bool(result.failure) for result in own):>8}"
                f"{sum(result.seconds for result in own):>9.0f}  {text}"
            )
    lines += [f"repeat: {result.piece.command}" for result in results if result.failure]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for kind, how in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N", help=how.__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    pieces = [piece for kind in KINDS for piece in cut(kind, getattr(options, kind), options.seed)]
    if not pieces:
        parser.error("say what to do, such as --kills 100")
    random.Random(options.seed).shuffle(pieces)  # all kinds from the start
    results = attack(pieces, options.jobs)
    print(table(results))
    return int(any(result.failure for result in results))


if __name__ == "__main__":
    sys.exit(main())
