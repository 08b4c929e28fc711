"""`topoplace machines` lists the built-in machines; `topoplace show` prints and draws any topology."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from topoplace.cli import options, reading, writing


def add(commands: Any) -> None:
    """Both commands."""
    options.command(commands, "machines", "list the built-in machines", _machines)
    show = options.command(commands, "show", "print a topology's bandwidths; with -o also draw it", _show)
    options.add_topology(show)
    options.add_output(show)


def _machines(_: argparse.Namespace) -> None:
    from topoplace import machines
    from topoplace.report import tables

    rows: list[tuple[object, ...]] = []
    for name in machines.names():
        topology = machines.get(name)
        kinds = Counter(f"{link.kind.name} x{link.lanes}" for _u, _v, link in topology.links)
        wiring = ", ".join(f"{count} {label}" for label, count in sorted(kinds.items()))
        rows.append((name, topology.num_gpus, topology.gpus[0].model or "-", wiring or "-"))
    tables.show(("machine", "GPUs", "model", "direct links"), rows)


def _show(arguments: argparse.Namespace) -> None:
    from topoplace.report import tables

    topology = reading.topology(arguments)
    picture = reading.output(arguments.output, f"{_file_name(topology.name)}.png")
    rows = [
        (f"GPU {gpu}", *("-" if i == gpu else f"{value:g}" for i, value in enumerate(row)))
        for gpu, row in enumerate(topology.bandwidth_matrix())
    ]
    title = f"{topology.name}: GB/s between GPUs, one direction"
    tables.show(("", *map(str, range(topology.num_gpus))), rows, title)
    if picture:
        from topoplace.report import plots

        plots.topology(topology, picture)
        writing.wrote(picture, beside_json=False)


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
