"""`kernelbank compare`: AutoBank, learners and combiners on streams; a table, a file, a figure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ... import combiners, learners
from ...bank.bank import KernelBank
from ...errors import FileRefused, InvalidArgument, KernelBankWarning
from ...evaluation import datasets, presets
from ...evaluation.comparison import compare as run_comparison
from ...evaluation.competitors import auto_bank
from ...evaluation.plots import styled
from ...evaluation.results import Comparison, table_cells
from ...io.sources.parsing import MISSING, NOT_A_NUMBER
from ...losses import as_loss
from ...utils.validation import Floats
from . import component_parser as parts


@dataclass(frozen=True)
class CompareOptions:
    """The options of the command."""

    sources: tuple[str, ...]
    target: str | None
    features: tuple[str, ...] | None
    learners: str
    combiners: str
    kernels: str
    presets: str
    widths: str
    loss: str
    window: int
    regularization: float
    seeds: int
    samples: int | None
    scale: int
    skip: int | None
    out: Path


def compare(options: CompareOptions) -> None:
    """Run everything, with progress on the terminal."""
    console = Console(highlight=False)
    banks = make_banks(options)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", KernelBankWarning)
        found_streams = open_streams(options)
    _print_warnings(console, noted)
    skip = options.skip
    if skip is None:  # the rows that gave the scale of the targets are not scored
        skip = options.scale if any(map(_is_file, options.sources)) else 0
    options.out.mkdir(parents=True, exist_ok=True)
    _need_matplotlib()  # refused before the work, not after it
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KernelBankWarning)
        comparison = _run(console, banks, found_streams, skip, options)
    for stream in comparison.streams:
        console.print(stream_table(comparison, stream))
    if comparison.overall:
        console.print(overall_table(comparison))
    console.print(
        "p: how likely so large a difference from the best is by chance, by the test of Diebold "
        "and Mariano with correlations in time counted, and Holm's correction."
    )
    _print_warnings(console, caught)
    console.print(f"\nDone in {time.perf_counter() - start:.1f} s.")
    files = [comparison.to_json(options.out / "table.json")]
    files += comparison.plot(options.out / "running_loss.png")
    console.print(f"Written to [bold]{escape(str(options.out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


AUTO = "AutoBank"


def make_banks(options: CompareOptions) -> dict[str, Any]:
    """A bank for every learner and combiner, and presets, by their text; an AutoBank; one loss."""
    methods = parts.parse(options.learners, "--learners", learners.standalone())
    rules = parts.parse(options.combiners, "--combiners", combiners.BUILT_IN)
    kernels = parts.parse_kernels(options.kernels, parts.grid(options.widths))
    loss = as_loss(options.loss)
    banks: dict[str, Any] = {}
    for method_text, method in methods.items():
        for rule_text, rule in rules.items():
            try:
                banks[_name(method_text, rule_text, len(methods), len(rules))] = KernelBank(
                    kernels,
                    method,
                    rule,
                    loss=loss,
                    window=options.window,
                    regularization=options.regularization,
                )
            except InvalidArgument as error:
                raise InvalidArgument(f"{method_text} with {rule_text}: {error}") from None
    if options.presets:
        banks |= parts.parse_calls(options.presets, "--presets", presets.BANKS, loss=loss)
    banks[AUTO] = auto_bank(loss)
    return banks


def _name(method: str, rule: str, methods: int, rules: int) -> str:
    """What distinguishes this bank from the others, so that tables stay narrow."""
    if methods == 1 and rules > 1:
        return rule
    return method if rules == 1 and methods > 1 else f"{method} {rule}"


def open_streams(options: CompareOptions) -> dict[str, Any]:
    """The streams by short names: the source's own, or the file's without folder and suffix."""
    found: dict[str, Any] = {}
    labels = as_loss(options.loss).labels
    for source in options.sources:
        if source in datasets.BUILT_IN:
            found[source] = source
            continue
        if not _is_file(source):
            names = ", ".join(sorted(datasets.BUILT_IN))
            raise InvalidArgument(
                f"{source}: this is not the name of a stream ({names}) nor a .csv or .csv.gz file."
            )
        pair = _read(source, options)
        rows = len(pair[1])
        if options.skip is None and rows <= options.scale:
            raise InvalidArgument(
                f"{source}: there are {rows} rows, and the first {options.scale} would give the "
                f"scale and not be scored. Use a smaller --scale, such as {rows // 5}."
            )
        if options.scale:
            scaled = datasets.standardised(*pair, rows=options.scale)
            pair = (scaled[0], pair[1]) if labels else scaled  # labels have no scale
        name = Path(source).name.removesuffix(".gz").removesuffix(".csv")
        found[source if name in found else name] = pair
    return found


def _read(source: str, options: CompareOptions) -> tuple[Floats, Floats]:
    """A file's inputs and targets; an error about a cell says what may be done."""
    try:
        return datasets.read_csv(source, options.target, options.features, options.samples)
    except FileRefused as error:
        if not str(error).endswith((f"{NOT_A_NUMBER}.", f"{MISSING}.")):
            raise
        raise FileRefused(
            f"{error} `kernelbank compare` needs a number in every cell: name columns that have "
            "them with --features and --target; `kernelbank run` takes text, times and empty cells."
        ) from None


def stream_table(comparison: Comparison, stream: str) -> Table:
    """The results on one stream, the best first."""
    own = comparison.of(stream)
    counted = f"{own[0].samples} samples scored"
    runs = max(result.runs for result in own)
    seeds = f", {runs} seeds" if runs > 1 else ""
    table = Table(title=f"{escape(stream)}: {counted}{seeds}", title_justify="left")
    table.add_column("", overflow="fold")
    for name in table_cells(own[0]):
        table.add_column(name, justify="right")
    for result in own:
        style = "bold" if result.best else "dim" if result.kind == "baseline" else ""
        table.add_row(escape(result.name), *table_cells(result).values(), style=style)
    return table


def overall_table(comparison: Comparison) -> Table:
    """All streams together."""
    table = Table(title=f"all {len(comparison.streams)} streams", title_justify="left")
    table.add_column("", overflow="fold")
    for name in ("mean rank", "first on", "loss / leader's", "p (Wilcoxon)", "p (signs)"):
        table.add_column(name, justify="right")
    for row in comparison.overall:
        chances = ["" if p is None else f"{p:.3f}" for p in (row.wilcoxon, row.sign)]
        figures = (f"{row.mean_rank:.2f}", str(row.first), f"{row.ratio:.3g}")
        table.add_row(escape(row.name), *figures, *chances)
    return table


def _run(
    console: Console,
    banks: dict[str, Any],
    found: dict[str, Any],
    skip: int,
    options: CompareOptions,
) -> Comparison:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed} of {task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("Running", total=None)
        return run_comparison(
            banks,
            found,
            options.seeds,
            loss=options.loss,
            skip=skip,
            samples=options.samples,
            progress=_shown(progress, task),
        )


def _print_warnings(console: Console, caught: list[warnings.WarningMessage]) -> None:
    """One note for all warnings of one kind: the first of them, and how many there were."""
    kinds: dict[type[Warning], list[str]] = {}
    for warning in caught:
        kinds.setdefault(warning.category, []).append(str(warning.message))
    for messages in kinds.values():
        more = f" (the first of {len(messages)} such warnings)" if len(messages) > 1 else ""
        console.print(f"[yellow]note:[/yellow] {escape(messages[0])}{more}")


def _shown(progress: Progress, task: Any) -> Callable[[int, int, str], object]:
    def show(done: int, total: int, what: str) -> None:
        progress.update(task, completed=done, total=total, description=what)

    return show


def _is_file(source: str) -> bool:
    return source not in datasets.BUILT_IN and source.endswith((".csv", ".csv.gz"))


@styled
def _need_matplotlib() -> None:
    """Draws nothing: refused if matplotlib is missing."""
