"""The base of both queues: a walk along the queue that starts every job with room."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.admission import never, why_never, why_not_now
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import Explanation, Plan, QueuedJob, different_gpu_sets
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.links import link_scores
from topoplace.placement import Placement, Refusal
from topoplace.policies.tsubame.borrowing import take_nodes
from topoplace.policies.tsubame.node_needs import NodeNeeds, QueueMemory

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.engine.request import JobRequest


class NodeQueue(ABC):
    """The common part of both queues. A placement has a process per node in `hosts`, and borrowed GPUs in `remote`.

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
        """Return the choice of `place`, then placements without its machines, or the reason if there is none."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        if found := different_gpu_sets(self._choices(job, cluster), top):
            return Explanation(self.name, found)
        view = cluster.view(ClusterView)
        needs = NodeNeeds(job, view.columns.fixed)
        refusal = self.why_never(needs, view.columns.idle())
        return Explanation(self.name, (), refusal or why_not_now(job, cluster, f"{needs.wishes()} needed"))

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start every job that fits, from the head of the queue on; reject jobs that can never run."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = checked_queue(queue)
        walk_rule = _Walk(self, cluster.view(ClusterView))
        refused = walk_rule.refused.jobs
        return walk(
            [entry for entry in entries if id(entry.job) not in refused], walk_rule.decide, head_blocks=False
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # ---- inside --------------------------------------------------------------------------------------------

    def why_never(self, needs: NodeNeeds, idle: FreeResources) -> Refusal | None:
        """Return why such a job could not run even on the idle cluster; None where it may."""
        job = needs.job
        if job.drives:
            return never(f"needs {job.drives} drives, this policy gives none")
        if not needs.uneven and self.choose(needs, idle) is not None:
            return None
        if job.num_tasks and (reason := why_never(job, idle.columns.topology)):
            return reason
        if needs.uneven:
            return never(f"{job.num_tasks} GPUs cannot be split evenly over {needs.nodes} nodes")
        return never(f"needs {needs.wishes()}, the idle cluster has fewer")

    def _choices(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement]:
        """Yield the first placement, the one on none of its machines, and so on."""
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        view = cluster.view(ClusterView)
        needs, used = NodeNeeds(job, view.columns.fixed), list[int]()
        while True:
            free = view.columns.free()
            free.hosts[used] = -1
            placement = self.find(job, needs, free)
            if placement is None:
                return
            yield placement
            used += (share.machine for share in placement.hosts)

    def find(self, job: JobGraph, needs: NodeNeeds, free: FreeResources) -> Placement | None:
        """Take the job's resources from `free` and return its placement, or None if it does not fit."""
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


class _Walk:
    """The decisions of one walk along a queue, on its own copy of the free resources."""

    def __init__(self, policy: NodeQueue, view: ClusterView) -> None:
        self._policy = policy
        self._view = view
        self._free = view.columns.free()
        self._memory = view.table((QueueMemory, policy.name), QueueMemory)
        self.refused = self._memory.refused(self._free)

    def decide(self, entry: QueuedJob) -> Outcome:
        """Return the outcome of a job; a placement is taken."""
        job, refused = entry.job, self.refused
        if id(job) in refused.jobs:  # since the walk began
            return None
        request = self._view.request(job)
        needs = self._memory.needs.get(request) or self._needs(request)
        if isinstance(needs, Refusal):
            return needs
        if needs not in refused.known and (placement := self._start(job, needs)):
            return placement
        refused.jobs[id(job)] = job
        return None

    def _needs(self, request: JobRequest) -> NodeNeeds | Refusal:
        needs = NodeNeeds(request.job, self._view.columns.fixed)
        known = self._policy.why_never(needs, self._view.columns.idle()) or needs
        self._memory.needs[request] = known
        return known

    def _start(self, job: JobGraph, needs: NodeNeeds) -> Placement | None:
        """Return the placement with which the job starts; remember its needs if they do not fit."""
        refused = self.refused
        if self._policy.cannot_fit_by_count(needs, self._free) or refused.covers(needs):
            refused.known.add(needs)
            return None
        placement = self._policy.find(job, needs, self._free)
        if placement is None:
            refused.add(needs)
        return placement


def exclusive_machines(needs: NodeNeeds, free: FreeResources) -> Ints:
    """Return the first machines, at most as many as nodes, that have no job and everything a node needs (Fig. 5)."""
    fits = needs.hosting(free) & ~free.has_job & (needs.suitable(free) >= needs.gpus)
    return np.flatnonzero(fits)[: needs.nodes]
