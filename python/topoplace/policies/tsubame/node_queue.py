"""The base of both queues: a walk along the queue that starts every job with room."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.cluster import Cluster
from topoplace.engine.admission import never, why_never, why_not_now
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import Explanation, Plan, QueuedJob, different_gpu_sets
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.jobgraph import JobGraph
from topoplace.objectives.links import link_scores
from topoplace.placement import Placement, Refusal
from topoplace.policies.tsubame.borrowing import take_nodes
from topoplace.policies.tsubame.node_needs import NodeNeeds, QueueMemory

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.engine.request import JobRequest
    from topoplace.policies.tsubame.node_needs import Refused


class NodeQueue(ABC):
    """The common part of both queues. Placements name a process per node in `hosts`, and borrowed GPUs in `remote`.

    A node takes one process of a job, with its share of CPUs and memory where the cluster knows them. Jobs without
    GPUs (`JobGraph.without_gpus`) get a node like any other; drives are not given, and a job that asks for some, or
    whose GPUs do not divide evenly by its nodes, is rejected. Scores: those of the links between its tasks, and
    `remote_gpus`, the number of borrowed GPUs.
    """

    name: str

    @abstractmethod
    def choose(self, needs: NodeNeeds, free: FreeResources) -> Ints | None:
        """Return the machines for the nodes of a request, in their order; None where there are not enough."""

    @abstractmethod
    def cannot_fit_by_count(self, needs: NodeNeeds, free: FreeResources) -> bool:
        """Return whether counting alone shows that a request has no place."""

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return where the job would start now; None where it has to wait."""
        return next(self._choices(job, cluster), None)

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return the choice of `place`, then those without its machines; the reason where there is none."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        if found := different_gpu_sets(self._choices(job, cluster), top):
            return Explanation(self.name, found)
        view = cluster.view(ClusterView)
        request = view.request(job)
        wishes = f"{self._needs(request, view).wishes()} needed"
        return Explanation(self.name, (), self.why_never(request, view) or why_not_now(job, cluster, wishes))

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start all that have room, from the head on; reject those that never will."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = checked_queue(queue)
        view = cluster.view(ClusterView)
        free = view.columns.free()
        refused = view.table((QueueMemory, self.name), QueueMemory).refused(free)

        def decide(entry: QueuedJob) -> Outcome:
            request = view.request(entry.job)
            outcome = self.why_never(request, view) or self._start(entry.job, request, view, free, refused)
            if outcome is None:
                refused.jobs[id(entry.job)] = entry.job
            return outcome

        return walk(
            (entry for entry in entries if id(entry.job) not in refused.jobs), decide, head_blocks=False
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # ---- inside --------------------------------------------------------------------------------------------

    def why_never(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why such a job could not run even on the idle cluster; None where it may."""
        return request.table(
            (self.name, "never"),
            lambda: self._why_never(self._needs(request, view), view.columns.idle()),
        )

    def _why_never(self, needs: NodeNeeds, idle: FreeResources) -> Refusal | None:
        job = needs.job
        if job.drives:
            return never(f"{job.drives} drives needed, and this policy gives none")
        if not needs.uneven and self.choose(needs, idle) is not None:
            return None
        if job.num_tasks and (reason := why_never(job, idle.columns.topology)):
            return reason
        if needs.uneven:
            return never(f"{job.num_tasks} GPUs are not as many for each of {needs.nodes} nodes")
        return never(f"{needs.wishes()} needed, and the idle cluster has not so many")

    def _needs(self, request: JobRequest, view: ClusterView) -> NodeNeeds:
        columns = view.columns.fixed
        return request.table(NodeNeeds, lambda: NodeNeeds(request.job, columns))

    def _choices(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement]:
        """Yield the first placement, the one on none of its machines, and so on."""
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        view = cluster.view(ClusterView)
        needs, used = self._needs(view.request(job), view), list[int]()
        while True:
            free = view.columns.free()
            free.hosts[used] = -1
            placement = self._find(job, needs, free)
            if placement is None:
                return
            yield placement
            used += (share.machine for share in placement.hosts)

    def _start(
        self, job: JobGraph, request: JobRequest, view: ClusterView, free: FreeResources, refused: Refused
    ) -> Placement | None:
        """As `_find`, where the needs are not known to have no place; if they have none, that is known from now on."""
        needs = self._needs(request, view)
        if needs in refused.known:
            return None
        if self.cannot_fit_by_count(needs, free) or refused.covers(needs):
            refused.known.add(needs)
            return None
        placement = self._find(job, needs, free)
        if placement is None:
            refused.add(needs)
        return placement

    def _find(self, job: JobGraph, needs: NodeNeeds, free: FreeResources) -> Placement | None:
        """Return where the job has room, taken out of it; None, and nothing taken, where it has none."""
        if needs.uneven or job.drives:
            return None
        machines = self.choose(needs, free)
        if machines is None:
            return None
        hosts: list[int] = machines.tolist()
        gpus, remote = take_nodes(needs, free, hosts)
        topology = free.columns.topology
        return Placement(
            gpus,
            topology=topology,
            scores={**link_scores(job.edges, gpus, topology), "remote_gpus": float(len(remote))},
            job=job,
            hosts=tuple(map(needs.host_share, hosts)),
            remote=remote,
        )


def exclusive_machines(needs: NodeNeeds, free: FreeResources) -> Ints:
    """Return the first machines, at most as many as nodes, that have no job and everything a node needs (Fig. 5)."""
    fits = needs.hosting(free) & ~free.has_job & (needs.suitable(free) >= needs.gpus)
    return np.flatnonzero(fits)[: needs.nodes]
