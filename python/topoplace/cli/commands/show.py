"""`topoplace show` lists machines, or prints the links of a topology, or a network as a tree; with -o it draws."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading, writing

if TYPE_CHECKING:
    from topoplace.topology.fabric import Fabric


_DIFFERENT = 1


def add(commands: Any) -> None:
    """Add `topoplace show` and its arguments to the command line."""
    show = options.command(
        commands,
        "show",
        "list the built-in machines, or print the links of one, of a file, or a network as a tree; with -o draw it",
        _run,
        examples=[
            "topoplace show",
            "topoplace show dgx1-v100",
            "topoplace show topo.txt --svg -o pictures",
            "topoplace show today.json --since monday.json",
        ],
        negative="with --since, the topologies differ",
    )
    options.add_topology(show, without="without it, the built-in machines are listed")
    show.add_argument("--one", metavar="MACHINE", help="show only this machine of the topology")
    show.add_argument(
        "--svg", action="store_true", help="draw an SVG, which needs no other package, instead of a PNG"
    )
    show.add_argument(
        "--since",
        metavar="A",
        help="list only what differs from an earlier topology, and mark what got worse",
    )
    options.add_json(show)
    options.add_output(show)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.since is not None:
        if arguments.topology is None:
            raise ValueError("--since is about TOPO, which is not given")
        return _list_differences(arguments)
    _show(arguments)
    return 0


def _show(arguments: argparse.Namespace) -> None:
    from topoplace.experiments.report import fabric_text, topology_text
    from topoplace.topology.fabric import Fabric

    if arguments.svg and arguments.output is None:
        raise ValueError("--svg needs -o, where the picture is written")
    if arguments.svg and writing.is_picture(arguments.output) and arguments.output.suffix != ".svg":
        raise ValueError(f"--svg: -o {arguments.output} is a {arguments.output.suffix[1:].upper()}")
    if arguments.topology is None:
        _list_machines(arguments)
        return
    found = reading.topology_or_network(arguments.topology, arguments)
    if isinstance(found, Fabric):
        for flag, given in (("--one", arguments.one), ("-o", arguments.output)):
            if given is not None:
                raise ValueError(f"{flag}: {found.name} is a network alone; {flag} needs machines with GPUs")
        if arguments.json:
            writing.as_json(_network(found))
        else:
            fabric_text.show(found)
        return
    topology = reading.with_gpus(found, arguments.topology)
    if arguments.one is not None:
        with flags.named(name="--one"):
            topology = topology.machine(arguments.one)
    extension = "svg" if arguments.svg else "png"
    name = f"{_file_name(topology.name)}.{extension}"
    picture = writing.topology_picture(arguments.output, name)
    if arguments.json:
        print(topology.to_json())
    else:
        topology_text.draw(topology)
        topology_text.show(topology)
    if picture:
        from topoplace.experiments.report import plots

        plots.topology(topology, picture)
        writing.wrote(picture, beside_json=arguments.json)


def _list_machines(arguments: argparse.Namespace) -> None:
    from topoplace import machines
    from topoplace.experiments.report import tables, topology_text

    given = {"--one": arguments.one, "-o": arguments.output, "--gpu-model": arguments.gpu_model}
    given |= {"--assume": arguments.assume, "--assume-no-nvlink": arguments.assume_no_nvlink}
    for flag, value in given.items():
        if value:
            raise ValueError(f"{flag} is about TOPO, which is not given")
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


def _list_differences(arguments: argparse.Namespace) -> int:
    """Print what has changed since an earlier topology, and return the exit code."""
    from topoplace.experiments.report import tables
    from topoplace.topology import compare

    for flag, given in (("--one", arguments.one), ("-o", arguments.output), ("--svg", arguments.svg)):
        if given:
            raise ValueError(f"{flag}: with --since, only what differs is listed")
    sources = arguments.since, arguments.topology
    changes = compare.diff(*(reading.described(source, arguments) for source in sources))
    if arguments.json:
        writing.as_json([asdict(change) for change in changes])
    elif changes:
        rows = [("-" if one.worse else "", one.what, one.before or "-", one.after or "-") for one in changes]
        worse = sum(one.worse for one in changes)
        colours = ["red" if one.worse else "" for one in changes]
        title = f"{len(changes)} difference{'s' * (len(changes) > 1)}, {worse} for the worse"
        tables.show(("worse", "what", *sources), rows, title, colours)
    else:
        print("no difference")
    return _DIFFERENT if changes else 0


def _network(fabric: Fabric) -> dict[str, Any]:
    levels = [
        {
            "name": level.name,
            "kind": level.kind.value,
            "gb_per_s": level.gb_per_s,
            "oversubscription": level.oversubscription,
            "rail": level.rail,
            "pxn": level.pxn,
            "domains": level.domains,
        }
        for level in fabric.levels
    ]
    return {"name": fabric.name, "machines": fabric.machines, "levels": levels, "notes": fabric.notes}


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
