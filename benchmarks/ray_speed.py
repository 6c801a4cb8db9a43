"""The bank on serial, threads and Ray, on one node and on two: speed, bytes and overhead.

    python benchmarks/ray_speed.py [--out bench] [--repeats 3] [--slots 100 500 2000 5000 20000]

Every way runs in a process of its own, in turn, several times; each number of slots is played for
some blocks of 1,000 samples after a start of 1,000, with record="light". Best, and spread. Then the
driver and the shards are measured apart, by the processor time that each takes, for several numbers
of shards: `ray_model.py` is fitted to that. Everything goes to ray.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import kernelbank as kb

BLOCK = 1000
CORES = 2
WAYS = ("serial", "threads", "ray, one node", "ray, two nodes")
APART = [(slots, shards) for slots in (500, 2000, 5000) for shards in (1, 2, 4, 8)]
"""Where the driver and the shards are measured apart."""


def stream(samples: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(samples, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draw.normal(size=samples)


def bank_of(slots: int, engine: Any) -> kb.KernelBank:
    return kb.KernelBank(kb.gaussian_grid(0.1, 10, slots), kb.learners.Norma(), engine=engine)


def blocks_for(slots: int) -> int:
    """A second or two of work, and at least three blocks, so that the pipeline is full."""
    return max(3, min(60, 8000 // slots))


@contextmanager
def engine_of(way: str) -> Iterator[Any]:
    """The engine, and the nodes that it needs."""
    if way == "serial":
        yield kb.engines.Serial()
    elif way == "threads":
        yield kb.engines.Threads(CORES)
    elif way == "ray, one node":
        yield kb.engines.Ray(shards=CORES, block=BLOCK)
    else:
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        cluster.add_node(num_cpus=1)
        try:
            # A processor for each shard: one goes to every node.
            yield kb.engines.Ray(shards=2, address=cluster.address, block=BLOCK, cpus=1)
        finally:
            import ray

            ray.shutdown()
            cluster.shutdown()


def played(slots: int, engine: Any) -> dict[str, float]:
    """Seconds a sample, and what travelled."""
    blocks = blocks_for(slots)
    X, y = stream((blocks + 1) * BLOCK)
    bank = bank_of(slots, engine)
    bank.run(X[:BLOCK], y[:BLOCK], record="light")
    traffic = getattr(bank._work.crew, "traffic", None)
    before = 0 if traffic is None else traffic.sent + traffic.received
    begin = time.perf_counter()
    bank.run(X[BLOCK:], y[BLOCK:], record="light")
    spent = time.perf_counter() - begin
    moved = 0 if traffic is None else traffic.sent + traffic.received - before
    count = blocks * BLOCK
    return {"slots": slots, "seconds": spent / count, "bytes": moved / count}


def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def apart(slots: int, shards: int, exchange: str) -> dict[str, Any]:
    """Processor seconds a block of the driver and of a shard, on this machine."""
    blocks = 6
    X, y = stream((blocks + 1) * BLOCK)
    engine = kb.engines.Ray(shards=shards, block=BLOCK, exchange=exchange)
    bank = bank_of(slots, engine)
    bank.run(X[:BLOCK], y[:BLOCK], record="light")
    crew = bank._work.crew
    traffic = crew.traffic
    calls, moved = traffic.calls, traffic.sent + traffic.received
    driver, shard = time.process_time(), sum(map(processor_time, crew.processes))
    bank.run(X[BLOCK:], y[BLOCK:], record="light")
    driver = time.process_time() - driver
    shard = sum(map(processor_time, crew.processes)) - shard
    active = float((bank.weights > 0).sum())
    return {
        "exchange": exchange,
        "slots": slots,
        "shards": shards,
        "driver": driver / blocks,
        "shard": shard / blocks / shards,
        "questions": (traffic.calls - calls) / blocks / shards,
        "bytes": (traffic.sent + traffic.received - moved) / blocks,
        "active": active,
    }


def one(way: str, sizes: list[int]) -> list[dict[str, Any]]:
    """What a process of its own measures."""
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    if way == "apart":
        return [apart(*case, exchange) for exchange in ("gathered", "sums") for case in APART]
    with engine_of(way) as engine:
        return [played(slots, engine) for slots in sizes]


def ask(way: str, sizes: list[int], token: str) -> list[dict[str, Any]]:
    words = [sys.executable, __file__, "--one", way, "--slots", *map(str, sizes)]
    safe = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": token}
    done = subprocess.run(
        words, env=os.environ | safe, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--slots", type=int, nargs="+", default=[100, 500, 2000, 5000, 20_000])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.slots)))
        return
    found: dict[str, list[list[dict[str, Any]]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder, "token")
        token.touch(mode=0o600)
        token.write_text(os.urandom(32).hex())
        for turn in range(given.repeats):
            for way in WAYS:
                print(f"turn {turn + 1} of {given.repeats}: {way}", file=sys.stderr)
                found[way].append(ask(way, given.slots, str(token)))
        given.out.mkdir(exist_ok=True)
        kept: dict[str, Any] = {"block": BLOCK, "cores": CORES, "ways": found}
        (given.out / "ray.json").write_text(json.dumps(kept, indent=1))
        print("the driver and the shards apart", file=sys.stderr)
        kept["apart"] = ask("apart", given.slots, str(token))
    (given.out / "ray.json").write_text(json.dumps(kept, indent=1))
    show(found, given.repeats)


def show(found: dict[str, list[list[dict[str, Any]]]], repeats: int) -> None:
    """The tables."""
    sizes = [row["slots"] for row in found["serial"][0]]
    times = {
        way: np.array([[row["seconds"] for row in turn] for turn in turns])
        for way, turns in found.items()
    }
    print(f"Samples a second, best of {repeats} (and the worst)\n")
    print("| slots | " + " | ".join(WAYS) + " |\n|" + "---|" * (len(WAYS) + 1))
    for k, slots in enumerate(sizes):
        cells = [f"{1 / t[:, k].min():,.0f} ({1 / t[:, k].max():,.0f})" for t in times.values()]
        print(f"| {slots:,} | " + " | ".join(cells) + " |")
    print("\nTime over that of threads on the same cores, and bytes a sample\n")
    print("| slots | one node | two nodes | bytes |\n|---|---|---|---|")
    for k, slots in enumerate(sizes):
        threads = times["threads"][:, k].min()
        over = [f"{times[way][:, k].min() / threads - 1:+.0%}" for way in WAYS[2:]]
        moved = found["ray, one node"][0][k]["bytes"]
        print(f"| {slots:,} | {over[0]} | {over[1]} | {moved:,.0f} |")


if __name__ == "__main__":
    main()
