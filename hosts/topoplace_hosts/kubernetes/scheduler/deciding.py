"""One decision: nodes and GPUs for a pod or a group, by a policy that knows nothing of Kubernetes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topoplace.cluster.cluster import Cluster
from topoplace.engine.driver import PolicyDriver
from topoplace.engine.policy import Policy
from topoplace.errors import KubernetesError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Refusal
from topoplace_hosts.kubernetes.claims.selecting import NotYetError
from topoplace_hosts.kubernetes.objects.annotations import request_of
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.claiming.placing import seat_with_claims
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.demands import are_alike, asks_together, check_single
from topoplace_hosts.kubernetes.scheduler.replacing import seat_beside
from topoplace_hosts.kubernetes.scheduler.seats import (
    Seat,
    Seats,
    for_no_gpu,
    job_graph,
    no_node,
    node_of,
    placed,
)

_NOT_TOGETHER = Refusal("its pods do not fit together as they ask for")
_NOT_ALIKE = Refusal(
    "its pods do not all ask for the same, or others keep them away: they cannot be kept together"
)


@dataclass(frozen=True)
class Postponed(Refusal):
    """Why pods wait for certain nodes, although others have room."""

    seconds: float = math.inf
    """Seconds until they take other nodes."""


def decide(
    policy: Policy,
    state: ClusterState,
    pods: Sequence[Pod],
    waited_s: float = math.inf,
    rest: Sequence[Pod] = (),
) -> Seats | Refusal:
    """Return where pods that start together run, or why they wait; the state does not change.

    A group of equal pods is first placed as one job. If that splits a pod, or a node lacks room, pods that do not ask
    to be together are placed one after another. NotYetError if a selector has to be evaluated later. waited_s: seconds
    that the pods have waited; the answer is `Postponed` if the policy lets a group wait longer for one node. rest: if
    the group of a pod has started, all pods of it that wait; the pod then goes where the one that it replaces was, or
    where `repair` says.
    """
    wrong = next((f"{pod.name}: {pod.refused} cannot be honoured" for pod in pods if pod.refused), None)
    if wrong:
        return Refusal(wrong, permanent=True)
    try:
        if len(pods) == 1:
            found = seat_beside(policy, state, pods[0], rest) if rest else None
            return _seat(policy, state, pods[0]) if found is None else found
        together = _together(policy, state, pods, waited_s) if are_alike(state.table, pods) else _NOT_ALIKE
        may_part = isinstance(together, Refusal) and not isinstance(together, Postponed)
        if may_part and not any(map(asks_together, pods)):
            return _one_by_one(policy, state, pods)
        return together
    except NotYetError:
        raise
    except KubernetesError as error:
        return Refusal(str(error), permanent=True)


def _seat(policy: Policy, state: ClusterState, pod: Pod) -> Seats | Refusal:
    if pod.claims:
        return seat_with_claims(policy, state, pod)
    if not pod.requests.gpus:
        rows = state.eligible(pod)
        return (Seat(pod, for_no_gpu(state, rows), ()),) if rows.any() else no_node(state, pod)
    mask = state.eligible_machines(pod)
    if not mask.any():
        return no_node(state, pod)
    check_single(pod)
    job = job_graph(state, [pod])
    asked = request_of(pod.annotations)
    num_nodes = int(np.count_nonzero(mask))
    gpus = placed(policy, state.focus(mask), job, num_nodes, asked.get("min_bandwidth"))
    if isinstance(gpus, Refusal):
        return gpus
    return (Seat(pod, node_of(state, gpus[0]), gpus),)


# ---- groups ------------------------------------------------------------------------------------------------------


def _together(policy: Policy, state: ClusterState, pods: Sequence[Pod], waited_s: float) -> Seats | Refusal:
    """Return the seats of equal pods, placed as one job, or why that is not possible."""
    first = pods[0]
    mask = state.eligible_machines(first)
    asked = request_of(first.annotations)
    num_nodes = int(np.count_nonzero(mask))
    job, cluster = job_graph(state, pods), state.focus(mask)
    least = asked.get("min_bandwidth")
    awaited = _on_awaited(policy, cluster, job, waited_s) if least is None else None
    gpus = placed(policy, cluster, job, num_nodes, least) if awaited is None else awaited
    if isinstance(gpus, Refusal):
        return gpus
    if not _are_whole(state, gpus, first.requests.gpus) and not job.groups:
        whole = job.grouped(first.requests.gpus, within=MACHINE)
        other = placed(policy, cluster, whole, num_nodes, asked.get("min_bandwidth"))
        gpus = gpus if isinstance(other, Refusal) else other
    seats = seats_of(state, pods, gpus)
    return seats if seats and has_room(state, seats) else _NOT_TOGETHER


def _on_awaited(
    policy: Policy, cluster: Cluster, job: JobGraph, waited_s: float
) -> tuple[int, ...] | Postponed | None:
    """Return the GPUs for which the policy lets a job wait, or that it waits on; None if it waits for none."""
    if not isinstance(policy, PolicyDriver) or (limited := policy.awaited(job, cluster)) is job:
        return None
    placement = policy.place(limited, cluster)
    if placement is not None:
        return placement.gpus
    left = policy.patience(job, cluster, math.nan) - waited_s
    if left <= 0:
        placement = policy.place(job, cluster)
        if placement is None:
            return None
        left = policy.patience(job, cluster, math.nan, placement) - waited_s
    if left <= 0:
        assert placement is not None
        return placement.gpus
    return Postponed(policy.why_awaits(job, cluster, placement).reason, seconds=left)


def _are_whole(state: ClusterState, gpus: Sequence[int], each: int) -> bool:
    """Return True if the tasks of each pod, `each` of them, are on one node."""
    own = (gpus[first : first + each] for first in range(0, len(gpus), each))
    return all(len({node_of(state, gpu) for gpu in one}) == 1 for one in own)


def seats_of(state: ClusterState, pods: Sequence[Pod], gpus: Sequence[int]) -> Seats | None:
    """Return the seats of pods with the same number of GPUs each; gpus: their GPUs in task order.

    Each pod gets its own tasks. If a pod's tasks are on two nodes, the tasks of each node are divided among pods
    instead. None if a pod would still have GPUs of two nodes.
    """
    each = pods[0].requests.gpus
    if _are_whole(state, gpus, each):
        own_tasks = [(pod, gpus[i * each : (i + 1) * each]) for i, pod in enumerate(pods)]
        return tuple([Seat(pod, node_of(state, own[0]), tuple(own)) for pod, own in own_tasks])
    by_node: dict[str, list[int]] = {}
    for gpu in gpus:
        by_node.setdefault(node_of(state, gpu), []).append(gpu)
    if any(len(own) % each for own in by_node.values()):
        return None
    parts = [
        (node, tuple(own[i : i + each])) for node, own in by_node.items() for i in range(0, len(own), each)
    ]
    return tuple([Seat(pod, node, own) for pod, (node, own) in zip(pods, parts, strict=True)])


def has_room(state: ClusterState, seats: Seats, ignored: str = "") -> bool:
    """Return True if each node has enough for the equal pods that sit there. ignored: a resource not compared."""
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
