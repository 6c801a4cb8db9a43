"""Bytes between the driver and the shards of a bank on Ray, against the number of slots.

    python benchmarks/ray_bytes.py [--slots 100 1000 10000 20000] [--samples 400] [--shards 2]

Counts the bytes of arrays, both ways, in a run with record="light" after the first 100 samples. For
each number of slots: both exchanges, the number of slots with weight, and the time per sample.
"""

import argparse
import time
import warnings

import numpy as np

import kernelbank as kb


def measure(slots: int, samples: int, shards: int, exchange: str) -> tuple[float, float, float]:
    """Bytes per sample, slots with weight, microseconds per sample."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(samples + 100, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draw.normal(size=len(X))
    engine = kb.engines.Ray(shards=shards, exchange=exchange)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, slots), kb.learners.Norma(), engine=engine)
    bank.run(X[:100], y[:100], record="light")
    traffic = bank._runtime.executor.traffic
    sent, received = traffic.sent, traffic.received
    began = time.perf_counter()
    bank.run(X[100:], y[100:], record="light")
    seconds = time.perf_counter() - began
    moved = traffic.sent - sent + traffic.received - received
    active = float((bank.weights > 0).sum())
    return moved / samples, active, 1e6 * seconds / samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, nargs="+", default=[100, 1000, 10_000, 20_000])
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--shards", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    print("bytes per sample, and microseconds per sample")
    print(f"{'slots':>8}{'active':>8}{'gathered':>12}{'sums':>10}{'ratio':>8}{'µs':>10}{'µs':>10}")
    for slots in options.slots:
        gathered, active, gathered_time = measure(
            slots, options.samples, options.shards, "gathered"
        )
        by_sums, _, sums_time = measure(slots, options.samples, options.shards, "sums")
        print(
            f"{slots:>8}{active:>8.0f}{gathered:>12.0f}{by_sums:>10.0f}{gathered / by_sums:>8.1f}"
            f"{gathered_time:>10.0f}{sums_time:>10.0f}"
        )


if __name__ == "__main__":
    main()
