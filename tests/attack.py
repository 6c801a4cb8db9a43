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
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]


class Piece(NamedTuple):
    """Some attacks of one kind."""

    kind: str
    count: int
    seed: int

    @property
    def command(self) -> str:
        return f"python tests/attack.py --{self.kind} {self.count} --seed {self.seed} --jobs 1"


# --- kinds of attacks -----------------------------------------------------------------------------


@cache
def scenarios() -> Any:
    """The runs of this process, with servers and a folder of its own, to its end."""
    from support.crash_scenarios import open_scenarios

    opened = ExitStack()
    Finalize(None, opened.close, exitpriority=1)
    root = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="attack-")))
    return opened.enter_context(open_scenarios(root))


def run_names() -> list[str]:
    from support.crash_scenarios import SCENARIOS

    without = () if scenarios().redis is not None else ("redis",)
    return [name for name in SCENARIOS if name not in without]


def kills(count: int, seed: int) -> Counter[str]:
    """Kill runs at random moments of the clock or of their events, several times in a row too."""
    from support.crash_scenarios import drawn_moment

    runs, names, draw, outcomes = scenarios(), run_names(), random.Random(seed), Counter[str]()
    while outcomes["kills"] < count:
        name = draw.choice(names)
        runs.undisturbed(name)
        moments = [drawn_moment(runs, name, draw) for _ in range(draw.randint(1, 4))]
        outcomes["kills"] += runs.kill(name, moments)
        outcomes[f"compared: {name}"] += 1
    return outcomes


def faults(count: int, seed: int) -> Counter[str]:
    """Let calls of the system fail, in new runs and in resumed ones."""
    runs, names, draw = scenarios(), run_names(), random.Random(seed)
    runs.outcomes.clear()
    while runs.outcomes.total() < count:
        name, resumed = draw.choice(names), draw.random() < 0.5
        chosen = [runs.draw(name, resumed, draw) for _ in range(draw.randint(1, 3))]
        runs.check(name, chosen, resumed=resumed)
    return Counter(runs.outcomes)


def forged(count: int, seed: int) -> Counter[str]:
    """Load files that were damaged or forged."""
    from support.forged_files import attack, failures

    outcomes = attack(count, seed)
    assert not failures(outcomes), failures(outcomes)
    return outcomes


def sources(count: int, seed: int) -> Counter[str]:
    """Read sources that were made at random."""
    from support.fuzzed_sources import attack

    return attack(count, seed)


def interrupts(count: int, seed: int) -> Counter[str]:
    """Interrupt banks by signals at random moments."""
    from support.interrupt_attack import attack

    return attack(count, seed)


KINDS = {
    "kills": (kills, 20),
    "faults": (faults, 10),
    "forged": (forged, 5000),
    "sources": (sources, 2000),
    "interrupts": (interrupts, 50),
}
"""By name: what does it, and how much of it is one piece, which can be repeated alone."""


# --- the command ----------------------------------------------------------------------------------


def work(piece: Piece) -> tuple[Counter[str], str]:
    """Do a piece: its outcomes, and the traceback if it has failed."""
    warnings.simplefilter("ignore")
    try:
        return KINDS[piece.kind][0](piece.count, piece.seed), ""
    except (Exception, SystemExit):
        scenarios.cache_clear()
        return Counter(), traceback.format_exc()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for kind, (how, _) in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N", help=how.__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    # The first piece of a kind has the seed itself, so that it can be repeated.
    pieces = [
        Piece(kind, min(size, getattr(options, kind) - first), options.seed + number)
        for kind, (_, size) in KINDS.items()
        for number, first in enumerate(range(0, getattr(options, kind), size))
    ]
    if not pieces:
        parser.error("say what to do, such as --kills 100")
    outcomes, has_failed = {piece.kind: Counter[str]() for piece in pieces}, False
    context = get_context("spawn")  # nothing of one process is in another
    with ProcessPoolExecutor(options.jobs, context) as pool:
        for piece, (counts, failure) in zip(pieces, pool.map(work, pieces), strict=True):
            outcomes[piece.kind] += counts
            print(f"{piece.command}: {failure or 'passed'}", flush=True)
            has_failed |= bool(failure)
    for kind, counts in outcomes.items():
        print(kind, ", ".join(f"{name} {count:,}" for name, count in counts.most_common(12)))
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
