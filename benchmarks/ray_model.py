"""How fast a bank on Ray would be on more nodes than there are here: a model, and what checks it.

    python benchmarks/ray_model.py [--out bench]

Fitted to bench/ray.json, which `ray_speed.py` writes. Of a block of n samples, P slots, S shards, R
questions a block (by sums they grow with log S), and A slots a sample of which the driver hears (P
gathered, those with weight by sums, a power of P),

    shard    C = s n P / S + e              processor seconds of one shard
    driver   D = a + b R S + n (c A + d S)  of the driver
    bytes    B = n (u A + v S)              through the driver's link
    link     L = l R + B / w                seconds, at l a question and w bytes a second
    block    T = max(C, D + L)              shards learn later blocks while the driver weighs one

Assumed, not measured: every shard has a processor like those here to itself; a question takes
LATENCY on the way; the driver's link takes WIDTH; nodes do not wait for each other's memory; a
sample has as many slots with weight as on the stream that was measured. The first check is the same
formula for this machine, where driver and shards share the processors, beside what was measured and
not fitted: the time of whole blocks. The second plays the pipeline event by event, with shards that
differ from block to block and sometimes fall behind, which the formula leaves out.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelbank.bank.engines.ray.actor_pool import BLOCKS_AHEAD
from kernelbank.bank.engines.ray.executor import MIN_SLOTS_FOR_SUMS

LATENCY = 0.5e-3
WIDTH = 1.25e9
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
    """What a block costs, by one exchange."""

    exchange: str
    shard: np.ndarray
    driver: np.ndarray
    carried: np.ndarray
    asked: np.ndarray
    active: np.ndarray

    def questions(self, shards: float) -> float:
        return float(self.asked @ [1.0, np.log(shards)])

    def terms(self, block: int, slots: float, shards: float) -> list[float]:
        """Of the driver."""
        heard = slots
        if self.exchange == "sums":
            heard = float(np.exp(self.active @ [1.0, np.log(slots)]))
        return [1.0, self.questions(shards) * shards, block * heard, block * shards]

    def costs(self, block: int, slots: float, shards: float) -> tuple[float, float, float]:
        """Seconds of a shard, of the driver, and bytes of a block."""
        own = self.terms(block, slots, shards)
        learn = self.shard @ [block * slots / shards, 1.0]
        return float(learn), float(self.driver @ own), float(self.carried @ own[2:])

    def seconds(self, block: int, slots: float, shards: float) -> float:
        """Of a block, where every shard has a processor of its own."""
        learn, driver, carried = self.costs(block, slots, shards)
        return max(learn, driver + self.questions(shards) * LATENCY + carried / WIDTH)

    def here(self, block: int, slots: float, shards: int, cores: int) -> float:
        """The same where all share these processors, and nothing travels far."""
        learn, driver, _ = self.costs(block, slots, shards)
        return max(learn, driver, (shards * learn + driver) / cores)


def least(rows: list[list[float]], values: list[float]) -> np.ndarray:
    """Least squares of relative errors, with coefficients that are not negative."""
    from scipy.optimize import nnls

    table, wanted = np.array(rows), np.array(values)
    sizes = np.abs(table).max(axis=0)
    found, _ = nnls(table / wanted[:, None] / sizes, np.ones(len(wanted)))
    return found / sizes


def fitted(measured: list[dict[str, Any]], exchange: str) -> Fit:
    own = [row for row in measured if row["exchange"] == exchange]
    # A power of the number of slots: the finer the dictionary, the smaller the part with weight.
    power = np.polyfit(np.log([r["slots"] for r in own]), np.log([r["active"] for r in own]), 1)
    shard = least(
        [[r["block"] * r["slots"] / r["shards"], 1.0] for r in own], [r["shard"] for r in own]
    )
    asked = least([[1.0, np.log(r["shards"])] for r in own], [r["questions"] for r in own])
    guess = Fit(exchange, shard, np.zeros(4), np.zeros(2), asked, power[::-1])
    terms = [guess.terms(r["block"], r["slots"], r["shards"]) for r in own]
    return guess._replace(
        driver=least(terms, [r["driver"] for r in own]),
        carried=least([row[2:] for row in terms], [r["bytes"] for r in own]),
    )


def simulated(fit: Fit, block: int, slots: float, shards: int, blocks: int = 200) -> float:
    """Mean seconds of a block, event by event.

    A shard's time differs by 10 % from block to block, and one in a hundred takes twice as long; a
    question takes up to twice the latency, and is answered when the last shard has answered.
    """
    draw = np.random.default_rng(1)
    learn, driver, carried = fit.costs(block, slots, shards)
    rounds = max(1, round(fit.questions(shards)) - 1)  # the first goes out with the block
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
        ended.append(now + carried / WIDTH)
    return (ended[-1] - ended[blocks // 4]) / (blocks - blocks // 4)


def show_fits(fits: dict[str, Fit], measured: list[dict[str, Any]]) -> None:
    for name, fit in fits.items():
        slot, more = fit.shard
        a, b, c, d = fit.driver
        print(
            f"{name}: a shard {1e9 * slot:.0f} ns a slot and sample and {1e3 * more:.1f} ms a "
            f"block; the driver {1e3 * a:.1f} ms a block, {1e3 * b:.2f} ms a question to a shard, "
            f"{1e9 * c:.0f} ns a slot that it hears of and sample, {1e9 * d:.0f} ns a shard and "
            f"sample; {fit.asked[0]:.1f} + {fit.asked[1]:.2f} log(shards) questions a block"
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
    print("\nHere, two processors for all of it: milliseconds of a block, by the formula and as")
    print("measured (median, and range)\n")
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
    print(f"\nOn nodes of {cores} processors: samples a second by the formula (by simulation)\n")
    print("| slots | exchange | block | " + " | ".join(f"{n} nodes" for n in NODES) + " |")
    print("|" + "---|" * (len(NODES) + 3))
    worst = 0.0
    for exchange, block, slots in CASES:
        fit, cells = fits[exchange], []
        for nodes in NODES:
            shards = nodes * cores
            plain = fit.seconds(block, slots, shards)
            played = simulated(fit, block, slots, shards)
            worst = max(worst, abs(played / plain - 1))
            cells.append(f"{block / plain:,.0f} ({block / played:,.0f})")
        print(f"| {slots:,} | {exchange} | {block:,} | " + " | ".join(cells) + " |")
    print(f"\nThe simulation differs from the formula by at most {worst:.0%}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"))
    given = parser.parse_args()
    kept = json.loads((given.out / "ray.json").read_text())
    fits = {name: fitted(kept["apart"], name) for name in ("gathered", "sums")}
    show_fits(fits, kept["apart"])
    show_here(fits, kept)
    show_beyond(fits, kept["cores"])


if __name__ == "__main__":
    main()
