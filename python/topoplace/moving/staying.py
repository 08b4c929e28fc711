"""`place` near to something where that costs nothing: to where a job was before, or to a running job."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.cluster.new_topology import new_numbers
from topoplace.engine.confined import confined
from topoplace.engine.machine_policy import placed_on
from topoplace.errors import SearchTimeoutError
from topoplace.moving.leaving import naming
from topoplace.moving.repair_search import RepairSearch
from topoplace.placement import Placement

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.deciding.least_time import LeastTime
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.moving.repair_search import Found
    from topoplace.topology.fabric import Level

_SECONDS: Final = 10.0
"""Limit on the search."""


def placed_again(job: JobGraph, cluster: Cluster, previous: Placement, policy: LeastTime) -> Placement | None:
    """Return the placement with the fewest moves that is as fast as that of the policy; None if the policy has none.

    Times within the policy's slack count as equal. Errors are those of `place`.
    """
    _checks.instance(previous, Placement, "previous", ValueError)
    policy.checked_view(job, cluster)
    if len(previous.gpus) != job.num_tasks:
        raise ValueError(f"previous: {len(previous.gpus)} GPUs for a job of {job.num_tasks} tasks")
    old = _now(previous, cluster)
    with naming("previous"):
        search = RepairSearch(job, old, cluster, time.monotonic() + _SECONDS, policy=policy)
    fresh = search.fresh
    if fresh is None:
        return None
    most = search.seconds(fresh.gpus) * (1 + policy.slack)
    for found in _in_time(search):
        if found.is_whole and found.seconds <= most:
            scores = {"communication_time": found.seconds}
            is_optimal = fresh.optimal and found.gpus == fresh.gpus
            return placed_on(
                job, found.gpus, cluster, scores, optimal=is_optimal, bound=fresh.bound, rates=policy.rates
            )
    return fresh


def _now(previous: Placement, cluster: Cluster) -> list[int]:
    """Return the present number of each former GPU; -1 for one that is gone."""
    if previous.topology is cluster.topology:
        return list(previous.gpus)
    now = new_numbers(previous.topology, cluster.topology)
    return [now.get(gpu, -1) for gpu in previous.gpus]


def _in_time(search: RepairSearch) -> list[Found]:
    """Return what the search finds, fewest moves first; nothing if its time is too short."""
    with suppress(SearchTimeoutError):
        return search.front()
    return []


def placed_beside(job: JobGraph, cluster: Cluster, beside: str, policy: LeastTime) -> Placement | None:
    """Return a placement as fast as that of the policy, near a running job; None if the policy has none.

    The policy decides among the machines of the running job, then in its domains, innermost level first. Times within
    the policy's slack count as equal.
    """
    policy.checked_view(job, cluster)
    _checks.text(beside, "beside", ValueError)
    topology = cluster.topology
    near = set(topology.machine_of[list(cluster.gpus_of(beside))].tolist())
    if not near:
        raise ValueError(f"beside = {beside!r}: no job of this id with GPUs runs")
    fresh = policy.place(job, cluster)
    if fresh is None:
        return None
    most = fresh.time * (1 + policy.slack) if job.edges else math.inf
    for machines in (near, *(_around(near, level) for level in topology.levels)):
        others = [name for i, name in enumerate(topology.machine_names) if i not in machines]
        found = confined(policy, others).place(job, cluster)
        if found and (not job.edges or found.time <= most):
            return found
    return fresh


def _around(machines: Collection[int], level: Level) -> set[int]:
    """Return the machines in the same domains of a level as some of these."""
    domains = {level.domains[machine] for machine in machines} - {None}
    return {i for i, domain in enumerate(level.domains) if domain in domains or i in machines}
