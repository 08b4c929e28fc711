"""The policy protocol, and a base class for policies that are defined by one search method.

To write a policy, implement all methods of `Policy`, or derive from `SearchPolicy` and implement only `best`. See
`examples/own_policy.py`.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import host_shares
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
from topoplace.engine.driver import PolicyDriver
from topoplace.engine.effort import Effort
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.plan import Explanation, Plan, QueuedJob, check_answer
from topoplace.engine.requirements import BY_LEVEL, GROUPED
from topoplace.engine.slices import slices_for
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels import WorkBudget
from topoplace.placement import Placement, Refusal

if TYPE_CHECKING:
    pass


@runtime_checkable
class Policy(Protocol):
    """Protocol of an object that chooses GPUs for jobs. Methods do not change the cluster, and equal inputs give equal
    results.
    """

    @property
    def name(self) -> str:
        """Return the policy's name in tables and on the command line."""
        ...

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the placement of `job` on free GPUs of `cluster`; None if nothing fits or waiting is better."""
        ...

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return up to `top` candidates with their scores, best first, and the reason if `place` would return None."""
        ...

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return the jobs to start, defer or reject at time `now`, in seconds.

        Args:
            queue: The waiting jobs, oldest first; each id is unique and not that of a running job.
        """
        ...


class SearchPolicy(PolicyDriver):
    """Base of policies that need only one method, `best`; it provides requirement checks, ranking and queueing.

    On a cluster of several machines that a fabric joins, `best` sees one machine at a time, or the machines of a split,
    as its own cluster; see `cluster_search`. Its results are cached for machines in equal condition, so options of a
    policy must not change after its first decision.

    The queue is strictly first in, first out: no job starts before an older one. A job that can never run is rejected.
    """

    out_of_order = False
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
        """Return the result of `best`; a policy that counts the nodes of its searches takes them from `budget`.

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

        Args:
            machine: The machine as its own cluster, before the placement.
        """
        return self._checked_order(job, placement)

    def reason_to_wait(self, job: JobGraph, placement: Placement) -> Refusal | None:
        """Return why the job should wait although `placement`, its best one, is possible; None to accept it."""
        return None

    # ---- what the driver asks ------------------------------------------------------------------------------

    def find(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the best placement of `job` on the free GPUs; None when nothing fits or waiting is better."""
        cluster = view.cluster
        simple = not (job.requirements or cluster_search.is_split(cluster.topology))
        where = candidate_gpu_sets(job, cluster) if simple else []
        placement = None
        if len(where) == 1 and len(where[0]) >= job.num_tasks:  # the usual case: nothing to rank
            placement = self.best(job, cluster, where[0])
            check_answer(placement, Placement, self, "best", or_none=True)
        if placement is None and (len(where) != 1 or cluster.topology.partitioned_gpus):
            placement = next(self.candidates(job, view, Effort(self.decision_budget())), None)
        return None if placement is None or self._waits(job, placement) else placement

    def candidates(self, job: JobGraph, view: ClusterView, effort: Effort) -> Iterator[Placement]:
        """Yield placements on different GPU sets, best first; on a cluster of several machines machine by machine."""
        cluster = view.cluster
        if cluster_search.is_split(cluster.topology) or view.request(job).is_divided:
            found = cluster_search.ranked(self, job, cluster, effort)
        elif job.takes_parts:
            found = cluster_search.ranked_for_parts(self, job, cluster, effort)
        else:
            found = self.ranked(job, cluster, effort)
        return (_with_hosts(_with_slices(placement, job, cluster), job, cluster) for placement in found)

    def why_not(self, job: JobGraph, view: ClusterView, candidates: Sequence[Placement]) -> Refusal | None:
        """Return why `find` returns no placement; None if it returns the first of `candidates`."""
        return self._waits(job, candidates[0]) if candidates else super().why_not(job, view, candidates)

    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if no such reason is known."""
        return cluster_search.why_never(job, view.cluster)

    def why_not_now(self, job: JobGraph, view: ClusterView) -> Refusal:
        """Return why a job that could run on an idle cluster cannot start now."""
        return cluster_search.why_not_now(job, view.cluster)

    def effort(self, job: JobGraph) -> Effort:
        """Return the work that `explain` may take: that of `place`, and `num_ranking_nodes` for other candidates."""
        return Effort(self.decision_budget(), self.num_ranking_nodes, max(1, job.num_tasks))

    def need_of(self, job: JobGraph, view: ClusterView) -> Hashable:
        """Return the request that the job shares with all jobs that no policy distinguishes from it."""
        return view.exact_request(job)

    def lack_of(self, job: JobGraph, view: ClusterView, least_utility: float) -> Refusal | None:
        """Return why the job cannot start now; None if the cluster is too small for it at present."""
        return self.why_not_now(job, view) if enough_suit(job, view.cluster) else None

    def why_deferred(self, job: JobGraph, lack: Refusal | None) -> Refusal | None:
        """Return the reason that was found for a job of equal need."""
        return lack

    def view_of(self, cluster: Cluster) -> ClusterView:
        """Return the tables derived from a cluster; ValueError for more GPUs than one search can take."""
        view = super().view_of(cluster)
        _check_size(cluster)
        return view

    def honoured_on(self, cluster: Cluster) -> frozenset[str]:
        """Return the requirements that the policy honours on this cluster, in addition to those of every policy."""
        by_machines = cluster.topology.num_machines == 1 or cluster_search.is_split(cluster.topology)
        honours = self.honours | {"gpu_fraction", "mig"} | GROUPED
        return honours | BY_LEVEL if by_machines else honours

    def ranked(self, job: JobGraph, cluster: Cluster, effort: Effort) -> Iterator[Placement]:
        """Yield the best placement of each GPU set of a small cluster, best first, by GPU memory if the job states it.

        The search considers all pairs of GPUs, whatever their machines. Partitions of several machines are joined only
        if there is no other placement.
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
    if cluster.topology.num_gpus > MAX_SEARCHED_GPUS and not cluster_search.is_split(cluster.topology):
        raise ValueError(
            f"{cluster.topology.num_gpus} GPUs are more than this policy searches at once "
            f"(at most {MAX_SEARCHED_GPUS}); join the machines by Topology.cluster"
        )
