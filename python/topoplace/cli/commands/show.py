"""`topoplace show` prints GPUs and their links, of this host or a text, or a network as a tree; with -o it draws."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topoplace.cli import collective_sets, described_topology, flags, options, reading, writing

if TYPE_CHECKING:
    from topoplace.topology.fabric import Fabric
    from topoplace.topology.topology import Topology

_DIFFERENT = _SUSPICIOUS = 1
_PICTURE = ("output", "svg")
_OF_TOPOLOGY = (
    *("topology", "gpu_model", "assume", "assume_no_nvlink", "one", "rates"),
    *(*described_topology.REFINING, *_PICTURE),
)


def add(commands: Any) -> None:
    """Add `topoplace show` and its arguments to the command line."""
    show = options.command(
        commands,
        "show",
        "print GPUs and their links: this host's, a built-in machine's or a file's; or a network; with -o draw them",
        _run,
        examples=[
            "topoplace show",
            "topoplace show dgx1-v100",
            "topoplace show topo.txt --gpu-model V100 --svg -o pictures",
            "topoplace show topology.conf --machine dgx-h100 --json",
            "topoplace show dgx1-v100 --collective 4",
            "topoplace show --check",
            "topoplace show today.json --since monday.json",
        ],
        negative="with --since, the topologies differ; --check found something suspicious",
    )
    described_topology.add(show)
    show.add_argument("--one", metavar="MACHINE", help="show only this machine of the topology")
    instead = show.add_mutually_exclusive_group()
    instead.add_argument(
        "--check", action="store_true", help="also print suspicious facts, such as a GPU with fewer links"
    )
    instead.add_argument(
        "--since",
        metavar="A",
        help="list only differences from an earlier topology, and mark those for the worse",
    )
    instead.add_argument(
        "--collective",
        type=options.count,
        metavar="N",
        help="print the N GPUs of the machine with the highest bandwidth in collective operations such as all-reduce",
    )
    instead.add_argument(
        "--list",
        choices=("machines", "formats"),
        help="list the built-in machines, or the formats that are read",
    )
    options.add_rates(show)
    show.set_defaults(rates=None)  # to tell whether it is given
    show.add_argument(
        "--svg", action="store_true", help="draw an SVG, which needs no other package, instead of a PNG"
    )
    options.add_json(show)
    options.add_output(show)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace.errors import TopologyError
    from topoplace.topology.fabric import Fabric

    _refuse_useless(arguments)
    if arguments.list:
        (_list_machines if arguments.list == "machines" else _list_formats)(as_json=arguments.json)
        return 0
    try:
        found = described_topology.found(arguments)
    except TopologyError:
        if arguments.topology or _given(arguments, [name for name in vars(arguments) if name != "topology"]):
            raise
        print("No GPU was found on this host. The built-in machines:")
        _list_machines(as_json=False)
        return 0
    if isinstance(found, Fabric):
        return _show_network(found, arguments)
    if arguments.one is not None:
        with flags.named(name="--one"):
            found = found.machine(arguments.one)
    if arguments.since is not None:
        return _list_differences(found, arguments)
    if arguments.collective is not None:
        rates = reading.rates(options.RATES if arguments.rates is None else arguments.rates)
        collective_sets.show(found, arguments.collective, rates, as_json=arguments.json)
        return 0
    return _show(found, arguments)


def _given(arguments: argparse.Namespace, names: Sequence[str]) -> str:
    """Return the first of these options that is given, as it is typed; "" for none."""
    typed = {"output": "-o", "topology": "TOPO"}
    for name in names:
        if getattr(arguments, name) not in (None, [], False) and name not in ("run", "parser"):
            return typed.get(name, f"--{name.replace('_', '-')}")
    return ""


def _refuse_useless(arguments: argparse.Namespace) -> None:
    """Raise ValueError for an option that would change nothing."""
    if arguments.list and (flag := _given(arguments, _OF_TOPOLOGY)):
        raise ValueError(f"{flag}: --list is about no topology")
    for name in ("since", "check", "collective"):
        if getattr(arguments, name) not in (None, False) and (flag := _given(arguments, _PICTURE)):
            raise ValueError(f"{flag}: --{name} draws nothing")
    if arguments.rates is not None and arguments.collective is None:
        raise ValueError("--rates has an effect only with --collective")
    if arguments.svg and arguments.output is None:
        raise ValueError("--svg needs -o, where the picture is written")
    if arguments.svg and writing.is_picture(arguments.output) and arguments.output.suffix != ".svg":
        raise ValueError(f"--svg: -o {arguments.output} is a {arguments.output.suffix[1:].upper()}")


def _show_network(found: Fabric, arguments: argparse.Namespace) -> int:
    from topoplace.drawing import fabric_text

    if flag := _given(arguments, ("one", "output", "since", "check", "collective")):
        raise ValueError(f"{flag}: {found.name} is a network alone; {flag} needs machines with GPUs")
    if arguments.json:
        writing.as_json(_network(found))
    else:
        fabric_text.show(found)
    return 0


def _show(topology: Topology, arguments: argparse.Namespace) -> int:
    from topoplace.drawing import topology_text
    from topoplace.topology import compare

    name = f"{_file_name(topology.name)}.{'svg' if arguments.svg else 'png'}"
    picture = writing.topology_picture(arguments.output, name)
    findings = compare.check(topology) if arguments.check else ()
    serious = [finding for finding in findings if finding.serious]
    if arguments.json and arguments.check:
        writing.as_json([asdict(finding) for finding in findings])
    elif arguments.json:
        print(topology.to_json())
    else:
        topology_text.draw(topology)
        topology_text.show(topology)
        for finding in serious:  # the others are notes, which `show` has printed
            print(f"{finding.where}: {finding.why}")
        if arguments.check and not serious:
            print("nothing suspicious")
    if picture:
        from topoplace.drawing import topology_plot

        topology_plot.topology(topology, picture)
        writing.wrote(picture, beside_json=arguments.json)
    return _SUSPICIOUS if serious else 0


def _list_formats(*, as_json: bool) -> None:
    from topoplace import discovery

    names = [found.name for found in discovery.formats()]
    if as_json:
        writing.as_json(names)
    else:
        print("\n".join(names))


def _list_machines(*, as_json: bool) -> None:
    from topoplace import machines
    from topoplace.drawing import tables, topology_text

    rows: list[dict[str, Any]] = []
    for name in machines.names():
        topology = machines.get(name)
        wiring = topology_text.wiring(topology)
        rows.append(
            {"machine": name, "gpus": topology.num_gpus, "model": topology.gpus[0].model, "wiring": wiring}
        )
    if as_json:
        writing.as_json(rows)
        return
    cells = [(row["machine"], row["gpus"], row["model"] or "-", row["wiring"]) for row in rows]
    tables.show(("machine", "GPUs", "model", "pairs of GPUs by their link"), cells)


def _list_differences(topology: Topology, arguments: argparse.Namespace) -> int:
    """Print what has changed since an earlier topology, and return the exit code."""
    from topoplace.drawing import tables
    from topoplace.topology import compare

    earlier = described_topology.with_speeds(reading.described(arguments.since, arguments), arguments)
    changes = compare.diff(earlier, topology)
    if arguments.json:
        writing.as_json([asdict(change) for change in changes])
    elif changes:
        rows = [("-" if one.worse else "", one.what, one.before or "-", one.after or "-") for one in changes]
        worse = sum(one.worse for one in changes)
        colours = ["red" if one.worse else "" for one in changes]
        title = f"{len(changes)} difference{'s' * (len(changes) > 1)}, {worse} for the worse"
        tables.show(
            ("worse", "what", arguments.since, " ".join(arguments.topology) or "this host"),
            rows,
            title,
            colours,
        )
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
