"""Completion for bash, also for the old one of macOS."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from topoplace.cli.reference.command_tree import Command
from topoplace.cli.reference.values import Names, Values, values_of

_SCRIPT = """\
# Completion of topoplace for bash: source this file, or put it as `topoplace` into
# ~/.local/share/bash-completion/completions/.

_topoplace_add() {{ # names, and "list" if they may be joined by commas
    local before="" typed=$cur
    if [[ $2 == list && $cur == *,* ]]; then
        before=${{cur%,*}},
        typed=${{cur##*,}}
    fi
    COMPREPLY+=($(compgen -P "$before" -W "$1" -- "$typed"))
}}

_topoplace_paths() {{ # -f for files, -d for directories
    local IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen "$1" -- "$cur"))
}}

_topoplace() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} flag=${{COMP_WORDS[COMP_CWORD - 1]}} command="" word i
    COMPREPLY=()
    if [[ $cur == "=" ]]; then # bash splits --flag=value at the sign
        cur=""
    elif [[ $flag == "=" ]]; then
        flag=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        case "$command/$word" in
{commands}
            command=$command/$word ;;
        esac
    done
    case "$command $flag" in
{values}
    esac
    if [[ $cur == -* ]]; then
        case "$command" in
{flags}
        esac
        return
    fi
    case "$command" in
{positions}
    esac
}}

complete -F _topoplace topoplace
"""


def script(tree: Command, names: Names) -> str:
    """Return the script that completes the commands of `tree`."""
    every = list(_all(tree))
    inner = [command for command in every if command.path]
    return _SCRIPT.format(
        commands=" | \\\n".join(f"        {_key(command)}" for command in inner) + ")",
        values="\n".join(line for command in every for line in _values(command, names)),
        flags="\n".join(
            f"        {_key(command)}) _topoplace_add {shlex.quote(_flags(command))} ;;" for command in every
        ),
        positions="\n".join(_positions(command, names) for command in every),
    )


def _all(command: Command) -> Iterator[Command]:
    yield command
    for below in command.commands:
        yield from _all(below)


def _key(command: Command) -> str:
    return shlex.quote("".join(f"/{word}" for word in command.path))


def _flags(command: Command) -> str:
    return " ".join(flag for argument in command.arguments for flag in argument.flags)


def _values(command: Command, names: Names) -> Iterator[str]:
    """Yield a case for each option that takes a value: after it, nothing else is offered."""
    key = "".join(f"/{word}" for word in command.path)
    for argument in command.arguments:
        if argument.flags and argument.metavar:
            cases = " | ".join(shlex.quote(f"{key} {flag}") for flag in argument.flags)
            calls = "".join(f"{call}; " for call in _calls(values_of(argument, names)))
            yield f"    {cases}) {calls}return ;;"


def _positions(command: Command, names: Names) -> str:
    calls = [
        call
        for argument in command.arguments
        if not argument.flags
        for call in _calls(values_of(argument, names))
    ]
    if command.commands:
        calls.append(f"_topoplace_add {shlex.quote(' '.join(below.path[-1] for below in command.commands))}")
    return f"    {_key(command)}) {'; '.join(dict.fromkeys(calls)) or ':'} ;;"


def _calls(values: Values) -> Iterator[str]:
    if values.names:
        kind = " list" if values.is_list else ""
        yield f"_topoplace_add {shlex.quote(' '.join(values.names))}{kind}"
    if values.files:
        yield "_topoplace_paths -f"
    if values.directories:
        yield "_topoplace_paths -d"
