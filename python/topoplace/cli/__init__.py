"""The command `topoplace`. Exit codes: 0 done, 1 nothing could be placed, 2 wrong input (one line says what).

A command is a module here: `add` says what arguments it takes, `_run` does it and imports what it needs only then, so
that `--help` stays quick. What several commands share is in `options` (arguments) and `reading` (files and text).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from topoplace import __version__
from topoplace.cli.commands import (
    capacity,
    demo,
    diff,
    discover,
    flow,
    machines,
    papers,
    partition,
    place,
    profile,
    show,
    simulate,
)
from topoplace.cli.options import WRONG_INPUT, Parser, one_line

_INTERRUPTED = 130
_BROKEN_PIPE = 141  # what a shell reports for a program whose reader went away


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    _prepare_output()
    try:
        try:
            parsed = _parser().parse_args(arguments)
            code: int = parsed.run(parsed) or 0
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"topoplace: {_one_line(error)}", file=sys.stderr)
        _discard_output()
        return WRONG_INPUT
    return code


def _parser() -> Parser:
    parser = Parser(
        prog="topoplace", description="Which accelerators should this job get, now, on this machine?"
    )
    parser.add_argument("--version", action="version", version=f"topoplace {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (
        discover,
        show,
        diff,
        machines,
        place,
        simulate,
        profile,
        partition,
        flow,
        capacity,
        papers,
        demo,
    ):
        module.add(commands)
    return parser


def _prepare_output() -> None:
    """A terminal that cannot show a character shows its code; output that was closed before we started is dropped."""
    output: object = sys.stdout
    if output is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """What could not be written would fail again, with a traceback, when the interpreter flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return one_line(text)
