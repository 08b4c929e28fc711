"""Choose pods of lower priority that have to end so that others can start, and seats for these others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from topoplace.engine.policy import Policy
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.room import make_room
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.allowed_rows import MachineMask
from topoplace_hosts.kubernetes.scheduler.cluster_state import ClusterState
from topoplace_hosts.kubernetes.scheduler.deciding import has_room, seats_of
from topoplace_hosts.kubernetes.scheduler.demands import are_alike
from topoplace_hosts.kubernetes.scheduler.replacing import beside
from topoplace_hosts.kubernetes.scheduler.seats import Seats, job_graph

_TIMEOUT_S = 1.0
_MOST_FACTOR = 1e6


def may_make_room(state: ClusterState, pods: Sequence[Pod]) -> bool:
    """Return True if, by a quick check, pods of lower priority hold GPUs that these pods could use."""
    priority = min(pod.priority for pod in pods)
    return (
        pods[0].may_preempt
        and min(+state.priorities, default=priority) < priority
        and are_alike(state.table, pods)
    )


def room_for(
    policy: Policy, state: ClusterState, pods: Sequence[Pod], rest: Sequence[Pod] = ()
) -> tuple[Seats, tuple[Pod, ...]] | None:
    """Return seats for pods that start together, and the pods that have to end before; None if that is not possible.

    Only pods of this scheduler with a lower priority end, and the cheapest of them. The cost of a pod grows with its
    GPUs and its priority. A seat has enough CPUs and memory before any pod ends. rest: as for `decide`.
    """
    first = pods[0]
    priority = min(pod.priority for pod in pods)
    if not may_make_room(state, pods):
        return None
    lower = {
        pod.job_id: pod
        for pod in state.pods.values()
        if pod.priority < priority and _may_end(state, pod, first.scheduler)
    }
    if not lower:
        return None
    mask = state.eligible_but_for_gpus(first)
    if rest:
        mask = MachineMask(mask & beside(state, first, rest))
    with state.all_open(mask) as cluster:
        plan = make_room(
            job_graph(state, pods),
            cluster,
            movable=tuple(lower),
            cost=_costs(lower),
            policy=policy,
            job_id="waiting",
            timeout=_TIMEOUT_S,
        )
    if not plan.start or not plan.preempt:
        return None
    seats = seats_of(state, pods, plan.start[0][1].gpus)
    if seats is None or not has_room(state, seats, ignored=state.gpu_resource):
        return None
    return seats, tuple(lower[job_id] for job_id in plan.preempt)


def _may_end(state: ClusterState, pod: Pod, scheduler: str) -> bool:
    """Return True if a pod is ours, holds GPUs that are known, and does not end already."""
    return pod.scheduler == scheduler and not pod.deleting and bool(state.cluster.gpus_of(pod.job_id))


def _costs(lower: Mapping[str, Pod]) -> MoveCosts:
    """Return what it costs to end pods: twice as much per GPU for each higher priority among them; none moves."""
    ranks = {value: rank for rank, value in enumerate(sorted({pod.priority for pod in lower.values()}))}
    factors = {job_id: min(2.0 ** ranks[pod.priority], _MOST_FACTOR) for job_id, pod in lower.items()}
    return MoveCosts(move=math.inf, factors=factors)
