"""The command `topoplace`; its exit codes are listed in `options`.

Each command is in a module of `commands`: `add` declares its arguments and the function that executes it. Only this
function imports the library, so that `--help` stays quick. Commands share
`options` (arguments), `reading`, `writing`, `flags` (messages that name options) and `study` (simulations).

To change:

- The groups of commands in `--help`: `_GROUPS`; the output of `topoplace` alone: `commands/help.py`. Installed
  distributions add commands as entry points.
- An option or column of one command: its file in `commands/`; options of several commands: `options.py`.
- A job from options: `job_options.py`; tables of its ranks: `ranks.py`; lists of GPUs: `gpu_list.py`.
- Running jobs: `running_jobs.py`, `snapshots.py`.
- Options named in errors: `flags.py`; fields of a command's JSON: the command (of `place`: `engine/plan.py`), and its
  schema in `docs/schemas/`.
- Input of `show`: `described_topology.py`; its sets of GPUs: `collective_sets.py`.
- The page of `explore`: `explorer/`.
- Completion in shells: `commands/completion.py`; the manual: `tools/write_manual.py`.
- Files that the examples of `--help` name: `example_files.py`.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from topoplace import __version__, _installed
from topoplace.cli.commands import (
    completion,
    example,
    explore,
    help,
    make_room,
    place,
    policies,
    reorder,
    show,
    when,
)
from topoplace.cli.options import EXIT_CODES, WRONG_INPUT, Parser, one_line
from topoplace.errors import SlurmError

_OWN: Final[dict[str, Any]] = {
    "show": show,
    "explore": explore,
    "policies": policies,
    "example": example,
    "help": help,
    "place": place,
    "make-room": make_room,
    "when": when,
    "reorder": reorder,
    "completion": completion,
}
"""The commands of this package by their names."""
_GROUPS: Final = {
    "look: machines, policies, examples": ("show", "show measure", "explore", "policies", "example", "help"),
    "decide: which GPUs a job gets, and when": ("place", "make-room", "when", "reorder"),
    "study: many jobs, policies and machines": (
        *("trace", "simulate", "sweep", "sweep suite", "report", "profile", "capacity", "papers"),
    ),
    "run: in clusters and shells": ("slurm", "kubernetes", "state", "completion"),
}
"""The commands, in the groups and the order in which `--help` lists them."""
_REPLACED: Final = {
    "machines": "topoplace show --list machines",
    "diff": "topoplace show B --since A",
    "demo": "topoplace explore` or, in a clone, `make demo",
    "discover": "topoplace show",
    "collective": "topoplace show MACHINE --collective N` or `topoplace show measure",
    "compare": "topoplace simulate",
    "defragment": "topoplace make-room",
    "suite": "topoplace sweep suite",
}
"""Commands that are gone, with the command line that does the same."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141  # the exit code that a shell reports for a program killed by SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `topoplace` with `arguments`, by default those of the process, and return its exit code.

    Raise SystemExit instead for `--help`, `--version` and wrong arguments.
    """
    _prepare_output()
    if "" not in sys.path:
        sys.path.append(
            ""
        )  # `--policy module:Class` finds modules of the current directory, after installed ones
    parsed: argparse.Namespace = argparse.Namespace()
    try:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                parser = command_parser()
                if "_ARGCOMPLETE" in os.environ:  # a shell asks, with the script of `topoplace completion`
                    completion.answer(parser)
                parsed = parser.parse_args(arguments)
                code: int = parsed.run(parsed) or 0
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ValueError, OSError, ImportError, MemoryError, SlurmError) as error:
        print(f"topoplace: {_one_line(error, _option_of(error, parsed, arguments))}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(f"  {one_line(note)}", file=sys.stderr)
        _discard_output()
        return WRONG_INPUT
    return code


def command_parser(*, with_added: bool = True) -> Parser:
    """Return the parser of all commands; with_added: True includes those of installed distributions."""
    parser = Parser(prog="topoplace", description="Choose GPUs for jobs by the links between them.")
    codes = "".join(f"\n  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())
    parser.epilog = f"`topoplace COMMAND --help` shows examples.\n\nexit codes:{codes}"
    parser.add_argument("--version", action="version", version=f"topoplace {__version__}")
    parser.set_defaults(run=help.first_look, parser=parser)
    parser.replaced = _REPLACED
    commands = parser.add_subparsers(metavar="COMMAND")
    added: Mapping[str, Any] = _installed.entry_points(_installed.COMMANDS) if with_added else {}
    for title, names in _groups(added).items():
        before = len(commands.choices)
        for name in names:
            _add(name, added, commands)
        if made := tuple(commands.choices)[before:]:
            parser.groups[title] = made
    return parser


def _add(name: str, added: Mapping[str, Any], commands: Any) -> None:
    """Add a command; one that cannot be imported or added is named and left out, so that others can be used."""
    if name in _OWN:
        _OWN[name].add(commands)
        return
    try:
        _installed.load(added[name][0], lambda module: module.add(commands))
    except ImportError as error:
        print(f"topoplace: {one_line(str(error))}", file=sys.stderr)


def _groups(added: Collection[str]) -> dict[str, list[str]]:
    """Return the commands that are installed, by group; those that no group has are last."""
    found = {
        title: [name for name in names if name in _OWN or name in added] for title, names in _GROUPS.items()
    }
    known = {name for names in _GROUPS.values() for name in names}
    if others := sorted(set(added) - known):
        found["of other packages"] = others
    return {title: names for title, names in found.items() if names}


def _prepare_output() -> None:
    """Make standard output escape characters that it cannot encode; replace it with a null device if it is closed."""
    output: object = sys.stdout
    if output is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Redirect standard output to a null device, so that the final flush of unwritable output cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    """Print a warning of the library as one line, without the place in the code that it names."""
    print(f"topoplace: {one_line(str(message))}", file=sys.stderr)


def _option_of(error: Exception, parsed: argparse.Namespace, arguments: Sequence[str] | None) -> str:
    """Return the option that names the file of an OSError, with a space behind it; "" if none does."""
    named: object = getattr(error, "filename", None)
    given = {text.partition("=")[0] for text in (sys.argv[1:] if arguments is None else arguments)}
    values: dict[str, Any] = dict(vars(parsed))
    options = [
        "-o" if name == "output" else f"--{name.replace('_', '-')}"
        for name, value in values.items()
        if named and str(value) == named
    ]
    return next((f"{option} " for option in options if option in given), "")


def _one_line(error: Exception, option: str) -> str:
    if isinstance(error, OSError) and error.strerror:
        what = error.filename or ("standard output" if error.errno == errno.ENOSPC else "")
        text = f"{option}{what}: {error.strerror}" if what else error.strerror
    else:
        text = str(error) or type(error).__name__
    return one_line(text)
