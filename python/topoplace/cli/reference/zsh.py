"""Completion for zsh."""

from __future__ import annotations

from collections.abc import Iterator

from topoplace.cli.reference.command_tree import Argument, Command
from topoplace.cli.reference.values import Names, Values, values_of

_HEAD = """\
#compdef topoplace
# Completion of topoplace for zsh: put this file as _topoplace into a directory of $fpath, or run
#   source <(topoplace completion zsh)

"""
_TAIL = """\

if [[ $funcstack[1] == _topoplace ]]; then
    _topoplace "$@"
else
    compdef _topoplace topoplace
fi
"""


def script(tree: Command, names: Names) -> str:
    """Return the script that completes the commands of `tree`."""
    return _HEAD + "\n".join(_functions(tree, names)) + _TAIL


def _functions(command: Command, names: Names) -> Iterator[str]:
    """Yield a function for each command, the one called `_topoplace` last."""
    for below in command.commands:
        yield from _functions(below, names)
    specs = [_spec(argument, names) for argument in command.arguments]
    has_own = bool(command.examples)
    if command.commands and not has_own:
        specs += ["'1: :->command'", "'*:: :->rest'"]
    lines = [
        f"{_name(command)}() {{",
        "    local curcontext=$curcontext state line ret=1",
        "    typeset -A opt_args",
        *(_handed_on(below) for below in command.commands if has_own),
    ]
    lines += ["    _arguments -C \\"] + [f"        {spec} \\" for spec in specs] + ["        && ret=0"]
    if command.commands and not has_own:
        lines += _dispatch(command)
    yield "\n".join([*lines, "    return ret", "}", ""])


def _handed_on(command: Command) -> str:
    """Return what lets a command of a command that has arguments of its own complete the rest."""
    shift = "shift words; (( CURRENT-- ))"
    return f"    if [[ CURRENT -gt 2 && $words[2] == {command.path[-1]} ]]; then {shift}; {_name(command)}; return; fi"


def _dispatch(command: Command) -> Iterator[str]:
    described = " ".join(_quoted(f"{_plain(one.path[-1])}:{one.summary}") for one in command.commands)
    yield from ("    case $state in", "    command)", f"        local -a commands=({described})")
    yield from ("        _describe command commands && ret=0 ;;", "    rest)", "        case $line[1] in")
    yield from (f"        {one.path[-1]}) {_name(one)} && ret=0 ;;" for one in command.commands)
    yield from ("        esac ;;", "    esac")


def _spec(argument: Argument, names: Names) -> str:
    value = f":{_plain(argument.metavar)}:{_action(values_of(argument, names))}" if argument.metavar else ""
    if not argument.flags:
        return _quoted(f"{'*' if argument.is_repeated else ''}{value}")
    described = f"[{_plain(argument.help)}]"
    if len(argument.flags) == 1:
        return _quoted(f"*{argument.flags[0]}{_sign(argument.flags[0], value)}{described}{value}")
    flags = ",".join(f"{flag}{_sign(flag, value)}" for flag in argument.flags)
    return f"'*'{{{flags}}}{_quoted(f'{described}{value}')}"


def _sign(flag: str, value: str) -> str:
    return "=" if value and flag.startswith("--") else ""


def _action(values: Values) -> str:
    names = f"({' '.join(map(_plain, values.names))})"
    if values.is_list:
        return f" _values -s , name {' '.join(map(_plain, values.names))}"
    if values.names and values.files:
        return f' _alternative "names:name:{names}" "files:file:_files"'
    if values.names:
        return names
    return "_files" if values.files else "_files -/" if values.directories else " "


def _name(command: Command) -> str:
    return "_".join(("_topoplace", *command.path))


def _plain(text: str) -> str:
    for sign in "\\:[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
