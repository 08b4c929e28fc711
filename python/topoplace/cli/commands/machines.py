"""`topoplace machines` lists the built-in machines."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace.cli import options, writing


def add(commands: Any) -> None:
    """Add `topoplace machines` and its arguments to the command line."""
    parser = options.command(
        commands, "machines", "list the built-in machines", _run, examples=["topoplace machines"]
    )
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace import machines
    from topoplace.experiments.report import tables, topology_text

    rows: list[dict[str, Any]] = []
    for name in machines.names():
        topology = machines.get(name)
        wiring = topology_text.wiring(topology)
        rows.append(
            {"machine": name, "gpus": topology.num_gpus, "model": topology.gpus[0].model, "wiring": wiring}
        )
    if arguments.json:
        writing.as_json(rows)
        return
    cells = [(row["machine"], row["gpus"], row["model"] or "-", row["wiring"]) for row in rows]
    tables.show(("machine", "GPUs", "model", "pairs of GPUs by their link"), cells)
