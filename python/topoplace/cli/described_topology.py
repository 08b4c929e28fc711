"""The topology for `topoplace show`: this host's, a file's, or a cluster of several, by its options."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.cli import options, reading

if TYPE_CHECKING:
    from topoplace.topology.fabric import Fabric
    from topoplace.topology.topology import Topology

NO_GPU_HERE = (
    "name a file, such as one with the output of `nvidia-smi topo -m`, or a built-in machine, which `topoplace show "
    "--list machines` lists"
)
REFINING = ("machine", "numa", "measured", "speeds")


def add(parser: argparse.ArgumentParser) -> None:
    """Add TOPO, which may be given several times, and the options that describe it further."""
    parser.add_argument(
        "topology",
        metavar="TOPO",
        nargs="*",
        help="a built-in machine, a file in any known format, or - for standard input; several are the machines of a "
        "cluster (without it, this host, or the built-in machines if it has no GPU)",
    )
    options.add_assumptions(parser)
    parser.add_argument(
        "--machine", metavar="TOPO", help="the machine at every host, if the file describes only a network"
    )
    parser.add_argument(
        "--numa",
        metavar="FILE",
        help="take the GPUs' sockets and CPUs from the output of `numactl --hardware`",
    )
    parser.add_argument(
        "--measured",
        metavar="FILE",
        help="use the speeds measured by p2pBandwidthLatencyTest or nccl-tests",
    )
    parser.add_argument(
        "--speeds",
        choices=("nominal", "achievable"),
        help="use the library's nominal or achievable speeds of NVLink and xGMI links",
    )


def found(arguments: argparse.Namespace) -> Topology | Fabric:
    """Return the topology, or the network alone, that TOPO and the options of `add` describe.

    Raise TopologyError if there is no TOPO and this host has no GPU, and ValueError for options that contradict each
    other.
    """
    from topoplace.topology.topology import Topology

    described = _described(arguments)
    if isinstance(described, Topology):
        return _refined(described, arguments)
    for name in REFINING[1:]:
        if getattr(arguments, name):
            raise ValueError(
                f"--{name}: {described.name} is a network; --machine TOPO describes its machines"
            )
    return described


def _described(arguments: argparse.Namespace) -> Topology | Fabric:
    from topoplace.topology.fabric import Fabric
    from topoplace.topology.topology import Topology

    if arguments.machine is not None and len(arguments.topology) != 1:
        raise ValueError("--machine goes with one file about the network, which TOPO names")
    if not arguments.topology:
        for flag in ("--gpu-model", "--assume", "--assume-no-nvlink"):
            if getattr(arguments, flag[2:].replace("-", "_")):
                raise ValueError(f"{flag} is about TOPO, which is not given")
        return reading.this_host(NO_GPU_HERE)
    if len(arguments.topology) > 1:
        return _joined(arguments)
    (source,) = arguments.topology
    if arguments.machine is not None and reading.is_built_in(source):
        raise ValueError(f"--machine goes with a file about the network, which {source} is not")
    machine = reading.described(arguments.machine, arguments) if arguments.machine else None
    if machine is None:
        described: Any = reading.topology_or_network(source, arguments)
    else:
        described = reading.parsed(source, arguments, machine)
    if not isinstance(described, Fabric):
        return reading.with_gpus(described, source)
    return described if machine is None else Topology.cluster(machine, fabric=described, name=described.name)


def _refined(topology: Topology, arguments: argparse.Namespace) -> Topology:
    """Return `topology` with the changes that --numa, --speeds and --measured ask for: NUMA nodes and link speeds."""
    from topoplace.discovery.linux import numactl
    from topoplace.discovery.measurements import p2p_and_nccl_tests
    from topoplace.topology.speed_overrides import with_link_speeds

    if arguments.numa:
        text = reading.content(arguments.numa)
        with reading.errors_of(arguments.numa):
            topology = numactl.joined(topology, numactl.parse(text))
    topology = with_speeds(topology, arguments)
    if arguments.measured:
        text = reading.content(arguments.measured)
        with reading.errors_of(arguments.measured):
            topology = with_link_speeds(topology, p2p_and_nccl_tests.parse(text))
            topology = replace(topology, notes=(*topology.notes, *p2p_and_nccl_tests.notes(text)))
    return topology


def with_speeds(topology: Topology, arguments: argparse.Namespace) -> Topology:
    """Return `topology` with the link speeds that --speeds asks for, or as it is without that option."""
    from topoplace.topology.speed_overrides import with_link_speeds

    if not arguments.speeds:
        return topology
    with reading.errors_of(f"--speeds {arguments.speeds}"):
        return with_link_speeds(topology, arguments.speeds)


def _joined(arguments: argparse.Namespace) -> Topology:
    """Return the cluster of the machines that several files describe, one machine per file.

    A machine's name is its file's name without suffix, or the path without suffix if these names repeat.
    """
    from topoplace.topology.topology import Topology

    stems = [Path(source).stem for source in arguments.topology]
    alike = len(set(stems)) < len(stems)
    named: dict[str, Topology] = {}
    for source, stem in zip(arguments.topology, stems, strict=True):
        name = str(Path(source).with_suffix("")) if alike else stem
        if name in named:
            raise ValueError(f"{source}: a second machine is called {name}")
        named[name] = reading.described(source, arguments)
    return Topology.cluster(named)
