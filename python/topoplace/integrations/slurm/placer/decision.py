"""One decision: a policy places a job on the nodes where Slurm would start it; the answer in Slurm's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from topoplace.cluster.cluster import Cluster
from topoplace.engine.plan import QueuedJob
from topoplace.engine.policy import Policy
from topoplace.integrations.requested_job import too_slow
from topoplace.integrations.slurm.placer.machines import Where, where_of
from topoplace.integrations.slurm.request import BLOCK, SlurmRequest
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Placement, Refusal
from topoplace.topology.topology import Topology

_CANDIDATES = 20
_BLOCKS = re.compile(rf"{BLOCK}|blocks_[0-9]+")
_NO_BLOCKS = (
    "segment = {} cannot be honoured: the topology has no level of blocks; give `topoplace discover` Slurm's "
    "topology.conf, too"
)
_STILL_ASKED = Refusal("Slurm still asks for GPUs of an earlier order, and they are busy")


@dataclass(frozen=True, slots=True)
class JobDecision:
    """A placement, and where it is in Slurm's words."""

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

    nodes: those on which Slurm would start it. kept: device numbers that must be free, or the job's, on each of its
    nodes: versions of Slurm before 23.02.6 go on to ask for devices that were once ordered. The cluster is not changed.
    """
    blocks = _blocks(cluster.topology, request.segment) if request.segment else BLOCK
    if blocks is None:
        return Refusal(_NO_BLOCKS.format(request.segment), permanent=True)
    gangs = request.nodes > 1
    graph = request.job_graph(same_gpus=gangs and _honours_same_gpus(policy, cluster), blocks=blocks)
    with cluster.what_if() as state:
        for machine in cluster.topology.machine_names:
            if machine not in nodes:
                state.drain(machine)
        found = _placed(policy, state, graph, now)
        if kept and isinstance(found, Placement) and not _keeps(found, state, kept):
            candidates = policy.explain(graph, state, top=_CANDIDATES).candidates
            found = next((one for one in candidates if _keeps(one, state, kept)), _STILL_ASKED)
    return found if isinstance(found, Refusal) else _in_slurms_words(found, graph, request, cluster)


def _in_slurms_words(
    found: Placement, graph: JobGraph, request: SlurmRequest, cluster: Cluster
) -> JobDecision | Refusal:
    """Return the placement as nodes and devices; a refusal if Slurm cannot express it, or its links are too slow."""
    where = where_of(cluster.topology, found.gpus)
    if isinstance(where, str):
        return Refusal(where, permanent=True)
    if len(where.nodes) != request.nodes:
        reason = f"the policy wants {len(where.nodes)} nodes, and the job has asked Slurm for {request.nodes}"
        return Refusal(reason, permanent=True)
    slow = too_slow(request.min_bandwidth, graph, found.gpus, cluster.topology)
    return slow or JobDecision(found, where, graph)


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
