"""The commands and their options; each imports its work when it runs.

The options of `kernelbank run` are made of the declaration of `RunOptions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from .. import __version__
from ..errors import KernelBankError
from ..run.options import KIND_WORDS, OPTIONS, OptionSpec, column_names, flag
from . import error_text


class RefusedCommand(click.ClickException):
    """An error of one line, with the exit code of wrong usage."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        click.echo(f"kernelbank: {self.message}", file=file, err=True)


class _Commands(click.Group):
    """Commands whose errors, of ours and of the system, are one line."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (KernelBankError, OSError, MemoryError) as error:
            raise RefusedCommand(error_text(error)) from None


Command = TypeVar("Command", bound=Callable[..., object])

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 96, "show_default": True}
"""The settings of every command."""


def _column_names(text: str) -> tuple[str, ...]:
    """A list of column names, as a type of click."""
    try:
        return column_names(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _click_option(name: str, spec: OptionSpec) -> click.Option:
    settings: dict[str, Any] = {"help": spec.help, "required": spec.default is MISSING}
    if spec.kind is bool:
        return click.Option([flag(name)], is_flag=True, **settings)
    types: dict[type, Any] = {
        int: click.INT,  # its range is checked by `RunOptions`
        float: click.FLOAT,
        Path: click.Path(path_type=Path),
        str: click.Choice(spec.choices) if spec.choices else click.STRING,
        tuple: _column_names,
    }
    metavar = spec.metavar or (None if spec.choices else KIND_WORDS[spec.kind][0])
    settings |= {"type": types[spec.kind], "metavar": metavar}
    if spec.default not in (MISSING, None, ()):
        settings["default"] = spec.default
    if spec.bare_value is not None:
        settings |= {"is_flag": False, "flag_value": spec.bare_value}
    return click.Option([flag(name)], **settings)


class _GroupedCommand(click.Command):
    """A command whose help shows the options under the headings of their groups."""

    def parse_args(self, context: click.Context, words: list[str]) -> list[str]:
        """An option that may stand alone takes the next word only if that is a number."""
        bare = {flag(name): spec.bare_value for name, spec in OPTIONS.items()}
        words = [
            f"{word}={bare[word]}"
            if bare.get(word) is not None and not following.isdecimal()
            else word
            for word, following in zip(words, [*words[1:], ""], strict=True)
        ]
        try:
            return super().parse_args(context, list(words))
        except click.UsageError as error:
            if isinstance(error, click.NoSuchOption) and error.option_name == "--resume":
                text = "There is no --resume: the same command resumes, if it has --state."
                raise click.UsageError(text, context) from None
            from ..io.brokers import without_password

            message = shown = error.format_message()
            for word in words:
                shown = shown.replace(word, without_password(word))
            if shown == message:
                raise
            raise click.UsageError(shown, context) from None

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if isinstance(parameter, click.Option) and record is not None:
                spec = OPTIONS.get(str(parameter.name))
                groups.setdefault("Other" if spec is None else spec.group, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


@click.command("run", cls=_GroupedCommand, context_settings=CONTEXT)
@click.argument("source")
@click.pass_context
def run_command(context: click.Context, /, **values: Any) -> None:
    """Predict and learn a stream, row by row, and lose nothing.

    SOURCE is a .csv or .jsonl file (each also with .gz), a .parquet file, - for standard input (CSV
    or JSON lines), redis://host:port/stream-name or kafka://host:port/topic. Every row is predicted
    before it is learned.

    \b
      kernelbank run sensors.csv --target load --predictions out.csv --state run/
    """
    from .run import run

    code = run(values)
    if code:
        context.exit(code)


run_command.params += [_click_option(name, spec) for name, spec in OPTIONS.items()]


def _folder(default: str, text: str) -> Callable[[Command], Command]:
    """The option `--out` of a command."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option("--out", type=kind, default=Path(default), help=text)


def _count(
    name: str, least: int, most: int, default: int, text: str
) -> Callable[[Command], Command]:
    """An option that is a whole number."""
    kind = click.IntRange(least, most)
    return click.option(name, type=kind, default=default, help=text)


@click.group(cls=_Commands, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="kernelbank")
def cli() -> None:
    """Learn from streams with many kernels at once.

    kernelbank runs one cheap online learner per kernel of a dictionary, and after every sample
    mixes them by the weights that minimise a bound of the cost over the last few samples.

    \b
    Start with:
      kernelbank demo                             a simulated sensor stream, from file to report
      kernelbank run FILE.csv --target COLUMN     a stream of your own
      kernelbank reproduce                        the experiment of the paper
    """


@cli.command()
@_folder("demo", "Folder for the stream, the predictions and the report; created if needed.")
@click.pass_context
def demo(context: click.Context, out: Path) -> None:
    """Run on a simulated sensor stream.

    Writes the stream, predicts and learns it with `kernelbank run`, and says what to try next. It
    takes seconds.
    """
    from .demo import demo as work

    code = work(out)
    if code:
        context.exit(code)


@cli.command()
@_folder("reproduction", "Folder for the figure and tables; created if needed.")
@_count("--seeds", 1, 10_000, 20, "Number of random signals: seeds 0, 1, 2, ...")
@_count(
    "--samples",
    2,
    10_000_000,
    1000,
    "Samples of each signal in the figure, the table and the claims.",
)
@click.option(
    "--noise",
    type=click.Choice(["variance", "std"]),
    default="variance",
    help="Whether the paper's 0.71519837 is the variance or the standard deviation of the noise, "
    "in the figure, the table and the claims; the costs are compared in both cases.",
)
@click.option("--summary", is_flag=True, help="Print the main table only.")
def reproduce(out: Path, seeds: int, samples: int, noise: str, summary: bool) -> None:
    """Repeat the experiment of the paper.

    Twenty Gaussian kernels follow a noisy signal. Draws their cumulative costs, prints a
    table over the seeds, compares the costs of the scheme and its rivals for both readings of the
    noise and several lengths, and says which of the paper's other claims held on how many seeds.
    """
    from ..research.plots.style import need_matplotlib
    from .experiments import reproduce as work

    need_matplotlib()  # refused before the work, not after it

    work(out, seeds, samples, noise, summary)


@cli.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--target", help="The target's column in files; by default the last one.")
@click.option(
    "--features",
    type=_column_names,
    metavar="A,B,C",
    help="Input columns in files; by default all others.",
)
@click.option("--learners", default="FourierSGD", help="Learners, with commas.")
@click.option("--combiners", default="Simplex", help="Combiners, with commas.")
@click.option(
    "--rivals",
    default="",
    show_default=False,
    help="Banks of kb.rivals, with commas: raker,adaraker.",
)
@click.option("--loss", default="squared", help="The loss, learned and scored.")
@_count(
    "--seeds", 1, 10_000, 1, "How often to play streams that depend on chance: seeds 0, 1, 2, ..."
)
@click.option(
    "--samples",
    type=click.IntRange(min=2, max=100_000_000),
    help="Play at most so many samples of each stream; by default all of a file.",
)
@click.option(
    "--standardise",
    type=click.IntRange(min=0),
    metavar="ROWS",
    default=0,
    help="Bring all streams to standard units, the targets by so many first rows, such as 100, "
    "which are not scored. 0: as they are.",
)
@click.option("--delimiter", default=",", help="Between the cells of files, or tab.")
@click.option("--decimal", default=".", help="Decimal point of numbers in files: . or ,")
@_folder("comparison", "Folder for the tables (JSON, Markdown); created if needed.")
def compare(**options: Any) -> None:
    """Compare AutoBank, learners and combiners on streams.

    SOURCE is a .csv or .csv.gz file with a header row, or one of the synthetic streams ar1 and
    sine. Every learner is run with every combiner, on a bank of twenty Gaussian kernels, and so
    are AutoBank and two baselines; each sample is predicted before it is learned. For other kernels
    and settings there is kb.compare, in Python.

    \b
      kernelbank compare load.csv --target load --standardise 100 \\
        --learners Norma,KRLS --combiners Simplex,Stacking --rivals raker,adaraker
    """
    from .compare import compare as work

    work(options)


@cli.command()
@click.argument("state", metavar="STATE", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    help="The .html file to write; an existing one is replaced.",
)
def report(state: Path, out: Path) -> None:
    """Write the report of a run from its state.

    STATE is the folder of --state of a `kernelbank run`. The page is one file that needs no
    network: errors, losses and weights over time, predictions along each input, intervals, detected
    changes, bad rows. The run may be active meanwhile.
    """
    from ..run.report.data import check_report_path, write_report
    from ..run.status import RunStatus

    check_report_path(out, "--out")
    write_report(out, RunStatus.of_state(state))
    click.echo(f"Wrote {out}", err=True)


cli.add_command(run_command)


def run() -> None:
    """Run the command line."""
    cli(prog_name="kernelbank")
