"""The part that all policies of the engine share: checks, explanations, and the walk along a queue.

How a decision flows: `place` checks the arguments and the requirements, and calls `find`. `explain` lists what
`candidates` yields, with the reason of `why_not`. `plan` walks along the queue: for each job, it looks up whether an
equal one has failed; if not, it calls `find` and allocates the result. A kind of rule provides `find` and `candidates`:
one search (`SearchPolicy`), options of machines (`MachinePolicy`), nodes (`NodeQueue`), or batches (`DRMaestro`, which
plans several jobs at once).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine import one_maker
from topoplace.engine.effort import Effort
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import FOR_EVER, Explanation, Plan, QueuedJob
from topoplace.engine.queueing import Outcome, checked_queue, sizes_to_try, walk
from topoplace.engine.requirements import always_honoured, cannot_honour
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels import WorkBudget
from topoplace.placement import Placement, Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from topoplace.engine.queueing import WaitingJob


class PolicyDriver(ABC):
    """Base of the policies of the engine."""

    name: str
    honours: frozenset[str] = frozenset()
    """The requirements that the policy honours in addition to those of every policy; see `engine.requirements`."""
    out_of_order: bool = True
    """True if a job may start while an older one in the queue waits."""

    # ---- what a kind of rule provides ----------------------------------------------------------------------

    @abstractmethod
    def find(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the placement with which the job starts now; None if nothing fits or waiting is better.

        The caller has checked that all requirements can be honoured. postponed: the number of times the job was
        deferred.
        """

    @abstractmethod
    def candidates(self, job: JobGraph, view: ClusterView, effort: Effort) -> Iterator[Placement | Refusal]:
        """Yield placements on different GPU sets, best first: that of `find`, if there is one, then others.

        A refusal is the last item. effort: the work that all candidates after the first may take.
        """

    @abstractmethod
    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if no such reason is known."""

    @abstractmethod
    def why_not_now(self, job: JobGraph, view: ClusterView) -> Refusal:
        """Return why a job that could run on an idle cluster cannot start now."""

    def why_not(self, job: JobGraph, view: ClusterView, candidates: Sequence[Placement]) -> Refusal | None:
        """Return why `find` returns no placement; None if it returns the first of `candidates`."""
        return None if candidates else self.why_never(job, view) or self.why_not_now(job, view)

    def honoured_on(self, cluster: Cluster) -> frozenset[str]:
        """Return the requirements that the policy honours on this cluster, in addition to those of every policy."""
        return self.honours

    def view_of(self, cluster: Cluster) -> ClusterView:
        """Return the tables derived from a cluster; ValueError for a cluster that the policy cannot search."""
        if type(cluster) is not Cluster:
            _checks.instance(cluster, Cluster, "cluster", ValueError)
        return cluster.view(ClusterView)

    def checked_view(self, job: JobGraph, cluster: Cluster) -> ClusterView:
        """Check a job and a cluster, and return the tables derived from the cluster; errors are those of `place`."""
        view = self.view_of(cluster)
        if type(job) is not JobGraph:
            _checks.instance(job, JobGraph, "job", ValueError)
        if refusal := self.refusal_of(job, cluster):
            raise ValueError(refusal.reason)
        return view

    def refusal_of(self, job: JobGraph, cluster: Cluster) -> Refusal | None:
        """Return the refusal of the first requirement whose value cannot be honoured; None if all can be honoured."""
        return cannot_honour(job, cluster, self.name, self.honoured_on(cluster)) if job.requirements else None

    def effort(self, job: JobGraph) -> Effort:
        """Return the work that `explain` may take."""
        return Effort(WorkBudget())

    # ---- what a queue asks ---------------------------------------------------------------------------------

    def awaited(self, job: JobGraph, cluster: Cluster) -> JobGraph:
        """Return the job with limits on its placement while it waits in a queue; by default, the job without limits.

        A queue first looks for a placement within these limits. Without one, the job waits for `patience` seconds and
        then starts wherever it fits. `place` ignores these limits: it decides now.
        """
        return job

    def patience(
        self, job: JobGraph, cluster: Cluster, seconds: float, other: Placement | None = None
    ) -> float:
        """Return how many seconds after its submission a job waits for a placement within the limits of `awaited`.

        seconds: expected run time of the job, NaN if unknown. other: the placement with which the job would start
        otherwise; None means the best one of an idle cluster, for which the result is smallest.
        """
        return 0.0

    def why_awaits(self, job: JobGraph, cluster: Cluster, other: Placement | None = None) -> Refusal:
        """Return why a job waits for a placement within the limits of `awaited`; other: as for `patience`."""
        raise NotImplementedError(f"{self.name} lets no job wait for limits of its own")

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """Return the utility below which the job waits instead of starting; by default no job waits.

        postponed: the number of times the job was deferred; with more, the utility never rises.
        """
        return -math.inf

    def may_fit(self, job: JobGraph, num_free: int) -> bool:
        """Return False if `num_free`, the number of wholly free GPUs, is too small for the job."""
        return True

    def kind_of(self, job: JobGraph, view: ClusterView) -> Hashable:
        """Return the job's class: jobs of one class get the same decision in the same state."""
        return self.need_of(job, view)

    def need_of(self, job: JobGraph, view: ClusterView) -> Hashable:
        """Return a key for the job's needs: if a job finds no placement, no job of equal key and least utility does."""
        return view.request(job)

    def lack_of(self, job: JobGraph, view: ClusterView, least_utility: float) -> Any:
        """Return the data from which `why_deferred` states why a job found no placement; None by default.

        The method is called once for all jobs of equal `need_of`. least_utility: the utility that a placement had to
        reach.
        """
        return None

    def why_deferred(self, job: JobGraph, lack: Any) -> Refusal | None:
        """Return why the job is deferred; None if it waits without a reason. lack: the `lack_of` of a job of equal
        need.
        """
        return None

    def failures(self) -> Failures:
        """Return an empty record of the jobs that found no placement."""
        return Failures()

    def found(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the placement of `find`, for a pre-emptible job without one that on lent spares.

        If it mixes makers without permission, return the fastest one on GPUs of one maker.
        """
        placement = self.find(job, view, postponed)
        if placement is not None:
            return self._of_one_maker(job, placement, view, postponed) if job.edges else placement
        if job.is_preemptible:
            with view.cluster.lending(job) as are_any:
                lending = self.view_of(view.cluster)
                placement = self.find(job, lending, postponed) if are_any else None
                return placement and self._of_one_maker(job, placement, lending, postponed)
        return None

    def _of_one_maker(
        self, job: JobGraph, placement: Placement, view: ClusterView, postponed: int
    ) -> Placement | None:
        if not one_maker.mixes(job, placement):
            return placement
        return one_maker.decided(lambda own: self.find(job, self.view_of(own), postponed), view.cluster)

    def never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster, by the policy's rules or for lack of one maker's
        GPUs; else None.
        """
        return self.why_never(job, view) or one_maker.why_never(job, view.cluster)

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the best placement of `job` on the free GPUs; None when nothing fits or waiting is better.

        Raise ValueError for a requirement that this policy or the cluster cannot honour. Also raise it for a machine,
        or a topology without a fabric, of more than 4096 GPUs.
        """
        return self.found(job, self.checked_view(job, cluster))

    def has_room(self, job: JobGraph, cluster: Cluster) -> bool:
        """Return True if `place` returns a placement now. It may be much faster than `place`."""
        return self.place(job, cluster) is not None

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return up to `top` placements on different GPU sets: that of `place` first, then others, best first.

        If `place` would return None, the explanation also contains the reason. If a requirement cannot be honoured,
        there is only the reason. `complete` is False if the search for candidates after the first reached its limit. At
        most `2 * top` placements are examined. Raise ValueError for a `top` below 1, and as for `place`.
        """
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        self.view_of(cluster)
        _checks.instance(job, JobGraph, "job", ValueError)
        found = self._explained(job, cluster, top)
        if found.refusal is None or not job.is_preemptible:
            return found
        with cluster.lending(job) as are_any:
            return self._explained(job, cluster, top) if are_any else found

    def _explained(self, job: JobGraph, cluster: Cluster, top: int) -> Explanation:
        view = self.view_of(cluster)
        if refusal := self.refusal_of(job, cluster):
            return Explanation(self.name, (), refusal)
        effort = self.effort(job)
        candidates = self.candidates(job, view, effort)
        kept = one_maker.kept(lambda own: self.find(job, self.view_of(own)), job, cluster, candidates)
        found, refusal = different_gpu_sets(kept, top)
        return Explanation(self.name, found, refusal or self.why_not(job, view, found), effort.complete)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return the jobs that start, are deferred or are rejected, decided one by one in queue order.

        Jobs that do not fit even the idle cluster, or have a requirement that cannot be honoured, are rejected; a
        policy with `out_of_order` may reject the former only later, when enough GPUs are free to try them. Without
        `out_of_order`, no job starts before an older one that waits. An elastic job starts with the largest number of
        tasks that fits. The cluster is not changed afterwards.

        Args:
            now: Time in seconds, on the clock of the jobs' submission times.

        Raises:
            ValueError: A job id occurs twice in the queue, or is that of a running job.
        """
        self.view_of(cluster)
        now = _checks.real(now, "now", ValueError, low=-math.inf)
        entries = checked_queue(queue, cluster)
        with cluster.what_if() as state:
            jobs = QueueWalk(self, state)
            jobs.begin(now)
            return walk(entries, jobs.decide, head_blocks=jobs.head_blocks, exhausted=jobs.exhausted)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def different_gpu_sets(
    candidates: Iterator[Placement | Refusal], count: int
) -> tuple[tuple[Placement, ...], Refusal | None]:
    """Return up to `count` placements on different GPU sets, in order, and the refusal if that comes first.

    Only the first `2 * count` are examined.
    """
    found: dict[frozenset[int], Placement] = {}
    for _, candidate in zip(range(2 * count), candidates, strict=False):
        if isinstance(candidate, Refusal):
            return tuple(found.values()), None if found else candidate
        found.setdefault(frozenset(candidate.gpus), candidate)
        if len(found) == count:
            break
    return tuple(found.values()), None


def without_limits(placement: Placement, job: JobGraph) -> Placement:
    """Return a placement found under limits as one of the job without them; drop proofs that the limits void."""
    is_proven = placement.job is not None and placement.job.within == job.within
    bound = placement.bound if is_proven else None
    return replace(placement, job=job, optimal=placement.optimal and is_proven, bound=bound)


class QueueWalk:
    """Walks along a queue that decide each job, and allocate the jobs that start on the cluster.

    A plan is one walk; a `LiveQueue` repeats walks.
    """

    def __init__(self, policy: PolicyDriver, cluster: Cluster) -> None:
        self.head_blocks = not policy.out_of_order
        self._policy = policy
        self._cluster = cluster
        self._num_gpus = cluster.topology.num_gpus
        self._view = policy.view_of(cluster)
        self._always_honoured = always_honoured(cluster, policy.honoured_on(cluster))
        own = getattr(policy.least_utility, "__func__", None)
        self._asks_all_alike = own is PolicyDriver.least_utility
        self._num_free = cluster.num_free
        self._places_without_gpus = policy.may_fit(JobGraph.without_gpus(cpus=1), 0)
        self._failures = {is_preemptible: policy.failures() for is_preemptible in (False, True)}
        self._now = 0.0
        self._others: dict[tuple[Hashable, bool], tuple[int, Placement]] = {}
        """Where jobs would start that wait for certain GPUs, by their needs and whether they are pre-emptible, with the
        number of changes before.
        """
        self.wakes = math.inf
        """When, in seconds, a job starts elsewhere that waits for certain GPUs, if nothing happens before."""

    def kind_of(self, entry: QueuedJob | WaitingJob) -> Hashable:
        """Return the job's class; a job with a requirement that cannot be honoured shares its class with no honoured
        job.
        """
        job = entry.job
        kind = self._policy.kind_of(job, self._view), job.elastic
        refused = self._refusal(job) is not None
        waits = not refused and self._awaited(job) is not job
        seconds = _power_of_two(entry.requested_time) if waits else None
        if self._asks_all_alike:
            return kind, refused, seconds, job.is_preemptible
        return kind, refused, seconds, job.is_preemptible, job.name, job.bandwidth_sensitive, job.min_utility

    def begin(self, now: float) -> None:
        """Begin a walk along the queue at time `now`, in seconds."""
        self._now = now
        self.wakes = math.inf
        self._num_free = self._cluster.num_free
        for failures in self._failures.values():
            failures.begin(self._cluster.native.num_changes)

    def decide(self, entry: QueuedJob | WaitingJob) -> Outcome:
        """Return the outcome of a job; if it starts, allocate its placement.

        An elastic job starts with the largest number of tasks that fits, wherever that is; else the outcome is that of
        the least.
        """
        if entry.job.elastic is None:
            return self._decided(entry)
        outcome: Outcome = None
        for size in sizes_to_try(entry.job, self._num_free):
            outcome = self._decided(_resized(entry, size))
            if isinstance(outcome, Placement):
                break
        return outcome

    def _decided(self, entry: QueuedJob | WaitingJob) -> Outcome:
        job, policy = entry.job, self._policy
        if job.requirements and (refusal := self._refusal(job)):
            return refusal
        if not self.can_defer(job):
            # Only a head that blocks the queue needs to know whether it can ever run.
            return policy.why_never(job, self._view) if self.head_blocks else None
        awaited = self._awaited(job)
        if awaited is not job and entry.postponed < FOR_EVER:
            found = self._tried(entry, awaited)
            if isinstance(found, Placement):
                return found
            if self._waits(entry):
                return policy.why_awaits(job, self._cluster)
            return self._tried(entry, job, may_wait=True)
        return self._tried(entry, job)

    def _awaited(self, job: JobGraph) -> JobGraph:
        """Return what the policy calls `awaited`; an elastic job waits for no certain GPUs."""
        return job if job.elastic else self._policy.awaited(job, self._cluster)

    def _waits(self, entry: QueuedJob | WaitingJob, other: Placement | None = None) -> bool:
        """Return True if a job still waits for what the policy calls `awaited`; the jobs of a kind wait equally long.

        other: where it would start else; None for the best place on an idle cluster.
        """
        seconds = _power_of_two(entry.requested_time)
        expected = math.nan if seconds is None else seconds
        patience = self._policy.patience(entry.job, self._cluster, expected, other)
        until = entry.submit_time + patience
        if not patience or self._now >= until:  # a clock may be behind that of the submission
            return False
        self.wakes = min(self.wakes, until)
        return True

    def _tried(self, entry: QueuedJob | WaitingJob, job: JobGraph, *, may_wait: bool = False) -> Outcome:
        """Return the outcome of a job that is asked for as `job`; if it starts, allocate its placement.

        may_wait: True if it waits for what the policy calls `awaited` where this placement is too slow.
        """
        policy, view, failures = self._policy, self._view, self._failures[job.is_preemptible]
        need = policy.need_of(job, view)
        key = need, job.is_preemptible
        least = -math.inf if self._asks_all_alike else policy.least_utility(job, entry.postponed)
        failure = failures.find(need, least)
        if failure is None:
            placement = None
            if not failures.cover(need):
                placement = self._elsewhere(key) or policy.found(job, view, entry.postponed)
            if placement is not None and may_wait and self._waits(entry, placement):
                self._others[key] = self._cluster.native.num_changes, placement
                return policy.why_awaits(job, self._cluster, placement)
            if placement is not None:
                if job is not entry.job:
                    placement = without_limits(placement, entry.job)
                self._cluster.allocate(entry.job_id, placement, entry.job)
                self._num_free = self._cluster.num_free
                for each in self._failures.values():
                    each.started(self._cluster.native.num_changes)
                return placement
            if job is entry.job and (refusal := policy.never(job, view)):
                return refusal
            failure = Failure(least, policy.lack_of(job, view, least))
            failures.add(need, failure, self._cluster.native.num_changes)
        return policy.why_deferred(job, failure.lack)

    def _elsewhere(self, key: tuple[Hashable, bool]) -> Placement | None:
        """Return where a job of this key starts in the present state, if that was found while it waited."""
        version, placement = self._others.pop(key, (-1, None))
        return placement if version == self._cluster.native.num_changes else None

    def can_defer(self, job: JobGraph) -> bool:
        """Return False if too few GPUs are free, shared or sliced for the job, although the cluster has enough."""
        has_tasks = 0 < job.num_tasks <= self._num_gpus
        num_free = self._num_free + (self._cluster.num_lent if job.is_preemptible else 0)
        return not has_tasks or (self._policy.may_fit(job, num_free) and not self.exhausted())

    def exhausted(self) -> bool:
        """Return True if no job with GPUs can start: none is free, shared, sliced or lent."""
        native = self._cluster.native
        return self._num_free <= 0 and not (
            native.num_divided or self._places_without_gpus or self._cluster.num_lent
        )

    def _refusal(self, job: JobGraph) -> Refusal | None:
        if self._always_honoured.issuperset(job.requirements):
            return None
        return self._policy.refusal_of(job, self._cluster)


def _resized(entry: QueuedJob | WaitingJob, num_tasks: int) -> QueuedJob:
    """Return a waiting job with another number of tasks, with which it takes longer in proportion."""
    seconds = entry.requested_time * entry.job.num_tasks / num_tasks
    return QueuedJob(
        entry.job_id, entry.job.with_tasks(num_tasks), entry.submit_time, entry.postponed, seconds
    )


def _power_of_two(seconds: float) -> float | None:
    """Return a time rounded down to a power of two, so that there are few kinds of jobs; None if it is not known."""
    return math.ldexp(0.5, math.frexp(seconds)[1]) if 0 < seconds < math.inf else None


class Failure(NamedTuple):
    """A search that found no placement with the least utility."""

    least_utility: float
    lack: Any
    """What kept a job of this need from starting: the result of `PolicyDriver.lack_of`."""


class Failures:
    """The failed searches of a walk, and those of the previous walk if the cluster has not changed since.

    Jobs that start in a walk make no room for others, but may change the reasons of others.
    """

    def __init__(self) -> None:
        self._version: int | None = None
        self._failed: dict[Hashable, list[Failure]] = {}
        """How needs failed in this walk, the highest least utility first."""
        self._fresh: dict[Hashable, Failure] = {}
        """Those of them that would fail again in the same way, as no job has started since."""
        self._before: dict[Hashable, Failure] = {}
        """What was fresh at the end of the last walk, if the cluster has not changed since."""

    def begin(self, version: int) -> None:
        """Begin a walk. version: the number of the cluster's changes."""
        self._before = self._fresh if self._version == version else {}
        self._failed, self._fresh = {}, {}

    def find(self, need: Hashable, least_utility: float) -> Failure | None:
        """Return the known failure of a search for this need and this least utility; None if no failure is known.

        In one walk, a search that failed also fails for the same need with a higher least utility. A failure of the
        previous walk counts if the cluster has not changed since.
        """
        for known in self._failed.get(need, ()):
            if least_utility >= known.least_utility:
                return known
        before = self._before.get(need)
        if before is None or least_utility < before.least_utility:
            return None
        self._fresh[need] = before
        found = Failure(least_utility, before.lack)
        self._failed.setdefault(need, []).append(found)
        return found

    def cover(self, need: Hashable) -> bool:
        """Return True if a smaller need has failed, so that no search for this one is worth while."""
        return False

    def add(self, need: Hashable, failure: Failure, version: int) -> None:
        """Record a failure. version: the number of the cluster's changes."""
        self._fresh[need] = failure
        self._failed.setdefault(need, []).append(failure)
        self._version = version

    def started(self, version: int) -> None:
        """Record that a job has started. version: the number of the cluster's changes, this one included."""
        self._before, self._fresh = {}, {}


def queue_walk(policy: object, cluster: Cluster) -> QueueWalk | None:
    """Return the queue walk of a policy of the engine; None for other policies, and for one with its own `plan`."""
    own = getattr(getattr(policy, "plan", None), "__func__", None)
    return (
        QueueWalk(policy, cluster) if isinstance(policy, PolicyDriver) and own is PolicyDriver.plan else None
    )
