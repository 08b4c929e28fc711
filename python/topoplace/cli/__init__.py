"""The command `topoplace`; its exit codes are listed in `options`.

Each command is in a module of `commands`: `add` declares its arguments and the function that executes it. Only this
function imports the library, so that `--help` stays quick. Commands share
`options` (arguments), `reading`, `writing`, `flags` (messages that name options) and `study` (simulations).

To change:

- The groups of commands in `--help`: `_GROUPS`; what `topoplace` alone shows: `commands/help.py`.
- An option or column of one command: its file in `commands/`; options of several commands: `options.py`; of
  `kubernetes`: `kubernetes/`.
- A job from options: `job_options.py`; where its ranks are, as tables: `ranks.py`; lists of GPUs: `gpu_list.py`.
- Running jobs: `running_jobs.py`; files of jobs: `job_files.py`; simulations: `study.py`, several side by side
  `comparing.py`; sweeps: `sweeping.py`, `sweep_plan.py`, `sweep_cells.py`.
- Options named in errors: `flags.py`; fields of a command's JSON: the command (of `place`: `engine/plan.py`), and its
  schema in `docs/schemas/`.
- What `show` reads: `described_topology.py`; its sets of GPUs: `collective_sets.py`.
- The page of `explore`: `explorer/`.
- What shells complete: `commands/completion.py`; what the parser has, as data for the manual: `command_tree.py`.
- Files that the examples of `--help` name: `example_files.py`; recorded traffic: `recording.py`.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Final

from topoplace import __version__
from topoplace.cli.commands import (
    capacity,
    completion,
    example,
    explore,
    help,
    kubernetes,
    make_room,
    papers,
    place,
    policies,
    profile,
    report,
    show,
    show_measure,
    simulate,
    slurm,
    state,
    sweep,
    sweep_suite,
    trace,
    when,
)
from topoplace.cli.options import EXIT_CODES, WRONG_INPUT, Parser, one_line
from topoplace.errors import SlurmError

_GROUPS: Final = {
    "look: machines, policies, examples": (
        show,
        show_measure,
        explore,
        policies,
        example,
        help,
    ),
    "decide: which GPUs a job gets, and when": (place, make_room, when),
    "study: many jobs, policies and machines": (
        trace,
        simulate,
        sweep,
        sweep_suite,
        report,
        profile,
        capacity,
        papers,
    ),
    "run: in clusters and shells": (slurm, kubernetes, state, completion),
}
"""The modules of the commands, in the groups and the order in which `--help` lists them."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141  # the exit code that a shell reports for a program killed by SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `topoplace` with `arguments`, by default those of the process, and return its exit code.

    Raises SystemExit instead for `--help`, `--version` and wrong arguments.
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


def command_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="topoplace", description="Choose GPUs for jobs by the links between them.")
    codes = "".join(f"\n  {code:<4} {meaning}" for code, meaning in EXIT_CODES.items())
    parser.epilog = f"`topoplace COMMAND --help` shows examples.\n\nexit codes:{codes}"
    parser.add_argument("--version", action="version", version=f"topoplace {__version__}")
    parser.set_defaults(run=help.first_look, parser=parser)
    parser.replaced = {
        "machines": "topoplace show --list machines",
        "diff": "topoplace show B --since A",
        "demo": "topoplace explore` or, in a clone, `make demo",
        "discover": "topoplace show",
        "collective": "topoplace show MACHINE --collective N` or `topoplace show measure",
        "compare": "topoplace simulate",
        "defragment": "topoplace make-room",
        "suite": "topoplace sweep suite",
    }
    commands = parser.add_subparsers(metavar="COMMAND")
    for title, modules in _GROUPS.items():
        before = len(commands.choices)
        for module in modules:
            module.add(commands)
        parser.groups[title] = tuple(commands.choices)[before:]
    return parser


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
