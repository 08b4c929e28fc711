"""`topoplace demo` places and simulates jobs on three machines."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from topoplace.cli import options, writing


def add(commands: Any) -> None:
    """Add `topoplace demo` and its arguments to the command line."""
    summary = "place and simulate jobs on three machines; pictures go to ./out"
    parser = options.command(commands, "demo", summary, _run, examples=["topoplace demo -o pictures"])
    parser.add_argument(
        "-o",
        dest="output",
        type=options.path,
        default=Path("out"),
        metavar="DIR",
        help="write pictures into this directory, created if missing (default: out)",
    )


def _run(arguments: argparse.Namespace) -> None:
    from topoplace.experiments.papers.demo import run

    output = writing.directory(arguments.output)
    assert output is not None  # it has a default
    run(output)
