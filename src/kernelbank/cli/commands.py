"""The commands and their options; each imports its work when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..errors import KernelBankError
from .one_line_errors import error_text, errors_as_one_line
from .run_options import CONTEXT, ColumnNames, run_command


@click.group(context_settings=CONTEXT)
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
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder for the stream, the predictions and the report; created if needed.",
)
@click.pass_context
def demo(context: click.Context, out: Path) -> None:
    """Run on a simulated sensor stream.

    Writes the stream, predicts and learns it with `kernelbank run`, and says what to try next. It
    takes seconds.
    """
    with errors_as_one_line():
        from .demo import demo as work

        code = work(out)
    if code:
        context.exit(code)


@cli.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for the figures and tables; created if needed.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=20,
    show_default=True,
    help="Number of random signals: seeds 0, 1, 2, ...",
)
@click.option(
    "--samples",
    type=click.IntRange(min=2, max=10_000_000),
    default=1000,
    show_default=True,
    help="Samples of each signal in the figures, the table and the claims.",
)
@click.option(
    "--noise",
    type=click.Choice(["variance", "std"]),
    default="variance",
    show_default=True,
    help="Whether the paper's 0.71519837 is the variance or the standard deviation of the noise, "
    "in the figures, the table and the claims; the costs are compared in both cases.",
)
@click.option("--combiners", is_flag=True, help="Also run every rule of kb.combiners.")
def reproduce(out: Path, seeds: int, samples: int, noise: str, combiners: bool) -> None:
    """Repeat the experiment of the paper.

    Twenty Gaussian kernels follow a noisy signal. Draws the paper's two figures and a picture of
    the online setting, prints a table over the seeds, compares the costs of the scheme and its
    rivals for both readings of the noise and several lengths, and says which of the paper's other
    claims held on how many seeds.
    """
    _need_plots()
    from .reproduce import reproduce as work

    work(out, seeds, samples, noise, combiners)


@cli.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--target", help="The target's column in files; by default the last one.")
@click.option(
    "--features",
    type=ColumnNames(),
    metavar="A,B,C",
    help="Input columns in files; by default all others.",
)
@click.option("--learners", default="FourierSGD", show_default=True, help="Learners, with commas.")
@click.option("--combiners", default="Simplex", show_default=True, help="Combiners, with commas.")
@click.option("--kernels", default="Gaussian", show_default=True, help="Kernels, with commas.")
@click.option("--rivals", default="", help="Banks of kb.rivals, with commas: raker,adaraker.")
@click.option(
    "--widths",
    default="0.1:10:20",
    show_default=True,
    help="Widths of kernels given without one: 0.5,1,2 or low:high:count in equal ratios.",
)
@click.option("--loss", default="squared", show_default=True, help="The loss, learned and scored.")
@click.option("--window", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--regularization", type=click.FloatRange(min=0), default=0.01, show_default=True)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=1,
    show_default=True,
    help="How often to play streams that depend on chance: seeds 0, 1, 2, ...",
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
    show_default=True,
    help="Bring all streams to standard units, the targets by so many first rows, such as 100. "
    "0: as they are.",
)
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    help="First samples that are learned but not scored; by default the rows of --standardise.",
)
@click.option(
    "--delimiter", default=",", show_default=True, help="Between the cells of files, or tab."
)
@click.option(
    "--decimal", default=".", show_default=True, help="Decimal point of numbers in files: . or ,"
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with the files of named benchmarks.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("comparison"),
    show_default=True,
    help="Folder for tables (JSON, Markdown, LaTeX) and figures; created if needed.",
)
def compare(**options: Any) -> None:
    """Compare AutoBank, learners and combiners on streams.

    SOURCE is a .csv or .csv.gz file with a header row, one of the made-up streams ar1, friedman,
    lorenz and sine, or a public benchmark of kb.datasets by its name. Every learner is run with
    every combiner, on a bank of all kernels, and so are AutoBank and two baselines; each sample is
    predicted before it is learned. Settings go in brackets:

    \b
      kernelbank compare load.csv --target load --standardise 100 \\
        --learners "Norma(learning_rate=0.05,budget=200)" --combiners Simplex,OMKR \\
        --rivals "raker,adaraker(features=50)"
    """
    with errors_as_one_line():
        from .compare import CompareOptions
        from .compare import compare as work

        work(CompareOptions(**options))


@cli.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("lorenz"),
    show_default=True,
    help="Folder for the table and the figure; created if needed.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=20, max=10_000_000),
    default=10_001,
    show_default=True,
    help="Points of the series; the published figures are for 10001.",
)
def lorenz(out: Path, samples: int) -> None:
    """Predict the Lorenz attractor by every learner.

    The benchmark of the Kernel Adaptive Filtering Toolbox, with its settings: one Gaussian kernel,
    one step ahead, and the error after the first thousand samples beside the published one.
    """
    _need_plots()
    from .lorenz import lorenz as work

    work(out, samples)


@cli.command()
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=3,
    show_default=True,
    help="Number of random signals: seeds 0, 1, 2, ...",
)
@click.option(
    "--samples",
    type=click.IntRange(min=20, max=5000),
    default=300,
    show_default=True,
    help="Samples of each signal.",
)
@click.pass_context
def theory(context: click.Context, seeds: int, samples: int) -> None:
    """Print what theory promises beside what was measured.

    Regret of NORMA, Hedge, FixedShare and the Vovk-Azoury-Warmuth forecaster, the cost of the
    separable bound and of truncation: each bound, the measurement, and whether the bound held. The
    exit code is 1 if one did not. docs/theory.md has the proofs.
    """
    from .theory import theory as work

    if not work(seeds, samples):
        context.exit(1)


@cli.command()
@click.argument("state", metavar="STATE", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The .html file to write; an existing one is replaced.",
)
def report(state: Path, out: Path) -> None:
    """Write the report of a run from its state.

    STATE is the folder of --state of a `kernelbank run`. The page is one file that needs no
    network: errors, losses and weights over time, predictions along each input, intervals, detected
    changes, bad rows. The run may be active meanwhile.
    """
    with errors_as_one_line():
        from ..run.report.report_data import check_report_path, write_report
        from ..run.status import RunStatus

        check_report_path(out, "--out")
        write_report(out, RunStatus.of_state(state))
    click.echo(f"Wrote {out}", err=True)


def _need_plots() -> None:
    """Refuse before the work what could not be drawn after it."""
    from ..research.plots.style import need_matplotlib

    need_matplotlib()


cli.add_command(run_command)


def run() -> None:
    """Run the command line; expected errors are one line, without a traceback."""
    try:
        cli(prog_name="kernelbank")
    except (KernelBankError, OSError, MemoryError) as error:
        click.echo(f"kernelbank: {error_text(error)}", err=True)
        sys.exit(1)
