"""What pods of a group ask for together: levels by node labels, as requirements of the job that the group forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from topoplace import _checks
from topoplace.errors import JobGraphError, KubernetesError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.fabric import Level
from topoplace.topology.topology import Topology
from topoplace_hosts.kubernetes.objects.annotations import GPUS, GROUP, GROUP_SIZE, request_of
from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.objects.topology_annotations import TopologyDemand, demands_of
from topoplace_hosts.kubernetes.scheduler.node_table import NodeTable
from topoplace_hosts.kubernetes.texts import level_labels

_TOGETHER: Final = ("within", "min_bandwidth", "groups", "balanced")
"""The fields of a request that apply to all pods of a group at once."""
_HOSTNAME: Final = "kubernetes.io/hostname"


def are_alike(table: NodeTable, pods: Sequence[Pod]) -> bool:
    """Return True if the same nodes can run each of these pods, and all get the same number of GPUs."""
    demands = {(one.requests, one.place, one.host_ports, _asked(one)) for one in pods}
    if len(demands) > 1 or not pods[0].requests.gpus or any(pod.claims for pod in pods):
        return False
    return not any(map(table.is_repelled, pods))


def _asked(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Return what the annotations of a pod ask for."""
    return tuple(sorted((name, value) for name, value in pod.annotations.items() if name != GPUS))


def asks_together(pod: Pod) -> bool:
    """Return True if a pod asks for something that only all pods of its group together can have."""
    asked = request_of(pod.annotations)
    return any(asked.get(name) for name in _TOGETHER) or any(one.is_required for one in _open(pod))


def check_single(pod: Pod) -> None:
    """Raise KubernetesError if a pod without a group demands to be with other pods."""
    if pod.group is None:
        refuse_together(pod, f"give its pods the labels {GROUP} and {GROUP_SIZE}")


def refuse_together(pod: Pod, why: str) -> None:
    """Raise KubernetesError if a pod that starts by itself demands to be with other pods."""
    for demand in _open(pod):
        if demand.is_required and demand.pods != 1:
            raise KubernetesError(f"{demand} of a pod that starts by itself cannot be honoured: {why}")


def of_one_pod(asked: Mapping[str, Any], num_gpus: int) -> dict[str, Any]:
    """Return the part of a group's request that applies to one of its pods: groups of tasks inside each pod."""
    found = {name: value for name, value in asked.items() if name != "balanced"}
    for name in ("groups", "prefer_groups"):
        found[name] = tuple(
            one
            for one in asked.get(name, ())
            if not isinstance(one.sizes, tuple) and num_gpus % one.sizes == 0
        )
    return found


def demanded(
    job: JobGraph, pods: Sequence[Pod], topology: Topology, nodes: Sequence[Node | None]
) -> JobGraph:
    """Return the job of equal pods with the demands of their annotations; a single pod always gets one node.

    nodes: the nodes of the topology's machines in order, then any others.
    """
    each = job.num_tasks // len(pods)
    for demand in _open(pods[0]):
        level = _level(demand, topology, nodes)
        if len(pods) == 1:
            continue
        if demand.is_required and demand.pods is None and level != MACHINE and job.within is None:
            job = job.with_(within=level)
            continue
        try:
            size = job.num_tasks if demand.pods is None else demand.pods * each
            # A group that is not in one domain is in few of the next level, as Kueue means it; `prefer` says less.
            job = job.grouped(size, **{"within" if demand.is_required else "prefer": level})
        except JobGraphError as error:
            raise KubernetesError(f"{demand}: {error}") from None
    return job


def _open(pod: Pod) -> Iterator[TopologyDemand]:
    """Yield what a pod demands and its node selector does not fulfil: Kueue writes there what it has decided itself."""
    chosen = {one.key for one in pod.place.selector}
    if _HOSTNAME not in chosen:
        yield from (one for one in demands_of(pod.annotations) if one.label not in chosen)


def _level(demand: TopologyDemand, topology: Topology, nodes: Sequence[Node | None]) -> str:
    """Return the level of a node label: by its name, else the level whose domains have different values of it each."""
    fabric = topology.fabric
    levels = [level for level in fabric.levels if not level.rail] if fabric else []
    known = [MACHINE, *(level.name for level in levels)]
    if named := next((name for name in level_labels.names_of(demand.label) if name in known), None):
        return named
    own = nodes[: len(topology.machine_names)]
    values = [node.labels.get(demand.label) if node else None for node in own]
    if alike := next((level.name for level in levels if _divides_alike(level, values)), None):
        return alike
    names = ", ".join(map(_checks.shown, known))
    raise KubernetesError(f"{demand} is the label of no level of the topology; it has {names}")


def _divides_alike(level: Level, values: Sequence[str | None]) -> bool:
    """Return True if the domains of a level are those of a label, whose values these are by machine."""
    pairs = {pair for pair in zip(level.domains, values, strict=True) if pair[1] is not None}
    domains, labels = {domain for domain, _ in pairs}, {value for _, value in pairs}
    return bool(pairs) and len(pairs) == len(domains) == len(labels) and None not in domains
