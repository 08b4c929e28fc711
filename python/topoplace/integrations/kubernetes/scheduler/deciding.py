"""One decision: nodes and GPUs for a pod, or for all pods of a group, by a policy; the policy knows no Kubernetes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from topoplace.engine.policy import Policy
from topoplace.errors import KubernetesError
from topoplace.integrations.kubernetes.objects.annotations import REQUEST, request_of
from topoplace.integrations.kubernetes.objects.pod import Pod
from topoplace.integrations.kubernetes.scheduler.allowed_rows import Mask
from topoplace.integrations.kubernetes.scheduler.cluster_state import ClusterState
from topoplace.integrations.requested_job import RequestedJob, too_slow
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Refusal


class Seat(NamedTuple):
    """Where a pod runs."""

    pod: Pod
    node: str
    gpus: tuple[int, ...]
    """GPUs of the topology in the order of tasks; () if it asks for none."""


Seats = tuple[Seat, ...]


def job_graph(pods: Sequence[Pod]) -> JobGraph:
    """Return the job that these pods are together; KubernetesError if their requests are not understood."""
    fields: dict[str, Any] = {"sensitive": True, **request_of(pods[0].annotations)}
    return (
        RequestedJob(**fields)
        .on_gpus(sum(pod.requests.gpus for pod in pods))
        .with_(single_machine=len(pods) == 1)
    )


def decide(policy: Policy, state: ClusterState, pods: Sequence[Pod]) -> Seats | Refusal:
    """Return where pods run that start together, or why they wait; the state is as before.

    A group whose pods ask for the same is first placed as one job. If the policy splits it inside a pod, or a node
    lacks something for its part, its pods are placed one after another.
    """
    wrong = next((f"{pod.name}: {pod.refused} cannot be honoured" for pod in pods if pod.refused), None)
    if wrong:
        return Refusal(wrong, permanent=True)
    try:
        if len(pods) == 1:
            return _seat(policy, state, pods[0])
        together = _together(policy, state, pods) if are_alike(state, pods) else None
        return together or _one_by_one(policy, state, pods)
    except KubernetesError as error:
        return Refusal(str(error), permanent=True)


def _seat(policy: Policy, state: ClusterState, pod: Pod) -> Seats | Refusal:
    mask = state.eligible(pod)
    if not mask.any():
        return _no_node(state, pod)
    if not pod.requests.gpus:
        return (Seat(pod, _for_no_gpu(state, mask), ()),)
    job = job_graph([pod])
    gpus = _placed(policy, state, job, mask, request_of(pod.annotations).get("min_bandwidth"))
    if isinstance(gpus, Refusal):
        return gpus
    return (Seat(pod, _node_of(state, gpus[0]), gpus),)


def _placed(
    policy: Policy, state: ClusterState, job: JobGraph, mask: Mask, min_bandwidth: float | None
) -> tuple[int, ...] | Refusal:
    """Return the GPUs of a job on the machines of the mask."""
    cluster = state.focus(mask)
    try:
        placement = policy.place(job, cluster)
    except ValueError as error:  # a requirement that this policy or this topology cannot honour
        return Refusal(str(error), permanent=True)
    if placement is None:
        free = int(cluster.num_free)
        return Refusal(
            f"{int(np.count_nonzero(mask))} nodes could run it, but none has the GPUs: {free} are free"
        )
    return too_slow(min_bandwidth, job, placement.gpus, cluster.topology) or placement.gpus


def _for_no_gpu(state: ClusterState, mask: Mask) -> str:
    """Return the node for a pod without GPUs: one that has none, or else one with the fewest free."""
    free = state.free_by_row()
    rows = np.flatnonzero(mask)
    row = int(rows[np.argmin(free[rows])])
    node = state.table.nodes[row]
    assert node is not None  # the mask has only rows of nodes
    return node.name


# ---- groups ------------------------------------------------------------------------------------------------------


def are_alike(state: ClusterState, pods: Sequence[Pod]) -> bool:
    """Return True if the same nodes can run each of these pods, and all get as many GPUs."""
    demands = {(one.requests, one.place, one.host_ports, one.annotations.get(REQUEST)) for one in pods}
    return len(demands) == 1 and bool(pods[0].requests.gpus) and not any(map(state.table.is_repelled, pods))


def _together(policy: Policy, state: ClusterState, pods: Sequence[Pod]) -> Seats | None:
    """Return the seats of equal pods, placed as one job; None if that is not possible."""
    first = pods[0]
    mask = state.eligible(first)
    asked = request_of(first.annotations)
    gpus = _placed(policy, state, job_graph(pods), mask, asked.get("min_bandwidth"))
    if isinstance(gpus, Refusal):
        return None
    seats = seats_of(state, pods, gpus)
    return seats if seats and has_room(state, seats) else None


def seats_of(state: ClusterState, pods: Sequence[Pod], gpus: Sequence[int]) -> Seats | None:
    """Return the seats of pods with as many GPUs each, whose GPUs these are in the order of tasks.

    None if a pod would have GPUs of two nodes.
    """
    each = pods[0].requests.gpus
    by_node: dict[str, list[int]] = {}
    for gpu in gpus:
        by_node.setdefault(_node_of(state, gpu), []).append(gpu)
    if any(len(own) % each for own in by_node.values()):
        return None
    parts = [
        (node, tuple(own[i : i + each])) for node, own in by_node.items() for i in range(0, len(own), each)
    ]
    return tuple([Seat(pod, node, own) for pod, (node, own) in zip(pods, parts, strict=True)])


def has_room(state: ClusterState, seats: Seats, ignored: str = "") -> bool:
    """Return True if each node has what its number of equal pods asks for. ignored: a resource that is not compared."""
    pod = seats[0].pod
    pods_on = Counter(seat.node for seat in seats)
    if pod.host_ports and max(pods_on.values()) > 1:
        return False
    rows = [state.table.row(node) for node in pods_on]
    counts = np.array(list(pods_on.values()), np.int64)
    return all(
        name == ignored or bool((state.table.left(name)[rows] >= counts * amount).all())
        for name, amount in pod.requests.amounts
    )


def _one_by_one(policy: Policy, state: ClusterState, pods: Sequence[Pod]) -> Seats | Refusal:
    """Return the seats of pods that are placed one after another."""
    if request_of(pods[0].annotations).get("within") or request_of(pods[0].annotations).get("min_bandwidth"):
        return Refusal("its pods do not fit together as they ask for")
    seats: list[Seat] = []
    with state.trial() as assumed:
        for pod in pods:
            found = _seat(policy, state, pod)
            if isinstance(found, Refusal):
                reason = f"{len(seats)} of {len(pods)} pods of the group fit; {pod.name}: {found.reason}"
                return Refusal(reason, permanent=found.permanent)
            seats += found
            assumed.append(state.assume(*found[0]))
    return tuple(seats)


# ---- words -------------------------------------------------------------------------------------------------------


def _node_of(state: ClusterState, gpu: int) -> str:
    return state.topology.machine_names[int(state.topology.machine_of[gpu])]


def _no_node(state: ClusterState, pod: Pod) -> Refusal:
    reasons = state.table.reasons(pod)
    listed = ", ".join(f"{number} {why}" for why, number in list(reasons.items())[:8])
    known = sum(node is not None for node in state.table.nodes)
    return Refusal(f"0 of {known} nodes: {listed or 'their GPUs are not known'}")
