"""The options of `kernelbank run`, in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 96}
"""Of every command."""

_GROUPS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "Columns": [
        ("--target", {"metavar": "NAME", "required": True, "help": "The column to predict."}),
        (
            "--features",
            {"metavar": "A,B,C", "help": "Numeric inputs; by default all other columns."},
        ),
        (
            "--categorical",
            {"metavar": "A,B", "help": "Inputs of text: each category is an input of its own."},
        ),
        (
            "--time",
            {
                "metavar": "NAME",
                "help": "A column of times (ISO 8601, or seconds since 1970): becomes the time "
                "of day, week and year.",
            },
        ),
        (
            "--delimiter",
            {
                "metavar": "CHARACTER",
                "default": ",",
                "show_default": True,
                "help": "Between the cells of CSV.",
            },
        ),
    ],
    "Learning": [
        (
            "--task",
            {
                "type": click.Choice(["regression", "classification"]),
                "default": "regression",
                "show_default": True,
                "help": "Whether the target is a number or a label.",
            },
        ),
        (
            "--lags",
            {
                "type": click.IntRange(0, 1000),
                "metavar": "N",
                "default": 0,
                "show_default": True,
                "help": "How many of the last targets are inputs too.",
            },
        ),
        (
            "--delay",
            {
                "type": click.IntRange(0, 100_000),
                "metavar": "N",
                "default": 0,
                "show_default": True,
                "help": "How many rows later a target is known.",
            },
        ),
        (
            "--preset",
            {
                "type": click.Choice(["auto", "paper"]),
                "default": "auto",
                "show_default": True,
                "help": "The slots: AutoBank's recipe, or the paper's twenty Gaussians and its "
                "weights.",
            },
        ),
        (
            "--size",
            {
                "type": click.Choice(["small", "default", "large"]),
                "default": "default",
                "show_default": True,
                "help": "How many slots, and so how much time a row takes.",
            },
        ),
        (
            "--coverage",
            {
                "type": click.FloatRange(0, 1, min_open=True, max_open=True),
                "metavar": "SHARE",
                "default": 0.9,
                "show_default": True,
                "help": "Of the targets, inside their intervals.",
            },
        ),
        (
            "--engine",
            {
                "type": click.Choice(["serial", "threads", "ray"]),
                "default": "serial",
                "show_default": True,
                "help": "How the slots are run; the results are the same.",
            },
        ),
        (
            "--ray-address",
            {
                "metavar": "HOST:PORT",
                "help": "A Ray cluster for --engine ray; by default Ray is started here.",
            },
        ),
        (
            "--shards",
            {
                "type": click.IntRange(min=1),
                "metavar": "N",
                "help": "Processes for --engine ray, threads for --engine threads; by default one "
                "a processor.",
            },
        ),
    ],
    "Results": [
        (
            "--predictions",
            {
                "metavar": "PLACE",
                "help": "Where answers go: a .csv file, a .parquet folder, or "
                "redis://host:port/stream.",
            },
        ),
        (
            "--state",
            {
                "type": click.Path(path_type=Path),
                "metavar": "FOLDER",
                "help": "From there the same command goes on after a crash, a kill or Ctrl-C.",
            },
        ),
        (
            "--checkpoint-every",
            {
                "type": click.IntRange(min=1),
                "metavar": "ROWS",
                "default": 10_000,
                "show_default": True,
                "help": "What a kill may cost in time, never in results.",
            },
        ),
        (
            "--report",
            {
                "type": click.Path(path_type=Path),
                "metavar": "FILE",
                "help": "Write a page with pictures of the run to this .html file at the end.",
            },
        ),
        (
            "--live",
            {
                "type": click.IntRange(0, 65_535),
                "is_flag": False,
                "flag_value": 0,
                "metavar": "[PORT]",
                "help": "Serve that page while the run goes on, at an address that is printed; by "
                "default at a port that is free.",
            },
        ),
        (
            "--live-host",
            {
                "metavar": "ADDRESS",
                "default": "127.0.0.1",
                "show_default": True,
                "help": "The network address that the live page listens on.",
            },
        ),
        ("--quiet", {"is_flag": True, "help": "Say nothing but errors."}),
        ("--log-json", {"is_flag": True, "help": "Say everything as JSON, one object a line."}),
    ],
    "Rows": [
        (
            "--on-bad-row",
            {
                "type": click.Choice(["stop", "skip"]),
                "default": "stop",
                "show_default": True,
                "help": "Stop at a row that cannot be used, or set it aside and go on.",
            },
        ),
        (
            "--allow-missing",
            {"is_flag": True, "help": "Inputs may be missing (empty, NaN, null)."},
        ),
        (
            "--predict-missing",
            {"is_flag": True, "help": "Rows without a target are predicted, not learned."},
        ),
        (
            "--max-rows",
            {"type": click.IntRange(min=1), "metavar": "N", "help": "Stop after so many rows."},
        ),
        (
            "--stop-when-idle",
            {
                "type": click.FloatRange(min=0, min_open=True),
                "metavar": "SECONDS",
                "help": "Stop when nothing has come for so long (standard input, brokers).",
            },
        ),
    ],
}


class _Grouped(click.Command):
    """A command whose help shows the options under headings."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {
            parameter.opts[0]: record
            for parameter in self.get_params(context)
            if isinstance(parameter, click.Option)
            and (record := parameter.get_help_record(context)) is not None
        }
        for heading, options in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([shown.pop(name) for name, _ in options])
        with formatter.section("Other"):
            formatter.write_dl(list(shown.values()))


@click.command("run", cls=_Grouped, context_settings=CONTEXT)
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


for _options in _GROUPS.values():
    for _name, _settings in _options:
        run_command = click.option(_name, **_settings)(run_command)
