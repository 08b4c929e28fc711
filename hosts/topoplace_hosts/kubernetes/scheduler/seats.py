"""The seat of a pod, the job for which a policy finds it, and the policy's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.errors import JobGraphError, KubernetesError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.domains import in_whole_domains
from topoplace.placement import Refusal
from topoplace.topology.topology import Topology
from topoplace_hosts.kubernetes.claims.allocation_json import Planned
from topoplace_hosts.kubernetes.objects.annotations import request_of
from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.allowed_rows import Mask
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.demands import demanded, of_one_pod
from topoplace_hosts.requested_job import RequestedJob, too_slow


class Seat(NamedTuple):
    """The node, GPUs and claims with which a pod runs."""

    pod: Pod
    node: str
    gpus: tuple[int, ...]
    """GPUs of the topology in task order; () if the pod asks for none."""
    claims: tuple[Planned, ...] = ()
    """The claims of the pod, with their allocations."""


Seats = tuple[Seat, ...]


def job_graph(state: ClusterState, pods: Sequence[Pod], num_gpus: int | None = None) -> JobGraph:
    """Return the job that these pods form together; KubernetesError for an invalid request.

    num_gpus: the number of its GPUs; by default what the containers ask for.
    """
    return job_on(state.topology, state.table.nodes, pods, num_gpus)


def job_on(
    topology: Topology, nodes: Sequence[Node | None], pods: Sequence[Pod], num_gpus: int | None = None
) -> JobGraph:
    """Return the job as `job_graph` does, for a topology whose machines are these nodes, in their order."""
    count = sum(pod.requests.gpus for pod in pods) if num_gpus is None else num_gpus
    asked = request_of(pods[0].annotations)
    if len(pods) == 1 and pods[0].group is not None:
        asked = of_one_pod(asked, count)
    fields: dict[str, Any] = {"sensitive": True, **asked}
    try:
        job = RequestedJob(**fields).on_gpus(count).with_(single_machine=len(pods) == 1)
        job = demanded(job, pods, topology, nodes)
        if len(pods) == 1:
            return job
        return job.grouped(count // len(pods), within=MACHINE) if job.groups or job.balanced else job
    except JobGraphError as error:
        raise KubernetesError(str(error)) from None


def placed(
    policy: Policy, cluster: Cluster, job: JobGraph, num_nodes: int, min_bandwidth: float | None
) -> tuple[int, ...] | Refusal:
    """Return the GPUs that the policy gives a job, or why it waits; the reason names the limit `num_nodes`."""
    try:
        placement = policy.place(job, cluster)
    except ValueError as error:  # a requirement that this policy or this topology cannot honour
        return Refusal(str(error), permanent=True)
    if placement is None:
        if (job.groups or job.within) and (refusal := policy.explain(job, cluster, top=1).refusal):
            return Refusal(refusal.reason)
        free = int(cluster.num_free)
        return Refusal(f"{num_nodes} nodes could run it, but none has the GPUs: {free} are free")
    return too_slow(min_bandwidth, job, placement.gpus, cluster.topology) or placement.gpus


def for_no_gpu(state: ClusterState, mask: Mask) -> str:
    """Return the name of the node for a pod without GPUs: preferably one without GPUs.

    Of other nodes, those that break no idle domain come first, outer levels before inner ones, then the one with the
    fewest free GPUs.
    """
    free, topology = state.free_by_row(), state.topology
    whole = free[: topology.num_machines] == np.bincount(topology.machine_of, minlength=topology.num_machines)
    broken = np.zeros((len(topology.levels), len(free)), bool)
    for i, level in enumerate(reversed(topology.levels)):
        broken[i, : topology.num_machines] = in_whole_domains(level.codes, whole)
    rows = np.flatnonzero(mask)
    row = int(rows[np.lexsort([free[rows], *reversed(broken[:, rows])])[0]])
    node = state.table.nodes[row]
    assert node is not None  # the mask has only rows of nodes
    return node.name


def node_of(state: ClusterState, gpu: int) -> str:
    """Return the name of the node that has a GPU."""
    return state.topology.machine_names[int(state.topology.machine_of[gpu])]


def no_node(state: ClusterState, pod: Pod, others: Mapping[str, int] = MappingProxyType({})) -> Refusal:
    """Return why no node can run a pod. others: the number of nodes for each reason of another kind."""
    reasons = {**state.table.reasons(pod), **others}
    known = sum(node is not None for node in state.table.nodes)
    rest = known - sum(reasons.values())
    shown = [*list(reasons.items())[:8], *([("GPUs not known", rest)] if reasons and rest > 0 else [])]
    listed = ", ".join(f"{number} {why}" for why, number in shown)
    return Refusal(f"0 of {known} nodes: {listed or 'their GPUs are not known'}")
