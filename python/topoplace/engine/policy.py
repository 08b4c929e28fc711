"""The policy protocol, and a base class for policies that are defined by one search method.

To write a policy, implement all methods of `Policy`, or derive from `SearchPolicy` and implement only `best`. See
`examples/own_policy.py`.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.host_shares import host_shares
from topoplace.engine import cluster_search
from topoplace.engine.admission import (
    MAX_SEARCHED_GPUS,
    GpuSet,
    candidate_gpu_sets,
    enough_suit,
    joined_gpu_sets,
    memory_limits,
    tasks_per_machine,
)
from topoplace.engine.effort import Effort
from topoplace.engine.plan import Explanation, Plan, QueuedJob, check_answer
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.engine.requirements import BY_LEVEL, cannot_honour, require_honoured
from topoplace.engine.slices import slices_for
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels import WorkBudget
from topoplace.placement import Placement, Refusal

if TYPE_CHECKING:
    from topoplace.engine.queues.live_queue import LiveRule
    from topoplace.engine.queues.waiting_kind import WaitingJob


@runtime_checkable
class Policy(Protocol):
    """An object that chooses GPUs for jobs. It leaves the cluster as it was, and equal inputs give equal results."""

    @property
    def name(self) -> str:
        """The policy's name in tables and on the command line."""
        ...

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the placement of `job` on free GPUs of `cluster`; None if nothing fits or waiting is better."""
        ...

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return up to `top` candidates with their scores, best first, and the reason if `place` would return None."""
        ...

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return which jobs to start, defer or reject at time `now`, in seconds.

        queue: the waiting jobs, oldest first.
        """
        ...


class SearchPolicy(ABC):
    """Base of policies that need only one method, `best`; it provides requirement checks, ranking and queueing.

    On a cluster of several machines that a fabric joins, `best` sees one machine after the other, or the machines that
    share a job, as a cluster of their own: see `cluster_search`. What it answers is kept for machines in equal
    condition, so options of a policy must not change after its first decision.

    The queue is strictly first in, first out: no job starts before an older one. A job that can never run is rejected.
    """

    name: str
    honours: frozenset[str] = frozenset()
    """The requirements that the policy honours beside those of every policy; see `engine.requirements`."""

    num_ranking_nodes: int = 4_000_000
    """Search tree nodes that `explain` may visit to find the candidates after the first one; about a second's work."""

    @abstractmethod
    def best(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> Placement | None:
        """Return the best placement on GPUs of `free` that uses all GPUs in `required`; None if there is none.

        `free` contains only free GPUs that meet the job's requirements, at least one per task. It may be smaller than
        `cluster.free_gpus()`. The best placement has the smallest `order`; ties go to the lexicographically smallest
        ascending GPU list.
        """

    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return what `best` returns; a policy that counts the nodes of its searches takes them from `budget`.

        When the budget is spent, return the best placement found so far, or raise SearchTimeoutError if there is none.
        """
        return self.best(job, cluster, free, required)

    def decision_budget(self) -> WorkBudget:
        """Return the limit on the nodes of all searches for one decision; by default there is none."""
        return WorkBudget()

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement; smaller is better. By default all keys are equal and GPU ids decide."""
        return ()

    def machine_order(self, job: JobGraph, placement: Placement, machine: Cluster) -> tuple[float, ...]:
        """Return the sort key by which the best placements of different machines compare; by default their `order`.

        machine: the machine as a cluster of its own, before the placement.
        """
        return self._checked_order(job, placement)

    def reason_to_wait(self, job: JobGraph, placement: Placement) -> Refusal | None:
        """Return why the job should wait although `placement`, its best one, is possible; None to accept it."""
        return None

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the best placement of `job` on the free GPUs; None when nothing fits or waiting is better.

        ValueError names a requirement that this policy or the cluster cannot honour. ValueError also for a machine, or
        a topology without a fabric, of more than 4096 GPUs.
        """
        _check_size(cluster)
        _checks.instance(job, JobGraph, "job", ValueError)
        require_honoured(job, cluster, self.name, self.honoured_on(cluster))
        simple = not (job.requirements or cluster_search.is_split(cluster.topology))
        where = candidate_gpu_sets(job, cluster) if simple else []
        placement = None
        if len(where) == 1 and len(where[0]) >= job.num_tasks:  # the usual case: nothing to rank
            placement = self.best(job, cluster, where[0])
            check_answer(placement, Placement, self, "best", or_none=True)
        if placement is None and (len(where) != 1 or cluster.topology.partitioned_gpus):
            placement = next(self._candidates(job, cluster, Effort(self.decision_budget())), None)
        return None if placement is None or self._waits(job, placement) else placement

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return up to `top` best GPU sets, each as its best placement with scores.

        If `place` would return None, the explanation also contains the reason. The first candidate takes the work of
        `place`; the others are searched for until `num_ranking_nodes` are visited, and `complete` says whether that was
        enough. ValueError for a `top` below 1, and as for `place`.
        """
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        _check_size(cluster)
        _checks.instance(job, JobGraph, "job", ValueError)
        if refusal := cannot_honour(job, cluster, self.name, self.honoured_on(cluster)):
            return Explanation(self.name, (), refusal)
        effort = Effort(self.decision_budget(), self.num_ranking_nodes, max(1, job.num_tasks))
        candidates = tuple(islice(self._candidates(job, cluster, effort), top))
        if candidates:
            refusal = self._waits(job, candidates[0])
        else:
            refusal = cluster_search.why_never(job, cluster) or cluster_search.why_not_now(job, cluster)
        return Explanation(self.name, candidates, refusal, effort.complete)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return which jobs start, from the head of the queue until one has to wait.

        Jobs that can never run, or have a requirement that cannot be honoured, are rejected and do not block the queue.
        The cluster is not changed afterwards. ValueError for too many GPUs, as for `place`.
        """
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = checked_queue(queue)
        with cluster.what_if() as state:
            return walk(entries, self.live_rule(state).decide, head_blocks=True)

    def live_rule(self, cluster: Cluster) -> LiveRule:
        """Return the rule by which `plan` decides job after job; it allocates those that start."""
        return _Deciding(self, cluster)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def honoured_on(self, cluster: Cluster) -> frozenset[str]:
        """Return the requirements that the policy honours on this cluster, beside those of every policy."""
        by_machines = cluster.topology.num_machines == 1 or cluster_search.is_split(cluster.topology)
        honours = self.honours | {"gpu_fraction", "mig"}
        return honours | BY_LEVEL if by_machines else honours

    def ranked(self, job: JobGraph, cluster: Cluster, effort: Effort) -> Iterator[Placement]:
        """Yield the best placement of each GPU set of a small cluster, best first, by GPU memory if the job states it.

        The search looks at all pairs of GPUs, whatever machines they are on. Partitions of several machines are joined
        only if there is no placement without that.
        """
        limits = memory_limits(job, cluster.topology)
        seen: set[frozenset[int]] = set()
        for limit in limits:
            separate = [(gpus, frozenset[int]()) for gpus in candidate_gpu_sets(job, cluster, limit)]
            found = self._ranked_among(job, cluster, separate, effort)
            first = next(found, None)
            if first is None:
                found = self._ranked_among(job, cluster, joined_gpu_sets(job, cluster, limit), effort)
            for placement in chain(() if first is None else (first,), found):
                gpus = frozenset(placement.gpus)
                if gpus not in seen:
                    seen.add(gpus)
                    yield placement

    def _checked_order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return `order`; PolicyError if it is no tuple."""
        order = self.order(job, placement)
        check_answer(order, tuple, self, "order")
        return order

    def _waits(self, job: JobGraph, placement: Placement) -> Refusal | None:
        """Return `reason_to_wait`; PolicyError if it is no Refusal."""
        refusal = self.reason_to_wait(job, placement)
        check_answer(refusal, Refusal, self, "reason_to_wait", or_none=True)
        return refusal

    def _candidates(self, job: JobGraph, cluster: Cluster, effort: Effort) -> Iterator[Placement]:
        """Yield placements on different GPU sets, best first; on a cluster of several machines machine by machine."""
        split = cluster_search.is_split(cluster.topology)
        if split:
            found = cluster_search.ranked(self, job, cluster, effort)
        elif job.takes_parts:
            found = cluster_search.ranked_for_parts(self, job, cluster, effort)
        else:
            found = self.ranked(job, cluster, effort)
        return (_with_hosts(_with_slices(placement, job, cluster), job, cluster) for placement in found)

    def _ranked_among(
        self, job: JobGraph, cluster: Cluster, gpu_sets: Iterable[tuple[GpuSet, GpuSet]], effort: Effort
    ) -> Iterator[Placement]:
        """Yield the best placements of different GPU sets inside one of `gpu_sets`, best first.

        gpu_sets: GPUs that may be used, and those of them that must be used.
        The ranking uses Lawler's partition. The sets other than {a, b, c} are those without a, those with a but
        without b, and those with a and b but without c. Method `best` then finds the best set of each part. Once the
        budget for candidates after the first is spent, the placements found so far are yielded.
        """

        def solve(free: GpuSet, required: GpuSet, budget: WorkBudget) -> None:
            if len(free) < job.num_tasks:
                return
            placement = self.best_within(job, cluster, free, required, budget)
            check_answer(placement, Placement, self, "best", or_none=True)
            if placement is not None:
                gpus = sorted(placement.gpus)
                order = self._checked_order(job, placement), gpus
                heapq.heappush(parts, (order, next(number), placement, free, required))

        parts: list[tuple[tuple[tuple[float, ...], list[int]], int, Placement, GpuSet, GpuSet]] = []
        number = count()  # sets that overlap may have the same best placement
        skipped = False
        for gpu_set, required in gpu_sets:
            skipped = skipped or (bool(parts) and effort.decision.spent)
            if not skipped:
                solve(gpu_set, required, effort.decision)
        while parts:
            (_, gpus), _, placement, free, required = heapq.heappop(parts)
            yield replace(placement, optimal=False) if skipped else placement
            kept = required
            for gpu in gpus:
                if gpu not in required:
                    effort.extend(partial(solve, free - {gpu}, kept))
                    kept |= {gpu}


class _Deciding:
    """Decides the jobs of a queue, of which the oldest blocks it, and allocates those that start on the cluster."""

    head_blocks = True

    def __init__(self, policy: SearchPolicy, cluster: Cluster) -> None:
        self._policy = policy
        self._cluster = cluster
        self._last: tuple[JobGraph, int, Outcome] | None = None
        """The last job that waited, the number of the cluster's changes by then, and the reason."""

    def kind_of(self, job: JobGraph) -> Hashable:
        """Return the same kind for all jobs."""
        return None

    def begin(self) -> None:
        """Begin a walk along the queue."""

    def decide(self, entry: QueuedJob | WaitingJob) -> Outcome:
        """Return the outcome of a job; if it starts, allocate its placement."""
        job, last = entry.job, self._last
        changes = self._cluster.native.num_changes
        if last is not None and last[0] is job and last[1] == changes:
            return last[2]
        outcome = self._decided(entry)
        if outcome is None or (isinstance(outcome, Refusal) and not outcome.permanent):
            self._last = (job, changes, outcome)
        return outcome

    def can_defer(self, job: JobGraph) -> bool:
        """Return True: only the oldest job is ever deferred."""
        return True

    def exhausted(self) -> bool:
        """Return False: even if no GPU is free, the next job may have to be rejected."""
        return False

    def _decided(self, entry: QueuedJob | WaitingJob) -> Outcome:
        job, policy, cluster = entry.job, self._policy, self._cluster
        if refusal := cannot_honour(job, cluster, policy.name, policy.honoured_on(cluster)):
            return refusal
        chosen = policy.place(job, cluster)
        if chosen is not None:
            cluster.allocate(entry.job_id, chosen, job)
            return chosen
        if refusal := cluster_search.why_never(job, cluster):
            return refusal
        return cluster_search.why_not_now(job, cluster) if enough_suit(job, cluster) else None


def _with_slices(placement: Placement, job: JobGraph, cluster: Cluster) -> Placement:
    """Return the placement of a job that takes parts of GPUs with its MIG slices; others are returned unchanged."""
    if not job.takes_parts:
        return placement
    slices, _ = slices_for(job, placement.gpus, cluster)
    return replace(placement, job=job, slices=slices)


def _with_hosts(placement: Placement, job: JobGraph, cluster: Cluster) -> Placement:
    """Return the placement with the CPUs and memory that the job needs on the machines of its GPUs.

    A placement is returned unchanged if it has them already or the job needs none. `optimal` becomes False if the CPUs
    and memory kept some GPUs out of the search.
    """
    limits = tasks_per_machine(job, cluster.hosts)
    if limits is None or placement.hosts:
        return placement
    all_searched = not ((limits > 0) & (limits < job.num_tasks)).any()
    shares = host_shares(job, placement.gpus, cluster.topology)
    return replace(placement, hosts=shares, optimal=placement.optimal and all_searched)


def _check_size(cluster: Cluster) -> None:
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    if cluster.topology.num_gpus > MAX_SEARCHED_GPUS and not cluster_search.is_split(cluster.topology):
        raise ValueError(
            f"{cluster.topology.num_gpus} GPUs are more than this policy searches at once "
            f"(at most {MAX_SEARCHED_GPUS}); join the machines by Topology.cluster"
        )
