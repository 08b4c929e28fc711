"""The base class of TSUBAME's two queues: a walk along the queue that starts every job that fits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.admission import never, why_never, why_not_now
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.memo import Memo
from topoplace.engine.plan import Explanation, Plan, QueuedJob, different_gpu_sets
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.engine.requirements import always_honoured, cannot_honour, require_honoured
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.links import link_scores
from topoplace.placement import Placement, Refusal, Scores
from topoplace.policies.tsubame.borrowing import gpus_of_nodes
from topoplace.policies.tsubame.node_machines import NodeGpus, NodeMachines, Nodes
from topoplace.policies.tsubame.node_needs import NodeNeeds, Refused

if TYPE_CHECKING:
    from topoplace.engine.queues.live_queue import LiveRule
    from topoplace.engine.queues.waiting_kind import WaitingJob
    from topoplace.engine.request import JobRequest

_NO_MACHINES: frozenset[int] = frozenset()


class NodeQueue(ABC):
    """Base of TSUBAME's two queues, `GQueue` and `RQueue`.

    A placement has the processes of each node in `hosts`, with their CPUs and memory, and borrowed GPUs in `remote`.
    Jobs without GPUs (`JobGraph.without_gpus`) get nodes like other jobs. A job is rejected if its GPUs cannot be
    divided evenly among its nodes. The scores of a placement are its link scores and `remote_gpus`, the number of GPUs
    outside the pool of their process.
    """

    name: str

    @abstractmethod
    def choose(
        self, needs: NodeNeeds, machines: NodeMachines, avoid: frozenset[int] = _NO_MACHINES
    ) -> Nodes | None:
        """Return the nodes of a request; None if machines or GPUs are too few.

        avoid: machines that get no node.
        """

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
        needs = _needs(view.request(job), view)
        refusal = self.why_never(needs, view)
        refusal = refusal or why_not_now(job, cluster, f"{needs.wishes()} needed", gpus_local=False)
        return Explanation(self.name, (), refusal)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return which jobs start: from the head of the queue, every job that fits.

        Jobs that can never run, or have a requirement that cannot be honoured, are rejected.
        """
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = checked_queue(queue)
        with cluster.what_if() as state:
            return walk(entries, self.live_rule(state).decide, head_blocks=False)

    def live_rule(self, cluster: Cluster) -> LiveRule:
        """Return the rule by which `plan` decides job after job; it allocates those that start."""
        return _Walks(self, cluster)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # ---- inside --------------------------------------------------------------------------------------------

    def why_never(self, needs: NodeNeeds, view: ClusterView) -> Refusal | None:
        """Return why a job with these needs could not run even on the idle cluster; None if it could."""
        return needs.request.table((self, "never"), lambda: self._why_never(needs, view))

    def _why_never(self, needs: NodeNeeds, view: ClusterView) -> Refusal | None:
        job = needs.request.job
        if not needs.uneven and self.choose(needs, _machines(needs, view.idle)) is not None:
            return None
        if job.num_tasks and (reason := why_never(job, view.cluster.topology)):
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
        needs, used = _needs(view.request(job), view), _NO_MACHINES
        while placement := self.search(job, needs, view, used):
            yield placement
            used |= {share.machine for share in placement.hosts}

    def search(
        self, job: JobGraph, needs: NodeNeeds, view: ClusterView, avoid: frozenset[int] = _NO_MACHINES
    ) -> Placement | None:
        """Return the placement of a job with these needs, or None if it does not fit.

        avoid: machines that get no node.
        """
        if needs.uneven or needs.total_gpus > view.cluster.num_free:
            return None
        for limit in needs.request.memory_limits:
            machines = _machines(needs, view, limit)
            if (nodes := self.choose(needs, machines, avoid)) is not None:
                return self._placement(job, needs, machines, nodes)
        return None

    def _placement(self, job: JobGraph, needs: NodeNeeds, machines: NodeMachines, nodes: Nodes) -> Placement:
        view = machines.view
        hosts = [machine for machine, _ in nodes]
        cpus = needs.cpus_on(hosts, view.cluster.hosts)
        gpus, remote = gpus_of_nodes(needs, machines, nodes)
        if len(nodes) == 1 and len(nodes[0][1].own) == len(gpus):
            scores = _scores_on_one(needs.request, nodes[0][1])
        else:
            links = link_scores(job.edges, gpus, view.cluster.topology)
            scores = {**links, "remote_gpus": float(len(remote))}
        return Placement(
            gpus,
            topology=view.cluster.topology,
            scores=scores,
            job=job,
            hosts=tuple(chain.from_iterable(map(needs.host_shares, hosts, cpus))),
            remote=remote,
        )


class _Walks:
    """Decides the jobs of a queue in walks along it, and allocates those that start on the cluster."""

    head_blocks = False

    def __init__(self, policy: NodeQueue, cluster: Cluster) -> None:
        self._policy = policy
        self._cluster = cluster
        self._view = cluster.view(ClusterView)
        self._always_honoured = always_honoured(cluster, frozenset())
        self._refused = Refused()
        self._version = -1
        """The number of the cluster's changes up to which `_refused` holds."""
        self._known: Memo[int, _Known] = Memo()

    def kind_of(self, job: JobGraph) -> Hashable:
        """Return the job's kind: what it needs on its nodes, and whether that can be honoured."""
        return self._view.request(job).resource_key, self._known_of(job).refusal is not None

    def begin(self) -> None:
        """Begin a walk along the queue; what was refused is, until something besides its own starts has changed."""
        changes = self._cluster.native.num_changes
        if self._version != changes:
            self._refused, self._version = Refused(), changes

    def decide(self, entry: QueuedJob | WaitingJob) -> Outcome:
        """Return the outcome of a job; if it starts, allocate its placement."""
        job, refused = entry.job, self._refused
        known = self._known.get(id(job)) or self._known_of(job)
        if known.refusal:
            return known.refusal
        needs = known.needs
        if needs in refused.known:
            return None
        is_covered = refused.covers(needs)
        placement = None if is_covered else self._policy.search(job, needs, self._view)
        if placement is not None:
            self._cluster.allocate(entry.job_id, placement)
            self._version = self._cluster.native.num_changes
            return placement
        if known.never is None:
            known.never = self._policy.why_never(needs, self._view) or False
        if known.never:
            return known.never
        refused.add(needs, is_covered=is_covered)
        return None

    def can_defer(self, job: JobGraph) -> bool:
        """Return True; jobs wait without a reason."""
        return True

    def exhausted(self) -> bool:
        """Return False: jobs without GPUs may start if none is free."""
        return False

    def _known_of(self, job: JobGraph) -> _Known:
        """Return what is known of a job graph."""
        known = self._known.get(id(job))
        if known is None:
            honoured = self._always_honoured.issuperset(job.requirements)
            refusal = None if honoured else cannot_honour(job, self._cluster, self._policy.name)
            known = _Known(job, refusal, _needs(self._view.request(job), self._view))
            self._known[id(job)] = known
        return known


@dataclass(slots=True, eq=False)
class _Known:
    """What a queue knows of a job graph; it holds the graph, so that no other gets its id."""

    job: JobGraph
    refusal: Refusal | None
    """Why a requirement cannot be honoured."""
    needs: NodeNeeds
    never: Refusal | Literal[False] | None = None
    """Why the job could not run even on the idle cluster; False if it could, None if it was not asked yet."""


def _needs(request: JobRequest, view: ClusterView) -> NodeNeeds:
    return request.table(NodeNeeds, lambda: NodeNeeds(request, view.cluster.topology))


def _machines(needs: NodeNeeds, view: ClusterView, most_memory_gb: float = math.inf) -> NodeMachines:
    """Return the machines of a view, ranked for the nodes of such jobs, with a limit on the memory of each GPU, GB."""
    return view.table(
        (NodeMachines, needs.gpu_kind, most_memory_gb),
        lambda: NodeMachines(view, needs.request, needs.gpus, most_memory_gb),
    )


def _scores_on_one(request: JobRequest, node: NodeGpus) -> Mapping[str, float]:
    """Return the scores of a job whose only node takes its GPUs on its machine."""

    def build() -> Scores:
        return Scores({**request.link_scores(node.machine_class, node.own), "remote_gpus": 0.0})

    return request.table((NodeQueue, node.machine_class, node.own), build)
