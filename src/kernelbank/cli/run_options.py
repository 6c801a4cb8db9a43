"""`kernelbank run` as a click command, made of the declaration of `RunOptions`."""

from __future__ import annotations

import csv
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import click

from ..run.option_spec import OptionSpec, flag
from ..run.options import DEFAULTS, KINDS, OPTIONS
from .one_line_errors import errors_as_one_line

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 96}
"""The settings of every command."""


class ColumnNames(click.ParamType):
    """A list of column names: a tuple of texts."""

    name = "names"

    def convert(self, value: Any, *_: Any) -> Any:
        return value if isinstance(value, tuple) else column_names(value)


def column_names(text: str) -> tuple[str, ...]:
    """Names with commas between them; a name that holds commas stands in quotes, as in CSV."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error:
        raise click.BadParameter(
            f"{text!r} has a quote that is not closed, or text behind one. Write a name with a "
            """comma as in CSV: 'a,"b, c"'."""
        ) from None
    return tuple(name.strip() for row in rows for name in row if name.strip())


def _click_type(kind: type, spec: OptionSpec) -> Any:
    if spec.choices:
        return click.Choice(spec.choices)
    if kind is int:
        bounds: list[Any] = [spec.low, spec.high]
        return click.IntRange(*bounds)
    if kind is float:
        opened = {
            "min_open": spec.open_range,
            "max_open": spec.open_range and spec.high is not None,
        }
        return click.FloatRange(spec.low, spec.high, **opened)
    if kind is Path:
        return click.Path(path_type=Path)
    return ColumnNames() if kind is tuple else click.STRING


def _click_option(name: str, spec: OptionSpec) -> click.Option:
    default = DEFAULTS[name]
    settings: dict[str, Any] = {"help": spec.help}
    if KINDS[name] is bool:
        return click.Option([flag(name)], is_flag=True, **settings)
    settings |= {"type": _click_type(KINDS[name], spec), "metavar": spec.metavar}
    if default is MISSING:
        settings["required"] = True
    elif default not in (None, ()):
        settings |= {"default": default, "show_default": True}
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
            from ..io.brokers import typed_without_password

            message = shown = error.format_message()
            for word in words:
                shown = shown.replace(word, typed_without_password(word))
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
def run_command(context: click.Context, /, **given: Any) -> None:
    """Predict and learn a stream, row by row, and lose nothing.

    SOURCE is a .csv or .jsonl file (each also with .gz), a .parquet file, - for standard input (CSV
    or JSON lines), redis://host:port/stream-name or kafka://host:port/topic. Every row is predicted
    before it is learned.

    \b
      kernelbank run sensors.csv --target load --predictions out.csv --state run/
    """
    with errors_as_one_line():
        from .run import run

        code = run(given)
    if code:
        context.exit(code)


run_command.params += [_click_option(name, spec) for name, spec in OPTIONS.items()]
