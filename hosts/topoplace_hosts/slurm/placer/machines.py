"""Convert GPUs between numbers of a topology, and Slurm's nodes with device numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from topoplace.errors import SlurmError
from topoplace.topology.topology import Topology
from topoplace_hosts.slurm import gres
from topoplace_hosts.slurm.client.nodes import SlurmNodes


@dataclass(frozen=True, slots=True)
class Where:
    """A place in Slurm's terms: nodes, and the same devices of each, in task order."""

    nodes: tuple[str, ...]
    numbers: tuple[int, ...]


def gpus_at(topology: Topology, nodes: Iterable[str], numbers: Sequence[int]) -> tuple[int, ...] | None:
    """Return the GPUs with these device numbers on each node; None if the topology lacks one."""
    found: list[int] = []
    for node in nodes:
        gpus = topology.gpus_of.get(node, ())
        if max(numbers, default=0) >= len(gpus):
            return None
        found += [gpus[number] for number in numbers]
    return tuple(found)


def gpus_on(topology: Topology, devices: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """Return the GPUs with these device numbers, by node; those that the topology lacks are left out."""
    found: list[int] = []
    for node, numbers in devices.items():
        gpus = topology.gpus_of.get(node, ())
        found += [gpus[number] for number in numbers if number < len(gpus)]
    return tuple(found)


def where_of(topology: Topology, gpus: Sequence[int]) -> Where | str:
    """Return the place of `gpus`, which are in task order; a text says why Slurm cannot express it."""
    by_node: dict[str, list[int]] = {}
    for gpu in gpus:
        node = topology.machine_names[int(topology.machine_of[gpu])]
        by_node.setdefault(node, []).append(topology.gpus_of[node].index(gpu))
    first = next(iter(by_node.values()))
    for node, numbers in by_node.items():
        if set(numbers) != set(first):
            return (
                f"Slurm gives the same GPUs of each node: {sorted(first)} is not {sorted(numbers)} of {node}"
            )
    return Where(tuple(by_node), tuple(first))


def check_nodes(topology: Topology, nodes: SlurmNodes) -> list[str]:
    """Return the machines of `topology` that Slurm lacks; SlurmError for nodes without a type per device."""
    wanted = gres.node_gres(topology)
    missing = [node for node in wanted if node not in nodes.nodes]
    if len(missing) == len(wanted):
        raise SlurmError(f"none of the machines {', '.join(list(wanted)[:5])} is a node of Slurm")
    for node, held in wanted.items():
        if node in nodes.nodes and not set(nodes.nodes[node].gres.split(",")) >= set(held.split(",")):
            known = nodes.nodes[node].gres or "no Gres"
            raise SlurmError(f"node {node} has {known}, not a type per device: see `topoplace slurm gres`")
    return missing
