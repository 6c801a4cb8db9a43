"""How fast a bank on Ray would be on more nodes than there are here: a model, and what checks it.

    python benchmarks/ray_model.py [--out bench]

Fitted to bench/ray.json, which `ray_speed.py` writes. Of a block of n samples, P slots, S shards,

    shard    C = n s P / S + e            processor seconds of one shard
    driver   D = a + b S + c A            of the driver, A = P gathered, or the slots with weight
    link     L = R (l + ...) + B / w      R questions a block, l seconds each; B bytes at w bytes/s
    block    T = max(C, D + L)            shards learn later blocks while the driver weighs one

Assumed, not measured: every shard has a processor like those here to itself; a question takes
LATENCY on the way; the driver's link takes WIDTH; nodes do not wait for each other's memory. The
first check is the same formula for this machine, where driver and shards share the processors,
beside what was measured. The second plays the pipeline event by event, with shards that differ from
block to block and sometimes fall behind, which the formula leaves out.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LATENCY = 0.5e-3
WIDTH = 1.25e9
AHEAD = 2
"""Blocks that shards may be ahead, as in the engine."""

NODES = (1, 2, 8, 32, 128, 512)
SLOTS = (20_000, 200_000, 1_000_000)


class Fit(NamedTuple):
    """What a block costs, by one exchange."""

    exchange: str
    block: int
    slot: float
    shard: float
    driver: np.ndarray
    carried: np.ndarray
    questions: float
    active: np.ndarray

    def weighed(self, slots: float) -> float:
        """The slots that the driver hears of: all, or those with weight."""
        if self.exchange == "gathered":
            return slots
        return float(np.exp(self.active @ [1.0, np.log(slots)]))

    def terms(self, slots: float, shards: float) -> tuple[float, float, float]:
        """Seconds of a shard, of the driver, and bytes of a block."""
        own = np.array([1.0, shards, self.weighed(slots)])
        learn = self.block * self.slot * slots / shards + self.shard
        return learn, float(self.driver @ own), float(self.carried @ own)

    def link(self, slots: float, shards: float) -> float:
        return self.questions * LATENCY + self.terms(slots, shards)[2] / WIDTH

    def seconds(self, slots: float, shards: float) -> float:
        """Of a block, where every shard has a processor of its own."""
        learn, driver, _ = self.terms(slots, shards)
        return max(learn, driver + self.link(slots, shards))

    def here(self, slots: float, shards: int, cores: int) -> float:
        """The same where all share these processors, and nothing travels far."""
        learn, driver, _ = self.terms(slots, shards)
        return max(learn, driver, (shards * learn + driver) / cores)


def least(rows: list[list[float]], values: list[float]) -> np.ndarray:
    """Least squares of relative errors, with coefficients that are not negative."""
    from scipy.optimize import nnls

    table, wanted = np.array(rows), np.array(values)
    sizes = np.abs(table).max(axis=0)
    found, _ = nnls(table / wanted[:, None] / sizes, np.ones(len(wanted)))
    return found / sizes


def fitted(measured: list[dict[str, Any]], exchange: str, block: int) -> Fit:
    own = [row for row in measured if row["exchange"] == exchange]
    slot, shard = least(
        [[block * r["slots"] / r["shards"], 1.0] for r in own], [r["shard"] for r in own]
    )
    # A power of the number of slots: the finer the dictionary, the smaller the part with weight.
    power = np.polyfit(np.log([r["slots"] for r in own]), np.log([r["active"] for r in own]), 1)
    active = power[::-1]
    guess = Fit(exchange, block, slot, shard, np.zeros(3), np.zeros(3), 0.0, active)
    terms = [[1.0, r["shards"], guess.weighed(r["slots"])] for r in own]
    return guess._replace(
        driver=least(terms, [r["driver"] for r in own]),
        carried=least(terms, [r["bytes"] for r in own]),
        questions=float(np.mean([r["questions"] for r in own])),
    )


def simulated(fit: Fit, slots: float, shards: int, blocks: int = 200) -> float:
    """Mean seconds of a block, event by event.

    A shard's time differs by 10 % from block to block, and one in a hundred takes twice as long; a
    question takes up to twice the latency, and is answered when the last shard has answered.
    """
    draw = np.random.default_rng(1)
    learn, driver, carried = fit.terms(slots, shards)
    rounds = max(1, round(fit.questions) - 1)  # the first goes out with the block
    ready = np.zeros(shards)
    ended = [0.0]
    for block in range(blocks):
        sent = ended[max(0, block - AHEAD)]
        spread = np.exp(0.1 * draw.normal(size=shards))
        spread[draw.random(shards) < 0.01] *= 2.0
        ready = np.maximum(ready, sent + LATENCY) + learn * spread
        now = max(ended[-1], ready.max())
        for _ in range(rounds):
            now += driver / rounds + LATENCY * (1.0 + draw.random(shards).max())
        ended.append(now + carried / WIDTH)
    return (ended[-1] - ended[blocks // 4]) / (blocks - blocks // 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench"))
    given = parser.parse_args()
    kept = json.loads((given.out / "ray.json").read_text())
    block, cores = kept["block"], kept["cores"]
    fits = {name: fitted(kept["apart"], name, block) for name in ("gathered", "sums")}
    for name, fit in fits.items():
        a, b, c = 1e3 * fit.driver
        print(
            f"{name}: a slot and sample {1e9 * fit.slot:.0f} ns, a shard's block "
            f"{1e3 * fit.shard:.1f} ms more; driver {a:.1f} ms a block, {b:.2f} a shard, "
            f"{1e3 * c:.2f} µs a slot it hears of; {fit.questions:.1f} questions a block"
        )
    print("\nThe driver's and the shards' processor time, measured over fitted")
    print("\n| exchange | slots | shards | driver | shard |\n|---|---|---|---|---|")
    for row in kept["apart"]:
        learn, driver, _ = fits[row["exchange"]].terms(row["slots"], row["shards"])
        print(
            f"| {row['exchange']} | {row['slots']:,} | {row['shards']} "
            f"| {row['driver'] / driver:.2f} | {row['shard'] / learn:.2f} |"
        )
    print(
        "\nHere, two processors for all of it: milliseconds of a block, measured and by the formula"
    )
    print("\n| slots | one node | two nodes | formula |\n|---|---|---|---|")
    for k, row in enumerate(kept["ways"]["serial"][0]):
        slots = row["slots"]
        fit = fits["sums" if slots >= 2048 else "gathered"]
        best = [
            min(turn[k]["seconds"] for turn in kept["ways"][way]) * block * 1e3
            for way in ("ray, one node", "ray, two nodes")
        ]
        formula = 1e3 * fit.here(slots, cores, cores)
        print(f"| {slots:,} | {best[0]:.0f} | {best[1]:.0f} | {formula:.0f} |")
    print(f"\nOn nodes of {cores} processors: samples a second by the formula (by simulation)")
    print("\n| slots | exchange | " + " | ".join(f"{n} nodes" for n in NODES) + " |")
    print("|" + "---|" * (len(NODES) + 2))
    worst = 0.0
    for slots in SLOTS:
        for name, fit in fits.items():
            cells = []
            for nodes in NODES:
                shards = nodes * cores
                plain, played = fit.seconds(slots, shards), simulated(fit, slots, shards)
                worst = max(worst, abs(played / plain - 1))
                cells.append(f"{block / plain:,.0f} ({block / played:,.0f})")
            print(f"| {slots:,} | {name} | " + " | ".join(cells) + " |")
    print(f"\nThe simulation differs from the formula by at most {worst:.0%}.")


if __name__ == "__main__":
    main()
