"""`kernelbank compare`: AutoBank, learners and combiners on streams; tables and figures."""

from __future__ import annotations

import ast
import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from .. import combiners, kernels, learners
from ..bank.bank import KernelBank
from ..errors import FileRefused, InvalidArgument, KernelBankWarning
from ..io.cells import MISSING, NOT_A_NUMBER
from ..kernels import Kernel
from ..losses import as_loss
from ..research import datasets, rivals
from ..research.comparison import compare as run_comparison
from ..research.competitors import auto_bank
from ..research.plots import styled
from ..research.results import Comparison
from ..utils.validation import Floats


@dataclass(frozen=True)
class CompareOptions:
    """The options of the command."""

    sources: tuple[str, ...]
    target: str | None
    features: tuple[str, ...] | None
    learners: str
    combiners: str
    kernels: str
    rivals: str
    widths: str
    loss: str
    window: int
    regularization: float
    seeds: int
    samples: int | None
    standardise: int
    skip: int | None
    delimiter: str
    decimal: str
    data: Path | None
    out: Path


def compare(options: CompareOptions) -> None:
    """Run everything, with progress on the terminal."""
    console = Console(highlight=False)
    banks = make_banks(options)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", KernelBankWarning)
        found_streams = open_streams(options)
    _print_warnings(console, noted)
    options.out.mkdir(parents=True, exist_ok=True)
    _need_matplotlib()  # refused before the work, not after it
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KernelBankWarning)
        comparison = _run(console, banks, found_streams, options)
    for stream in comparison.streams:
        console.print(stream_table(comparison, stream))
    if comparison.overall:
        console.print(overall_table(comparison))
    console.print(
        "p: how likely so large a difference from the best is by chance, by the test of Diebold "
        "and Mariano with correlations in time counted, and Holm's correction."
    )
    if comparison.overall:
        console.print(rank_line(comparison))
    _print_warnings(console, caught)
    console.print(f"\nDone in {time.perf_counter() - start:.1f} s; {comparison.time_line()}")
    files = write_files(comparison, options.out)
    console.print(f"Written to [bold]{escape(str(options.out.resolve()))}[/bold]:", soft_wrap=True)
    for file in files:
        console.print(f"  {file.name}")


def write_files(comparison: Comparison, folder: Path) -> list[Path]:
    """Tables and figures; ranks if there are several streams."""
    markdown = folder / "table.md"
    comparison.to_markdown(markdown)
    files = [comparison.to_json(folder / "table.json"), markdown]
    files += comparison.plot(folder / "running_loss.png")
    if comparison.overall:
        files += comparison.plot_ranks(folder / "critical_difference.png")
    return files


AUTO = "AutoBank"


def make_banks(options: CompareOptions) -> dict[str, object]:
    """A bank for every learner and combiner, and rivals, by their text; an AutoBank; one loss."""
    methods = parse(options.learners, "--learners", learners.standalone())
    rules = parse(options.combiners, "--combiners", combiners.BUILT_IN)
    kernels = parse_kernels(options.kernels, grid(options.widths))
    loss = as_loss(options.loss)
    banks: dict[str, object] = {}
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
    if options.rivals:
        banks |= parse_calls(options.rivals, "--rivals", rivals.BANKS, loss=loss)
    banks[AUTO] = auto_bank(loss)
    return banks


def _name(method: str, rule: str, methods: int, rules: int) -> str:
    """What distinguishes this bank from the others, so that tables stay narrow."""
    if methods == 1 and rules > 1:
        return rule
    return method if rules == 1 and methods > 1 else f"{method} {rule}"


def open_streams(options: CompareOptions) -> dict[str, object]:
    """The streams by short names: the source's own, or the file's without folder and suffix."""
    streams: dict[str, object] = {}
    for source in options.sources:
        if source in datasets.BUILT_IN or source in datasets.BENCHMARKS:
            streams[source] = source
            continue
        if not source.endswith((".csv", ".csv.gz")):
            names = ", ".join([*sorted(datasets.BUILT_IN), *datasets.BENCHMARKS])
            raise InvalidArgument(
                f"{source}: this is not the name of a stream ({names}) nor a .csv or .csv.gz file."
            )
        name = Path(source).name.removesuffix(".gz").removesuffix(".csv")
        streams[source if name in streams else name] = _read(source, options)
    return streams


def _read(source: str, options: CompareOptions) -> tuple[Floats, Floats]:
    """A file's inputs and targets; an error about a cell says what may be done."""
    try:
        return datasets.read_csv(
            source,
            options.target,
            options.features,
            options.samples,
            delimiter=options.delimiter,
            decimal=options.decimal,
        )
    except FileRefused as error:
        if not str(error).endswith((f"{NOT_A_NUMBER}.", f"{MISSING}.")):
            raise
        raise FileRefused(
            f"{error} `kernelbank compare` needs a number in every cell: name columns that have "
            "them with --features and --target; `kernelbank run` takes text, times and empty cells."
        ) from None


def stream_table(comparison: Comparison, stream: str) -> Table:
    """The results on one stream, the best first."""
    results = comparison.of(stream)
    counted = f"{results[0].samples} samples scored"
    runs = max(result.runs for result in results)
    seeds = f", {runs} seeds" if runs > 1 else ""
    table = Table(title=f"{escape(stream)}: {counted}{seeds}", title_justify="left")
    table.add_column("", overflow="fold")
    for name in results[0].cells():
        table.add_column(name, justify="right")
    for result in results:
        style = "bold" if result.best else "dim" if result.kind == "baseline" else ""
        table.add_row(escape(result.name), *result.cells().values(), style=style)
    return table


def overall_table(comparison: Comparison) -> Table:
    """All streams together."""
    table = Table(title=f"all {len(comparison.streams)} streams", title_justify="left")
    table.add_column("", overflow="fold")
    for name in ("mean rank", "first on", "loss / leader's", "p (Wilcoxon)"):
        table.add_column(name, justify="right")
    for row in comparison.overall:
        chance = "" if row.wilcoxon is None else f"{row.wilcoxon:.3f}"
        figures = (f"{row.mean_rank:.2f}", str(row.first), f"{row.ratio:.3g}")
        table.add_row(escape(row.name), *figures, chance)
    return table


def rank_line(comparison: Comparison) -> str:
    """What the tests on ranks say."""
    test = comparison.rank_test()
    return (
        f"Equal methods would give such ranks with p = {test.p_value:.2g} (Friedman's test). Mean "
        f"ranks that differ by more than {test.difference:.2f} differ at a level of "
        f"{test.level:.0%} (Nemenyi)."
    )


def _run(
    console: Console, banks: dict[str, object], streams: dict[str, object], options: CompareOptions
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
            streams,
            options.seeds,
            loss=options.loss,
            standardise=options.standardise,
            skip=options.skip,
            samples=options.samples,
            folder=options.data,
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


def _shown(progress: Progress, task: TaskID) -> Callable[[int, int, str], object]:
    def show(done: int, total: int, what: str) -> None:
        progress.update(task, completed=done, total=total, description=what)

    return show


@styled
def _need_matplotlib() -> None:
    """Draws nothing: refused if matplotlib is missing."""


# --- components from text: `Norma(learning_rate=0.05, budget=200), KRLS` ---
# The text is parsed, never executed: names from a list, and literals as their settings.


def parse(text: str, option: str, components: Iterable[type]) -> dict[str, Any]:
    """The components that a text lists, each by its own text."""
    types = {kind.__name__: kind for kind in components}
    return {words: _part(words, node, option, types) for words, node in _split(text, option)}


def parse_calls(
    text: str, option: str, callables: Iterable[Callable[..., Any]], **defaults: Any
) -> dict[str, Any]:
    """What the functions that a text lists return, each by its own text.

    Their settings are their keyword-only parameters, given or from `defaults`.
    """
    functions = {function.__name__: function for function in callables}
    results: dict[str, Any] = {}
    for words, node in _split(text, option):
        function, settings = _kind(words, node, option, functions)
        try:
            results[words] = _make(words, function, {**defaults, **settings}, option)
        except InvalidArgument as error:
            raise InvalidArgument(f"{option}: {words}: {error}") from None
    return results


def grid(text: str, option: str = "--widths") -> list[float]:
    """Widths from `0.5,1,2`, or from `low:high:count` in equal ratios."""
    try:
        if ":" in text:
            low, high, count = text.split(":")
            start, end, number = float(low), float(high), int(count)
            _positive(start, end)
            if not 1 <= number <= 1_000_000 or end < start:
                raise ValueError
            ratio = (end / start) ** (1 / max(number - 1, 1))
            return [start * ratio**place for place in range(number - 1)] + [end]
        widths = [float(word) for word in text.split(",")]
        _positive(*widths)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{option} must be positive numbers such as 0.5,1,2 or low:high:count such as "
            f"0.1:10:20; got {text!r}."
        ) from None
    return widths


def parse_kernels(text: str, widths: list[float], option: str = "--kernels") -> list[Kernel]:
    """Kernels from text; one that has a width and is given without it comes in every width."""
    simple = [k for k in kernels.BUILT_IN if k.pairwise or k is kernels.TreeKernel]
    types = {kind.__name__: kind for kind in simple if not _has_parts(kind)}
    result: list[Kernel] = []
    for words, node in _split(text, option):
        kind, settings = _kind(words, node, option, types)
        if "width" in settings or "width" not in _names(kind):
            result.append(_part(words, node, option, types))
        else:
            result += [_make(words, kind, {**settings, "width": width}, option) for width in widths]
    return result


def _split(text: str, option: str) -> list[tuple[str, ast.expr]]:
    """The items of a list, as text and as syntax trees."""
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _unreadable(text, option) from None
    if not isinstance(tree, ast.Tuple) or not tree.elts:
        raise _unreadable(text, option)
    return [(ast.unparse(node), node) for node in tree.elts]


def _part(words: str, node: ast.expr, option: str, types: dict[str, type]) -> Any:
    kind, settings = _kind(words, node, option, types)
    return _make(words, kind, settings, option)


def _kind(
    words: str, node: ast.expr, option: str, types: Mapping[str, Callable[..., Any]]
) -> tuple[Any, dict[str, Any]]:
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Name):
        raise _unreadable(words, option)
    if name.id not in types:
        raise InvalidArgument(f"{option}: there is no {name.id!r}. Use {', '.join(sorted(types))}.")
    kind = types[name.id]
    settings: dict[str, Any] = {}
    if isinstance(node, ast.Call):
        if node.args or any(word.arg is None for word in node.keywords):
            raise InvalidArgument(
                f"{option}: settings need their names, as in {name.id}({_example(kind)}); "
                f"got {words!r}."
            )
        for word in node.keywords:
            settings[str(word.arg)] = _literal(word.value, words, option)
    unknown = sorted(set(settings) - set(_names(kind)))
    if unknown:
        has = ", ".join(_names(kind)) or "none"
        raise InvalidArgument(f"{option}: {name.id} has no setting {unknown[0]!r}. It has: {has}.")
    return kind, settings


def _literal(node: ast.expr, words: str, option: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InvalidArgument(
            f"{option}: settings are plain numbers or texts in quotes; got {words!r}."
        ) from None


def _make(words: str, kind: Any, settings: dict[str, Any], option: str) -> Any:
    try:
        return kind(**settings)
    except TypeError as error:
        raise InvalidArgument(f"{option}: {words!r} is not possible: {error}.") from None


def _names(kind: Any) -> list[str]:
    """The settings of a component, or of a function that makes one."""
    if isinstance(kind, type):
        return [field.name for field in fields(cast(Any, kind))]
    parameters = inspect.signature(kind).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]


def _has_parts(kind: type) -> bool:
    """Whether a kernel is made of others: these have no text here."""
    return kind in (kernels.Product, kernels.Scaled, kernels.Sum)


def _example(kind: Any) -> str:
    return f"{_names(kind)[0]}=..." if _names(kind) else ""


def _unreadable(text: str, option: str) -> InvalidArgument:
    return InvalidArgument(
        f"{option} must list names with settings, such as Norma(learning_rate=0.05),Norma; "
        f"got {text!r}."
    )


def _positive(*numbers: float) -> None:
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        raise ValueError
