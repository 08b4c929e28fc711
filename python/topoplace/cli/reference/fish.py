"""Completion for fish."""

from __future__ import annotations

from collections.abc import Iterator

from topoplace.cli.reference.command_tree import Argument, Command
from topoplace.cli.reference.values import Names, Values, values_of

_HEAD = """\
# Completion of topoplace for fish: put this file into ~/.config/fish/completions/topoplace.fish.

function __topoplace_at # true if these are the command words typed so far
    set -l typed
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- / $typed $word) {commands}
            set -a typed $word
        end
    end
    set -l path (string join -- / $typed)
    test "$path" = "$argv[1]"
end

function __topoplace_list # names that may be joined by commas
    set -l before (string match -r -- '.*,' (commandline -ct | string replace -r -- '^--[a-z-]*=' ''))
    for name in $argv
        echo $before$name
    end
end

complete -c topoplace -f
"""


def script(tree: Command, names: Names) -> str:
    """Return the script that completes the commands of `tree`."""
    paths = " ".join(_quoted("/".join(command.path)) for command in _below(tree))
    return _HEAD.format(commands=paths) + "".join(f"{line}\n" for line in _lines(tree, names))


def _below(command: Command) -> Iterator[Command]:
    for below in command.commands:
        yield below
        yield from _below(below)


def _lines(command: Command, names: Names) -> Iterator[str]:
    """Yield a line for each command and each argument that may follow `command`."""
    start = f"complete -c topoplace -n {_quoted(f'__topoplace_at {_quoted_inside(command)}')}"
    for below in command.commands:
        yield f"{start} -a {_quoted(below.path[-1])} -d {_quoted(below.summary)}"
    for argument in command.arguments:
        described = f" -d {_quoted(argument.help)}" if argument.flags else ""
        yield f"{start}{_flags(argument)}{_value(argument, names)}{described}"
    for below in command.commands:
        yield from _lines(below, names)


def _quoted_inside(command: Command) -> str:
    return f'"{"/".join(command.path)}"'


def _flags(argument: Argument) -> str:
    return "".join(
        f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in argument.flags
    )


def _value(argument: Argument, names: Names) -> str:
    values = values_of(argument, names)
    required = " -r" if values.files else " -x"
    return f"{required if argument.flags and argument.metavar else ''}{_offered(values)}"


def _offered(values: Values) -> str:
    words = " ".join(values.names)
    offered = f"(__topoplace_list {words})" if values.is_list else words
    names = f" -a {_quoted(offered)}" if offered else ""
    if values.directories:
        names += " -a '(__fish_complete_directories (commandline -ct))'"
    return f"{names} -F" if values.files else names


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
