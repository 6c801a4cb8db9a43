"""`make ablation`: what each part of AutoBank is worth.

AutoBank plays the streams of `make accuracy`, in the same views and scored in the same way: once as
it is, with other seeds, and then with one part taken out or replaced at a time. Peers are not
played: where `make accuracy` has kept their passes in OUT/peers, variants are compared with them.
Written are ablation.md and ablation.json, anew after every row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context

from accuracy import chosen_entries, facts, stream_options
from contest import tables, worth
from contest.entries import Entry
from contest.players import Played
from contest.store import Store
from contest.variants import FULL, VARIANTS, Variant
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Rows = list[dict[str, worth.Outcome]]


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    stream_options(parser)
    parser.add_argument(
        "--variants", help="variants or kinds of parts, separated by semicolons; by default all"
    )
    return parser.parse_args(arguments)


def chosen_variants(words: str | None) -> list[Variant]:
    """The full bank is always among them."""
    if words is None:
        return list(VARIANTS)
    wanted = [name.strip() for name in words.split(";") if name.strip()]
    known = dict.fromkeys([*(v.part for v in VARIANTS), *(v.name for v in VARIANTS)])
    for name in wanted:
        if name not in known:
            raise SystemExit(f"--variants: there is no {name!r}. There are {'; '.join(known)}.")
    return [v for v in VARIANTS if v.name == FULL or v.name in wanted or v.part in wanted]


def play_all(
    entries: list[Entry], variants: list[Variant], jobs: int, tell: Callable[[str], None]
) -> Iterator[tuple[Entry, dict[str, Played]]]:
    """Each entry with the passes of all variants."""
    if jobs == 1:
        for entry in entries:
            passes = {}
            for variant in variants:
                tell(f"{variant.name} on {entry.name}")
                passes[variant.name] = variant.play(entry)
            yield entry, passes
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {
            (entry.name, variant.name): pool.submit(_elsewhere, variant.name, entry)
            for entry in entries
            for variant in variants
        }
        for entry in entries:
            passes = {}
            for variant in variants:
                tell(f"{variant.name} on {entry.name}")
                future = waiting.pop((entry.name, variant.name))
                passes[variant.name] = replace(future.result(), jobs=jobs)
            yield entry, passes


def _elsewhere(name: str, entry: Entry) -> Played:
    """By name, because a process is sent no functions."""
    return next(variant for variant in VARIANTS if variant.name == name).play(entry)


def play(chosen: argparse.Namespace, variants: list[Variant]) -> Rows:
    """All rows, with progress on the error stream."""
    found = chosen_entries(chosen)
    store = Store(chosen.out / "peers")
    rows: Rows = []
    columns = (TextColumn("{task.description:50}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(found) * len(variants))

        def tell(words: str) -> None:  # before each pass, so the bar is one behind
            progress.update(task, description=words)
            progress.advance(task)

        for entry, played in play_all(found, variants, chosen.jobs, tell):
            rows.append(worth.outcomes(entry, played, store))
            write(chosen, variants, rows)
    return rows


def write(chosen: argparse.Namespace, variants: list[Variant], rows: Rows) -> None:
    """The files, for the rows that are done."""
    found = [worth.worth(variant, rows) for variant in variants]
    spread = worth.luck(rows)
    words = [f"- {line}" for line in worth.legend(found, spread)]
    grids = [worth.overall(found).markdown(), worth.extremes(found).markdown()]
    (chosen.out / "ablation.md").write_text("\n".join([*grids, *words]) + "\n")
    content = facts(chosen, []) | {
        "luck": None if spread is None else asdict(spread),
        "variants": [asdict(one) for one in found],
        "rows": [{name: asdict(outcome) for name, outcome in row.items()} for row in rows],
    }
    text = json.dumps(tables.plain(content), indent=1, allow_nan=False)
    (chosen.out / "ablation.json").write_text(text + "\n")


def report(chosen: argparse.Namespace, variants: list[Variant], rows: Rows) -> None:
    """Tables on the terminal."""
    found = [worth.worth(variant, rows) for variant in variants]
    console = Console(width=None if Console().is_terminal else 100, highlight=False)
    console.print(worth.overall(found).drawn())
    console.print(worth.extremes(found).drawn())
    for line in worth.legend(found, worth.luck(rows)):
        console.print(line, markup=False)
    console.print(f"Written to {chosen.out.resolve()}", markup=False)


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    variants = chosen_variants(chosen.variants)
    chosen.out.mkdir(parents=True, exist_ok=True)
    report(chosen, variants, play(chosen, variants))


if __name__ == "__main__":
    main()
