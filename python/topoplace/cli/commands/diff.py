"""`topoplace diff` lists the differences between two topologies."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from topoplace.cli import options, reading

DIFFERENT = 1


def add(commands: Any) -> None:
    """Add `topoplace diff` and its arguments to the command line."""
    diff = options.command(
        commands,
        "diff",
        "list the differences between two topologies",
        _run,
        examples=["topoplace diff monday.json today.json"],
        negative="the topologies differ",
    )
    diff.add_argument("before", metavar="A", help="a topology, as in `topoplace show`")
    diff.add_argument("after", metavar="B", help="the topology to compare it with")
    options.add_assumptions(diff)
    options.add_json(diff)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace.experiments.report import tables
    from topoplace.topology import compare

    before, after = (reading.described(source, arguments) for source in (arguments.before, arguments.after))
    changes = compare.diff(before, after)
    if arguments.json:
        print(json.dumps([asdict(change) for change in changes], indent=1))
    elif changes:
        rows = [("-" if one.worse else "", one.what, one.before or "-", one.after or "-") for one in changes]
        worse = sum(one.worse for one in changes)
        colours = ["red" if one.worse else "" for one in changes]
        title = f"{len(changes)} difference{'s' * (len(changes) > 1)}, {worse} for the worse"
        tables.show(("worse", "what", arguments.before, arguments.after), rows, title, colours)
    else:
        print("no difference")
    return DIFFERENT if changes else 0
