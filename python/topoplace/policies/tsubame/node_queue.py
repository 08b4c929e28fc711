"""The base class of TSUBAME's two queues: a walk along the queue that starts every job that fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.admission import never, why_never, why_not_now
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import Explanation, Plan, QueuedJob, different_gpu_sets
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.engine.requirements import cannot_honour, require_honoured
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.links import link_scores
from topoplace.placement import Placement, Refusal
from topoplace.policies.tsubame.borrowing import take_nodes
from topoplace.policies.tsubame.node_needs import NodeNeeds, QueueMemory

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.engine.request import JobRequest


class NodeQueue(ABC):
    """Base of TSUBAME's two queues, `GQueue` and `RQueue`.

    A placement has the processes of each node in `hosts`, with their CPUs and memory, and borrowed GPUs in `remote`.
    Jobs without GPUs (`JobGraph.without_gpus`) get nodes like other jobs. A job is rejected if its GPUs cannot be
    divided evenly among its nodes. The scores of a placement are its link scores and `remote_gpus`, the number of GPUs
    outside the pool of their process.
    """

    name: str

    @abstractmethod
    def choose(self, needs: NodeNeeds, free: FreeResources) -> Ints | None:
        """Return the machine of each node of a request; None if machines or GPUs are too few."""

    @abstractmethod
    def cannot_fit_by_count(self, needs: NodeNeeds, free: FreeResources) -> bool:
        """Return True if a quick count of free GPUs or machines already shows that the request does not fit."""

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the placement with which the job could start now; None if it has to wait or can never run.

        ValueError names a requirement that this policy or the cluster cannot honour.
        """
        return next(self._choices(job, cluster), None)

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return up to `top` placements on different GPU sets, or the reason if there is none.

        The first is that of `place`. The processes of each further one avoid the machines of all processes before. At
        most `2 * top` placements are examined. ValueError if `top` is below 1.
        """
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        if refusal := cannot_honour(job, cluster, self.name):
            return Explanation(self.name, (), refusal)
        if found := different_gpu_sets(self._choices(job, cluster), top):
            return Explanation(self.name, found)
        view = cluster.view(ClusterView)
        needs = NodeNeeds(job, view.columns.fixed)
        refusal = self.why_never(needs, view.columns.idle())
        refusal = refusal or why_not_now(job, cluster, f"{needs.wishes()} needed", gpus_local=False)
        return Explanation(self.name, (), refusal)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return which jobs start: from the head of the queue, every job that fits.

        Jobs that can never run, or have a requirement that cannot be honoured, are rejected.
        """
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
        """Return why a job with these needs could not run even on the idle cluster; None if it could."""
        job = needs.job
        if not needs.uneven and self.choose(needs, idle) is not None:
            return None
        if job.num_tasks and (reason := why_never(job, idle.columns.topology)):
            return reason
        if needs.uneven:
            return never(f"{job.num_tasks} GPUs cannot be split evenly over {needs.nodes} nodes")
        return never(f"needs {needs.wishes()}, the idle cluster has fewer")

    def _choices(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement]:
        """Yield the job's best placement, then repeatedly the best whose processes avoid all machines used before."""
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        require_honoured(job, cluster, self.name)
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
        if needs.uneven:
            return None
        found = ((limited, self.choose(limited, free)) for limited in needs.by_memory)
        needs, machines = next((one for one in found if one[1] is not None), (needs, None))
        if machines is None:
            return None
        hosts: list[int] = machines.tolist()
        cpus = needs.cpus_on(hosts, free)
        gpus, remote = take_nodes(needs, free, hosts, cpus)
        topology = free.columns.topology
        return Placement(
            gpus,
            topology=topology,
            scores={**link_scores(job.edges, gpus, topology), "remote_gpus": float(len(remote))},
            job=job,
            hosts=tuple(chain.from_iterable(map(needs.host_shares, hosts, cpus))),
            remote=remote,
        )


class _Walk:
    """Decides the jobs in one walk along a queue, on its own copy of the free resources."""

    def __init__(self, policy: NodeQueue, view: ClusterView) -> None:
        self._policy = policy
        self._view = view
        self._free = view.columns.free()
        self._memory = view.table((QueueMemory, policy.name), QueueMemory)
        self.refused = self._memory.refused(self._free)

    def decide(self, entry: QueuedJob) -> Outcome:
        """Return the outcome of a job; if it starts, take its resources from the walk's copy of the free resources."""
        job, refused = entry.job, self.refused
        if id(job) in refused.jobs:  # refused in this walk; `plan` skips jobs refused before
            return None
        if job.requirements and (refusal := cannot_honour(job, self._view.cluster, self._policy.name)):
            return refusal
        request = self._view.request(job)
        needs = self._memory.needs.get(request) or self._needs(request)
        if isinstance(needs, Refusal):
            return needs
        if needs not in refused.known and (placement := self._start(job, needs)):
            return placement
        refused.jobs[id(job)] = job
        return None

    def _needs(self, request: JobRequest) -> NodeNeeds | Refusal:
        view, policy = self._view, self._policy
        needs = NodeNeeds(request.job, view.columns.fixed)
        known = policy.why_never(needs, view.columns.idle()) or needs
        self._memory.needs[request] = known
        return known

    def _start(self, job: JobGraph, needs: NodeNeeds) -> Placement | None:
        """Return the placement with which the job starts; if it does not fit, record its needs and return None."""
        refused = self.refused
        if self._policy.cannot_fit_by_count(needs, self._free) or refused.covers(needs):
            refused.known.add(needs)
            return None
        placement = self._policy.find(job, needs, self._free)
        if placement is None:
            refused.add(needs)
        return placement


def exclusive_machines(needs: NodeNeeds, free: FreeResources) -> Ints:
    """Return the machines that run no job and have all that some node needs (Fig. 5), in ascending order."""
    return np.flatnonzero(needs.hosting(free) & ~free.has_job & (needs.suitable(free) >= needs.gpus))
