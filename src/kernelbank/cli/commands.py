"""The commands and their options; each imports its own work when it runs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .. import __version__
from ..errors import KernelBankError

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 96}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="kernelbank")
def cli() -> None:
    """Learn from streams with many kernels at once.

    kernelbank runs one cheap online learner per kernel of a dictionary, and after every sample
    mixes them by the weights that minimise a bound of the cost over the last few samples.

    Start with:  kernelbank reproduce
    """


@cli.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for the figures and tables; made if it is not there.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=20,
    show_default=True,
    help="How many random signals to play: seeds 0, 1, 2, ...",
)
@click.option(
    "--samples",
    type=click.IntRange(min=2, max=10_000_000),
    default=1000,
    show_default=True,
    help="Samples of each signal.",
)
@click.option(
    "--noise",
    type=click.Choice(["variance", "std"]),
    default="variance",
    show_default=True,
    help="Whether the paper's 0.71519837 is the variance or the standard deviation of the noise.",
)
def reproduce(out: Path, seeds: int, samples: int, noise: str) -> None:
    """Repeat the experiment of the paper.

    Twenty Gaussian kernels follow a noisy signal. Draws the paper's two figures and a picture of
    the online setting, prints a table over the seeds, and says which of the paper's claims held
    on how many of them.
    """
    from .reproduce import reproduce as work

    work(out, seeds, samples, noise)


def run() -> None:
    """Run the command line; expected errors are one line, without a traceback."""
    try:
        cli(prog_name="kernelbank")
    except (KernelBankError, OSError, MemoryError) as error:
        click.echo(f"kernelbank: {error or 'not enough memory'}", err=True)
        sys.exit(1)
