"""The policy: which jobs make a batch, and what a batch is decided with."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.admission import why_not_now
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.memo import Memo
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.engine.queueing import Ask, BatchWalk, Outcome, checked_queue, refuse_duplicates
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.placement import Placement, Refusal
from topoplace.policies.drmaestro.bundles import JobBundles
from topoplace.policies.drmaestro.costs import Costs
from topoplace.policies.drmaestro.decision import Candidate, Decision
from topoplace.policies.drmaestro.network import NetworkLoad, RunningTraffic

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.engine.request import JobRequest


class DRMaestro:
    """DRMaestro: places processes, then each GPU where it costs least, near its process or remote, then drives.

    Each phase is one minimum-cost flow over all jobs of a batch; a job that does not get everything waits (gang rule).
    A batch contains the oldest jobs whose requests together do not exceed the free resources (Algorithm 4). If some
    of them cannot be placed, the next batch contains jobs with other requests. Jobs bring `cpus`, `memory_gb`,
    `drives` and `processes`; a cluster without `hosts` has enough of everything but GPUs.

    disaggregate: whether GPUs may be on other machines than their process; without it all are local or the job waits.
    network_aware: whether costs follow the traffic at a place times the job's sensitivity (section 5.6.5.1), and jobs
    that would miss their goal are deferred, at most `max_postponements` times.
    profiles: of the applications, by the job's `profile`; one without is neutral. costs: equations 11 to 13.
    window: limit on the waiting jobs looked at in one plan.

    Readings of what the thesis leaves open: a flow has one limit per machine, CPUs and memory are two, so eq. 10 bounds
    how many bundles a machine takes and what does not fit is placed again without the rest; W of eq. 13 is the time the
    job has waited; jobs that run are not moved, so they are no part of the flow, and what they hold is not free.
    """

    name = "drmaestro"

    def __init__(
        self,
        *,
        disaggregate: bool = True,
        network_aware: bool = False,
        profiles: Mapping[str, NetworkProfile] = MappingProxyType({}),
        costs: Costs | None = None,
        max_postponements: int = 10,
        window: int = 512,
    ) -> None:
        self.disaggregate = _checks.flag(disaggregate, "disaggregate", ValueError)
        self.network_aware = _checks.flag(network_aware, "network_aware", ValueError)
        _checks.instance(profiles, Mapping, "profiles", ValueError)
        for name, profile in profiles.items():
            _checks.instance(profile, NetworkProfile, f"profiles[{_checks.shown(name)}]", ValueError)
        self.profiles = dict(profiles)
        self.costs = costs or Costs()
        _checks.instance(self.costs, Costs, "costs", ValueError)
        self.max_postponements = _checks.integer(
            max_postponements, "max_postponements", ValueError, low=0, high=1 << 30
        )
        self.window = _checks.integer(window, "window", ValueError, low=1, high=1 << 30)

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the placement of the job as a batch of its own; None if nothing fits or waiting is better."""
        result = next(self._choices(job, cluster), None)
        return result if isinstance(result, Placement) else None

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return the choice of `place`, then placements on other machines, or the reason if there is none."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        found: dict[frozenset[int], Placement] = {}
        refusal: Refusal | None = None
        for result in islice(self._choices(job, cluster), 2 * top):
            if isinstance(result, Refusal):
                refusal = None if found else result
                break
            found.setdefault(frozenset(result.gpus), result)
            if len(found) == top:
                break
        if not found and refusal is None:
            view = cluster.view(ClusterView)
            refusal = self.bundles(view.request(job), view).refusal or self._why_not_now(job, cluster)
        return Explanation(self.name, tuple(found.values()), refusal)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start jobs, oldest first; defer those that would miss their goal, reject those that can never run."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        now = _checks.real(now, "now", ValueError, low=-math.inf)
        entries = checked_queue(_checks.sequence(queue, "queue", ValueError)[: self.window])
        refuse_duplicates(entries)
        return BatchWalk(entries, _BatchRule(self, cluster, now)).plan()

    def __repr__(self) -> str:
        return f"DRMaestro(disaggregate={self.disaggregate}, network_aware={self.network_aware})"

    # ---- inside --------------------------------------------------------------------------------------------

    def bundles(self, request: JobRequest, view: ClusterView) -> JobBundles:
        """Return the bundles of a request, the same object for all that need the same of a cluster."""
        return request.table((self, JobBundles), lambda: self._shared_bundles(request, view))

    def _shared_bundles(self, request: JobRequest, view: ClusterView) -> JobBundles:
        def build() -> JobBundles:
            profile = self.profiles.get(request.profile) if self.network_aware else None
            columns, disaggregate = view.columns.fixed, self.disaggregate
            return JobBundles(request.job, columns, view.cluster.hosts, profile, disaggregate=disaggregate)

        tables = view.table((self, JobBundles), _BundleTables)
        return tables.get_or_build((request.resource_key, request.profile), build)

    def network(self, view: ClusterView) -> NetworkLoad:
        """Return the load of the network now, to work on; none where the policy does not look at it."""
        if not self.network_aware:
            return NetworkLoad.none(view.cluster.topology.num_machines)
        return view.listener(
            (self, RunningTraffic), lambda: RunningTraffic(view.cluster, self.profiles)
        ).network()

    def decision(self, view: ClusterView, free: FreeResources, network: NetworkLoad) -> Decision:
        """Return a decision on these free resources and this network."""
        limit = self.max_postponements if self.network_aware else None
        return Decision(view.cluster.topology, free, network, self.costs, limit=limit)

    def _choices(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement | Refusal]:
        """Yield the best placement, the best with no process on a machine of the first, and so on; or why it waits."""
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        view = cluster.view(ClusterView)
        entry, needs = QueuedJob("job", job), self.bundles(view.request(job), view)
        used: list[int] = []
        while job.num_tasks <= cluster.num_free:
            free = view.columns.free()
            free.hosts[used] = -1
            candidate = Candidate(entry, needs, 0.0)
            results = self.decision(view, free, self.network(view)).run([candidate])
            yield from (result for _, result in results if result)
            if not results or isinstance(results[0][1], Refusal):
                return
            used += candidate.hosts

    def _why_not_now(self, job: JobGraph, cluster: Cluster) -> Refusal:
        where = "" if self.disaggregate else " beside the GPUs it needs"
        return why_not_now(job, cluster, f"no machine has the CPUs and memory it needs free{where}")


class _BundleTables(Memo[tuple[Hashable, str], JobBundles]):
    """The bundles of one policy, by the resources and the profile of requests."""


class _BatchRule:
    """The rule for the batches of one plan, with its own copy of the free resources."""

    def __init__(self, policy: DRMaestro, cluster: Cluster, now: float) -> None:
        self._policy = policy
        self._now = now
        self._view = cluster.view(ClusterView)
        self._free = self._view.columns.free()
        self._network = policy.network(self._view)

    def ask(self, entry: QueuedJob) -> Ask | Refusal:
        """Return the amounts a job takes, or why it can never run."""
        needs = self._bundles(entry)
        if needs.refusal:
            return needs.refusal
        group = needs, entry.postponed >= self._policy.max_postponements
        return Ask(group, needs.job.num_tasks, needs.needs)

    def free(self) -> tuple[int, Ints]:
        """Return the number of free GPUs, and the sums of what is left of the machines."""
        return self._free.num_free, np.maximum(self._free.hosts, 0).sum(axis=0)

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        """Place what can be placed of a batch."""
        candidates = [
            Candidate(entry, self._bundles(entry), max(self._now - entry.submit_time, 0.0)) for entry in batch
        ]
        decision = self._policy.decision(self._view, self._free, self._network)
        results = [(job.entry, result) for job, result in decision.run(candidates)]
        return results, decision.disturbed

    def _bundles(self, entry: QueuedJob) -> JobBundles:
        return self._policy.bundles(self._view.request(entry.job), self._view)
