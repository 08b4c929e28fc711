"""Attempts on a cluster: whether a job fits once others have left, and new placements for these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from topoplace.engine.confined import confined
from topoplace.errors import SearchTimeoutError
from topoplace.kernels.limits import check_deadline, until_deadline
from topoplace.moving.movers import FORBIDDEN, MOVE, PREEMPT, STAY

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.moving.movers import Mover
    from topoplace.placement import Placement

_ALTERNATIVES = 12
"""Limit on the placements of each job that are tried, best first, if the best ones exclude each other."""
_MAX_TRIED = 256
"""Limit on the placements that are tried in all for one choice of jobs."""


class Arrangement(NamedTuple):
    """The placements of the new job and the moved jobs, and the pre-empted jobs."""

    placement: Placement
    moved: tuple[tuple[Mover, Placement], ...]
    preempted: tuple[Mover, ...]

    @property
    def cost(self) -> float:
        """Return the sum of the costs of the jobs that leave their GPUs."""
        moving = sum(mover.costs[MOVE] for mover, _ in self.moved)
        return moving + sum(mover.costs[PREEMPT] for mover in self.preempted)


@dataclass(frozen=True)
class Attempts:
    """The new job, the cluster with its running jobs, and the policies that place them.

    The cluster is unchanged after each attempt. All methods raise DeadlineError after the deadline.
    """

    job_id: str
    job: JobGraph
    cluster: Cluster
    own: Policy
    """The policy that places the new job."""
    others: Policy
    """The policy that places the jobs that move."""
    movers: Sequence[Mover]
    excluded: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """The names of the machines that a job must not get, by id."""

    def place(self) -> Placement | None:
        """Return the placement of the new job on the cluster as it is now; None if it does not fit."""
        return self._placed(self.own, self.job_id, self.job)

    def policy_of(self, job_id: str, policy: Policy) -> Policy:
        """Return `policy`, limited to the machines that the job may get."""
        return confined(policy, self.excluded.get(job_id, ()))

    def fits_without(self, leaving: Iterable[int]) -> bool:
        """Return True if the job fits once these jobs, by number, have left."""
        with self.cluster.what_if():
            self._release(leaving)
            return self.place() is not None

    def still_too_few(self, leaving: set[int], candidates: Iterable[int]) -> set[int]:
        """Return `leaving` and as many other jobs as can leave without making room for the new job.

        leaving: jobs after whose leaving the new job does not fit. candidates: further jobs, in the order in which they
        are tried.
        """
        leaving = set(leaving)
        with self.cluster.what_if():
            self._release(leaving)
            for number in candidates:
                if number not in leaving and not self.fits_without((number,)):
                    self._release((number,))
                    leaving.add(number)
        return leaving

    def needed(self, leaving: set[int], out_of_time: Callable[[], bool]) -> set[int]:
        """Return a subset of `leaving` whose leaving is enough for the new job; expensive jobs stay first.

        No job of the subset can stay, unless time runs out.
        """
        for number in sorted(leaving, key=lambda number: (-self.movers[number].cheapest, number)):
            if out_of_time():
                break
            if self.fits_without(leaving - {number}):
                leaving = leaving - {number}
        return leaving

    def arranged(self, levels: Mapping[int, int]) -> tuple[Arrangement | None, bool]:
        """Return the arrangement in which jobs, by number, move or are pre-empted by these levels; other jobs stay.

        A moving job without a placement is pre-empted instead; if it may not be, the arrangement is None. The second
        value is True if all moving jobs have placements, or if it is certain that they cannot.
        """
        leaving = sorted(number for number, level in levels.items() if level > STAY)
        moving = [self.movers[number] for number in leaving if levels[number] == MOVE]
        moving.sort(key=lambda mover: (-mover.size, mover.job_id))
        gone = tuple(self.movers[number] for number in leaving if levels[number] == PREEMPT)
        with self.cluster.what_if():
            self._release(leaving)
            quick = self._one_by_one(moving, gone)
            if quick and quick.preempted == gone:
                return quick, True
            search = _Backtracking(self, moving)
            if search.succeeds():
                first, *others = search.chosen
                return Arrangement(first, tuple(zip(moving, others, strict=True)), gone), True
        return quick, search.complete

    def _one_by_one(self, moving: Sequence[Mover], gone: tuple[Mover, ...]) -> Arrangement | None:
        """Place the job, then those that move; pre-empt those without a place, or return None if that is forbidden."""
        placement = self.place()
        if placement is None:
            return None
        moved: list[tuple[Mover, Placement]] = []
        with self.cluster.what_if():
            self.cluster.allocate(self.job_id, placement, self.job)
            for mover in moving:
                where = self._placed(self.others, mover.job_id, mover.job)
                if where is not None:
                    self.cluster.allocate(mover.job_id, where, mover.job)
                    moved.append((mover, where))
                elif mover.costs[PREEMPT] < FORBIDDEN:
                    gone = (*gone, mover)
                else:
                    return None
        return Arrangement(placement, tuple(moved), gone)

    def _placed(self, policy: Policy, job_id: str, job: JobGraph) -> Placement | None:
        """Return a placement; None if nothing fits, none is found in time, or the policy cannot place the job."""
        check_deadline()
        try:
            return self.policy_of(job_id, policy).place(job, self.cluster)
        except (SearchTimeoutError, ValueError):
            return None

    def _release(self, numbers: Iterable[int]) -> None:
        for number in until_deadline(numbers):
            self.cluster.release(self.movers[number].job_id)


class _Backtracking:
    """A search for places of the new job and all jobs that move, which have left their GPUs."""

    def __init__(self, attempts: Attempts, moving: Sequence[Mover]) -> None:
        self.cluster = attempts.cluster
        jobs = [(attempts.job_id, attempts.job, attempts.own)]
        jobs += [(mover.job_id, mover.job, attempts.others) for mover in moving]
        self.waiting = [(job_id, job, attempts.policy_of(job_id, policy)) for job_id, job, policy in jobs]
        self.chosen: list[Placement] = []
        """Where the jobs go, in the order of `waiting`."""
        self.complete = True
        """False if the search ended at its limit, or did not see all placements of a job."""
        self._num_tried = 0

    def succeeds(self) -> bool:
        """Return True if all jobs have a place, namely those in `chosen`."""
        if len(self.chosen) == len(self.waiting):
            return True
        job_id, job, policy = self.waiting[len(self.chosen)]
        for placement in self._candidates(job, policy):
            self._num_tried += 1
            if self._num_tried > _MAX_TRIED:
                self.complete = False
                return False
            self.chosen.append(placement)
            with self.cluster.what_if():
                self.cluster.allocate(job_id, placement, job)
                if self.succeeds():
                    return True
            self.chosen.pop()
        return False

    def _candidates(self, job: JobGraph, policy: Policy) -> Iterator[Placement]:
        """Yield placements on different GPU sets, best first, and notice whether there may be more."""
        check_deadline()
        try:
            explained = policy.explain(job, self.cluster, top=_ALTERNATIVES)
        except (SearchTimeoutError, ValueError):
            self.complete = False
            return
        if explained.refusal:
            return
        candidates = explained.candidates
        self.complete = self.complete and explained.complete and len(candidates) < _ALTERNATIVES
        for placement in candidates:
            if placement.scores.get("utility", 1.0) >= job.min_utility:
                yield placement
            else:
                self.complete = False
