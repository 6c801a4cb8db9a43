"""`kernelbank compare`: AutoBank, learners and combiners on streams; tables."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from .. import combiners, learners
from ..auto import AutoBank
from ..bank.bank import KernelBank
from ..errors import FileRefused, InvalidArgument, KernelBankWarning
from ..io import cells
from ..kernels import gaussian_grid
from ..losses import Squared, as_loss
from ..research import datasets, rivals
from ..research.comparison import compare as run_comparison
from ..research.results import Comparison
from ..utils.validation import Floats


def compare(options: dict[str, Any]) -> None:
    """Run everything, with progress on the terminal; `options` are those of the command."""
    console = Console(highlight=False)
    out: Path = options["out"]
    banks = make_banks(options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KernelBankWarning)
        streams = open_streams(options)
    _print_warnings(console, caught)
    out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KernelBankWarning)
        comparison = _run(console, banks, streams, options)
    console.print(f"{comparison}\n", markup=False, soft_wrap=True)
    _print_warnings(console, caught)
    files = write_files(comparison, out)
    console.print(f"\nDone in {time.perf_counter() - start:.1f} s.")
    print_files(console, out, files)


def print_files(console: Console, folder: Path, files: Iterable[Path]) -> None:
    """Say what was written, and where."""
    console.print(f"Written to [bold]{escape(str(folder.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def write_files(comparison: Comparison, folder: Path) -> list[Path]:
    """The tables, for programs and for people."""
    markdown = folder / "table.md"
    markdown.write_text(f"{comparison}\n", encoding="utf-8")
    return [comparison.to_json(folder / "table.json"), markdown]


def make_banks(options: dict[str, Any]) -> dict[str, object]:
    """A bank for every learner and combiner, rivals, and, for numbers, an AutoBank; one loss."""
    methods = chosen(options["learners"], "--learners", learners.standalone())
    rules = chosen(options["combiners"], "--combiners", combiners.BUILT_IN)
    dictionary = gaussian_grid(0.1, 10, 20)
    loss = as_loss(options["loss"])
    banks: dict[str, object] = {}
    for method in methods:
        for rule in rules:
            name = f"{method.__name__} {rule.__name__}"
            try:
                banks[name] = KernelBank(dictionary, method(), rule(), loss)
            except InvalidArgument as error:
                raise InvalidArgument(f"{name}: {error}") from None
    if options["rivals"]:
        for rival in chosen(options["rivals"], "--rivals", rivals.BANKS):
            banks[rival.__name__] = rival(loss=loss)
    if not loss.labels:  # its predictions of labels are labels, which no such loss scores
        banks["AutoBank"] = AutoBank() if loss == Squared() else AutoBank(loss=loss)
    return banks


def chosen(names: str, option: str, possible: Iterable[Any]) -> list[Any]:
    """The classes or functions whose names are listed with commas."""
    by_name = {kind.__name__: kind for kind in possible}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in by_name:
            listed = ", ".join(sorted(by_name))
            hint = " Settings of components are for kb.compare, in Python." if "(" in name else ""
            raise InvalidArgument(f"{option}: there is no {name!r}. Use {listed}.{hint}")
    return [by_name[name] for name in dict.fromkeys(wanted)]


def open_streams(options: dict[str, Any]) -> dict[str, object]:
    """The streams by short names: the source's own, or the file's without folder and suffix."""
    streams: dict[str, object] = {}
    rows, has_labels = options["standardise"], as_loss(options["loss"]).labels

    def scaled(X: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The stream in standard units, if they are asked for; labels are not scaled."""
        if not rows:
            return X, y
        inputs, targets = datasets.standardised(X, y, rows)
        return inputs, y if has_labels else targets

    for source in options["sources"]:
        if source in datasets.BUILT_IN:
            maker, length = datasets.BUILT_IN[source], options["samples"] or 1000
            streams[source] = lambda seed, maker=maker, length=length: scaled(*maker(seed, length))
            continue
        if not source.endswith((".csv", ".csv.gz")):
            names = ", ".join(sorted(datasets.BUILT_IN))
            raise InvalidArgument(
                f"{source}: this is not the name of a stream ({names}) nor a .csv or .csv.gz file."
            )
        name = Path(source).name.removesuffix(".gz").removesuffix(".csv")
        columns = options["target"], options["features"], options["samples"]
        written = {name: options[name] for name in ("delimiter", "decimal")}
        try:
            table = datasets.read_csv(source, *columns, **written)
        except FileRefused as error:
            if not str(error).endswith((f"{cells.NOT_A_NUMBER}.", f"{cells.MISSING}.")):
                raise
            raise FileRefused(
                f"{error} `kernelbank compare` needs a number in every cell: name columns that "
                "have them with --features and --target; `kernelbank run` takes text, times and "
                "empty cells."
            ) from None
        streams[source if name in streams else name] = scaled(*table)
    return streams


def _run(
    console: Console,
    banks: dict[str, object],
    streams: dict[str, object],
    options: dict[str, Any],
) -> Comparison:
    counted = TextColumn("{task.completed} of {task.total}")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counted)
    settings = {name: options[name] for name in ("seeds", "loss", "samples")}
    skip = options["standardise"]
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task("Running", total=None)

        def show(done: int, total: int, what: str) -> None:
            progress.update(task, completed=done, total=total, description=what)

        return run_comparison(banks, streams, progress=show, skip=skip, **settings)


def _print_warnings(console: Console, caught: list[warnings.WarningMessage]) -> None:
    """One note for all warnings of one kind: the first of them, and how many there were."""
    kinds: dict[type[Warning], list[str]] = {}
    for warning in caught:
        kinds.setdefault(warning.category, []).append(str(warning.message))
    for messages in kinds.values():
        more = f" (the first of {len(messages)} such warnings)" if len(messages) > 1 else ""
        console.print(f"[yellow]note:[/yellow] {escape(messages[0])}{more}")
