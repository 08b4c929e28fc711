"""One decision: a policy places a job on the nodes where Slurm would start it, and the answer becomes orders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import QueuedJob
from topoplace.engine.policy import Policy
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Placement, Refusal
from topoplace.topology.topology import Topology
from topoplace_hosts.requested_job import too_slow
from topoplace_hosts.slurm.placer.machines import Where, where_of
from topoplace_hosts.slurm.request import BLOCK, SlurmRequest

_CANDIDATES = 20
_MOST_TRIES = 8
"""Limit on repeated decisions when a policy wants different GPUs on the nodes of a job."""
_BLOCKS = re.compile(rf"{BLOCK}|blocks_[0-9]+")
_NO_BLOCKS = (
    "segment = {} cannot be honoured: the topology has no level of blocks; give `topoplace show` Slurm's "
    "topology.conf, too"
)
_STILL_ASKED = Refusal("Slurm still asks for GPUs of an earlier order, and they are busy")


@dataclass(frozen=True, slots=True)
class JobDecision:
    """A placement, and the same place as nodes and device numbers of Slurm."""

    placement: Placement
    where: Where
    graph: JobGraph


def decide(
    policy: Policy,
    cluster: Cluster,
    request: SlurmRequest,
    nodes: Collection[str],
    *,
    kept: Sequence[int] = (),
    now: float = 0.0,
) -> JobDecision | Refusal:
    """Return where a job starts, or why it waits or cannot be expressed.

    nodes: those on which Slurm would start the job. kept: device numbers that must be free, or the job's own, on each
    of its nodes. Slurm before 23.02.6 keeps requesting devices that were once ordered. The cluster is not changed.
    """
    blocks = _blocks(cluster.topology, request.segment) if request.segment else BLOCK
    if blocks is None:
        return Refusal(_NO_BLOCKS.format(request.segment), permanent=True)
    gangs = request.nodes > 1
    graph = request.job_graph(same_gpus=gangs and _honours_same_gpus(policy, cluster), blocks=blocks)
    asked = _Asked(policy, request, graph, now)
    with cluster.what_if() as state:
        for machine in cluster.topology.machine_names:
            if machine not in nodes:
                state.drain(machine)
        found = _expressed(asked, state, kept)
    if not isinstance(found, str):
        return found
    return Refusal(found, permanent=_is_never_expressed(asked, cluster))


class _Asked(NamedTuple):
    """One job and who decides about it."""

    policy: Policy
    request: SlurmRequest
    graph: JobGraph
    now: float


def _is_never_expressed(asked: _Asked, cluster: Cluster) -> bool:
    """Return True if Slurm cannot express what the policy wants even where all nodes are idle and in service."""
    with cluster.what_if() as idle:
        for job_id in idle.allocations:
            idle.release(job_id)
        for machine in idle.topology.machine_names:
            idle.undrain(machine)
        return isinstance(_expressed(asked, idle), str)


def _expressed(asked: _Asked, state: Cluster, kept: Sequence[int] = ()) -> JobDecision | Refusal | str:
    """Return where a job starts, or why it waits; a text says why Slurm cannot express what the policy wants.

    If the policy wants different GPUs of several nodes, it is asked again with only equal ones of each.
    """
    found = _found(asked, state, kept)
    if isinstance(found, Refusal):
        return found
    told = _in_slurms_words(found, asked)
    if not isinstance(told, str) or asked.request.nodes == 1:
        return told
    for numbers in _equal_numbers(found, asked.request.gpus, state):
        with state.what_if() as equal:
            equal.hold([gpu for gpu, own in enumerate(state.topology.local_index) if own not in numbers])
            other = _found(asked, equal, kept)
        answer = other if isinstance(other, Refusal) else _in_slurms_words(other, asked)
        if isinstance(answer, JobDecision):
            return answer
    return told


def _equal_numbers(found: Placement, gpus: int, state: Cluster) -> list[frozenset[int]]:
    """Return sets of `gpus` device numbers that equal ones of several nodes may have, the most promising first.

    They are those that the policy wants on one of the nodes, and those that are free on the most nodes.
    """
    local = state.topology.local_index
    wanted = [found.gpus[first : first + gpus] for first in range(0, len(found.gpus), gpus)]
    free = Counter(local[gpu] for gpu in state.free_gpus())
    often = sorted(free, key=lambda number: (-free[number], number))[:gpus]
    sets = [frozenset(often), *(frozenset(local[gpu] for gpu in own) for own in wanted)]
    return [one for one in dict.fromkeys(sets) if len(one) == gpus][:_MOST_TRIES]


def _found(asked: _Asked, state: Cluster, kept: Sequence[int]) -> Placement | Refusal:
    """Return the policy's placement, or the best one that leaves devices free that Slurm goes on to ask for."""
    found = _placed(asked.policy, state, asked.graph, asked.now)
    if not kept or isinstance(found, Refusal) or _keeps(found, state, kept):
        return found
    candidates = asked.policy.explain(asked.graph, state, top=_CANDIDATES).candidates
    return next((one for one in candidates if _keeps(one, state, kept)), _STILL_ASKED)


def _in_slurms_words(found: Placement, asked: _Asked) -> JobDecision | Refusal | str:
    """Return the placement as nodes and devices, a refusal if its links are too slow.

    A text says why Slurm cannot express it.
    """
    request, topology = asked.request, found.topology
    where = where_of(topology, found.gpus)
    if isinstance(where, str):
        return where
    if len(where.nodes) != request.nodes:
        return f"the policy wants {len(where.nodes)} nodes, and the job has asked Slurm for {request.nodes}"
    slow = too_slow(request.min_bandwidth, asked.graph, found.gpus, topology)
    return slow or JobDecision(found, where, asked.graph)


def _placed(policy: Policy, state: Cluster, graph: JobGraph, now: float) -> Placement | Refusal:
    plan = policy.plan([QueuedJob("job", graph, now)], state, now)
    for _, placement in plan.start:
        return placement
    for _, refusal in (*plan.reject, *plan.defer):
        return refusal
    explained = policy.explain(graph, state, top=1).refusal if graph.groups else None
    return Refusal(explained.reason if explained else "the policy lets it wait")


def _blocks(topology: Topology, segment: int) -> str | None:
    """Return the level of the smallest blocks of which one can have a segment; None without blocks.

    Larger blocks are those that Slurm joins. Slurm plans segments that no block can have in them.
    """
    levels = topology.fabric.levels if topology.fabric else ()
    blocks = [level for level in levels if _BLOCKS.fullmatch(level.name)]
    large = [one for one in blocks if max(Counter(filter(None, one.domains)).values(), default=0) >= segment]
    return next((one.name for one in (*large, *blocks)), None)


def _honours_same_gpus(policy: Policy, cluster: Cluster) -> bool:
    honoured_on = getattr(policy, "honoured_on", None)
    return honoured_on is not None and "same_gpus" in honoured_on(cluster)


def _keeps(placement: Placement, state: Cluster, kept: Sequence[int]) -> bool:
    """Return True if the devices `kept` are free or the placement's on each of its machines."""
    topology = placement.topology
    own = set(placement.gpus)
    return all(
        number >= len(gpus) or gpus[number] in own or state.owner(gpus[number]) is None
        for gpus in (topology.gpus_of[node] for node in {topology.gpus[gpu].machine for gpu in own})
        for number in kept
    )
