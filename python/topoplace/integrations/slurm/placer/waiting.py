"""Which waiting jobs Slurm itself would start, were they not held, and on which nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil

from topoplace.integrations.slurm.client.jobs import SlurmJob, node_names
from topoplace.integrations.slurm.client.nodes import SlurmNode, SlurmNodes


def why_not_yet(job: SlurmJob, present: Collection[str], now: float) -> str | None:
    """Return why Slurm would not start the job now wherever it is; None if it may.

    present: the ids of jobs in the queue, for tasks those of their arrays. Slurm notices a minute late that what a held
    job depends on has ended, and never that it has failed. So a job whose dependencies have all left the queue is
    decided; Slurm looks at them again before it starts it.
    """
    if "(unfulfilled)" in job.dependency:
        ids = re.findall("[0-9]+", job.dependency)
        if not ids or any(one in present for one in ids):
            return "dependency"
    return "begin time" if job.eligible > now else None


def never_starts(job: SlurmJob) -> bool:
    """Return True if the job was released, and depends on what has failed; Slurm decides what becomes of it."""
    return job.reason == "DependencyNeverSatisfied"


@dataclass(frozen=True, slots=True)
class Needs:
    """What Slurm's rules need to know of a job; equal for jobs that may have the same nodes."""

    partitions: frozenset[str]
    reservation: str
    excluded: str
    features: str
    nodelist: str
    num_nodes: int
    cpus: int
    """On each node."""
    memory_mb: float


def needs_of(job: SlurmJob, nodelist: str, excluded: str) -> Needs:
    """Return what the job needs of its nodes. nodelist, excluded: the nodes that its user wants, and does not want."""
    return Needs(
        frozenset(job.partition.split(",")),
        job.reservation,
        excluded,
        job.features,
        nodelist,
        job.num_nodes,
        ceil(job.cpus / job.num_nodes),
        job.memory_mb,
    )


def admissible(needs: Needs, nodes: SlurmNodes, taken_cpus: Mapping[str, int]) -> frozenset[str] | None:
    """Return the nodes on which Slurm would start such jobs; None if they need what is not understood here.

    taken_cpus: CPUs of each node that jobs will have that are about to start. The rules are: state, partition,
    reservation, requested and excluded nodes, features, idle CPUs, free memory.
    """
    required = frozenset(node_names(needs.nodelist))
    if any(sign in needs.features for sign in "|[]*()") or (required and len(required) != needs.num_nodes):
        return None
    wanted = frozenset(filter(None, needs.features.split("&")))
    excluded = frozenset(node_names(needs.excluded))

    def suits(node: SlurmNode) -> bool:
        return (
            node.usable
            and not node.partitions.isdisjoint(needs.partitions)
            and node.name not in excluded
            and wanted <= node.features
            and node.idle_cpus - taken_cpus.get(node.name, 0) >= needs.cpus
            and node.free_mb >= needs.memory_mb
        )

    inside = required.intersection(nodes.nodes) or _inside(needs.reservation, nodes)
    return frozenset(name for name in inside if suits(nodes.nodes[name]))


def _inside(reservation: str, nodes: SlurmNodes) -> frozenset[str]:
    """Return the nodes of an active reservation, of several with commas between, or those that are in none."""
    if not reservation:
        return frozenset(nodes.nodes) - nodes.reserved
    listed = (nodes.reservations.get(name, frozenset[str]()) for name in reservation.split(","))
    return frozenset[str]().union(*listed) & nodes.nodes.keys()
