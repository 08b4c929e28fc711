"""The waiting jobs that Slurm itself would start if they were not held, and on which nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil

from topoplace_hosts.slurm.client.jobs import SlurmJob, node_names
from topoplace_hosts.slurm.client.nodes import SlurmNode, SlurmNodes


def why_not_yet(job: SlurmJob, present: Collection[str], now: float) -> str | None:
    """Return why Slurm would not start the job now on any node; None if it may start.

    present: the ids of jobs in the queue, and of the arrays of tasks. Slurm notices a minute late that a held job's
    dependencies are finished, and never that they failed. A job whose dependencies have all left the queue is therefore
    decided; Slurm checks them again before the start.
    """
    if "(unfulfilled)" in job.dependency:
        ids = re.findall("[0-9]+", job.dependency)
        if not ids or any(one in present for one in ids):
            return "dependency"
    return "begin time" if job.eligible > now else None


def never_starts(job: SlurmJob) -> bool:
    """Return True if the job was released and depends on a failed job; Slurm then decides about it."""
    return job.reason == "DependencyNeverSatisfied"


@dataclass(frozen=True, slots=True)
class Needs:
    """A job's needs in Slurm's rules; jobs with equal needs may have the same nodes."""

    partitions: frozenset[str]
    reservation: str
    excluded: str
    features: str
    nodelist: str
    num_nodes: int
    cpus: int
    """CPUs on each node."""
    memory_mb: float


def needs_of(job: SlurmJob, nodelist: str, excluded: str) -> Needs:
    """Return what the job needs of its nodes. nodelist, excluded: nodes that its user requires and excludes."""
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
    """Return the nodes on which Slurm would start such jobs; None if a need is not understood here.

    taken_cpus: CPUs of each node for jobs that are about to start. The rules are: state, partition,
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
