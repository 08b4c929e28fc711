"""GPUs as custom resources of Ray, each of amount 1, and which of them are free."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from topoplace._checks import shown
from topoplace.cluster.cluster import Cluster
from topoplace_hosts.ray.package import ray

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_OTHERS = "others"


def resource_of(topology: Topology, gpu: int) -> str:
    """Return the name of the resource that stands for a GPU: its machine and its position there."""
    machine = topology.gpus[gpu].machine
    return f"topoplace:{machine}:{topology.gpus_of[machine].index(gpu)}"


def node_resources(topology: Topology, machine: str) -> dict[str, float]:
    """Return the resources with which Ray has to be started on a machine of the topology.

    Pass them as JSON to `ray start --resources`. ValueError if there is no such machine.
    """
    gpus = topology.gpus_of.get(machine)
    if gpus is None:
        raise ValueError(f"machine = {shown(machine)} is not in the topology")
    return {resource_of(topology, gpu): 1.0 for gpu in gpus}


def nodes_by_resource() -> dict[str, str]:
    """Return the id of the live node that has each resource, by the resource's name."""
    return {name: node["NodeID"] for node in ray.nodes() if node["Alive"] for name in node["Resources"]}


def cluster_now(topology: Topology, resources: Mapping[int, str], held: Collection[int]) -> Cluster:
    """Return the topology as Ray sees it now: GPUs of nodes that are not alive are drained, those in use are taken.

    resources: the resource of each GPU. held: GPUs to be counted as in use although Ray may not know it yet.
    """
    there = nodes_by_resource()
    free = ray.available_resources()
    cluster = Cluster(topology)
    taken: list[int] = []
    for gpu, name in resources.items():
        if name not in there:
            cluster.drain(gpu)
        elif gpu in held or free.get(name, 0.0) < 1.0:
            taken.append(gpu)
    if topology.partitions:  # what several gangs hold is no partition, which one allocation must be
        for gpu in taken:
            cluster.drain(gpu)
    elif taken:
        cluster.allocate(_OTHERS, [gpu for gpu in taken if topology.gpus[gpu].healthy])
    return cluster
