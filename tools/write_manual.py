"""The page of all commands and the manual page, both made from the command line's parser.

`python tools/write_manual.py --man FILE` writes the manual page, as the build of a wheel does; `make docs` shows the
page of commands. It needs no package but this one, and not its extension.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

import topoplace
from topoplace import cli
from topoplace.cli.options import EXIT_CODES, Parser

REPOSITORY = Path(__file__).parents[1]
SCHEMAS = REPOSITORY / "docs" / "schemas"
INTRODUCTION = """\
# The command line

This page is made from the program's `--help`; `man topoplace` shows the same, where topoplace was installed from a
wheel. Misspelt names get a suggestion, and `topoplace completion SHELL` completes them. `topoplace example --all`
writes the files that the examples name.

Results go to standard output, errors, warnings and progress to standard error. A bar with the time left appears after a
second, on terminals only (extra `cli`).
"""
JSON = """\
## JSON

With `--json`, commands print JSON instead of tables, with all digits; NaN and infinities are null. JSON Schemas
describe all fields, and tests compare them with real outputs. Within a minor version, fields may be added, but none is
removed or changed.
"""


# ---- the commands as data ------------------------------------------------------------------------------------------


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
        if isinstance(action, argparse._SubParsersAction):
            below = cast("Mapping[str, Parser]", action.choices)
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


# ---- pages -----------------------------------------------------------------------------------------------------------


def markdown(tree: Command) -> str:
    """Return the page of all commands."""
    found = list(leaves(tree))
    lines = [INTRODUCTION.rstrip("\n")]
    for title, names in tree.groups.items():
        lines += ["", f"{_sentence(title)}:", "", "| command | what it does |", "|---|---|"]
        of_group = [one for one in found if one.path[0] in names]
        lines += [f"| [`{_name(one)}`](#{_anchor(one)}) | {_cell(one.summary)} |" for one in of_group]
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {_cell(meaning)} |" for code, meaning in EXIT_CODES.items()]
    lines += ["", JSON, "| schema | of |", "|---|---|"]
    for path in sorted(SCHEMAS.glob("*.json")):
        title = json.loads(path.read_text("utf-8"))["title"]
        lines.append(f"| [{path.stem}](schemas/{path.name}) | `{title}` |")
    for one in found:
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _section(command: Command) -> Iterator[str]:
    yield from (f"## {_name(command)}", "", f"{_sentence(command.summary)}.", "")
    yield from (f"    {example}" for example in command.examples)
    arguments = [one for one in command.arguments if "--help" not in one.flags]
    if arguments:
        yield from ("", "| argument | meaning |", "|---|---|")
        yield from (f"| `{_shown(one)}` | {_cell(one.help)}{_choices(one)} |" for one in arguments)
    if command.negative:
        yield from ("", f"Exit code 1: {command.negative}.")


def page(tree: Command) -> str:
    """Return the manual page, in the language of man."""
    lines = [f'.TH TOPOPLACE 1 "" "topoplace {topoplace.__version__}"', ".SH NAME"]
    lines += [
        f"topoplace \\- {_roff(tree.summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B topoplace",
        ".I COMMAND",
    ]
    lines += ["[\\fIARGUMENT\\fR ...]", ".SH COMMANDS"]
    for one in leaves(tree):
        lines += [f".SS {_roff(_name(one))}", _roff(f"{_sentence(one.summary)}.")]
        for argument in one.arguments:
            if "--help" not in argument.flags:
                lines += [
                    ".TP",
                    f"\\fB{_roff(_shown(argument))}\\fR",
                    _roff(argument.help + _choices(argument)),
                ]
        lines += [".PP", ".nf", *(_roff(f"    {example}") for example in one.examples), ".fi"]
        if one.negative:
            lines += [".PP", _roff(f"Exit code 1: {one.negative}.")]
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", str(code), _roff(meaning)]
    return "\n".join(lines) + "\n"


def _name(command: Command) -> str:
    return " ".join(("topoplace", *command.path))


def _anchor(command: Command) -> str:
    return _name(command).replace(" ", "-")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shown(argument: Argument) -> str:
    value = f"{argument.metavar} ..." if argument.is_repeated else argument.metavar
    return " ".join(part for part in (", ".join(argument.flags), value) if part)


def _choices(argument: Argument) -> str:
    listed = ", ".join(argument.choices)
    return f": {listed}" if listed and listed not in argument.help else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("×", "x")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--man", metavar="FILE", type=Path, required=True, help="the manual page to write")
    parser.parse_args().man.write_text(page(command_tree(cli.command_parser(with_added=False))), "utf-8")
