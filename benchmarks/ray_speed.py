"""The bank on serial, threads and Ray, on one node and on two: speed, bytes and overhead.

    python benchmarks/ray_speed.py [--out bench] [--turns 5] [--slots 100 500 2000 5000 20000]
        [--parts "one node" "two nodes" exchanges separate]

Engines are compared in one process: their banks run the same samples in turns and in changing
order, some blocks of 1,000 at a time, with record="light". This machine's speed changes from minute
to minute, so ratios are taken within a turn; their median and range are printed. The two exchanges
are compared likewise. The processor times of driver and shards are measured separately:
`ray_model.py` is fitted to them. Everything is written to ray.json.
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
SIZES = (100, 500, 2000, 5000, 20_000)
WARM = 4
"""Blocks before the measurement: as many as are in flight at a time, and one."""

PARTS = ["one node", "two nodes", "exchanges", "separate"]
EXCHANGES = (100, 200, 500, 1000, 2000)
"""Numbers of slots for which the two exchanges are compared."""

SEPARATE_CASES = [
    (exchange, block, slots, shards)
    for exchange in ("gathered", "sums")
    for block in (1000, 4000)
    for slots in (500, 2000, 5000)
    for shards in (1, 4, 12)
    if not (block == 4000 and slots == 5000) and not (slots == 5000 and shards == 1)
]
"""Cases in which the driver and the shards are measured separately."""


def stream(samples: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(samples, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draw.normal(size=samples)


def bank_of(slots: int, engine: Any) -> kb.KernelBank:
    return kb.KernelBank(kb.gaussian_grid(0.1, 10, slots), kb.learners.Norma(), engine=engine)


def blocks_for(slots: int) -> int:
    """Blocks for some seconds of work, and enough to fill the pipeline."""
    return max(4, min(60, 16_000 // slots))


@contextmanager
def two_nodes() -> Iterator[str]:
    """Start a cluster of two nodes with one processor each; yields its address."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    try:
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def compare_engines(
    engines: dict[str, Any], slots: int, turns: int
) -> dict[str, list[dict[str, float]]]:
    """By engine and turn: seconds per sample, and bytes per sample."""
    blocks = blocks_for(slots)
    X, y = stream((turns * blocks + WARM) * BLOCK)
    banks = {way: bank_of(slots, engine) for way, engine in engines.items()}
    for bank in banks.values():
        bank.run(X[: WARM * BLOCK], y[: WARM * BLOCK], record="light")
    found: dict[str, list[dict[str, float]]] = {way: [] for way in engines}
    count = blocks * BLOCK
    order = np.random.default_rng(1)  # a processor that has rested is faster
    for turn in range(turns):
        begin = WARM * BLOCK + turn * count
        for way in order.permutation(list(banks)):
            bank = banks[way]
            traffic = getattr(bank._runtime.executor, "traffic", None)
            before = 0 if traffic is None else traffic.sent + traffic.received
            clock = time.perf_counter()
            bank.run(X[begin : begin + count], y[begin : begin + count], record="light")
            spent = time.perf_counter() - clock
            moved = 0 if traffic is None else traffic.sent + traffic.received - before
            found[way].append({"seconds": spent / count, "bytes": moved / count})
    return found


def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_separately(exchange: str, block: int, slots: int, shards: int) -> dict[str, Any]:
    """Processor seconds per block of the driver and of a shard, on this machine."""
    blocks = 6
    X, y = stream((blocks + WARM) * block)
    engine = kb.engines.Ray(shards=shards, block=block, exchange=exchange)
    bank = bank_of(slots, engine)
    bank.run(X[: WARM * block], y[: WARM * block], record="light")
    executor = bank._runtime.executor
    traffic = executor.traffic
    calls, moved = traffic.calls, traffic.sent + traffic.received
    driver, shard = time.process_time(), sum(map(processor_time, executor.process_ids))
    bank.run(X[WARM * block :], y[WARM * block :], record="light")
    driver = time.process_time() - driver
    shard = sum(map(processor_time, executor.process_ids)) - shard
    return {
        "exchange": exchange,
        "block": block,
        "slots": slots,
        "shards": shards,
        "driver": driver / blocks,
        "shard": shard / blocks / shards,
        "calls": (traffic.calls - calls) / blocks / shards,
        "bytes": (traffic.sent + traffic.received - moved) / blocks,
        "active": float((bank.weights > 0).sum()),
    }


def measure_part(part: str, sizes: list[int], turns: int) -> Any:
    """Measure one part, in this process."""
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    if part == "one node":
        engines = {
            "serial": kb.engines.Serial(),
            "threads": kb.engines.Threads(CORES),
            "ray, one node": kb.engines.Ray(shards=CORES, block=BLOCK),
        }
        return [compare_engines(engines, slots, turns) for slots in sizes]
    if part == "two nodes":
        with two_nodes() as address:
            engines = {
                "threads": kb.engines.Threads(CORES),
                # A processor for each shard: one goes to every node.
                "ray, two nodes": kb.engines.Ray(shards=2, address=address, block=BLOCK, cpus=1),
            }
            return [compare_engines(engines, slots, turns) for slots in sizes]
    if part == "exchanges":
        engines = {
            name: kb.engines.Ray(shards=CORES, block=BLOCK, exchange=name)
            for name in ("gathered", "sums")
        }
        return [compare_engines(engines, slots, turns) for slots in EXCHANGES]
    return [measure_separately(*case) for case in SEPARATE_CASES]


def measure_in_process(part: str, options: Any, folder: Path) -> Any:
    """Measure one part in a process of its own, with its own token."""
    print(part, file=sys.stderr)
    token, answer = folder / "token", folder / "answer"
    words = [sys.executable, __file__, "--one", part, "--out", str(answer)]
    words += ["--turns", str(options.turns), "--slots", *map(str, options.slots)]
    safe = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
    subprocess.run(words, env=os.environ | safe | {"RAY_AUTH_TOKEN_PATH": str(token)}, check=True)
    return json.loads(answer.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--slots", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        options.out.write_text(json.dumps(measure_part(options.one, options.slots, options.turns)))
        return
    options.out.mkdir(exist_ok=True)
    file = options.out / "ray.json"
    kept: dict[str, Any] = {}
    if options.parts != PARTS:  # keep the results of the other parts
        kept = json.loads(file.read_text())
    kept |= {"block": BLOCK, "cores": CORES, "slots": options.slots}
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder, "token")
        token.touch(mode=0o600)
        token.write_text(os.urandom(32).hex())
        for part in options.parts:
            kept[part] = measure_in_process(part, options, Path(folder))
            file.write_text(json.dumps(kept, indent=1))
    show(kept)


def speeds(turns: list[dict[str, float]]) -> str:
    """Samples per second: median and range."""
    rates = [1 / turn["seconds"] for turn in turns]
    return f"{np.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"


def ratio(found: dict[str, Any], way: str, other: str) -> str:
    """Time relative to another engine in the same turn: median and range."""
    pairs = zip(found[way], found[other], strict=True)
    over = [a["seconds"] / b["seconds"] - 1 for a, b in pairs]
    return f"{np.median(over):+.0%} ({min(over):+.0%} to {max(over):+.0%})"


def show(kept: dict[str, Any]) -> None:
    """Print the tables."""
    ways = ("serial", "threads", "ray, one node")
    print("Samples per second: median of the turns, and range\n")
    print("| slots | " + " | ".join(ways) + " | ray, two nodes |\n|" + "---|" * 5)
    for slots, near, far in zip(kept["slots"], kept["one node"], kept["two nodes"], strict=True):
        cells = [speeds(near[way]) for way in ways] + [speeds(far["ray, two nodes"])]
        print(f"| {slots:,} | " + " | ".join(cells) + " |")
    print("\nTime relative to threads on the same cores, and bytes per sample\n")
    print("| slots | one node | two nodes | bytes |\n|---|---|---|---|")
    for slots, near, far in zip(kept["slots"], kept["one node"], kept["two nodes"], strict=True):
        over = ratio(near, "ray, one node", "threads"), ratio(far, "ray, two nodes", "threads")
        moved = np.median([turn["bytes"] for turn in near["ray, one node"]])
        print(f"| {slots:,} | {over[0]} | {over[1]} | {moved:,.0f} |")
    print("\nTime of sums relative to gathered, one node\n\n| slots | sums |\n|---|---|")
    for slots, found in zip(EXCHANGES, kept["exchanges"], strict=True):
        print(f"| {slots:,} | {ratio(found, 'sums', 'gathered')} |")


if __name__ == "__main__":
    main()
