"""The options of `kernelbank run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_OPTIONS = [
    click.option("--target", required=True, help="The column to predict."),
    click.option("--features", help="Numeric input columns, with commas; by default all others."),
    click.option("--categorical", help="Columns of text, with commas: one input a category."),
    click.option("--time", help="A column of times: becomes the time of day, week and year."),
    click.option(
        "--task",
        type=click.Choice(["regression", "classification"]),
        default="regression",
        show_default=True,
    ),
    click.option(
        "--lags",
        type=click.IntRange(0, 1000),
        default=0,
        show_default=True,
        help="How many of the last targets are inputs too.",
    ),
    click.option(
        "--delay",
        type=click.IntRange(0, 100_000),
        default=0,
        show_default=True,
        help="How many rows later a target is known.",
    ),
    click.option(
        "--preset",
        type=click.Choice(["auto", "paper"]),
        default="auto",
        show_default=True,
        help="The slots: AutoBank's recipe, or the paper's twenty Gaussians and its weights.",
    ),
    click.option(
        "--size",
        type=click.Choice(["small", "default", "large"]),
        default="default",
        show_default=True,
        help="How much time a row may take.",
    ),
    click.option(
        "--coverage",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.9,
        show_default=True,
        help="Of the intervals.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["serial", "threads"]),
        default="serial",
        show_default=True,
        help="Where the slots run; same results.",
    ),
    click.option(
        "--state",
        type=click.Path(path_type=Path),
        help="Folder from which the same command goes on after a crash, a kill or Ctrl-C.",
    ),
    click.option(
        "--predictions",
        help="Where answers go: a .csv file, a .parquet folder, or redis://host:port/stream.",
    ),
    click.option(
        "--checkpoint-every",
        type=click.IntRange(min=1),
        default=10_000,
        show_default=True,
        help="Rows between two checkpoints: what a kill costs in time, never in results.",
    ),
    click.option(
        "--on-bad-row",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="Stop at a row that cannot be used, or set it aside and go on.",
    ),
    click.option("--allow-missing", is_flag=True, help="Inputs may be missing (empty, NaN, null)."),
    click.option(
        "--predict-missing", is_flag=True, help="Rows without a target are predicted, not learned."
    ),
    click.option("--max-rows", type=click.IntRange(min=1), help="Stop after so many rows."),
    click.option(
        "--stop-when-idle",
        type=click.FloatRange(min=0, min_open=True),
        help="Stop when nothing has come for so many seconds (brokers).",
    ),
    click.option("--delimiter", default=",", show_default=True, help="Between the cells of a CSV."),
    click.option("--quiet", is_flag=True, help="Say nothing but errors."),
    click.option("--log-json", is_flag=True, help="Say everything as JSON lines."),
]


@click.command("run")
@click.argument("source")
@click.pass_context
def run_command(context: click.Context, /, **wishes: Any) -> None:
    """Predict and learn a stream, row by row, and lose nothing.

    SOURCE is a .csv, .csv.gz, .parquet or .jsonl file, - for standard input (CSV or JSON lines),
    redis://host:port/stream-name or kafka://host:port/topic. Every row is predicted before it is
    learned.

    \b
      kernelbank run sensors.csv --target load --predictions out.csv --state run/
    """
    from .commands import one_line

    with one_line():
        from .run import Wishes, run

        code = run(Wishes(**wishes))
    if code:
        context.exit(code)


for _option in reversed(_OPTIONS):
    run_command = _option(run_command)
