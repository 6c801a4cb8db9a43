"""`make accuracy`: AutoBank and its peers on the same streams, one pass, nothing tuned.

Everyone predicts a row before its target is told. Each stream's first 4,000 rows are played and
scored from row 101 on; regression streams twice, as they are given and with the last three targets
as further inputs. Written are tables (accuracy.md), everything in accuracy.json, what is done so
far in figures.json, and a picture of each row. The passes of the peers are kept in peers/.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from importlib.metadata import version
from pathlib import Path

from contest import entries, pictures, tables
from contest.house import AUTO, BANKS, COVERAGE
from contest.peers import PEERS
from contest.play import play_all
from contest.players import BASELINES, Player
from contest.scores import Scored, score, summary
from contest.store import Store
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import kernelbank as kb


def everyone() -> list[Player]:
    return [AUTO, *PEERS, *BASELINES, *BANKS]


def chosen_players(words: str | None) -> list[Player]:
    players = everyone()
    if words is None:
        return players
    names = [name.strip() for name in words.split(",") if name.strip()]
    known = [player.name for player in players]
    for name in names:
        if name not in known:
            raise SystemExit(f"--players: nobody is called {name!r}. There are {', '.join(known)}.")
    return [player for player in players if player.name in names]


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    stream_options(parser)
    parser.add_argument("--players", help="players, separated by commas; by default all")
    parser.add_argument("--fresh", action="store_true", help="play the peers again")
    return parser.parse_args(arguments)


def stream_options(parser: argparse.ArgumentParser) -> None:
    """What is played and where results go."""
    parser.add_argument(
        "--data", type=Path, help="folder of .csv.gz files; by default what River and sklearn bring"
    )
    parser.add_argument("--out", type=Path, default=Path("accuracy"))
    parser.add_argument("--only", default="", help="streams, separated by commas")
    parser.add_argument("--start", type=_count(0), default=0, help="rows to leave out before")
    parser.add_argument("--rows", type=_count(2), default=4000, help="rows to play")
    parser.add_argument("--skip", type=_count(0), default=100, help="of these not scored")
    parser.add_argument("--jobs", type=_count(1), default=1, help="passes side by side")


def _count(least: int):
    def parse(words: str) -> int:
        value = int(words)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        return value

    return parse


def chosen_entries(chosen: argparse.Namespace) -> list[entries.Entry]:
    """What the options of `stream_options` ask for."""
    stretch = entries.Stretch(chosen.start, chosen.rows, chosen.skip)
    only = [name.strip() for name in chosen.only.split(",") if name.strip()]
    if chosen.data is None:
        found = entries.bundled(stretch, only)
    else:
        found = entries.from_folder(chosen.data, stretch, only)
    if not found:
        last = stretch.start + stretch.skip
        raise SystemExit(f"No stream has more than {last} rows. Lower --start or --skip.")
    return found


def play(chosen: argparse.Namespace, players: list[Player]) -> list[Scored]:
    """All rows of the table, with progress on the error stream."""
    found = chosen_entries(chosen)
    store = Store(chosen.out / "peers", chosen.fresh)
    rows = []
    columns = (TextColumn("{task.description:40}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        passes = sum(player.takes(entry) for entry in found for player in players)
        task = progress.add_task("", total=passes)

        def tell(words: str) -> None:  # before each pass, so the bar is one behind
            progress.update(task, description=words)
            progress.advance(task)

        for entry, played in play_all(found, players, store, chosen.jobs, tell):
            rows.append(score(entry, players, played))
            (chosen.out / "figures.json").write_text(tables.figures_json(rows))
            pictures.draw(rows[-1], entry.skip, chosen.out)
    return rows


def report(chosen: argparse.Namespace, players: list[Player], rows: list[Scored]) -> None:
    """Tables in files, and then on the terminal, whose reader may have gone away."""
    found = summary(rows)
    grids = [
        tables.results(rows),
        *(tables.everybody(rows, task, players) for task in tables.TASKS),
        tables.intervals(rows, COVERAGE),
        None if found is None else tables.bars(found),
    ]
    shown = [grid for grid in grids if grid is not None]
    words = [*tables.legend(players), *tables.notes(rows)]
    text = "\n".join([*(grid.markdown() for grid in shown), *(f"- {line}" for line in words)])
    (chosen.out / "accuracy.md").write_text(text + "\n")
    (chosen.out / "accuracy.json").write_text(tables.to_json(facts(chosen, players), rows, found))
    console = Console(width=None if Console().is_terminal else 100, highlight=False)
    for grid in shown:
        console.print(grid.drawn())
    for line in words:
        console.print(line, markup=False)
    console.print(f"Written to {chosen.out.resolve()}", markup=False)


def facts(chosen: argparse.Namespace, players: list[Player]) -> dict[str, object]:
    """What the figures depend on beside the streams."""
    names = ("river", "scikit-learn", "numpy", "numba")
    return {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "kernelbank": kb.__version__,
        **{name: version(name) for name in names},
        "data": None if chosen.data is None else chosen.data.name,
        "start": chosen.start,
        "played": chosen.rows,
        "skip": chosen.skip,
        "jobs": chosen.jobs,
        "players": {player.name: player.words for player in players},
    }


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    players = chosen_players(chosen.players)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        rows = play(chosen, players)
    report(chosen, players, rows)


if __name__ == "__main__":
    main()
