"""The commands of the command line with their arguments, as plain data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from topoplace.cli.options import Parser


class Argument(NamedTuple):
    """An option, or an argument that is given by its position, which has no flags."""

    flags: tuple[str, ...]
    metavar: str
    """The name of the value; "" if there is none."""
    help: str
    choices: tuple[str, ...]
    """All values that are accepted; () if they are not listed."""
    is_required: bool
    is_repeated: bool
    """True if several values may follow."""


class Command(NamedTuple):
    """A command, or a group of commands; `show` is both."""

    path: tuple[str, ...]
    """The words after `topoplace`."""
    summary: str
    arguments: tuple[Argument, ...]
    commands: tuple[Command, ...]
    examples: tuple[str, ...]
    negative: str
    """The meaning of exit code 1; "" if the command never ends with it."""
    groups: Mapping[str, tuple[str, ...]]
    """The names of `commands` by the title of their group; {} if they are not grouped."""


def command_tree(parser: Parser, path: tuple[str, ...] = (), summary: str = "") -> Command:
    """Return the command that a parser reads, with all commands below it."""
    arguments: list[Argument] = []
    commands: list[Command] = []
    for action in parser.all_actions():
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            below = cast("Mapping[str, Parser]", action.choices)  # pyright: ignore[reportUnknownMemberType]
            for name, one in below.items():
                _add(commands, command_tree(one, (*path, *name.split()), one.description or ""))
        else:
            arguments.append(_argument(action))
    described = (summary or parser.description or "", tuple(arguments), tuple(commands))
    return Command(path, *described, parser.examples, parser.negative, parser.groups)


def _add(commands: list[Command], command: Command) -> None:
    """Append a command, or add it to that one of `commands` whose name begins its own."""
    for i, one in enumerate(commands):
        if command.path[: len(one.path)] == one.path:
            commands[i] = one._replace(commands=(*one.commands, command))
            return
    commands.append(command)


def leaves(command: Command) -> Iterator[Command]:
    """Yield the commands that can be executed, in their order."""
    if command.examples or not command.commands:
        yield command
    for below in command.commands:
        yield from leaves(below)


def _argument(action: argparse.Action) -> Argument:
    flags = tuple(action.option_strings)
    takes_value = action.nargs != 0
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    text = action.help or ""
    return Argument(
        flags=flags,
        metavar=metavar if takes_value else "",
        help=text.replace("%(default)s", str(action.default)).replace("%(default)g", f"{action.default}"),
        choices=tuple(map(str, action.choices or ())),
        is_required=action.required,
        is_repeated=action.nargs in ("*", "+"),
    )
