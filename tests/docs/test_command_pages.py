"""The page of the command line has every command and option."""

import click

import command_pages
from kernelbank.cli.commands import cli

PAGE = command_pages.command_reference()["reference/command-line.md"]


def test_page_has_every_command_and_option():
    commands = {name: cli.commands[name] for name in cli.list_commands(click.Context(cli))}
    assert {"compare", "reproduce", "run"} <= set(commands)
    for name, command in commands.items():
        part = PAGE.partition(f"\n## kernelbank {name}\n")[2].partition("\n## ")[0]
        assert command.help.split("\n")[0] in part
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert any(f"`{o}" in part for o in parameter.opts), parameter
            else:
                assert parameter.make_metavar(click.Context(command)) in part


def test_page_keeps_groups_defaults_and_examples():
    assert "**Learning**\n\n- `--task [regression|classification]`: " in PAGE
    assert "\\[default: regression\\]" in PAGE
    assert "```sh\nkernelbank run sensors.csv --target load" in PAGE
