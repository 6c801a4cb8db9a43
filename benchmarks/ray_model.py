"""How fast a bank on Ray would be on more nodes than there are here: a model, and its checks.

    python benchmarks/ray_model.py [--out bench]

The model is fitted to bench/ray.json, which `ray_speed.py` writes. For a block of n samples, P
slots, S shards, R calls per shard and block (with sums they grow with log S), and A slots per
sample that are sent to the driver (gathered: P; sums: the slots with weight, a power of P):

    shard    C = s n P / S + e              processor seconds of one shard
    driver   D = a + b R S + n (c A + d S)  processor seconds of the driver
    bytes    B = n (u A + v S)              through the driver's link
    link     L = l R + B / w                seconds, with l per call and w bytes per second
    block    T = max(C, D + L)              shards learn later blocks while the driver combines one

Assumed, not measured: every shard has a processor like those here to itself; a call takes LATENCY
on the way; the driver's link carries BANDWIDTH; nodes do not wait for each other's memory; a sample
has as many slots with weight as on the measured stream. The first check is the same formula for
this machine, where driver and shards share the processors, against the measured time of whole
blocks, which was not fitted. The second check simulates the pipeline event by event, with shards
whose times vary from block to block and sometimes double, which the formula leaves out.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelbank.bank.engines.ray.actor_pool import BLOCKS_AHEAD
from kernelbank.bank.engines.ray.executor import MIN_SLOTS_FOR_SUMS

LATENCY = 0.5e-3
BANDWIDTH = 1.25e9
NODES = (1, 2, 8, 32, 128, 512)
CASES = (
    ("gathered", 1000, 20_000),
    ("sums", 1000, 20_000),
    ("sums", 16_000, 20_000),
    ("gathered", 1000, 200_000),
    ("sums", 1000, 200_000),
    ("sums", 4000, 200_000),
)


class Fit(NamedTuple):
    """Costs of a block with one exchange."""

    exchange: str
    shard: np.ndarray
    driver: np.ndarray
    carried: np.ndarray
    calls: np.ndarray
    active: np.ndarray

    def calls_per_block(self, shards: float) -> float:
        return float(self.calls @ [1.0, np.log(shards)])

    def terms(self, block: int, slots: float, shards: float) -> list[float]:
        """The driver's terms: 1, R S, n A, n S."""
        sent = slots
        if self.exchange == "sums":
            sent = float(np.exp(self.active @ [1.0, np.log(slots)]))
        return [1.0, self.calls_per_block(shards) * shards, block * sent, block * shards]

    def costs(self, block: int, slots: float, shards: float) -> tuple[float, float, float]:
        """Seconds of a shard, of the driver, and bytes of a block."""
        own = self.terms(block, slots, shards)
        learn = self.shard @ [block * slots / shards, 1.0]
        return float(learn), float(self.driver @ own), float(self.carried @ own[2:])

    def seconds(self, block: int, slots: float, shards: float) -> float:
        """Seconds of a block, where every shard has a processor of its own."""
        learn, driver, carried = self.costs(block, slots, shards)
        return max(learn, driver + self.calls_per_block(shards) * LATENCY + carried / BANDWIDTH)

    def here(self, block: int, slots: float, shards: int, cores: int) -> float:
        """The same where all share these processors, and no network is used."""
        learn, driver, _ = self.costs(block, slots, shards)
        return max(learn, driver, (shards * learn + driver) / cores)


def fit_nonnegative(rows: list[list[float]], values: list[float]) -> np.ndarray:
    """Coefficients >= 0 that minimise the squared relative errors."""
    from scipy.optimize import nnls

    table, wanted = np.array(rows), np.array(values)
    sizes = np.abs(table).max(axis=0)
    found, _ = nnls(table / wanted[:, None] / sizes, np.ones(len(wanted)))
    return found / sizes


def fit_model(measured: list[dict[str, Any]], exchange: str) -> Fit:
    own = [row for row in measured if row["exchange"] == exchange]
    # A power of the number of slots: the finer the dictionary, the smaller the part with weight.
    power = np.polyfit(np.log([r["slots"] for r in own]), np.log([r["active"] for r in own]), 1)
    shard = fit_nonnegative(
        [[r["block"] * r["slots"] / r["shards"], 1.0] for r in own], [r["shard"] for r in own]
    )
    calls = fit_nonnegative([[1.0, np.log(r["shards"])] for r in own], [r["calls"] for r in own])
    guess = Fit(exchange, shard, np.zeros(4), np.zeros(2), calls, power[::-1])
    terms = [guess.terms(r["block"], r["slots"], r["shards"]) for r in own]
    return guess._replace(
        driver=fit_nonnegative(terms, [r["driver"] for r in own]),
        carried=fit_nonnegative([row[2:] for row in terms], [r["bytes"] for r in own]),
    )


def simulate(fit: Fit, block: int, slots: float, shards: int, blocks: int = 200) -> float:
    """Mean seconds of a block, event by event.

    A shard's time differs by 10 % from block to block, and one in a hundred takes twice as long; a
    call takes up to twice the latency, and ends when the last shard has answered.
    """
    draw = np.random.default_rng(1)
    learn, driver, carried = fit.costs(block, slots, shards)
    rounds = max(1, round(fit.calls_per_block(shards)) - 1)  # the first goes out with the block
    ready = np.zeros(shards)
    ended = [0.0]
    for number in range(blocks):
        sent = ended[max(0, number - BLOCKS_AHEAD)]
        spread = np.exp(0.1 * draw.normal(size=shards))
        spread[draw.random(shards) < 0.01] *= 2.0
        ready = np.maximum(ready, sent + LATENCY) + learn * spread
        now = max(ended[-1], ready.max())
        for _ in range(rounds):
            now += driver / rounds + LATENCY * (1.0 + draw.random(shards).max())
        ended.append(now + carried / BANDWIDTH)
    return (ended[-1] - ended[blocks // 4]) / (blocks - blocks // 4)


def show_fits(fits: dict[str, Fit], measured: list[dict[str, Any]]) -> None:
    for name, fit in fits.items():
        slot, more = fit.shard
        a, b, c, d = fit.driver
        print(
            f"{name}: a shard {1e9 * slot:.0f} ns per slot and sample and {1e3 * more:.1f} ms per "
            f"block; the driver {1e3 * a:.1f} ms per block, {1e3 * b:.2f} ms per call to a shard, "
            f"{1e9 * c:.0f} ns per received slot and sample, {1e9 * d:.0f} ns per shard and "
            f"sample; {fit.calls[0]:.1f} + {fit.calls[1]:.2f} log(shards) calls per block"
        )
    print("\nThe driver's and the shards' processor time, measured over fitted")
    print("\n| exchange | block | slots | shards | driver | shard |\n|" + "---|" * 6)
    for row in measured:
        block, slots, shards = row["block"], row["slots"], row["shards"]
        learn, driver, _ = fits[row["exchange"]].costs(block, slots, shards)
        print(
            f"| {row['exchange']} | {block:,} | {slots:,} | {shards} "
            f"| {row['driver'] / driver:.2f} | {row['shard'] / learn:.2f} |"
        )


def show_here(fits: dict[str, Fit], kept: dict[str, Any]) -> None:
    print("\nHere, two processors for everything: milliseconds per block, by the formula and")
    print("measured (median and range)\n")
    print("| slots | formula | one node | two nodes |\n|---|---|---|---|")
    for slots, near, far in zip(kept["slots"], kept["one node"], kept["two nodes"], strict=True):
        fit = fits["sums" if slots >= MIN_SLOTS_FOR_SUMS else "gathered"]
        cells = []
        for turns in (near["ray, one node"], far["ray, two nodes"]):
            times = [1e3 * kept["block"] * turn["seconds"] for turn in turns]
            cells.append(f"{np.median(times):.0f} ({min(times):.0f} to {max(times):.0f})")
        formula = 1e3 * fit.here(kept["block"], slots, kept["cores"], kept["cores"])
        print(f"| {slots:,} | {formula:.0f} | " + " | ".join(cells) + " |")


def show_beyond(fits: dict[str, Fit], cores: int) -> None:
    print(f"\nOn nodes of {cores} processors: samples per second by the formula (by simulation)\n")
    print("| slots | exchange | block | " + " | ".join(f"{n} nodes" for n in NODES) + " |")
    print("|" + "---|" * (len(NODES) + 3))
    worst = 0.0
    for exchange, block, slots in CASES:
        fit, cells = fits[exchange], []
        for nodes in NODES:
            shards = nodes * cores
            formula = fit.seconds(block, slots, shards)
            simulation = simulate(fit, block, slots, shards)
            worst = max(worst, abs(simulation / formula - 1))
            cells.append(f"{block / formula:,.0f} ({block / simulation:,.0f})")
        print(f"| {slots:,} | {exchange} | {block:,} | " + " | ".join(cells) + " |")
    print(f"\nThe simulation differs from the formula by at most {worst:.0%}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    kept = json.loads((options.out / "ray.json").read_text())
    fits = {name: fit_model(kept["separate"], name) for name in ("gathered", "sums")}
    show_fits(fits, kept["separate"])
    show_here(fits, kept)
    show_beyond(fits, kept["cores"])


if __name__ == "__main__":
    main()
