"""One walk along a queue: what starts, what is deferred, what never fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.placement import Deferred
from topoplace.policies.occupancy import Occupancy

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.policies.base import QueuedJob
    from topoplace.policies.kinds import Kind
    from topoplace.policies.machine_policy import MachinePolicy


class QueueWalk:
    """One walk along a queue, on the trial of a cluster."""

    def __init__(self, policy: MachinePolicy, state: Cluster) -> None:
        self.policy = policy
        self.state = state
        self.occupancy = state.view(Occupancy)
        self.start: list[tuple[str, Placement]] = []
        self.defer: list[tuple[str, Deferred]] = []
        self.reject: list[tuple[str, Deferred]] = []
        self._free = state.num_free
        self._all = state.topology.num_gpus
        self._failed: dict[Kind, tuple[float, float | None]] = {}

    def visit(self, entry: QueuedJob) -> bool:
        """Start, defer or reject a job, or none of these; whether the next ones may still start."""
        job, policy = entry.job, self.policy
        if self._free < job.num_tasks <= self._all:
            return self._blocked(entry)
        kind = self.occupancy.kind(job)
        least = policy.least_utility(job, entry.postponed)
        known = self._failed.get(kind)
        if known is None or least < known[0]:  # to have started others makes no room for this kind
            placement = policy.search(job, self.occupancy, least)
            if placement is not None:
                self.start.append((entry.job_id, placement))
                self.state.allocate(entry.job_id, placement)
                self._free -= job.num_tasks
                return self._free > 0
            if never := policy.never(job, self.occupancy):
                self.reject.append((entry.job_id, never))
                return True
            known = self._failed[kind] = (least, policy.refused_utility(job, self.occupancy, least))
        if known[1] is not None:
            self.defer.append((entry.job_id, too_low(job, known[1])))
        return policy.out_of_order

    def _blocked(self, entry: QueuedJob) -> bool:
        """Whether others may start behind a job that has too few GPUs; one that never fits is out of the way."""
        if self.policy.out_of_order:
            return self._free > 0
        never = self.policy.never(entry.job, self.occupancy)
        if never:
            self.reject.append((entry.job_id, never))
        return never is not None


def too_low(job: JobGraph, utility: float) -> Deferred:
    """Why a job waits."""
    return Deferred(f"postponed: its utility would be {utility:.3f} now, {job.min_utility:g} is asked for")
