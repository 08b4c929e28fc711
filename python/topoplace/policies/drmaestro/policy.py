"""The DRMaestro policy: its options, and the batches of jobs that it decides at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine.admission import why_not_now
from topoplace.engine.driver import PolicyDriver
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.memo import Memo
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.engine.queueing import Ask, BatchWalk, Outcome, checked_queue
from topoplace.engine.requirements import cannot_honour
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.placement import Placement, Refusal, Scores
from topoplace.policies.drmaestro.beside import BesideProcess, LocalGpus
from topoplace.policies.drmaestro.bundles import JobBundles
from topoplace.policies.drmaestro.costs import Costs
from topoplace.policies.drmaestro.decision import Candidate, Decision
from topoplace.policies.drmaestro.free_resources import FreeColumns
from topoplace.policies.drmaestro.gpu_topology import GpuTopology
from topoplace.policies.drmaestro.network import NetworkLoad, RunningTraffic
from topoplace.policies.drmaestro.phases import room

if TYPE_CHECKING:
    from topoplace.engine.effort import Effort
    from topoplace.engine.request import JobRequest
    from topoplace.policies.drmaestro.free_resources import FreeResources


class DRMaestro(PolicyDriver):
    """DRMaestro: a policy that places the processes of a batch of jobs, then their GPUs, then their drives.

    Each of these three phases is one minimum-cost flow over all jobs of the batch. GPUs may be local to their process
    or remote (on another machine, reached over the network). A job that does not get all its needs waits (gang rule). A
    batch contains the oldest jobs whose requests together do not exceed the free resources (Algorithm 4). If some of
    them cannot be placed, later batches contain jobs with other requests. If jobs of a batch disturbed each other,
    those not placed are first tried once more alone.

    The thesis leaves some points open. We decide them as follows. A flow network has one limit per machine, but CPUs
    and memory are two. Eq. 10 therefore limits the bundles (a process with what must be next to it) per machine, and
    those that do not fit are placed again. W of eq. 13 is the time the job has waited, unless `costs` says otherwise.
    Running jobs are not moved: they are not part of the flow, and their resources are not free.

    Args:
        disaggregate: True if GPUs may be remote; if False, a job waits until all its GPUs can be local.
        network_aware: True if costs include network load times the job's sensitivity (section 5.6.5.1). Jobs that would
            miss their goal are then deferred, at most `max_postponements` times.
        profiles: Network profiles by the name in `JobGraph.profile`, used only if `network_aware`; a job without one
            has no traffic and no slowdown.
        costs: The parameters of equations 11 to 13, and how waiting and network load are counted.
        gpu_topology: True if the links between GPUs count, for jobs of one process whose tasks communicate. A machine
            then costs more the farther apart the job's GPUs would be on it. Of the free GPUs of its machine, the job
            gets those nearest to each other, as by `TopoAware`. The thesis has both halves, but does not join them.
        window: Maximum number of waiting jobs that one plan considers, oldest first.
        retry: True if jobs without success are tried again in one plan, in further batches or on other machines. False
            follows Algorithms 4 and 5 as printed: a plan is one batch, each phase is solved once, and a job that a
            mapping leaves out waits for the next plan.

    Raises:
        ValueError: An argument is out of range.
    """

    name = "drmaestro"
    honours = frozenset(("drives",))

    def __init__(
        self,
        *,
        disaggregate: bool = True,
        network_aware: bool = False,
        profiles: Mapping[str, NetworkProfile] = MappingProxyType({}),
        costs: Costs | None = None,
        gpu_topology: bool = False,
        max_postponements: int = 10,
        window: int = 512,
        retry: bool = True,
    ) -> None:
        self.disaggregate = _checks.flag(disaggregate, "disaggregate", ValueError)
        self.network_aware = _checks.flag(network_aware, "network_aware", ValueError)
        _checks.instance(profiles, Mapping, "profiles", ValueError)
        for name, profile in profiles.items():
            _checks.instance(profile, NetworkProfile, f"profiles[{_checks.shown(name)}]", ValueError)
        self.profiles = dict(profiles)
        self.costs = Costs() if costs is None else costs
        _checks.instance(self.costs, Costs, "costs", ValueError)
        self.gpu_topology = _checks.flag(gpu_topology, "gpu_topology", ValueError)
        self.max_postponements = _checks.integer(
            max_postponements, "max_postponements", ValueError, low=0, high=1 << 30
        )
        self.window = _checks.integer(window, "window", ValueError, low=1, high=1 << 30)
        self.retry = _checks.flag(retry, "retry", ValueError)

    def find(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the placement of the job, decided as a batch of one; None if nothing fits or waiting is better.

        Waiting is better if the policy is `network_aware`, the job would miss its goal, and `max_postponements` is
        above 0.
        """
        result = next(self.candidates(job, view, self.effort(job)), None)
        return result if isinstance(result, Placement) else None

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return the jobs that start, are deferred or are rejected; the oldest `window` jobs are decided in batches.

        If the policy is `network_aware`, jobs that would miss their goal are deferred, each up to `max_postponements`
        times. Jobs that can never run, or have a requirement that cannot be honoured, are rejected.

        Args:
            now: Time in seconds.

        Raises:
            ValueError: A job id occurs twice in the queue, or is that of a running job.
        """
        view = self.view_of(cluster)
        now = _checks.real(now, "now", ValueError, low=-math.inf)
        entries = checked_queue(queue, cluster)[: self.window]
        plan = BatchWalk(entries, _BatchRule(self, view, now), repeat=self.retry).plan()
        if self.costs.waiting == "rounds":
            self.rounds(view).count(entries, plan)
        return plan

    def rounds(self, view: ClusterView) -> Rounds:
        """Return the number of plans that left each job of a cluster waiting; counted only if `costs.waiting` is
        "rounds".
        """
        return view.table((self, Rounds), Rounds)

    def __repr__(self) -> str:
        return f"DRMaestro(disaggregate={self.disaggregate}, network_aware={self.network_aware})"

    # ---- inside --------------------------------------------------------------------------------------------

    def bundles(self, request: JobRequest, view: ClusterView) -> JobBundles:
        """Return the bundles (processes with their CPUs, memory and GPUs) of a request.

        Requests with equal resource needs and profile share one object.
        """
        profile = self.profile_of(request.profile) if self.network_aware else None
        key = self, JobBundles, profile
        return request.table(key, lambda: self._shared_bundles(request, view, profile))

    def profile_of(self, application: str | None) -> NetworkProfile | None:
        """Return the network profile of an application, given by its name in `JobGraph.profile`; None if unknown."""
        return self.profiles.get(application or "")

    def _shared_bundles(
        self, request: JobRequest, view: ClusterView, profile: NetworkProfile | None
    ) -> JobBundles:
        def build() -> JobBundles:
            return JobBundles(
                *(request.job, view.cluster, profile),
                disaggregate=self.disaggregate,
                gpu_topology=GpuTopology(request, topology) if links_count else None,
            )

        topology = view.cluster.topology
        links_count = self.gpu_topology and GpuTopology.matters(request, topology)
        tables = view.table((self, JobBundles), _BundleTables)
        key = (request.resource_key, request if links_count else None)
        return tables.get_or_build((key, profile), build)

    def network(self, view: ClusterView) -> NetworkLoad:
        """Return a copy of the current network load; zero load if the policy is not `network_aware`."""
        if not self.network_aware:
            return NetworkLoad.none(view.cluster.topology.num_machines)
        build = partial(RunningTraffic, view.cluster, self.profiles)
        return view.table((self, RunningTraffic), build).network()

    def decision(self, view: ClusterView, free: FreeResources, network: NetworkLoad) -> Decision:
        """Create the object that decides one batch; it takes resources from `free` and adds load to `network`."""
        limit = self.max_postponements if self.network_aware else None
        return Decision(view.cluster.topology, free, network, self.costs, limit=limit, retry=self.retry)

    def candidates(self, job: JobGraph, view: ClusterView, effort: Effort) -> Iterator[Placement | Refusal]:
        """Yield the job's best placement, then repeatedly the best one that avoids the machines of all earlier
        processes.

        If the job would be deferred, yield the refusal and stop.
        """
        cluster, request = view.cluster, view.request(job)
        entry, needs = QueuedJob("job", job), self.bundles(request, view)
        used: list[int] = []
        if (
            job.num_tasks <= cluster.num_free
            and not self.network_aware
            and not needs.gpu_topology
            and BesideProcess.decides(needs, cluster)
        ):
            beside = request.table((self, BesideProcess), lambda: BesideProcess(view, request, needs))
            found = beside.best()
            if found is None and needs.gpus_local:
                return
            if found and found[1].are_sure:
                yield self._next_to_process(job, request, view, *found)
                used.append(found[0])
        while job.num_tasks <= cluster.num_free:
            free = free_columns(view).free()
            free.hosts[used] = -1
            candidate = Candidate(entry, needs, 0.0)
            results = self.decision(view, free, self.network(view)).run([candidate])
            yield from (result for _, result in results if result)
            if not results or isinstance(results[0][1], Refusal):
                return
            used += candidate.hosts

    def _next_to_process(
        self, job: JobGraph, request: JobRequest, view: ClusterView, machine: int, local: LocalGpus
    ) -> Placement:
        """Return the placement of a job whose only process gets these GPUs of its machine."""

        def scores() -> Scores:
            links = request.link_scores(local.machine_class, local.gpus)
            return Scores({**links, **self.costs.scores(0.0, 1.0)})

        numbers = view.classes.gpus_of[machine]
        return Placement(
            tuple([numbers[gpu] for gpu in local.gpus]),
            topology=view.cluster.topology,
            scores=request.table((self, local.machine_class, local.gpus), scores),
            job=job,
            hosts=self.bundles(request, view).host_shares([machine]),
        )

    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if it could."""
        return self.bundles(view.request(job), view).refusal

    def why_not_now(self, job: JobGraph, view: ClusterView) -> Refusal:
        """Return why a job that could run on an idle cluster cannot start now."""
        where = "" if self.disaggregate else " beside the GPUs it needs"
        lack = f"no machine has the CPUs and memory it needs free{where}"
        return why_not_now(job, view.cluster, lack, gpus_local=False)


class _BundleTables(Memo[tuple[Hashable, NetworkProfile | None], JobBundles]):
    """The cached `JobBundles` of one policy, by the resource key and network profile of requests."""


class Rounds:
    """The number of plans that left each waiting job of a cluster waiting (W of eq. 13)."""

    def __init__(self) -> None:
        self.waited: dict[str, int] = {}

    def count(self, entries: Sequence[QueuedJob], plan: Plan) -> None:
        """Count one round for each job of a plan's queue that still waits; drop the counts of all other jobs."""
        gone = {job_id for job_id, _ in (*plan.start, *plan.reject)}
        waiting = (entry.job_id for entry in entries if entry.job_id not in gone)
        self.waited = {job_id: self.waited.get(job_id, 0) + 1 for job_id in waiting}


def free_columns(view: ClusterView) -> FreeColumns:
    """Return the free resources of a cluster as numpy columns, kept up to date."""
    return view.table(FreeColumns, lambda: FreeColumns(view.cluster))


class _JobGroup(NamedTuple):
    """Interchangeable jobs: they have the same needs, and all or none of them may still be deferred."""

    needs: JobBundles
    last_chance: bool


class _BatchRule:
    """DRMaestro's rule for the batches of one plan; it works on copies of the free resources and the network load."""

    def __init__(self, policy: DRMaestro, view: ClusterView, now: float) -> None:
        self._policy = policy
        self._now = now
        self._view = view
        self._free = free_columns(self._view).free()
        self._network = policy.network(self._view)
        self._asks: tuple[dict[int, Ask | Refusal], ...] = ({}, {})
        """By the identity of a job graph; the second for jobs that may not be deferred any more."""

    def ask(self, entry: QueuedJob) -> Ask | Refusal:
        """Return the amounts a job takes, or why it can never run."""
        last_chance = entry.postponed >= self._policy.max_postponements
        asks = self._asks[last_chance]
        ask = asks.get(id(entry.job))
        if ask is None:
            ask = asks[id(entry.job)] = self._ask(entry, last_chance=last_chance)
        return ask

    def _ask(self, entry: QueuedJob, *, last_chance: bool) -> Ask | Refusal:
        if refusal := cannot_honour(entry.job, self._view.cluster, self._policy.name, self._policy.honours):
            return refusal
        needs = self._bundles(entry)
        if needs.refusal:
            return needs.refusal
        return Ask(_JobGroup(needs, last_chance), needs.job.num_tasks, tuple(needs.needs.tolist()))

    def free(self) -> tuple[int, Sequence[int]]:
        """Return the number of free GPUs, and the totals of free CPUs, MB and drives over all machines."""
        return self._free.num_free, np.maximum(self._free.hosts, 0).sum(axis=0).tolist()

    def room(self, group: Hashable) -> int:
        """Return at most how many jobs of a group find a place: machines with CPUs and memory free, and GPUs."""
        assert isinstance(group, _JobGroup)
        return room(self._free, group.needs)

    def decide(self, batch: Sequence[QueuedJob]) -> tuple[list[tuple[QueuedJob, Outcome]], bool]:
        """Decide a batch of jobs: return the decided ones with their outcomes, and True if jobs disturbed each other.

        In that case, a job that is not among the decided ones might fit in a smaller batch.
        """
        candidates = [Candidate(entry, self._bundles(entry), self._waited(entry)) for entry in batch]
        decision = self._policy.decision(self._view, self._free, self._network)
        results = [(job.entry, result) for job, result in decision.run(candidates)]
        return results, decision.disturbed

    def _waited(self, entry: QueuedJob) -> float:
        if self._policy.costs.waiting == "rounds":
            return float(self._policy.rounds(self._view).waited.get(entry.job_id, 0))
        return max(self._now - entry.submit_time, 0.0)

    def _bundles(self, entry: QueuedJob) -> JobBundles:
        return self._policy.bundles(self._view.request(entry.job), self._view)
