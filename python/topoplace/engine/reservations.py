"""When waiting jobs are expected to start, given when running jobs are expected to end."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from topoplace._fewest import fewest
from topoplace.engine.busy_times import BusyTimes
from topoplace.engine.driver import PolicyDriver
from topoplace.errors import AllocationError

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


class Reservation(NamedTuple):
    """The period in which a job is expected to hold the GPUs of a placement; times in seconds."""

    job_id: str
    job: JobGraph
    placement: Placement
    start: float
    end: float


def end_of(start: float, seconds: float) -> float:
    """Return the end of a period that begins at `start`; it is later than `start`, even for a period below a clock
    tick.
    """
    return max(start + seconds, math.nextafter(start, math.inf))


def expected_start(job: JobGraph, running: Sequence[Reservation], policy: Policy, cluster: Cluster) -> float:
    """Return the earliest time, in seconds, at which the policy can place a job as running jobs end; infinite if never.

    running: the running jobs, the first to end first.
    """
    number = fewest(len(running), lambda ended: _fits_after(job, running[:ended], policy, cluster))
    return math.inf if number is None else running[number - 1].end


def whole_gpus(job: JobGraph) -> int:
    """Return the number of whole GPUs that a job needs."""
    return 0 if job.takes_parts else job.num_tasks


def spare_gpus(job: JobGraph, start: float, running: Sequence[Reservation], cluster: Cluster) -> float:
    """Return the upper bound on whole GPUs that jobs may hold past `start` without a delay of the job that starts then.

    running: the running jobs, the first to end first. The result is infinite if the job needs only parts of GPUs, or
    never starts.
    """
    if job.takes_parts or start == math.inf:
        return math.inf
    whole, shared = 0, set[int]()
    for one in running[: bisect_right(running, start, key=lambda one: one.end)]:
        if one.job.takes_parts:
            shared.update(one.placement.gpus)
        else:
            whole += len(one.placement.gpus)
    return cluster.num_free + whole + len(shared) - job.num_tasks


def would_delay(
    first: JobGraph,
    start: float,
    candidate: Reservation,
    running: Sequence[Reservation],
    policy: Policy,
    cluster: Cluster,
) -> bool:
    """Return True if a job that is expected to start at `start` could not do so if `candidate` began now.

    running: the running jobs, the first to end first.
    """
    if candidate.end <= start:
        return False
    with cluster.what_if():
        cluster.allocate(candidate.job_id, candidate.placement, candidate.job)
        ended = bisect_right(running, start, key=lambda one: one.end)
        return not _fits_after(first, running[:ended], policy, cluster)


def _fits_after(job: JobGraph, ended: Iterable[Reservation], policy: Policy, cluster: Cluster) -> bool:
    with cluster.what_if():
        for one in ended:
            cluster.release(one.job_id)
        return has_room(job, policy, cluster)


def has_room(job: JobGraph, policy: Policy, cluster: Cluster) -> bool:
    """Return True if the policy places a job now."""
    if isinstance(policy, PolicyDriver):
        return policy.has_room(job, cluster)
    return policy.place(job, cluster) is not None


class Timetable:
    """The reservations of running and waiting jobs; no two need the same resources at the same time."""

    def __init__(self, running: Sequence[Reservation], policy: Policy, cluster: Cluster, now: float) -> None:
        self._reserved = list(running)
        self._used = BusyTimes(now)
        """GPUs that jobs with shares cannot get: those reserved as a whole."""
        self._touched = BusyTimes(now)
        """GPUs that jobs of whole GPUs cannot get."""
        for one in running:
            self._note(one)
        self._running = {one.job_id for one in running}
        self._policy = policy
        self._cluster = cluster

    def reserve(
        self,
        job_id: str,
        job: JobGraph,
        seconds: float,
        excluded: Iterable[str] = (),
        latest: float = math.inf,
    ) -> Reservation | None:
        """Reserve and return the earliest period of `seconds` in which the job fits next to all others; None if there
        is none.

        excluded: the machines that the job must not get. latest: limit on the start, in seconds.
        """
        excluded = tuple(excluded)
        busy = self._used if job.takes_parts else self._touched
        for start in busy.starts(self._cluster.topology.num_gpus - job.num_tasks, seconds):
            if start > latest:
                break
            placement = self._place(job_id, job, start, end_of(start, seconds), excluded)
            if placement is not None:
                found = Reservation(job_id, job, placement, start, end_of(start, seconds))
                self._reserved.append(found)
                self._note(found)
                return found
        return None

    def started(self, job_id: str) -> None:
        """Record that a job with a reservation now runs on the cluster."""
        self._running.add(job_id)

    def _note(self, reservation: Reservation) -> None:
        mask = sum(1 << gpu for gpu in reservation.placement.gpus)
        self._touched.add(mask, reservation.start, reservation.end)
        if not reservation.job.takes_parts:
            self._used.add(mask, reservation.start, reservation.end)

    def _place(
        self, job_id: str, job: JobGraph, start: float, end: float, excluded: Iterable[str]
    ) -> Placement | None:
        """Return a placement for this time that leaves all reservations possible; None if the policy finds none."""
        later = [one for one in self._reserved if start < one.start < end]
        with self._at(start):
            for one in later:
                for gpu in one.placement.gpus:
                    self._cluster.drain(gpu)
            for machine in excluded:
                self._cluster.drain(machine)
            placement = self._policy.place(job, self._cluster)
        if placement is None or not self._cluster.hosts.resources:
            return placement  # no GPU of it is reserved in this time, and nothing else is limited
        moments = sorted({one.start for one in later})
        return placement if all(self._holds(job_id, job, placement, moment) for moment in moments) else None

    def _holds(self, job_id: str, job: JobGraph, placement: Placement, moment: float) -> bool:
        """Return True if a placement is possible next to what is reserved at this time."""
        with self._at(moment):
            try:
                self._cluster.allocate(job_id, placement, job)
            except AllocationError:
                return False
        return True

    def _at(self, moment: float) -> _Moment:
        active = [one for one in self._reserved if one.start <= moment < one.end]
        return _Moment(self._cluster, self._running, active)


class _Moment:
    """A block in which the cluster is as expected at some time."""

    def __init__(self, cluster: Cluster, running: Iterable[str], active: Sequence[Reservation]) -> None:
        self._cluster = cluster
        self._running = running
        self._active = active
        self._undo = cluster.what_if()

    def __enter__(self) -> None:
        self._undo.__enter__()
        staying = {one.job_id for one in self._active if one.job_id in self._running}
        for job_id in self._running:
            if job_id not in staying:
                self._cluster.release(job_id)
        for one in self._active:
            if one.job_id not in staying:
                self._cluster.allocate(one.job_id, one.placement, one.job)

    def __exit__(self, *error: object) -> None:
        self._undo.__exit__(None, None, None)
