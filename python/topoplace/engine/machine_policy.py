"""Base class of policies that put a job on the best single machine and split it only if no machine has room."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.host_shares import host_shares, needs_hosts
from topoplace.engine.admission import why_never
from topoplace.engine.gangs import assignments, rules
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import MachineClass, Mask
from topoplace.engine.machines.machine_conditions import MachineState, Sight
from topoplace.engine.machines.machine_options import Choice, MachineOptions, Option, Options
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.engine.requirements import BY_LEVEL, always_honoured, cannot_honour, require_honoured
from topoplace.engine.slices import slices_for
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.links import job_link_scores
from topoplace.placement import Placement, Refusal, Scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.queues.live_queue import LiveRule
    from topoplace.engine.queues.waiting_kind import WaitingJob
    from topoplace.engine.request import JobRequest


class Evaluation(NamedTuple):
    """The utility of one assignment of a job to GPUs of several machines, with the data for its scores."""

    utility: float
    """The utility to the job; larger is better."""
    details: Any
    """Policy-specific data, later passed to `MachinePolicy.scores`."""


class MachinePolicy(ABC):
    """Base of policies that place a job on the machine with the best option, or split it if no machine has room.

    An option is one choice of GPUs on one machine. Options are asked for once for each job request and condition of
    machines: equal hardware, equal free GPUs, and equal jobs if `sees_jobs`. The amounts of free CPUs and memory are
    compared machine by machine, and are unknown in the states that the rules see.
    """

    name: str
    out_of_order: bool = True
    """True if a job may start while an older one in the queue waits."""
    honours: frozenset[str] = frozenset()
    """The requirements that the policy honours beside those that the engine does; see `engine.requirements`."""

    may_reslice: bool = False
    """True if the policy may reslice GPUs for a job; see `with_reslicing`."""
    _plain: MachinePolicy | None = None
    """The same policy without reslicing, if this one may reslice GPUs."""
    sees_jobs: bool = True
    """True if options depend on the jobs that run on the machine. If not, set it to False: decisions are faster."""

    def with_reslicing(self) -> Self:
        """Return a copy of this policy that may reslice GPUs, if a job fits nowhere else.

        It gives up idle MIG slices to cut others, cuts slices of free GPUs, and makes GPUs whole whose slices are all
        idle. `Placement.resliced` names these GPUs.
        """
        if self.may_reslice:
            return self
        other = copy(self)
        other.may_reslice, other._plain = True, self
        return other

    # ---- rules of a policy ---------------------------------------------------------------------------------

    @abstractmethod
    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[Option]:
        """Return the ways to place the whole job on one machine in this state.

        free: the machine's GPUs that are free and meet the job's requirements.
        """

    @abstractmethod
    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return ways to split a job among several machines, best first.

        offers: the machines that can take a part of the job.
        """

    @abstractmethod
    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the utility, and the data for scores, of running task i on `gpus[i]`, on several machines.

        None if tasks that communicate have no path between their GPUs.
        """

    @abstractmethod
    def scores(self, details: Any) -> Mapping[str, float]:
        """Return the policy's own scores of an option or evaluation, including "utility"; link scores are added later.

        details: the `details` of the option or evaluation.
        """

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task, chosen from `gpus` of several machines; by default the first ones in order.

        gpus: at least one GPU per task. An anti-affine job gets at most one of each machine.
        """
        return assignments.lowest_gpus(request, gpus, view)

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return the most tasks of the job that a machine in this state may have, CPUs and memory apart."""
        return request.size

    def max_split_utility(self, request: JobRequest) -> float:
        """Return an upper bound on the utility of any split of the job over several machines; by default infinity."""
        return math.inf

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """Return the utility below which the job waits instead of starting; by default no job waits.

        postponed: how often the job was deferred before; the more often, the lower the utility, or the same.
        """
        return -math.inf

    def why_unfit(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster although it has enough suitable GPUs, else None."""
        return None

    def lack(self, job: JobGraph) -> str | None:
        """Return the reason to report if enough suitable GPUs are free but the job cannot start.

        None reports missing links between the GPUs, or for a job without edges, that the policy chooses none.
        """
        return None

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the best placement of `job` on the free GPUs; None when nothing fits or waiting is better.

        ValueError names a requirement that this policy or the cluster cannot honour. ValueError also for a machine of
        more than 4096 GPUs.
        """
        view = _view(job, cluster)
        require_honoured(job, cluster, self.name, self.all_honoured)
        return self.search(job, view, self.least_utility(job))

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return up to `top` placements on different GPU sets: that of `place` first, then the others, best first.

        If `place` would return None, the explanation also contains the reason. If a requirement cannot be honoured,
        there is only the reason.
        """
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        view = _view(job, cluster)
        if refusal := cannot_honour(job, cluster, self.name, self.all_honoured):
            return Explanation(self.name, (), refusal)
        chosen = self.search(job, view, self.least_utility(job))
        candidates = tuple(islice(self._ranked(job, view, chosen), top))
        if chosen is not None:
            return Explanation(self.name, candidates)
        if candidates:
            best = max(candidate.scores["utility"] for candidate in candidates)
            return Explanation(self.name, candidates, self.why_postponed(job, best))
        return Explanation(self.name, (), self.why_never(job, view) or self.why_not_now(job, view))

    def ranked_machines(self, job: JobGraph, cluster: Cluster) -> Iterator[list[int]]:
        """Yield the machines on which the whole job fits, the best first; those that are equally good together.

        A machine counts by its best option, as in `place`, of which the first machine here is the one that it chooses.
        ValueError names a requirement that cannot be honoured.
        """
        view = _view(job, cluster)
        require_honoured(job, cluster, self.name, self.all_honoured)
        if not self.may_fit(job, cluster.num_free):
            return iter(())
        return self._machine_options(view.request(job), view).ranked_machines(self.least_utility(job))

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return which jobs start, deciding in queue order; jobs of too low utility are deferred.

        Jobs that do not fit even the idle cluster are rejected; a policy with `out_of_order` may do so only later,
        when enough GPUs are free to try them. Jobs with a requirement that cannot be honoured are rejected too.
        The cluster is not changed afterwards.
        """
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = checked_queue(queue)
        with cluster.what_if() as state:
            rule = self.live_rule(state)
            return walk(entries, rule.decide, head_blocks=rule.head_blocks, exhausted=rule.exhausted)

    def live_rule(self, cluster: Cluster) -> LiveRule:
        """Return the rule by which `plan` decides job after job; it allocates those that start."""
        return _Planning(self, cluster)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(){'.with_reslicing()' if self.may_reslice else ''}"

    # ---- inside --------------------------------------------------------------------------------------------

    @cached_property
    def all_honoured(self) -> frozenset[str]:
        """The requirements that the policy honours, beside those of every policy, by its rules or by the engine."""
        return self.honours | BY_LEVEL | {"same_gpus", "gpu_fraction", "mig"}

    def may_fit(self, job: JobGraph, num_free: int) -> bool:
        """Return False if too few GPUs are wholly free, `num_free`, for a job that needs such."""
        needs_whole = not (job.takes_parts or self.may_reslice)
        return job.num_tasks > 0 and (not needs_whole or job.num_tasks <= num_free)

    def refused_utility(self, job: JobGraph, view: ClusterView, least_utility: float) -> float | None:
        """Return the utility of the best placement now, below `least_utility`, for a job that has to wait.

        None if no placement exists or `least_utility` is minus infinity.
        """
        if least_utility == -math.inf:
            return None
        known = self._first_splits(view).get((view.request(job), view.cluster.native.num_changes))
        if known is not None:
            return known
        other = self.search(job, view, -math.inf)
        return other.scores["utility"] if other else None

    def why_not_now(self, job: JobGraph, view: ClusterView) -> Refusal:
        """Return why a job that could run on an idle cluster cannot start now."""
        request = view.request(job)
        offers = self._offers(request, view)
        return rules.why_not_now(request, view, offers, self.lack(job), may_reslice=self.may_reslice)

    def why_postponed(self, job: JobGraph, utility: float) -> Refusal:
        """Return why a job waits although there is room; utility: that of its best placement now."""
        return Refusal(f"postponed: its utility would be {utility:.3f} now, {job.min_utility:g} is asked for")

    def search(self, job: JobGraph, view: ClusterView, least_utility: float) -> Placement | None:
        """Return the best placement on one machine, or else the first one on several, that has enough utility, or None.

        least_utility: the smallest utility to the job that is enough.
        A job that fits one machine, but only with lower utility, is not split: the result is None.
        """
        if not self.may_fit(job, view.cluster.num_free):
            return None
        return self.search_for(job, view.request(job), view, least_utility)

    def search_for(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return what `search` returns, for a job with this request; there must be a free GPU for each of its tasks."""
        if self._plain is not None and self._plain.may_fit(job, view.cluster.num_free):
            placement = self._plain.search_for(job, request, view, least_utility)
            if placement is not None:
                return placement
        if not request.anti_affine:
            options = self._machine_options(request, view)
            if found := options.best(least_utility):
                return self._placement(job, request, view, *found)
            if options.best():
                return None  # one machine has room, but with too low utility; a split would be worse
        if job.single_machine:
            return None
        return self._across(job, request, view, least_utility)

    def _across(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the first placement over several machines that has at least `least_utility`, else None.

        In a placement, every two tasks that communicate have a path between their GPUs.
        """
        if self.max_split_utility(request) < least_utility:
            return None  # not worth the search
        topology = view.cluster.topology
        for limit in request.memory_limits:
            for gpus, found in self._evaluated(request, view, limit):
                self._note_first_split(request, view, found.utility)
                if found.utility >= least_utility:
                    links = job_link_scores(job, gpus, topology)
                    return _placed(job, tuple(gpus), view.cluster, {**links, **self.scores(found.details)})
        return None

    def _first_splits(self, view: ClusterView) -> dict[tuple[JobRequest, int], float]:
        """Return the utility of the last first split, by its request and the number of changes before it.

        The first split is what a search without a least utility returns.
        """
        return view.table((self, "first split"), _no_splits)

    def _note_first_split(self, request: JobRequest, view: ClusterView, utility: float) -> None:
        known, now = self._first_splits(view), (request, view.cluster.native.num_changes)
        if now not in known:
            known.clear()
            known[now] = utility

    def _evaluated(
        self, request: JobRequest, view: ClusterView, most_memory_gb: float
    ) -> Iterator[tuple[Sequence[int], Evaluation]]:
        """Yield the possible assignments over several machines that the policy tries, or else one that a search finds.

        most_memory_gb: limit on the memory of each GPU, GB.
        """
        offers = self._offers(request, view, most_memory_gb)
        legal, possible = view.cluster.topology.is_legal, False
        for gpus in assignments.candidates(self, request, view, offers):
            found = self.evaluate(request, gpus, view)
            if found and legal(gpus):
                possible = True
                yield gpus, found
        other = None if possible else assignments.connected_assignment(request, view, offers)
        if other and (found := self.evaluate(request, other, view)):
            yield other, found

    def _offers(self, request: JobRequest, view: ClusterView, most_memory_gb: float = math.inf) -> Offers:
        return offers_of(
            self.max_tasks,
            request,
            view,
            most_memory_gb,
            sees_jobs=self.sees_jobs,
            may_reslice=self.may_reslice,
        )

    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if no such reason is known."""
        request, cluster = view.request(job), view.cluster

        def find() -> Refusal | None:
            by_count = why_never(job, cluster.topology, cluster.hosts)
            return by_count or self.why_unfit(request, view) or rules.why_never(request, view, self.max_tasks)

        return request.table((self, "never"), find)

    def _ranked(self, job: JobGraph, view: ClusterView, chosen: Placement | None) -> Iterator[Placement]:
        """Yield placements on different GPU sets: `chosen` first, then every other option on one machine, best first.

        If `chosen` is None and no machine has an option, yield the best split over several machines.
        """
        seen: set[frozenset[int]] = set()
        request = view.request(job)
        options = () if request.anti_affine else self._machine_options(request, view).ranked()
        ranked = (self._placement(job, request, view, *found) for found in options)
        second = next(ranked, None)
        first = chosen or second or self.search(job, view, -math.inf)
        for placement in chain((one for one in (first, second) if one), ranked):
            gpus = frozenset(placement.gpus)
            if gpus not in seen:
                seen.add(gpus)
                yield placement

    def _machine_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        return view.table((self, request), partial(self._new_options, request, view))

    def _new_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        def evaluate(machine_class: MachineClass, state: MachineState) -> Options:
            return self._options(request, machine_class, state)

        def scores(machine_class: MachineClass, option: Option) -> Mapping[str, float]:
            return Scores({**request.link_scores(machine_class, option.gpus), **self.scores(option.details)})

        sight = Sight(jobs=self.sees_jobs, shares=request.takes_parts or self.may_reslice)
        conditions = view.conditions(sight)
        return MachineOptions(conditions, request.whole_job, evaluate, scores)

    def _options(self, request: JobRequest, machine_class: MachineClass, state: MachineState) -> Options:
        """Return the ways to place the whole job on a machine of this class in this state, best first."""
        free = request.free_on(machine_class, state, may_reslice=self.may_reslice)
        usable = free & request.suitable(machine_class)
        if not 0 < request.size <= usable.bit_count():
            return ()
        if self.max_tasks(request, state) < request.size:
            return ()
        found = (one.checked() for one in self._options_by_memory(request, machine_class, state, usable))
        return sorted(found, key=lambda option: (option.order, sorted(option.gpus), option.gpus))

    def _options_by_memory(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, usable: Mask
    ) -> Iterator[Option]:
        """Yield the options under each limit on GPU memory; if there are several, sort keys begin with the limit."""
        limits = request.memory_limits
        for limit in limits:
            within = usable & request.suitable(machine_class, limit)
            if within.bit_count() < request.size:
                continue
            for option in self.options(request, machine_class, state, within):
                yield option if len(limits) == 1 else option._replace(order=(limit, *option.order))

    def _placement(
        self, job: JobGraph, request: JobRequest, view: ClusterView, machine: int, choice: Choice
    ) -> Placement:
        numbers = view.classes.gpus_of[machine]
        gpus = tuple([numbers[local] for local in choice.option.gpus])
        return _placed(job, gpus, view.cluster, choice.scores)


class _Planning:
    """Decides the jobs of a queue in walks along it, and allocates those that start on the cluster."""

    def __init__(self, policy: MachinePolicy, cluster: Cluster) -> None:
        self.head_blocks = not policy.out_of_order
        self._policy = policy
        self._cluster = cluster
        self._num_gpus = cluster.topology.num_gpus
        self._view = cluster.view(ClusterView)
        self._always_honoured = always_honoured(cluster, policy.all_honoured)
        own = getattr(policy.least_utility, "__func__", None)
        self._asks_all_alike = own is MachinePolicy.least_utility
        self._num_free = cluster.num_free
        self._places_without_gpus = policy.may_fit(JobGraph.without_gpus(cpus=1), 0)
        self._version: int | None = None
        self._failed: dict[JobRequest, list[_Failure]] = {}
        """How requests failed in this walk, the highest least utility first; jobs that started since make no room."""
        self._fresh: dict[JobRequest, _Failure] = {}
        """Those of them that would fail again, as no job has started since."""
        self._before: dict[JobRequest, _Failure] = {}
        """What was fresh at the end of the last walk, if the cluster has not changed since."""

    def kind_of(self, job: JobGraph) -> Hashable:
        """Return the job's kind; a job with a requirement that cannot be honoured is not of the kind of others."""
        request, refused = self._view.request(job), self._refusal(job) is not None
        if self._asks_all_alike:
            return request, refused
        return request, refused, job.name, job.bandwidth_sensitive, job.min_utility

    def begin(self) -> None:
        """Begin a walk along the queue."""
        self._num_free = self._cluster.num_free
        same = self._version == self._cluster.native.num_changes
        self._before = self._fresh if same else {}
        self._failed, self._fresh = {}, {}

    def decide(self, entry: QueuedJob | WaitingJob) -> Outcome:
        """Return the outcome of a job; if it starts, allocate its placement."""
        job, policy, view = entry.job, self._policy, self._view
        if job.requirements and (refusal := self._refusal(job)):
            return refusal
        if not self.can_defer(job):
            # Only a head that blocks the queue needs to know whether it can ever run.
            return policy.why_never(job, view) if self.head_blocks else None
        request = view.request(job)
        least = -math.inf if self._asks_all_alike else policy.least_utility(job, entry.postponed)
        known = self._failure(request, least)
        if known is None:
            placement = None
            if policy.may_fit(job, self._num_free):
                placement = policy.search_for(job, request, view, least)
            if placement is not None:
                self._cluster.allocate(entry.job_id, placement)
                self._num_free = self._cluster.num_free
                self._before, self._fresh = {}, {}
                return placement
            if refusal := policy.why_never(job, view):
                return refusal
            known = _Failure(least, policy.refused_utility(job, view, least))
            self._fresh[request] = known
            self._failed.setdefault(request, []).append(known)
            self._version = self._cluster.native.num_changes
        return None if known.utility is None else policy.why_postponed(job, known.utility)

    def can_defer(self, job: JobGraph) -> bool:
        """Return False if too few GPUs are free, shared or sliced for the job, although the cluster has enough."""
        has_tasks = 0 < job.num_tasks <= self._num_gpus
        return not has_tasks or (self._policy.may_fit(job, self._num_free) and not self.exhausted())

    def exhausted(self) -> bool:
        """Return True if no job with GPUs can start: none is free, shared or sliced."""
        return self._num_free <= 0 and not (self._cluster.native.num_divided or self._places_without_gpus)

    def _refusal(self, job: JobGraph) -> Refusal | None:
        if self._always_honoured.issuperset(job.requirements):
            return None
        return cannot_honour(job, self._cluster, self._policy.name, self._policy.all_honoured)

    def _failure(self, request: JobRequest, least_utility: float) -> _Failure | None:
        """Return how the request failed in this walk, or would have, for jobs that ask for no more utility; or None."""
        for known in self._failed.get(request, ()):
            if least_utility >= known.least_utility:
                return known
        before = self._before.get(request)
        if before is None or least_utility < before.least_utility:
            return None
        self._fresh[request] = before
        found = _Failure(least_utility, before.utility)
        self._failed.setdefault(request, []).append(found)
        return found


class _Failure(NamedTuple):
    """A request without a placement of enough utility."""

    least_utility: float
    utility: float | None
    """The utility of its best placement; None if it has none, or if any utility would have been enough."""


def _placed(job: JobGraph, gpus: tuple[int, ...], cluster: Cluster, scores: Mapping[str, float]) -> Placement:
    topology = cluster.topology
    hosts = host_shares(job, gpus, topology) if needs_hosts(job) else ()
    if job.mig is None and not cluster.sliced_gpus:
        return Placement(gpus, scores=scores, topology=topology, job=job, hosts=hosts)
    slices, resliced = slices_for(job, gpus, cluster)
    return Placement(
        gpus, scores=scores, topology=topology, job=job, hosts=hosts, slices=slices, resliced=resliced
    )


def _no_splits() -> dict[tuple[JobRequest, int], float]:
    return {}


def _view(job: JobGraph, cluster: Cluster) -> ClusterView:
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    return cluster.view(ClusterView)
