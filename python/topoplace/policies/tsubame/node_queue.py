"""The base class of TSUBAME's two queues: a walk along the queue that starts every job that fits."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from topoplace.engine.admission import never, why_never, why_not_now
from topoplace.engine.driver import Failures, PolicyDriver
from topoplace.engine.machine_state import ClusterView
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.links import link_scores
from topoplace.placement import Placement, Refusal, Scores
from topoplace.policies.tsubame.borrowing import gpus_of_nodes
from topoplace.policies.tsubame.node_machines import NodeGpus, NodeMachines, Nodes
from topoplace.policies.tsubame.node_needs import NodeNeeds, Refused

if TYPE_CHECKING:
    from topoplace.engine.effort import Effort
    from topoplace.engine.request import JobRequest

_NO_MACHINES: frozenset[int] = frozenset()


class NodeQueue(PolicyDriver):
    """Base of TSUBAME's two queues, `GQueue` and `RQueue`.

    A placement has the processes of each node in `hosts`, with their CPUs and memory, and borrowed GPUs in `remote`.
    Jobs without GPUs (`JobGraph.without_gpus`) get nodes like other jobs. A job is rejected if its GPUs cannot be
    divided evenly among its nodes. The scores of a placement are its link scores and `remote_gpus`, the number of GPUs
    outside the pool of their process.
    """

    @abstractmethod
    def choose(
        self, needs: NodeNeeds, machines: NodeMachines, avoid: frozenset[int] = _NO_MACHINES
    ) -> Nodes | None:
        """Return the nodes of a request; None if there are too few machines or GPUs.

        Args:
            avoid: Machines that get no node.
        """

    # ---- what the driver asks ------------------------------------------------------------------------------

    def find(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the placement with which the job could start now; None if it has to wait or can never run."""
        return self.search(job, self.need_of(job, view), view)

    def candidates(self, job: JobGraph, view: ClusterView, effort: Effort) -> Iterator[Placement]:
        """Yield the job's best placement, then repeatedly the best one that avoids the machines of all earlier
        processes.
        """
        needs, used = self.need_of(job, view), _NO_MACHINES
        while placement := self.search(job, needs, view, used):
            yield placement
            used |= {share.machine for share in placement.hosts}

    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if it could."""
        needs = self.need_of(job, view)
        return needs.request.table((self, "never"), lambda: self._why_never(needs, view))

    def why_not_now(self, job: JobGraph, view: ClusterView) -> Refusal:
        """Return why a job that could run on an idle cluster cannot start now."""
        wishes = self.need_of(job, view).wishes()
        return why_not_now(job, view.cluster, f"{wishes} needed", gpus_local=False)

    def kind_of(self, job: JobGraph, view: ClusterView) -> Hashable:
        """Return a key for what the job needs on its nodes."""
        return view.request(job).resource_key

    def need_of(self, job: JobGraph, view: ClusterView) -> NodeNeeds:
        """Return the job's nodes and the resources on each."""
        request = view.request(job)
        return request.table(NodeNeeds, lambda: NodeNeeds(request, view.cluster.topology))

    def failures(self) -> Failures:
        """Return an empty record of needs that do not fit; it also covers larger needs."""
        return Refused()

    # ---- inside --------------------------------------------------------------------------------------------

    def _why_never(self, needs: NodeNeeds, view: ClusterView) -> Refusal | None:
        job = needs.request.job
        if not needs.uneven and self.choose(needs, _machines(needs, view.idle)) is not None:
            return None
        if job.num_tasks and (reason := why_never(job, view.cluster.topology)):
            return reason
        if needs.uneven:
            return never(f"{job.num_tasks} GPUs cannot be split evenly over {needs.nodes} nodes")
        return never(f"needs {needs.wishes()}, the idle cluster has fewer")

    def search(
        self, job: JobGraph, needs: NodeNeeds, view: ClusterView, avoid: frozenset[int] = _NO_MACHINES
    ) -> Placement | None:
        """Return the placement of a job with these needs, or None if it does not fit.

        Args:
            avoid: Machines that get no node.
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
