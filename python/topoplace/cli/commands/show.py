"""`topoplace show` prints the links of a topology by kind and speed, and draws it as a picture on request."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import options, reading, writing


def add(commands: Any) -> None:
    """Add `topoplace show` and its arguments to the command line."""
    show = options.command(
        commands, "show", "print a topology's links by kind and speed; with -o draw it", _run
    )
    options.add_topology(show)
    show.add_argument("--one", metavar="MACHINE", help="show only this machine of the topology")
    show.add_argument("--svg", action="store_true", help="draw an SVG instead of a PNG")
    options.add_output(show)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace.report import topology_text

    topology = reading.topology(arguments)
    if arguments.one:
        topology = topology.machine(arguments.one)
    extension = "svg" if arguments.svg else "png"
    picture = reading.output(arguments.output, f"{_file_name(topology.name)}.{extension}")
    topology_text.show(topology)
    if picture:
        from topoplace.report import plots

        plots.topology(topology, picture)
        writing.wrote(picture, beside_json=False)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
