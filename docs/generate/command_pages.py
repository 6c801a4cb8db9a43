"""The command line's own help as Markdown: click writes it, with another formatter."""

from collections.abc import Iterable
from typing import Any

import click

from docstring_markdown import escaped
from kernelbank.cli.commands import cli


class MarkdownFormatter(click.HelpFormatter):
    """Writes Markdown where click would write the text for a terminal."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.write(f"```text\n{prog} {args}\n```\n\n")

    def write_heading(self, heading: str) -> None:
        self.write(f"**{heading}**\n\n")

    def write_text(self, text: str) -> None:
        for paragraph in text.split("\n\n"):
            lines = paragraph.strip("\n").split("\n")
            if lines[0].strip() == "\b":  # click's mark of lines that it must not wrap
                self.write("```sh\n" + "\n".join(line[2:] for line in lines[1:]) + "\n```\n\n")
            else:
                self.write(escaped("\n".join(line.strip() for line in lines)) + "\n\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], *_: Any, **__: Any) -> None:
        for name, text in rows:
            self.write(f"- `{name}`: {escaped(' '.join(text.split()))}\n")
        self.write("\n")


def command_reference() -> dict[str, str]:
    """Return the page of the command line, by its path."""
    context = click.Context(cli, info_name="kernelbank")
    parts = [
        "# Command line\n",
        "What `kernelbank --help` and `kernelbank COMMAND --help` print. `pip install "
        "'kernelbank[cli,plot]'` installs what the commands need.\n",
        _help(cli),
    ]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        parts += [f"## kernelbank {name}\n", _help(command, context, name)]
    return {"reference/command-line.md": "\n".join(parts)}


def _help(
    command: click.Command, parent: click.Context | None = None, name: str = "kernelbank"
) -> str:
    formatter = MarkdownFormatter()
    context = click.Context(command, parent, name, **command.context_settings)
    command.format_help(context, formatter)
    return formatter.getvalue()
