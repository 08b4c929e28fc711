"""`topoplace discover` reads the topology of this machine, or of files in any known format."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, reading, writing

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

SUSPICIOUS = 1
_NO_GPU_HERE = (
    "describe a machine with --from FILE, such as the output of `nvidia-smi topo -m` there, or try a built-in one: "
    "`topoplace show` lists them, and takes their names"
)


def add(commands: Any) -> None:
    """Add `topoplace discover` and its arguments to the command line."""
    discover = options.command(
        commands,
        "discover",
        "show this machine's GPUs and links, or those that files describe",
        _run,
        examples=[
            "topoplace discover --check",
            "topoplace discover --from topo.txt --gpu-model V100 --json",
            "topoplace discover --from topology.conf --machine dgx-h100",
        ],
        negative="--check found something suspicious",
    )
    discover.add_argument(
        "--from",
        dest="files",
        metavar="FILE",
        nargs="+",
        help="read FILE instead, in any known format; several files are the machines of a cluster",
    )
    discover.add_argument(
        "--machine", metavar="TOPO", help="the machine at every host, if FILE describes only a network"
    )
    discover.add_argument(
        "--numa",
        metavar="FILE",
        help="take the GPUs' sockets and CPUs from the output of `numactl --hardware`",
    )
    discover.add_argument(
        "--measured",
        metavar="FILE",
        help="use the speeds measured by p2pBandwidthLatencyTest or nccl-tests",
    )
    discover.add_argument(
        "--speeds",
        choices=("nominal", "achievable"),
        help="use the library's nominal or achievable speeds of NVLink and xGMI links",
    )
    discover.add_argument("--formats", action="store_true", help="list the known formats")
    discover.add_argument(
        "--check",
        action="store_true",
        help="print suspicious findings",
    )
    options.add_assumptions(discover)
    options.add_json(discover)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace.experiments.report import topology_text

    if arguments.formats:
        from topoplace import discovery

        names = [found.name for found in discovery.FORMATS]
        if arguments.json:
            writing.as_json(names)
        else:
            print("\n".join(names))
        return 0
    from topoplace.topology import compare

    topology = _refined(_found(arguments), arguments)
    findings = compare.check(topology) if arguments.check else ()
    serious = [finding for finding in findings if finding.serious]
    if arguments.json and arguments.check:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    elif arguments.json:
        print(topology.to_json())
    else:
        topology_text.show(topology)
        for finding in serious:  # the others are notes, which `show` has printed
            print(f"{finding.where}: {finding.why}")
        if arguments.check and not serious:
            print("nothing suspicious")
    return SUSPICIOUS if serious else 0


def _found(arguments: argparse.Namespace) -> Topology:
    from topoplace.topology.fabric import Fabric
    from topoplace.topology.topology import Topology

    if not arguments.files:
        if arguments.machine:
            raise ValueError("--machine describes the machines of a file; name the file with --from")
        return reading.this_host(_NO_GPU_HERE)
    machine = reading.described(arguments.machine, arguments) if arguments.machine else None
    if len(arguments.files) > 1:
        if machine is not None:
            raise ValueError("--machine goes with one file about the network; several were given")
        return _joined(arguments)
    (source,) = arguments.files
    if reading.is_built_in(source):
        return reading.with_gpus(reading.topology_or_network(source, arguments), source)
    found = reading.parsed(source, arguments, machine)
    if isinstance(found, Fabric):
        if machine is None:
            raise ValueError(
                f"{source}: describes a network of {len(found.machines)} machines; "
                "describe them with --machine TOPO"
            )
        return Topology.cluster(machine, fabric=found, name=found.name)
    return reading.with_gpus(found, source)


def _refined(topology: Topology, arguments: argparse.Namespace) -> Topology:
    """Return `topology` with the changes that --numa, --speeds and --measured ask for: NUMA nodes and link speeds."""
    from topoplace.discovery.linux import numactl
    from topoplace.discovery.measurements import p2p_and_nccl_tests
    from topoplace.topology.speed_overrides import with_link_speeds

    if arguments.numa:
        text = reading.content(arguments.numa)
        with reading.errors_of(arguments.numa):
            topology = numactl.joined(topology, numactl.parse(text))
    if arguments.speeds:
        with reading.errors_of(f"--speeds {arguments.speeds}"):
            topology = with_link_speeds(topology, arguments.speeds)
    if arguments.measured:
        text = reading.content(arguments.measured)
        with reading.errors_of(arguments.measured):
            topology = with_link_speeds(topology, p2p_and_nccl_tests.parse(text))
            topology = replace(topology, notes=(*topology.notes, *p2p_and_nccl_tests.notes(text)))
    return topology


def _joined(arguments: argparse.Namespace) -> Topology:
    """Return the cluster of the machines that several files describe, one machine per file.

    A machine's name is its file's name without suffix, or the path without suffix if these names repeat.
    """
    from topoplace.topology.topology import Topology

    stems = [Path(source).stem for source in arguments.files]
    alike = len(set(stems)) < len(stems)
    named: dict[str, Topology] = {}
    for source, stem in zip(arguments.files, stems, strict=True):
        name = str(Path(source).with_suffix("")) if alike else stem
        if name in named:
            raise ValueError(f"{source}: a second machine is called {name}")
        named[name] = reading.described(source, arguments)
    return Topology.cluster(named)
