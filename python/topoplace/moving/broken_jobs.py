"""A job that lost GPUs, and what helps if the free GPUs do not suffice: fewer replicas, time, or other jobs' GPUs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

from topoplace import policies
from topoplace.cluster.spares import LENT, SPARE, SPARES, preemptible_on
from topoplace.errors import DeadlineError, SearchTimeoutError
from topoplace.moving.movers import FORBIDDEN, MOVE, PREEMPT, movers_of
from topoplace.moving.reassignment import plan_of
from topoplace.moving.repair_search import SAME, RepairSearch
from topoplace.moving.replicas import roles_of, without
from topoplace.placement import Placement

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.moving.held_shares import HeldShares
    from topoplace.moving.move_costs import MoveCosts
    from topoplace.moving.movers import Mover
    from topoplace.moving.reassignment import Reassignment
    from topoplace.moving.repair_search import Found

_MOST_IN_PAIRS: Final = 100
"""Largest number of ways in which a job can leave that are combined with one another."""


@dataclass(frozen=True, slots=True)
class BrokenJob:
    """A job that has left the cluster after a failure."""

    job_id: str
    graph: JobGraph | None
    """What is known of the job."""
    job: JobGraph
    """The graph, or one in which no tasks communicate."""
    gpus: tuple[int, ...]
    lost: Collection[int]
    shares: HeldShares
    cluster: Cluster
    end: float
    """When searches end, in seconds of `time.monotonic`."""
    spares: Mapping[int, str]
    """The GPUs that are held as spares, with the reason."""
    closed: Collection[int]
    """The job's GPUs out of service, which no other job may get."""
    stopped: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """The GPUs of the pre-emptible jobs that have left lent spares."""

    def with_spares(self) -> RepairSearch:
        """Return the search that may use spares, which stay released."""
        machines = set(self.cluster.topology.machine_of[list(self.spares)].tolist())
        self.cluster.native.unhold(list(self.spares), sorted(machines))
        return self.search()

    def to_stop(self) -> tuple[str, ...]:
        """Return the pre-emptible jobs that must leave lent spares so that all tasks can be repaired.

        None of them can stay alone. If that is impossible, or the job is pre-emptible itself, return all, or none.
        """
        lent = [gpu for gpu, reason in self.spares.items() if reason == LENT]
        cluster = self.cluster
        jobs = preemptible_on(lent, cluster.topology, cluster.native, cluster.hosts)
        if self.job.is_preemptible or not jobs:
            return ()
        with suppress(SearchTimeoutError):
            if not (found := self._whole_without(jobs)):
                return jobs
            new = [gpu for gpu, old in zip(found.gpus, self.gpus, strict=True) if gpu != old]
            leaving = self._near(new, {job_id: cluster.gpus_of(job_id) for job_id in jobs})
            for job_id in sorted(leaving, key=lambda one: (-len(leaving[one]), one)):
                rest = {one: gpus for one, gpus in leaving.items() if one != job_id}
                if self._whole_without(rest):
                    leaving = rest
            return tuple(leaving)
        return ()

    def _whole_without(self, jobs: Iterable[str]) -> Found | None:
        """Return the repair of all tasks if other jobs were not there."""
        with self.cluster.what_if():
            for job_id in jobs:
                self.cluster.release(job_id)
            return self.search().whole()

    def stopping(self, jobs: Iterable[str]) -> BrokenJob:
        """Return the same for a cluster that other jobs have left, too."""
        stopped = {job_id: self.cluster.gpus_of(job_id) for job_id in jobs}
        for job_id in stopped:
            self.cluster.release(job_id)
        return replace(self, stopped=stopped)

    def search(self) -> RepairSearch:
        """Return the search in the present state of the cluster."""
        return RepairSearch(self.shares.job, self.gpus, self.cluster, self.end, self.lost)

    def plan(self, found: Found) -> Reassignment:
        """Return the plan for what a search found."""
        plan = self._plan_as(self.job, self.gpus, found)
        if plan.placement and self.graph is None:
            plan = replace(plan, placement=replace(plan.placement, job=None))
        return plan

    def _plan_as(self, job: JobGraph, old: Sequence[int], found: Found) -> Reassignment:
        """Return the plan with which the job goes on as `job`; old: the former GPU of each of its tasks."""
        topology, gpus, seconds = self.cluster.topology, found.gpus, found.seconds
        return self._naming_others(
            plan_of(self.job_id, self.gpus, job, old, gpus, seconds, self.shares, topology, self.lost)
        )

    def _naming_others(self, plan: Reassignment) -> Reassignment:
        """Return a plan with the spares that it takes, and the jobs that stop for it."""
        gpus = self.cluster.topology.gpus
        new = [gpu for _, gpu in plan.replaced.values()]
        others = [gpu for _, placement in plan.others.values() if placement for gpu in placement.gpus]
        given = (SPARE,) if self.job.is_preemptible else SPARES
        spares = {gpus[gpu].machine for gpu in new if self.spares.get(gpu) in given}
        spares |= {gpus[gpu].machine for gpu in others if gpu in self.spares}
        stopped = {job_id: (own, None) for job_id, own in self._near([*new, *others], self.stopped).items()}
        return replace(plan, spares=tuple(sorted(spares)), others={**stopped, **plan.others})

    def _near(self, new: Iterable[int], jobs: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return those of the jobs, with their GPUs, that have some on the machines of GPUs, or none at all."""
        machine_of = self.cluster.topology.machine_of
        machines = set(machine_of[list(new)].tolist())
        return {
            job_id: own
            for job_id, own in jobs.items()
            if not own or not machines.isdisjoint(machine_of[list(own)].tolist())
        }

    def smaller(self) -> Reassignment | None:
        """Return how the job goes on without the data replicas that lost the most tasks; None if it cannot."""
        gpus, replicas = self.gpus, self._replicas()
        hit = sum(any(gpus[task] in self.lost for task in tasks) for tasks in replicas)
        least = self.job.elastic[0] if self.job.elastic else 1
        for count in range(1, min(hit + 1, len(replicas))):
            removed = {task for tasks in replicas[:count] for task in tasks}
            if time.monotonic() > self.end or len(gpus) - len(removed) < least:
                break
            rest, old = without(self.job, removed), [gpu for i, gpu in enumerate(gpus) if i not in removed]
            with suppress(SearchTimeoutError):
                found = RepairSearch(rest, old, self.cluster, self.end, self.lost).whole()
                if found is not None:
                    return self._plan_as(rest, old, found)
        return None

    def _replicas(self) -> list[tuple[int, ...]]:
        """Return the replicas that the job can give up, those that lost the most tasks first; [] if it has none."""
        dimensions = self.job.dimensions
        if "data" not in dimensions or "expert" in dimensions or self.shares.are_given:
            return []
        lost = [gpu in self.lost for gpu in self.gpus]
        return sorted(roles_of(self.job).replicas, key=lambda tasks: -sum(lost[task] for task in tasks))

    def later(self, now: Found, ending: Iterable[tuple[float, str]]) -> Reassignment | None:
        """Return the first plan that is better than the present one as jobs end, given with the seconds until then."""
        with self.cluster.what_if(), suppress(SearchTimeoutError):
            for seconds, other in ending:
                if time.monotonic() > self.end:
                    break
                if other not in self.stopped:
                    self.cluster.release(other)
                search = self.search()
                found = search.first()
                fewer = len(found.unrepaired) - len(now.unrepaired)
                fewer = fewer or search.moves(found.gpus) - search.moves(now.gpus)
                if fewer < 0 or (fewer == 0 and found.is_whole and found.seconds < now.seconds * SAME):
                    return replace(self.plan(found), wait=seconds)
        return None

    def others(self, budget: float, costs: MoveCosts) -> Reassignment | None:
        """Return the cheapest plan in which a few other jobs move or stop; None if none is found in time."""
        with suppress(SearchTimeoutError, DeadlineError), self.search().limited():
            for cost, leaving in _by_cost(movers_of(self.cluster, None, costs)):
                if cost > budget:
                    break
                if plan := self._without(leaving):
                    return plan
        return None

    def _without(self, leaving: Iterable[tuple[Mover, int]]) -> Reassignment | None:
        """Return the plan if these jobs move or stop; None if the job or one that moves has no room then."""
        cluster = self.cluster
        with cluster.what_if():
            for mover, _ in leaving:
                cluster.release(mover.job_id)
            found = self.search().whole()
            if found is None:
                return None
            plan = self.plan(found)
            assert plan.placement is not None
            cluster.record(self.job_id, plan.placement, self.graph)
            cluster.native.drain(list(self.closed))
            others = {
                mover.job_id: (mover.gpus, self._again(mover) if level == MOVE else None)
                for mover, level in leaving
            }
        is_lost = any(level == MOVE and others[mover.job_id][1] is None for mover, level in leaving)
        return None if is_lost else self._naming_others(replace(plan, others=others))

    def _again(self, mover: Mover) -> Placement | None:
        """Start a job again that had to leave, and return where; None if there is no room."""
        found = policies.get(policies.DEFAULT).place(mover.job, self.cluster)
        if found is not None:
            self.cluster.allocate(mover.job_id, found, self.cluster.jobs.get(mover.job_id))
        return found


def _by_cost(movers: Iterable[Mover]) -> Iterator[tuple[float, list[tuple[Mover, int]]]]:
    """Yield one or two jobs, with how they leave, the cheapest first; pairs only of those that are cheap."""
    ways = sorted(_ways(movers), key=lambda way: (way[0], way[1].job_id))
    pairs = [(a, b) for a, b in combinations(ways[:_MOST_IN_PAIRS], 2) if a[1] is not b[1]]
    for some in sorted([*((one,) for one in ways), *pairs], key=_cost):
        yield _cost(some), [(mover, level) for _, mover, level in some]


def _ways(movers: Iterable[Mover]) -> Iterator[tuple[float, Mover, int]]:
    """Yield each way in which a job can leave, with its cost."""
    for mover in movers:
        for level in (MOVE, PREEMPT):
            if mover.costs[level] < FORBIDDEN:
                yield mover.costs[level], mover, level


def _cost(some: Iterable[tuple[float, Mover, int]]) -> float:
    return sum(cost for cost, _, _ in some)
