"""`topoplace machines` lists the built-in machines."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import options


def add(commands: Any) -> None:
    """Add `topoplace machines` and its arguments to the command line."""
    options.command(commands, "machines", "list the built-in machines", _run, examples=["topoplace machines"])


def _run(_: argparse.Namespace) -> None:
    from topoplace import machines
    from topoplace.report import tables, topology_text

    rows: list[tuple[object, ...]] = []
    for name in machines.names():
        topology = machines.get(name)
        rows.append((name, topology.num_gpus, topology.gpus[0].model or "-", topology_text.wiring(topology)))
    tables.show(("machine", "GPUs", "model", "pairs of GPUs by their link"), rows)
